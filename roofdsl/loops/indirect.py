"""Whether the data of index arrays choose what a kernel accesses, and the errors for what needs to know them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.accesses import accesses, bound_accesses, indices
from roofdsl.loops.model import Assign, Element, For, If, Kernel, Let, Node


def index_arrays(kernel: Kernel) -> tuple[str, ...]:
    """The arrays that subscripts and loop bounds read, in the order of their declarations; empty for affine kernels."""
    found = {e.array.name for e in _read(kernel.body)}
    return tuple(a.name for a in kernel.arrays if a.name in found) if found else ()


def is_indirect(kernel: Kernel) -> bool:
    """Whether subscripts or loop bounds read arrays."""
    if kernel.data is not None:  # they may be large, so nothing keeps them alive
        return next(_read(kernel.body), None) is not None
    return _is_indirect(kernel)


@lru_cache(maxsize=64)
def _is_indirect(kernel: Kernel) -> bool:
    """As `is_indirect`, kept: every analysis of a kernel asks first."""
    return next(_read(kernel.body), None) is not None


def first_read(kernel: Kernel) -> Element:
    """The first element that a subscript or a loop bound reads. Raises StopIteration for an affine kernel."""
    return next(_read(kernel.body))


def _read(body: Sequence[Node]) -> Iterator[Element]:
    for node in body:
        match node:
            case For():
                yield from (access.element for access in bound_accesses(node))
                yield from _read(node.body)
            case If():
                yield from _read(node.then)
                yield from _read(node.orelse)
            case Assign() | Let():
                yield from (e for access in accesses(node) for e in indices(access.element))


INSTEAD = "`derive` gives intervals for all data, and `simulate --data` the exact traffic of a given matrix"


def require_affine(kernel: Kernel, what: str = "this analysis", instead: str = INSTEAD) -> None:
    """Raises CommandError for a kernel with index arrays, for which `what` is not available: "`bound`". The help says
    what to do `instead`.
    """
    if not is_indirect(kernel):
        return
    read = first_read(kernel)
    subscripts = ", ".join(map(str, read.subscripts))
    raise CommandError(
        f"the accesses of kernel {kernel.name} depend on data (it reads `{read.array.name}[{subscripts}]` in a "
        f"subscript or loop bound), so {what} is not available for it",
        instead,
    )


def require_affine_program(program: str, kernels: Iterable[Kernel]) -> None:
    """Raises CommandError if a kernel of a program has index arrays, to which nothing can give values."""
    for kernel in kernels:
        if is_indirect(kernel):
            raise CommandError(
                f"kernel {kernel.name} of program {program} has index arrays, and `--data` gives values only to a "
                "single kernel",
                f"name the kernel, FILE:{kernel.name}, in place of the program",
            )


def require_data(kernel: Kernel) -> None:
    """Raises CommandError for a kernel with index arrays whose values are not given."""
    names = index_arrays(kernel)
    missing = [n for n in names if kernel.data is None or n not in kernel.data.values]
    if missing:
        listed = ",".join(names)
        raise CommandError(
            f"what kernel {kernel.name} accesses depends on the values of {', '.join(missing)}",
            f"give them: --data {listed}=A.mtx, or generate them: --data {listed}=random:n=1000,row=8,seed=1",
        )

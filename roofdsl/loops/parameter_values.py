"""Numbers for the parameters of kernels and programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.lang.source import Source
from roofdsl.lang.types import ElementType
from roofdsl.loops.integers import Condition, Const, IntExpr
from roofdsl.loops.model import Kernel, Node


def with_numbers(kernel: Kernel, sizes: Mapping[str, int]) -> Kernel:
    """The kernel with these numbers wherever the parameters occur; they remain its parameters.

    The kernel's directives must have been applied.
    """
    if kernel.directives:
        raise ValueError("apply the directives first (roofdsl.loops.transform.apply)")
    numbers = {name: Const(value) for name, value in sizes.items()}
    changed = {name: _changed(getattr(kernel, name), numbers) for name in ("arrays", "assumptions", "body")}
    return replace(kernel, **changed)


def with_numbers_in(nodes: tuple[Node, ...], values: Mapping[str, int]) -> tuple[Node, ...]:
    """Statements with these numbers wherever the parameters or loop variables occur; no loop in them has such a
    variable.
    """
    return with_expressions(nodes, {name: Const(value) for name, value in values.items()})


def with_expressions(nodes: tuple[Node, ...], values: Mapping[str, IntExpr]) -> tuple[Node, ...]:
    """As `with_numbers_in`, with expressions."""
    changed: tuple[Node, ...] = _changed(nodes, values)
    return changed


def _changed(part: Any, numbers: Mapping[str, IntExpr]) -> Any:
    if isinstance(part, IntExpr | Condition):
        return part.substitute(numbers)
    if type(part) is tuple:
        return tuple(_changed(p, numbers) for p in part)
    if isinstance(part, Record) and not isinstance(part, Source | ElementType):
        fields = {n: getattr(part, n) for n in part.__match_args__ if n != "span"}
        return replace(part, **{n: _changed(value, numbers) for n, value in fields.items()})
    return part


def numbers(kernel: Kernel, params: Mapping[str, int], *, complete: bool = True) -> dict[str, int]:
    """The values of the kernel's parameters: given, or else (if `complete`) the file's defaults.

    Raises CommandError for an unknown parameter, one that is not positive, another number for a `const` parameter than
    the kernel has, a missing one (if `complete`), and sizes that violate an assumption of the kernel.
    """
    names = [p.name for p in kernel.parameters]
    whose = f"kernel {kernel.name}"
    check_names(whose, params, [*names, *(name for name, _ in kernel.constants)])
    for name, value in params.items():
        if value < 1:
            raise CommandError(f"parameter {name} of kernel {kernel.name} is {value}", "parameters must be positive")
    check_constants(kernel, params)
    values = {n: params[n] for n in names if n in params}
    if complete:
        values |= {p.name: p.default for p in kernel.parameters if p.name not in values and p.default is not None}
        check_complete(whose, names, values)
    for condition in kernel.assumptions:
        if condition.symbols() <= values.keys() and not condition.holds(values):
            given = ", ".join(f"{n} = {values[n]}" for n in names if n in condition.symbols())
            raise CommandError(f"{whose} assumes {condition}, but {given} is given")
    return values


def check_constants(kernel: Kernel, given: Mapping[str, int]) -> None:
    """Raises CommandError if a `const` parameter, whose number is already in the kernel, is given another one."""
    for name, value in kernel.constants:
        if given.get(name, value) != value:
            raise CommandError(
                f"the kernel {kernel.name} was made with {name} = {value}, but {name} = {given[name]} is given",
                f"make the kernel with {name} = {given[name]}, or leave {name} out",
            )


def check_names(whose: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Raises CommandError for the first of `given` that is not a parameter of `whose` (as in "kernel gemv")."""
    unknown = sorted(set(given).difference(known))
    if unknown:
        raise CommandError(f"{whose} has no parameter `{unknown[0]}`", its_parameters(known))


def its_parameters(names: Sequence[str]) -> str:
    """What a message adds about a name that is not one of the parameters `names`: `its parameters are n, b`."""
    if not names:
        return "it has none"
    return f"its parameters are {few(names)}" if len(names) > 1 else f"its only parameter is {names[0]}"


def check_complete(whose: str, names: Iterable[str], values: Mapping[str, int]) -> None:
    """Raises CommandError if some of the parameters `names` have no value."""
    missing = [n for n in names if n not in values]
    if missing:
        give = ",".join([*(f"{n}=..." for n in missing[:SHOWN]), *(["..."] if len(missing) > SHOWN else [])])
        what, it = ("a number", "it") if len(missing) == 1 else ("numbers", "them")
        raise CommandError(f"{whose} needs {what} for {few(missing)}", f"give {it} with --set {give}")


SHOWN = 8
"""The maximum number of names in a message."""


def few(names: Sequence[str]) -> str:
    """`a, b, c`; if there are many, the first ones and the number of the others."""
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more

"""What every analysis of a kernel at given sizes checks first: its parameters, assumptions, cache and line."""

from __future__ import annotations

from collections.abc import Mapping

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from roofdsl.loops.numbers import check_complete, check_names


def numbers(kernel: Kernel, params: Mapping[str, int], *, complete: bool = True) -> dict[str, int]:
    """The kernel's parameters with a number: given, else (where `complete`) the file's default.

    Raises CommandError for an unknown parameter, one that is not positive, a missing one (where `complete`), and
    sizes that break an assumption of the kernel.
    """
    names = [p.name for p in kernel.parameters]
    whose = f"kernel {kernel.name}"
    check_names(whose, params, [*names, *(name for name, _ in kernel.constants)])
    for name, value in params.items():
        if value < 1:
            raise CommandError(f"parameter {name} of kernel {kernel.name} is {value}", "parameters are positive")
    values = {n: params[n] for n in names if n in params}
    if complete:
        values |= {p.name: p.default for p in kernel.parameters if p.name not in values and p.default is not None}
        check_complete(whose, names, values)
    for condition in kernel.assumptions:
        if condition.symbols() <= values.keys() and not condition.holds(values):
            given = ", ".join(f"{n} = {values[n]}" for n in names if n in condition.symbols())
            raise CommandError(f"{whose} assumes {condition}, and {given} breaks it")
    return values


def check_cache(kernel: Kernel, cache_bytes: int | None, line_bytes: int | None) -> None:
    """Raises CommandError for a line or cache that language.md forbids ("Traffic, Q(Z)")."""
    arrays = [a for a in kernel.arrays if not a.is_scalar]
    for a in arrays:
        if line_bytes is not None and (line_bytes < a.type.bytes or line_bytes % a.type.bytes):
            raise CommandError(
                f"a line of {line_bytes} B does not hold a whole number of elements of {a.name} "
                f"({a.type}, {a.type.bytes} B)",
                "give a line that is a multiple of every element's size",
            )
    largest = max((line_bytes or a.type.bytes for a in arrays), default=0)
    if cache_bytes is not None and cache_bytes < largest:
        raise CommandError(
            f"a cache of {cache_bytes} B cannot hold a line of {largest} B", "give a larger cache or a smaller line"
        )

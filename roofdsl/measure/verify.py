"""Verification before timing: does the very code that will run compute what the kernel specifies?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from numpy.typing import NDArray

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from roofdsl.measure.verified import Verified
from roofdsl.sets.sizes import NotAffine

Run = Callable[[dict[str, NDArray[Any]], Mapping[str, int]], None]
"""Runs code on arrays (as codegen.inputs gives them), which it changes, at these sizes."""

AGAINST = "numpy in higher precision, the kernel as written"

BUDGET_S, SMALLEST_BUDGET_S = 1.5, 20.0
"""Seconds that the reference may take, and those at the smallest sizes, without which nothing could be verified."""

MOST_ACCESSES = 3600 * 10**12
"""The most array accesses of one measured execution: more than any processor or GPU makes in an hour."""

_FIRST = 2_000  # accesses at the smallest size that is worth a comparison


class WrongResult(CommandError):
    """Generated code whose results differ from the kernel's."""


_INPUTS: tuple[dict[str, bool], ...] = ({}, {"exact": True}, {"positive": True})
"""The kinds of data to compare on, tried in this order until the results can be verified: random numbers; numbers with
few bits, whose sums are exact; and positive numbers, whose sums do not cancel (so that a root or a quotient of a sum is
well conditioned).
"""


def verify(  # noqa: PLR0917
    kernel: Kernel, run: Run, values: Mapping[str, int], what: str, compute: str | None = None,
    budget_s: float = BUDGET_S,
) -> Verified:  # fmt: skip
    """Compare one run on random data, with poisoned outputs, to the reference, at sizes at which that takes at most
    `budget_s`.

    `what` names the code in the error. `compute`: a type such as tf32 to which single-precision operations may be
    rounded. If rounding alone may change a result by more than its size on all kinds of data, the outcome says that it
    cannot be verified. Raises WrongResult if a number is farther off than rounding allows, and CommandError for sizes
    at which one execution or its verification does not end.
    """
    accesses = _accesses(kernel, values)
    if accesses > MOST_ACCESSES:
        at = ", ".join(f"{n} = {v}" for n, v in values.items())
        years = accesses / MOST_ACCESSES / (24 * 365)
        least = f"{years:.3g} years" if years > 1 else "an hour"
        raise CommandError(
            f"kernel {kernel.name} makes {float(accesses):.3g} array accesses at {at}, which take at least {least}",
            "measure it at smaller sizes",
        )
    first: Verified | None = None
    for inputs in _INPUTS:
        found = _verified(kernel, run, values, what, compute, budget_s=budget_s, kind=inputs)
        if found.holds:
            return found
        first = first or found
    assert first is not None
    return first


def _verified(
    kernel: Kernel, run: Run, values: Mapping[str, int], what: str, compute: str | None, *, budget_s: float,
    kind: dict[str, bool],
) -> Verified:  # fmt: skip
    """The comparison on one kind of data, at the largest size at which it is possible."""
    from roofdsl.codegen.compare_results import compare
    from roofdsl.codegen.inputs import poisoned, random_inputs
    from roofdsl.codegen.reference import TakesTooLong, reference

    sizes = list(_affordable(kernel, values))
    spent, cost_before = 0.0, 0
    verified: Verified | None = None
    for params, cost in sizes:
        if verified is not None and spent * cost / max(cost_before, 1) > budget_s:
            break
        inputs = random_inputs(kernel, params, seed=1, **kind)
        start = time.perf_counter()
        try:
            want = reference(kernel, params, inputs, compute, SMALLEST_BUDGET_S if verified is None else budget_s)
        except TakesTooLong:
            break
        spent, cost_before = time.perf_counter() - start, cost
        given = poisoned(kernel, inputs)
        got = {name: array.copy(order="K") for name, array in given.items()}
        run(got, params)
        found = compare(got, want, kernel, given)
        at = ", ".join(f"{n} = {v}" for n, v in params.items())
        if found.wrong:
            raise WrongResult(
                f"{what} of kernel {kernel.name} does not compute what the kernel computes at {at}: {found.wrong}",
                "it is not timed; this is a bug in roofdsl, please report it with the kernel",
            )
        if verified is not None and found.unverifiable:
            break  # at this size, rounding alone may give any result: a long sum in half precision
        reasons = [f"{kernel.name}, `{n}` at {at}: {reason}" for n, reason in found.unverifiable.items()]
        verified = Verified(
            AGAINST, found.max_error, found.of_allowed, found.unverified, tuple(params.items()), tuple(reasons)
        )
        if reasons:
            break  # larger sizes round more
    if verified is None:
        at = ", ".join(f"{n} = {v}" for n, v in sizes[0][0].items())
        raise CommandError(f"verifying kernel {kernel.name} takes too long even at {at}", "measure it at smaller sizes")
    return verified


def _affordable(kernel: Kernel, values: Mapping[str, int]) -> Iterator[tuple[dict[str, int], int]]:
    """(sizes, accesses), ascending up to the sizes asked for, the largest parameter about doubling each time."""
    found = []
    for params in smaller(kernel, values):
        cost = _accesses(kernel, params)
        found.append((params, cost))
        if cost <= _FIRST:
            break
    yield from reversed(found)


def smaller(kernel: Kernel, values: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """`values`, then ever smaller sizes that the kernel's assumptions allow, each with the largest parameter about
    halved.

    Sizes are made odd if that is allowed, so that the verification covers partial tiles and loop remainders.
    """
    params = dict(values)
    yield dict(params)
    while True:
        for name in sorted(params, key=lambda n: -params[n]):
            half = next((h for h in _halves(params[name]) if _allowed(kernel, {**params, name: h})), None)
            if half is not None:
                params[name] = half
                break
        else:
            return
        yield dict(params)


def _halves(value: int) -> Iterator[int]:
    half = value // 2
    if half < 2:
        return
    yield half - 1 + half % 2  # odd
    yield from range(half, max(1, half - 64), -1)


def _allowed(kernel: Kernel, params: Mapping[str, int]) -> bool:
    return all(c.holds(params) for c in kernel.assumptions if c.symbols() <= params.keys())


def _accesses(kernel: Kernel, params: Mapping[str, int]) -> int:
    """Array accesses of one execution; if integer sets cannot count them, 4 n**3 for the largest parameter n."""
    from roofdsl.counts.traffic_at import access_count
    from roofdsl.loops.sized import Sized
    from roofdsl.loops.transform import apply
    from roofdsl.sets.library import LibraryFailure, TooHard

    try:
        return access_count(Sized(apply(kernel), params))
    except (LibraryFailure, NotAffine, TooHard):
        return 4 * max(params.values(), default=1) ** 3

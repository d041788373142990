"""Kernels that students write: the same result as the reference, and the counts that the exercise requires.

The text is parsed, checked and interpreted by the engine; nothing of it is compiled or imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

from roofdsl.classroom.engine import MOST_ACCESSES, kernel_of
from roofdsl.classroom.forms import number
from roofdsl.classroom.formula import Node
from roofdsl.classroom.settle import Settled, SettledPart
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.source import Source
from roofdsl.loops.model import Kernel

if TYPE_CHECKING:
    from roofdsl.classroom.judge import Verdict
    from roofdsl.codegen.reference import Outcome

COUNTS = ("W", "pairs", "Q", "loads", "stores", "accesses")
"""What conditions may use of a submitted kernel."""

MOST_TEMPORARY_BYTES = 64 << 20
SECONDS = 20.0
SEED = 1


class _Wrong(Exception):
    """What is wrong with a kernel, for the student."""


def judge_kernel(settled: Settled, part: SettledPart, text: str) -> Verdict:
    """Whether the kernel computes what the reference does and meets the requirements, each in turn."""
    from roofdsl.classroom.judge import Verdict

    at = {n: settled.whole(v) for n, v in part.part.at.items()}
    reference = kernel_of(settled.kernels[part.part.reference], at)
    try:
        kernel = _read(text, at)
        _same_interface(kernel, reference, at)
        counts = counted(settled, part, kernel, at)
        _same_results(kernel, reference, at)
    except _Wrong as wrong:
        return Verdict(False, str(wrong))
    for requirement in part.part.require:
        if not settled.fulfilled(requirement.when, counts):
            return Verdict(False, settled.fill(requirement.why) + f" ({_told(counts)})")
    return Verdict(True, f"Right: the same result, and {_told(counts)}.")


def _told(counts: Mapping[str, Node]) -> str:
    from roofdsl.classroom.exact import evaluate

    work, moved = (evaluate(counts[n], {}) for n in ("W", "Q"))
    intensity = f", I = {float(work / moved):.4g} FLOP/B" if work and moved else ""
    return f"W = {int(work):,} operations, Q = {int(moved):,} B{intensity}"


def _read(text: str, at: Mapping[str, int]) -> Kernel:
    """The one kernel of an untrusted text. Raises _Wrong."""
    from roofdsl.lang.check import check
    from roofdsl.lang.parse import MAX_BYTES
    from roofdsl.loops.lower import lower

    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise _Wrong("The file is larger than a kernel can be.")
    try:
        checked = check(Source("your kernel", text), _refused)
        if len(checked.own_kernels) != 1:
            raise _Wrong(f"Hand in one kernel; there are {len(checked.own_kernels)} in it.")
        resolved = checked.kernels[checked.own_kernels[0]]
        names = [p.name.text for p in resolved.tree.parameters]
        unknown = [n for n in names if n not in at]
        if unknown:
            raise _Wrong(f"The parameter `{unknown[0]}` has no value here; there are {', '.join(at)}.")
        return lower(resolved, dict(at))
    except InputError as error:
        first = error.diagnostics[0]
        raise _Wrong(f"Line {first.span.line}: {first.message}. {first.help}".rstrip()) from None
    except CommandError as error:
        raise _Wrong(f"{error.message}.") from None


def _refused(path: str) -> str:
    raise CommandError("a kernel that is handed in stands for itself: it may not `use` another file")


def _same_interface(kernel: Kernel, reference: Kernel, at: Mapping[str, int]) -> None:
    """The same arrays in and out; more of them only as `temp`. Raises _Wrong."""
    own = {a.name: a for a in kernel.arrays}
    for want in reference.arrays:
        have = own.pop(want.name, None)
        if want.intent == "temp":
            continue
        if have is None:
            raise _Wrong(f"The array `{want.name}` is missing; the kernel has the arrays of the one to be improved.")
        if (have.type.name, have.intent, have.column_major) != (want.type.name, want.intent, want.column_major):
            raise _Wrong(f"`{want.name}` is declared `{want.intent} {want.type.name}` in the kernel to be improved.")
        if [d.evaluate(at) for d in have.dims] != [d.evaluate(at) for d in want.dims]:
            raise _Wrong(f"`{want.name}` has another shape than in the kernel to be improved.")
    more = [a for a in own.values() if a.intent != "temp"]
    if more:
        raise _Wrong(f"The array `{more[0].name}` is new; arrays of your own are declared `temp`.")
    size = 0
    for a in own.values():
        elements = 1
        for d in a.dims:
            elements *= max(0, d.evaluate(at))
        size += elements * a.type.bytes
    if size > MOST_TEMPORARY_BYTES:
        raise _Wrong("The temporary arrays take more memory than there is for them.")


def counted(settled: Settled, part: SettledPart, kernel: Kernel, at: Mapping[str, int]) -> dict[str, Node]:
    """COUNTS of a kernel where the part counts. Raises _Wrong for one that is illegal or runs too long."""
    from roofdsl.analysis.at import access_count, traffic_at, work_at
    from roofdsl.analysis.deep import require_legal
    from roofdsl.loops.transform import apply

    asked = part.part
    convention: Any = asked.traffic or "load_store"
    sizes = {p.name: at[p.name] for p in kernel.parameters}
    try:
        require_legal(kernel)
        accesses = access_count(apply(kernel), sizes)
        if accesses > MOST_ACCESSES:
            raise _Wrong(f"It makes {accesses:,} accesses, and the one to be improved makes far fewer.")
        work = work_at(kernel, sizes)
        cache = settled.bytes(asked.cache) if asked.cache else None
        line = settled.bytes(asked.line) if asked.line else None
        moved = traffic_at(kernel, sizes, cache, line, convention)
    except InputError as error:
        first = error.diagnostics[0]
        raise _Wrong(f"Line {first.span.line}: {first.message}. {first.help}".rstrip()) from None
    except CommandError as error:
        raise _Wrong(f"{error.message}.") from None
    values: dict[str, Fraction | int | None] = {
        "W": work.total,
        "pairs": sum(work.fused_pairs.values()),
        "Q": moved.bytes,
        "loads": moved.loads_bytes,
        "stores": moved.stores_bytes,
        "accesses": accesses,
    }
    return {name: number(value) for name, value in values.items() if value is not None}


def _same_results(kernel: Kernel, reference: Kernel, at: Mapping[str, int]) -> None:
    """Both on the same random data, each with bounds on its rounding. Raises _Wrong for the first difference."""
    import numpy as np

    from roofdsl.codegen.inputs import random_inputs
    from roofdsl.codegen.reference import TakesTooLong
    from roofdsl.codegen.reference import reference as run

    inputs, want = expected(reference, tuple(at.items()))
    at_kernel = {p.name: at[p.name] for p in kernel.parameters}
    given = random_inputs(kernel, at_kernel, SEED)
    given |= {a.name: inputs[a.name] for a in kernel.arrays if a.intent != "temp"}
    try:
        got = run(kernel, at_kernel, given, limit_s=SECONDS)
    except TakesTooLong:
        raise _Wrong("It takes too long to run: its loops do far more than the kernel to be improved.") from None
    for name, right in want.values.items():
        if not want.written[name].any():
            continue
        allowed = 4 * (np.asarray(want.errors[name]) + np.asarray(got.errors[name]))
        with np.errstate(all="ignore"):
            near = np.abs(np.asarray(got.values[name]) - right) <= allowed
        wrong = ~(near & np.isfinite(allowed)) & want.written[name]
        if wrong.any():
            place = "".join(f"[{', '.join(map(str, k))}]" for k in np.argwhere(wrong)[:1]) if right.ndim else ""
            raise _Wrong(f"It does not compute the same: {name}{place} differs on random data.")


@cache
def expected(reference: Kernel, at: tuple[tuple[str, int], ...]) -> tuple[Mapping[str, Any], Outcome]:
    """The random data on which kernels are compared, and what the reference makes of them."""
    from roofdsl.codegen.inputs import random_inputs
    from roofdsl.codegen.reference import reference as run

    sizes = {p.name: dict(at)[p.name] for p in reference.parameters}
    inputs = random_inputs(reference, sizes, SEED)
    return inputs, run(reference, sizes, inputs)


def prepare(settled: Settled) -> None:
    """Runs the references of an exercise's version, so that forks find their results."""
    for part in settled.exercise.parts:
        if part.kind == "kernel":
            at = {n: settled.whole(v) for n, v in part.at.items()}
            expected(kernel_of(settled.kernels[part.reference], at), tuple(at.items()))

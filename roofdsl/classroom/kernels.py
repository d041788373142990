"""Kernels that students write: they must compute what the reference does, with the counts that the exercise requires.

The engine parses, checks and interprets the text; nothing of it is compiled or imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any

from roofdsl.classroom.answer_language import Node, names_in
from roofdsl.classroom.engine import MOST_ACCESSES
from roofdsl.classroom.exact import evaluate
from roofdsl.classroom.forms_as_formulas import number
from roofdsl.classroom.kernel_equality import Differs, decides, expected, same_results
from roofdsl.classroom.query import kernel_of
from roofdsl.classroom.student_version import StudentVersion, VersionPart
from roofdsl.classroom.verdict import Verdict
from roofdsl.lang.check import check
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.parse import MAX_BYTES
from roofdsl.lang.record import replace
from roofdsl.lang.source import Source
from roofdsl.loops.integers import Compare, Const, Sym
from roofdsl.loops.lower import lower
from roofdsl.loops.model import Kernel
from roofdsl.loops.sized import sized

COUNTS = ("W", "pairs", "Q", "loads", "stores", "accesses")
"""The counts of a submitted kernel that conditions may use."""

MOST_TEMPORARY_BYTES = 64 << 20
WORK_SLACK = Fraction(1, 4)
"""The permitted relative difference of W from the reference's if the exercise states none: partial sums cost more."""


class _Wrong(Exception):
    """Raised with what is wrong with a kernel; the message is for the student."""


def judge_kernel(version: StudentVersion, part: VersionPart, text: str) -> Verdict:
    """Whether the kernel computes the same as the reference and meets the requirements, which are checked in turn."""
    at = {n: version.whole(v) for n, v in part.part.at.items()}
    reference = kernel_of(version.kernels[part.part.reference], at)
    try:
        kernel = _read(text, at)
        sizes = {p.name: p.default for p in kernel.parameters if p.default is not None} | at
        _require_assumed(kernel, sizes)
        _same_interface(kernel, reference, sizes)
        counts = counted(version, part, kernel, sizes)
        same_results(kernel, reference, sizes, version.seed)
        _require_similar_work(version, part, counts, reference_work(reference, _own(reference, sizes)))
    except (_Wrong, Differs) as wrong:
        return Verdict(False, str(wrong))
    for requirement in part.part.require:
        if not version.fulfilled(requirement.when, counts):
            return Verdict(False, version.fill(requirement.why) + f" ({_told(counts)})")
    return Verdict(True, f"Right: the same result, and {_told(counts)}.")


def _told(counts: Mapping[str, Node]) -> str:
    work, moved = (evaluate(counts[n], {}) for n in ("W", "Q"))
    intensity = f", I = {float(work / moved):.4g} FLOP/B" if work and moved else ""
    return f"W = {int(work):,} operations, Q = {int(moved):,} B{intensity}"


def _read(text: str, at: Mapping[str, int]) -> Kernel:
    """Reads an untrusted text that has to contain exactly one kernel. Raises _Wrong."""

    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise _Wrong("The file is too large for a kernel.")
    try:
        checked = check(Source("your kernel", text), _refused)
        if len(checked.own_kernels) != 1:
            raise _Wrong(f"Submit a single kernel; the file has {len(checked.own_kernels)}.")
        resolved = checked.kernels[checked.own_kernels[0]]
        unknown = [p.name.text for p in resolved.tree.parameters if p.name.text not in at and p.default is None]
        if unknown:
            known = f"there are {', '.join(at)}, and one of your own needs a default: {unknown[0]} = 8"
            raise _Wrong(f"The parameter `{unknown[0]}` has no value here; {known}.")
        return lower(resolved, dict(at))
    except InputError as error:
        first = error.diagnostics[0]
        raise _Wrong(f"Line {first.span.line}: {first.message}. {first.help}".rstrip()) from None
    except CommandError as error:
        raise _Wrong(f"{error.message}.") from None


def _refused(path: str) -> str:
    raise CommandError("a submitted kernel may not `use` another file")


def _require_assumed(kernel: Kernel, at: Mapping[str, int]) -> None:
    """Checks that the kernel's assumptions hold at these sizes. Raises _Wrong."""
    for condition in kernel.assumptions:
        if not condition.holds({p.name: at[p.name] for p in kernel.parameters}):
            sizes = ", ".join(f"{p.name} = {at[p.name]}" for p in kernel.parameters)
            raise _Wrong(f"The kernel assumes {condition}, which does not hold at {sizes}.")


def _same_interface(kernel: Kernel, reference: Kernel, at: Mapping[str, int]) -> None:
    """Checks that the kernel has the same input and output arrays; others may only be `temp`. Raises _Wrong."""
    own = {a.name: a for a in kernel.arrays}
    for want in reference.arrays:
        have = own.pop(want.name, None)
        if want.intent == "temp":
            continue
        if have is None:
            raise _Wrong(f"The array `{want.name}` is missing; keep all arrays of the original kernel.")
        if (have.type.name, have.intent, have.column_major) != (want.type.name, want.intent, want.column_major):
            raise _Wrong(f"`{want.name}` is declared `{want.intent} {want.type.name}` in the original kernel.")
        if [d.evaluate(at) for d in have.dims] != [d.evaluate(at) for d in want.dims]:
            raise _Wrong(f"`{want.name}` has a different shape in the original kernel.")
    more = [a for a in own.values() if a.intent != "temp"]
    if more:
        raise _Wrong(f"The array `{more[0].name}` is new; declare your own arrays `temp`.")
    size = 0
    for a in own.values():
        elements = 1
        for d in a.dims:
            elements *= max(0, d.evaluate(at))
        size += elements * a.type.bytes
    if size > MOST_TEMPORARY_BYTES:
        raise _Wrong("The temporary arrays take too much memory.")


def counted(version: StudentVersion, part: VersionPart, kernel: Kernel, at: Mapping[str, int]) -> dict[str, Node]:
    """The COUNTS of a kernel, at the sizes and cache of the part. Raises _Wrong if it is illegal or runs too long."""
    from roofdsl.checks.deep import require_legal
    from roofdsl.counts.traffic_at import access_count, traffic_at
    from roofdsl.counts.work_at import work_at

    asked = part.part
    convention: Any = asked.traffic or "load_store"
    sizes = {p.name: at[p.name] for p in kernel.parameters}
    kernel = _at_sizes(kernel, sizes)
    try:
        require_legal(kernel)
        accesses = access_count(sized(kernel, sizes))
        if accesses > MOST_ACCESSES:
            raise _Wrong(f"It makes {accesses:,} accesses; the original kernel makes far fewer.")
        work = work_at(kernel, sizes)
        cache = version.bytes(asked.cache) if asked.cache else None
        line = version.bytes(asked.line) if asked.line else None
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


def _at_sizes(kernel: Kernel, sizes: Mapping[str, int]) -> Kernel:
    """The kernel for the exercise's sizes only: if n is 192, blocks of 8 are legal without an `assume`."""
    fixed = tuple(Compare("==", Sym(name), Const(value)) for name, value in sizes.items())
    return replace(kernel, assumptions=(*kernel.assumptions, *fixed))


def _require_similar_work(version: StudentVersion, part: VersionPart, counts: Mapping[str, Node], right: Node) -> None:
    """Unless the exercise has its own condition on W, requires about the W of the reference. So bytes can only be saved
    by another order, not by another computation, and padding cannot raise the intensity. Raises _Wrong.
    """
    if any("W" in names_in(version.condition(r.when, COUNTS)) for r in part.part.require):
        return
    work, wanted = (evaluate(node, {}) for node in (counts["W"], right))
    if abs(work - wanted) > WORK_SLACK * wanted:
        raise _Wrong(
            f"It does {int(work):,} operations, but the original kernel does {int(wanted):,}: compute the same"
            " result with about as many."
        )


def prepare(version: StudentVersion) -> None:
    """Runs the references of an exercise's version, so that forks inherit their results."""
    for part in version.exercise.parts:
        if part.kind == "kernel":
            at = {n: version.whole(v) for n, v in part.at.items()}
            reference = kernel_of(version.kernels[part.reference], at)
            sizes = _own(reference, at)
            _ = reference_work(reference, sizes)
            for uneven in (False, True) if decides(reference.body) else (False,):
                expected(reference, sizes, version.seed, uneven=uneven)


@cache
def reference_work(reference: Kernel, at: tuple[tuple[str, int], ...]) -> Node:
    """W of the kernel that the student has to improve."""
    from roofdsl.counts.work_at import work_at

    return number(work_at(reference, dict(at)).total)


def _own(kernel: Kernel, at: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple((p.name, at[p.name]) for p in kernel.parameters)

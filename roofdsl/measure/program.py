"""Measure a program: all its launches in order, timed as a whole and each by itself, overhead included.

The language binds no arrays between launches, so every kernel has separate arrays at every size; equal launches use the
same ones. This module holds what the processor and the GPU have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.indirect import require_affine_program
from roofdsl.loops.program_at_sizes import Launched, ProgramAt
from roofdsl.machine.quantities import group, show_size
from roofdsl.measure.measurement import Launches, Measurement, now, own_text, source_hash, text_hash
from roofdsl.measure.measurement_record import Ran, Setup, recorded
from roofdsl.measure.runner import Call
from roofdsl.measure.timing import Times
from roofdsl.measure.verified import Verified

MOST_LAUNCHES = 100_000
"""The maximum number of launches of a program that is measured."""

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Ready:
    """One kernel at one size, verified and with its arrays, ready to be called on one copy or another.

    arrays: kept alive as long as `calls` are made, because compiled C only knows their addresses. note: why it does not
    run in the requested variant.
    """

    launched: Launched
    ran: Ran
    calls: tuple[Call, ...]
    arrays: tuple[Mapping[str, Any], ...]
    note: str = ""


def program_hash(program: ProgramAt) -> str:
    """SHA-256 of the texts of a program, of the programs it runs, and of their kernels."""
    texts = [own_text(text.source, text.tree.span) for text in program.texts]
    return text_hash("\n".join([*texts, *dict.fromkeys(source_hash(part.kernel) for part in program.launched)]))


# ---- before timing ----


def check_variant(variant: str, known: Sequence[str], where: str) -> None:
    """Raise CommandError for an unknown variant."""
    if variant not in known:
        raise CommandError(f"there is no variant `{variant}` on the {where}", f"it has {', '.join(known)}")


def order_of(program: ProgramAt) -> list[int]:
    """The launches in order, as indices of `program.launched`. Raises CommandError for a program that cannot be
    measured.
    """
    if program.exchanges:
        step = program.exchanges[0].step
        raise CommandError(
            f"program {program.name} has a collective (line {step.span.line}), but only one device is measured",
            "measure its kernels, or a program of the launches between two collectives",
        )
    if program.launches > MOST_LAUNCHES:
        raise CommandError(
            f"program {program.name} makes {group(program.launches)} launches; the limit is {group(MOST_LAUNCHES)}",
            "measure a part of it: a smaller `repeat`, or a program that it runs",
        )
    return list(program.order())


def fallback(variant: str, plain: str, make: Callable[[str], Any]) -> tuple[Any, str]:
    """(code of the variant, ""), or the code of the plain variant and the reason why the kernel has no other."""
    try:
        return make(variant), ""
    except CommandError as error:
        if variant == plain:
            raise
        return make(plain), f"{plain} in place of {variant}: {error.message}"


def prepare(program: ProgramAt, say: Tell, ready: Callable[[Launched], Ready], memory_bytes: int | None) -> list[Ready]:
    """Every kernel at every size: checked, generated, verified, with its arrays. Raises CommandError if they take too
    much memory or have index arrays.
    """
    from roofdsl.checks.deep import require_legal

    require_affine_program(program.name, (part.kernel for part in program.launched))
    for kernel in dict.fromkeys(part.kernel for part in program.launched):
        require_legal(kernel)
    found: list[Ready] = []
    for part in program.launched:
        say(f"verifying {part.kernel.name}")
        found.append(ready(part))
        used = sum(each.ran.footprint_bytes * len(each.calls) for each in found)
        if memory_bytes is not None and used > memory_bytes:
            raise CommandError(
                f"the arrays of the launches of {program.name} take more than the {show_size(memory_bytes)} of memory",
                "every kernel has separate arrays at every size: use smaller sizes",
            )
    return found


# ---- the record ----


def program_record(
    program: ProgramAt,
    parts: Sequence[Ready],
    whole: Times,
    samples: Sequence[Sequence[float]],
    setup: Setup,
    *,
    variant: str,
) -> Measurement:
    """The measurement of a program; `samples` are the seconds of all launches of each part."""
    each = [
        Launches(part.launched.times, _part(part, [sample[k] / part.launched.times for sample in samples], setup))
        for k, part in enumerate(parts)
    ]
    works = [part.launches * part.of.work for part in each]
    main = each[works.index(max(works))].of
    verified = [part.of.verified for part in each]
    noise = whole.warning()
    notes = list(dict.fromkeys(f"{part.launched.kernel.name}: {part.note}" for part in parts if part.note))
    return Measurement(
        kernel=program.name,
        parameters=program.parameters,
        backend=setup.backend,
        variant=variant,
        device=setup.device,
        software=setup.software,
        when=now(),
        times_s=whole.seconds,
        calls_per_repeat=whole.calls,
        state=setup.state,
        threads=max(part.ran.threads for part in parts),
        pinned=setup.pinned,
        compiler="; ".join(dict.fromkeys(part.ran.compiler for part in parts)),
        work=sum(works),
        operation=main.operation,
        footprint_bytes=sum(part.ran.footprint_bytes for part in parts),
        verified=Verified(
            verified[0].against,
            max(v.max_error for v in verified),
            max(v.of_allowed for v in verified),
            max(v.unverified for v in verified),
            (),
            tuple(dict.fromkeys(reason for v in verified for reason in v.unverifiable)),
        ),
        source=program.texts[0].source.name,
        source_sha256=program_hash(program),
        generated_sha256=text_hash("\n".join(part.ran.text for part in parts)),
        warnings=(*(w for v in verified for w in v.warnings()), *((noise,) if noise else ())),
        details={
            "launches": program.launches,
            "arrays": "every kernel has separate ones at every size",
            "notes": notes,
            **({"disturbed_s": list(whole.disturbed)} if whole.disturbed else {}),
        },
        by_launch=tuple(each),
    )


def _part(part: Ready, seconds: list[float], setup: Setup) -> Measurement:
    ran = replace(part.ran, details={**part.ran.details, **({"note": part.note} if part.note else {})})
    found = recorded(ran, setup, Times(tuple(max(s, 1e-12) for s in seconds), part.launched.times))
    return replace(found, warnings=())  # they are in the program's own record

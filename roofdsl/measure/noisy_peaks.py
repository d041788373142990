"""The numbers of a characterization that are written: those that are not too noisy (`timing.MOST_SPREAD`)."""

from __future__ import annotations

from dataclasses import replace

from roofdsl.lang.diagnostics import CommandError
from roofdsl.measure.characterize_cpu import Characterization
from roofdsl.measure.characterize_gpu import GpuCharacterization
from roofdsl.measure.timing import MOST_SPREAD

_VITAL = ("fma",)
"""Classes without which a type's rates cannot be predicted; the others have fallbacks, which are stated."""

_Spread = tuple[str, str, float]
"""Type, class, spread of the samples."""


def trusted(found: Characterization) -> Characterization:
    """The characterization without peaks whose samples spread by more than MOST_SPREAD; the notes say which were left
    out.

    Raises CommandError if the rest would not make a machine: fused operations or a level's bandwidth are in doubt.
    """
    peaks = [(p.type, p.cls, p.all_cores.spread) for p in found.peaks]
    levels = [(level.name, level.all_cores.spread) for level in found.levels]
    notes = _left_out(peaks, levels, found.disturbed)
    kept = tuple(p for p in found.peaks if p.all_cores.spread <= MOST_SPREAD)
    return replace(found, peaks=kept, notes=(*found.notes, *notes))


def trusted_gpu(found: GpuCharacterization) -> GpuCharacterization:
    """Like `trusted`, for a GPU."""
    peaks = [(p.type, p.cls, p.rate.spread) for p in found.peaks]
    notes = _left_out(peaks, [(level.name, level.bandwidth.spread) for level in found.levels], "")
    kept = tuple(p for p in found.peaks if p.rate.spread <= MOST_SPREAD)
    return replace(found, peaks=kept, notes=(*found.notes, *notes))


def _left_out(peaks: list[_Spread], levels: list[tuple[str, float]], disturbed: str) -> list[str]:
    vital = [(f"{t} {cls}", spread) for t, cls, spread in peaks if cls in _VITAL]
    lost = [f"{name} by {spread:.0%}" for name, spread in (*vital, *levels) if spread > MOST_SPREAD]
    if lost:
        meanwhile = f" ({disturbed})" if disturbed else ""
        raise CommandError(
            f"this machine is too busy to be characterized{meanwhile}: the samples vary too much, "
            f"{', '.join(lost)}; numbers that spread by more than {MOST_SPREAD:.0%} are misleading",
            "run it again when no other programs are running; `--keep-noisy` writes such numbers anyway",
        )
    return [
        f"{t} {cls} is left out, since its samples spread by {spread:.0%} (limit {MOST_SPREAD:.0%})"
        for t, cls, spread in peaks
        if spread > MOST_SPREAD
    ]

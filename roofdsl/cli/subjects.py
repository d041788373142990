"""The subjects of a measurement: the kernels and programs selected in a FILE, each with its own parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roofdsl.cli.options import Chosen, kernels_of
from roofdsl.loops.model import Kernel
from roofdsl.loops.program_at_sizes import ProgramOf


def subjects_of(
    chosen: Chosen, settings: Mapping[str, int], data: Sequence[str] | None = None
) -> list[tuple[Kernel | ProgramOf, dict[str, int]]]:
    """Like `kernels_of`, with programs. Raises CommandError for a setting that none of the kernels has."""
    programs = [(ProgramOf(chosen.checked, name), dict(settings)) for name in chosen.programs]
    return [*kernels_of(chosen, settings, data), *programs]

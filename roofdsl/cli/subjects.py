"""What is measured: the kernels and programs that a FILE speaks of, each with its own parameters."""

from __future__ import annotations

from collections.abc import Mapping

from roofdsl.cli.options import Chosen, kernels_of
from roofdsl.loops.launched import ProgramOf
from roofdsl.loops.model import Kernel


def subjects_of(chosen: Chosen, settings: Mapping[str, int]) -> list[tuple[Kernel | ProgramOf, dict[str, int]]]:
    """As `kernels_of`, and the programs. Raises CommandError for a setting that none of the kernels knows."""
    programs = [(ProgramOf(chosen.checked, name), dict(settings)) for name in chosen.programs]
    return [*kernels_of(chosen, settings), *programs]

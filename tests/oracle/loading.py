"""A kernel from text, for tests."""

from __future__ import annotations

from collections.abc import Mapping

from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel


def kernel_of(text: str, settings: Mapping[str, int] | None = None) -> Kernel:
    """The only kernel of a text, its directives not yet applied. Raises InputError for every error in it."""
    return kernel(load_file(Source("<test>", text)), None, settings)

"""Changed kernels, read again from their text, so that the prediction is for exactly what `--apply` prints."""

from __future__ import annotations

from collections.abc import Mapping

from roofdsl.lang.checked import CheckedKernel
from roofdsl.lang.source import Source
from roofdsl.lang.write import NAME
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel


def checked(text: str, name: str) -> CheckedKernel:
    """The kernel `name` of a text. Raises InputError if the text has errors."""
    return load_file(Source(NAME, text)).kernels[name]


def lowered(text: str, name: str, settings: Mapping[str, int]) -> Kernel:
    """The kernel `name` of a text, with its `const` parameters as in `settings`. Raises InputError."""
    return kernel(load_file(Source(NAME, text)), name, settings)

"""Names that are still free in a kernel."""

from __future__ import annotations

from collections.abc import Collection

from roofdsl.lang.functions import FUNCTIONS
from roofdsl.lang.grammar import reserved


def free_name(wish: str, taken: Collection[str]) -> str:
    """The name, or one like it that neither the language nor the kernel uses."""
    name, k = wish, 0
    while name in taken or name in reserved() or name in FUNCTIONS or name == "range":
        k += 1
        name = f"{wish}_" if k == 1 else f"{wish}_{k}"
    return name

"""The values of a kernel's index arrays, where they are known: what turns intervals into exact numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class IndexData:
    """The values of index arrays as numpy arrays of i64, each in its array's shape; `about` says where they are from.

    Two of them are equal only if they are the same object, so that nothing is looked up by millions of numbers.
    """

    def __init__(self, values: Mapping[str, Any], about: Sequence[str]) -> None:
        self.values = dict(values)
        self.about = tuple(about)

"""Code that is ready to run: what every backend of the processor passes to verification and timing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

Call = Callable[[], object]


@dataclass(frozen=True)
class Runner:
    """bind(arrays, sizes) gives a call without arguments that runs the code on these arrays, which it changes.

    variant, compiler: what it is and what made it, with its flags. threads: how many it uses. text: the source that
    runs, whose hash the record keeps. details: further data for the record.
    """

    variant: str
    compiler: str
    threads: int
    text: str
    bind: Callable[[dict[str, NDArray[Any]], Mapping[str, int]], Call]
    details: Mapping[str, Any] = field(default_factory=dict)

    def run(self, arrays: dict[str, NDArray[Any]], params: Mapping[str, int]) -> None:
        """Run the code once."""
        self.bind(arrays, params)()

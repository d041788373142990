"""Code that is ready to run: what every backend of the processor passes to verification and timing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

Call = Callable[[], object]


@dataclass(frozen=True)
class Runner:
    """bind(arrays, sizes) gives a call without arguments that runs the code on these arrays, which it changes.

    variant, compiler: its kind, and the compiler with its flags. threads: the number that it uses. text: the source
    that runs, whose hash the record keeps. details: further data for the record. use_threads: sets the number of
    threads that the code uses from now on, and returns the previous number; None for single-threaded code.
    """

    variant: str
    compiler: str
    threads: int
    text: str
    bind: Callable[[dict[str, NDArray[Any]], Mapping[str, int]], Call]
    details: Mapping[str, Any] = field(default_factory=dict)
    use_threads: Callable[[int], int] | None = None

    @contextmanager
    def on_threads(self) -> Iterator[None]:
        """Inside the context, the code uses its number of threads."""
        if self.use_threads is None:
            yield
            return
        before = self.use_threads(self.threads)
        try:
            yield
        finally:
            self.use_threads(before)

    def run(self, arrays: dict[str, NDArray[Any]], params: Mapping[str, int]) -> None:
        """Run the code once."""
        self.bind(arrays, params)()

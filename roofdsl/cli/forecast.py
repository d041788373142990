"""Simulations that cannot end within the budget: they are refused as soon as that is clear, with what to do instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from roofdsl import budget
from roofdsl.cli.progress import bar
from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.quantities import show_time

FASTEST_PER_S = 4e9
"""More accesses than a core simulates in a second, even if all go to a single line: 1.6e9 were measured."""

LOOK_S = 1.0
"""The processor time after which the rate of a simulation is known well enough."""

MARGIN = 3
"""A simulation is ended if, at its rate so far, the rest would take this many times as long as is left. Its rate may
still rise: lines that are new at first are found in the caches later.
"""


@contextmanager
def forecast(title: str, kernel: str, total: int | None, *, is_steady: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar for the simulation of the `total` accesses of a kernel (None: unknown).

    is_steady: whether all accesses are simulated. Otherwise, repeated iterations may be skipped, and any number of
    accesses may end soon. Raises CommandError if the budget does not suffice.
    """
    seen = _Seen(kernel, total, is_steady)
    seen.refuse_at(FASTEST_PER_S, 1)
    try:
        with budget.region(title), bar(title, total) as tell:

            def progress(done: int) -> None:
                tell(done)
                seen.look(done)

            yield progress
    except budget.Spent:
        raise seen.ended() from None


class _Seen:
    """What is known of a simulation that runs."""

    def __init__(self, kernel: str, total: int | None, is_steady: bool) -> None:
        self.kernel, self.total, self.is_steady = kernel, total, is_steady
        self.begun_s, self.done = budget.spent_s(), 0

    def look(self, done: int) -> None:
        """Note how many accesses are done. Raises CommandError if the others surely take longer than is left."""
        self.done = done
        spent_s = budget.spent_s() - self.begun_s
        if spent_s >= LOOK_S:
            self.refuse_at(done / spent_s, MARGIN)

    def refuse_at(self, per_s: float, margin: float) -> None:
        """Raise CommandError if the rest takes over `margin` times the time that is left, at `per_s` accesses/s."""
        if not self.is_steady or self.total is None or not per_s:
            return
        rest_s = (self.total - self.done) / per_s
        if rest_s > margin * max(0.0, budget.left_s()):
            least = "at least " if margin == 1 else "about "
            whole_s = rest_s + budget.spent_s() - self.begun_s
            raise self._error(f"simulating them takes {least}{show_time(whole_s)}", rest_s)

    def ended(self) -> CommandError:
        """For a simulation that the budget has ended."""
        return self._error(f"{self.done:,} of them were simulated", 0.0)

    def _error(self, what: str, rest_s: float) -> CommandError:
        own = budget.current()
        assert own is not None  # without a budget, there is always time
        number = "more" if self.total is None else f"{self.total:,}"
        longer = f", `--budget {budget.longer(own, rest_s - own.left())}`" if own.chosen else ""
        made = f"kernel {self.kernel} makes {number} accesses at these sizes"
        return CommandError(
            f"{made}, and {what}; the budget is {budget.shown(own)}",
            f"use smaller sizes{longer}, or `derive --cache`, which may find the traffic without a simulation",
        )

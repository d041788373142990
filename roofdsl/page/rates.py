"""Seconds per operation of every class on a machine: T_comp as sums that a page can do.

The rates are not read here but asked of `predict.compute`, one operation at a time: T_comp is linear in the counts
(rule 13), and with two pipes the larger of two such sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from roofdsl.counts.results import WorkAt
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.functions import SPECIAL_FUNCTIONS
from roofdsl.lang.record import Record
from roofdsl.machine.model import Machine, MatrixUnitsOnly
from roofdsl.predict.compute import PIPES, compute_time, pipe_of

Key = tuple[str, str]
"""(type, class), classes as in `forms.WorkForms`."""

Pipe = tuple[tuple[Key, Fraction], ...]
"""Operations that take turns, with the seconds of one of each."""


class Rates(Record):
    """T_comp = the largest over `pipes` of the sum of count times seconds.

    assumptions: in words, what the rates assume. missing: why the kernel does not run here; then there are no pipes.
    """

    pipes: tuple[Pipe, ...]
    assumptions: tuple[str, ...] = ()
    missing: str = ""


def rates_of(
    machine: Machine, counts: frozenset[Key], unit: str | None, costs: Mapping[str, Fraction] | None = None
) -> Rates:
    """The rates of the operations in `counts` (those that occur at all) on `machine`, on matrix units where asked."""
    probe = _Probe(machine, unit, costs or {})
    keys = sorted(counts)
    try:
        if unit is not None:
            pipes = [tuple((k, probe.seconds({(k[0], "mul"): 1})) for k in keys if k[1] == "all")]
        elif machine.pipes_separate:
            pipes = _pipes(keys, probe)
        else:
            pipes = [tuple(_one_pipe(keys, probe))]
    except MatrixUnitsOnly as error:
        return Rates((), missing=f"{error.message}; choose matrix units")
    except CommandError as error:
        return Rates((), missing=error.message + (f"; {error.help}" if error.help else ""))
    return Rates(tuple(pipes), tuple(dict.fromkeys(probe.notes)))


class _Probe:
    """Asks for the time of a few operations, and collects what that assumes."""

    def __init__(self, machine: Machine, unit: str | None, costs: Mapping[str, Fraction]) -> None:
        self.machine, self.unit, self.costs = machine, unit, costs
        self.notes: list[str] = []

    def seconds(self, operations: Mapping[Key, int], pairs: Mapping[str, int] | None = None) -> Fraction:
        functions = {key: n for key, n in operations.items() if key[1] in SPECIAL_FUNCTIONS}
        classes = {(t, "special" if (t, cls) in functions else cls): n for (t, cls), n in operations.items()}
        work = WorkAt(classes, pairs or {}, functions=functions)
        found = compute_time(work, self.machine, unit=self.unit, costs=self.costs)
        self.notes.extend(found.assumptions)
        return found.time_s


def _one_pipe(keys: Sequence[Key], probe: _Probe) -> Iterator[tuple[Key, Fraction]]:
    for key in keys:
        t, cls = key
        if cls == "pair":
            yield key, probe.seconds({(t, "add"): 1, (t, "mul"): 1}, {t: 1})
        elif cls not in ("all", "add", "mul"):
            yield key, probe.seconds({(t, cls.removesuffix("_left")): 1})


def _pipes(keys: Sequence[Key], probe: _Probe) -> list[Pipe]:
    """Classes by the pipe that they run on, where pipes are separate."""
    pipes: dict[str, list[tuple[Key, Fraction]]] = {name: [] for name in PIPES}
    for key in keys:
        cls = key[1]
        if cls not in ("all", "pair") and not cls.endswith("_left"):
            pipes[pipe_of(cls, probe.machine)].append((key, probe.seconds({key: 1})))
    return [tuple(pipe) for name, pipe in pipes.items() if name != "div" or probe.machine.divider_separate]

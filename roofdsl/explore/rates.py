"""Seconds per operation of every class on a machine: T_comp as sums that a page can do.

The rates are not read here but asked of `predict.compute`, one operation at a time: T_comp is linear in the counts
(rule 13), and with two pipes the larger of two such sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from roofdsl.analysis.results import WorkAt
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record
from roofdsl.machine.model import Machine
from roofdsl.predict.compute import compute_time

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
            pipes = _two_pipes(keys, probe)
        else:
            pipes = [tuple(_one_pipe(keys, probe))]
    except CommandError as error:
        hint = "choose matrix units" if "--unit" in error.help else error.help
        return Rates((), missing=error.message + (f"; {hint}" if hint else ""))
    return Rates(tuple(pipes), tuple(dict.fromkeys(probe.notes)))


class _Probe:
    """Asks for the time of a few operations, and collects what that assumes."""

    def __init__(self, machine: Machine, unit: str | None, costs: Mapping[str, Fraction]) -> None:
        self.machine, self.unit, self.costs = machine, unit, costs
        self.notes: list[str] = []

    def seconds(self, operations: Mapping[Key, int], pairs: Mapping[str, int] | None = None) -> Fraction:
        found = compute_time(WorkAt(operations, pairs or {}), self.machine, unit=self.unit, costs=self.costs)
        self.notes.extend(found.assumptions)
        return found.time_s


def _one_pipe(keys: Sequence[Key], probe: _Probe) -> Iterator[tuple[Key, Fraction]]:
    for key in keys:
        t, cls = key
        if cls == "pair":
            yield key, probe.seconds({(t, "add"): 1, (t, "mul"): 1}, {t: 1})
        elif cls not in ("all", "add", "mul"):
            yield key, probe.seconds({(t, cls.removesuffix("_left")): 1})


def _two_pipes(keys: Sequence[Key], probe: _Probe) -> list[Pipe]:
    """Classes by the pipe they share with mul, or do not: there the times of both add up."""
    pipes: tuple[list[tuple[Key, Fraction]], list[tuple[Key, Fraction]]] = ([], [])
    for key in keys:
        t, cls = key
        if cls in ("all", "pair") or cls.endswith("_left"):
            continue
        alone, mul = probe.seconds({key: 1}), probe.seconds({(t, "mul"): 1})
        shared = cls == "mul" or probe.seconds({key: 1, (t, "mul"): 1}) == alone + mul
        pipes[shared].append((key, alone))
    return [tuple(pipe) for pipe in pipes]

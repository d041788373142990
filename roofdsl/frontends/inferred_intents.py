"""Which arrays and scalars keep an old value: those that are read before they are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from roofdsl.frontends.without_data import affine, chosen_by_data
from roofdsl.lang import tree
from roofdsl.lang.check_kernel import check_kernel
from roofdsl.lang.checked import CheckedKernel
from roofdsl.lang.diagnostics import InputError
from roofdsl.lang.findings import Report
from roofdsl.lang.source import Source
from roofdsl.loops.lower import lower
from roofdsl.store.memo import recall

V = TypeVar("V")
_OPERATIONS = 20_000_000
"""Integer-set operations, a second or so; what takes more counts as read first."""


def read_first(kernel: tree.Kernel, candidates: Mapping[str, V]) -> list[V]:
    """The candidates, declared `out` or `temp`, that are not proven to be written before they are read."""
    report = Report()
    check_kernel(kernel, report)
    if report.errors or not candidates:
        return list(candidates.values())
    try:
        lowered = lower(CheckedKernel(affine(kernel, candidates.keys()), Source("", ""), None, ()), {})
    except InputError:
        return list(candidates.values())
    by_data = chosen_by_data(kernel.body)
    names = tuple(n for n in candidates if n not in by_data)

    def found() -> tuple[str, ...]:
        from roofdsl.checks.intents import is_written_first
        from roofdsl.sets.library import LibraryFailure, TooHard, limited

        first = []
        for name in names:
            try:
                with limited(f"the intents of {kernel.name.text}", _OPERATIONS):
                    proven = is_written_first(lowered, name)
            except (LibraryFailure, TooHard, RecursionError):
                proven = False
            first += [] if proven else [name]
        return tuple(first)

    return [candidates[name] for name in (*by_data & candidates.keys(), *recall("read-first", lowered, names, found))]

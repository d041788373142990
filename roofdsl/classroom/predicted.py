"""Predictions in exercises: their options, and their values by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import Prediction


def options_of(traffic: str, option: Callable[..., Any]) -> Options:
    """The options of a prediction from the keys of a query; `option(name, default)` gives a key's value.

    With `math`, the expected time is predicted, too, from what the machine states, so that all computers agree.
    """
    math = option("math")
    if math not in (None, "strict", "relaxed"):
        raise CommandError(f"`math` is `strict` or `relaxed`, not `{math}`")
    return Options(
        traffic or None,  # type: ignore[arg-type]
        option("unit"),
        tuple(option("ceilings", ())),
        option("levels", "all"),
        warm=bool(option("warm", False)),
        accesses=option("accesses", "written"),
        code=None if math is None else Code("stated", math=math),
    )


def value(found: Prediction, what: str) -> Fraction:
    """A value of the prediction, or the time of a level: plain numbers in operations, bytes and seconds.

    Raises CommandError for an unknown name, and for an expected time if there is none.
    """
    level = next((x for x in found.levels if x.name == what), None)
    if level is not None:
        return level.time_s
    terms = _terms(found)
    if what in EXPECTED and found.expected is None:
        why = found.no_expected or "it needs `math`"
        raise CommandError(f"this prediction has no `{what}`: {why}")
    if terms.get(what) is None:
        raise CommandError(f"a prediction has no `{what}`", f"it has {', '.join(terms)}, and the levels")
    return Fraction(terms[what])


EXPECTED = ("expected", "expected_rate", "arithmetic", "accesses_time", "transfers")
"""The values that exist only with the expected time."""


def _terms(found: Prediction) -> Mapping[str, Any]:
    terms: dict[str, Any] = {
        "time": found.bound_s,
        "rate": found.rate_per_s,
        "bandwidth": found.bytes_per_s,
        "compute": found.compute_s,
        "memory": found.memory.time_s,
        "launch": found.launch_s,
        "no_overlap": found.no_overlap_s,
        "launches": found.launches,
        "work": found.work,
        "bytes": found.memory.bytes,
        "intensity": found.intensity,
        "peak": found.peak_per_s,
        "ridge": found.ridge,
    }
    made = found.expected
    of_expected = (
        made and made.expected_s,
        found.expected_rate_per_s,
        made and made.core_s,
        made and made.loads_s,
        made and sum((time for _, time in made.transfers), Fraction(0)),
    )
    return terms | dict(zip(EXPECTED, of_expected, strict=True))

"""Expected times for a page: those that `predict` finds, at the initial sizes of the page and at measured ones.

A page evaluates closed forms, and an expected time has none: it needs the exact bytes of every cache, and what the
compiler does with each loop. So the page knows it only at these sizes, and for others says how to get it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from roofdsl import budget
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.machine.model import Machine
from roofdsl.predict.in_core_time import Code, without_expected
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.sets.child_process import Raised, Stopped, in_child
from roofdsl.sets.library import TooHard

MOST_SIZES = 6
"""The maximum number of sizes for one kernel: the first ones are used."""

LONGEST_S, LEAST_S = 4.0, 0.25
"""The processor time in seconds after which an expected time is given up, and the least that it gets if the budget has
less left."""


def expected_times(
    kernel: Kernel, sizes: Sequence[Mapping[str, int]], machine: Machine, traffic: Traffic | None
) -> dict[str, Any]:
    """For the page's document: {"missing": why there are none} or {"times": [...]}, one for each distinct size, at most
    MOST_SIZES.

    A time is {"values", "seconds", "bound", "model", "causes"}, with all levels included; or {"values", "missing"}.
    """
    if why := without_expected(machine):
        return {"missing": why}
    different = [dict(own) for k, own in enumerate(sizes) if own not in sizes[:k]]
    return {"times": [_at(kernel, own, machine, traffic) for own in different[:MOST_SIZES]]}


def _at(kernel: Kernel, values: dict[str, int], machine: Machine, traffic: Traffic | None) -> dict[str, Any]:
    """The expected time at one size, found in a child process: the exact bytes of some kernels take minutes."""

    def task() -> str:
        return json.dumps(_predicted(kernel, values, machine, traffic))

    try:
        found: dict[str, Any] = json.loads(in_child(task, min(LONGEST_S, max(LEAST_S, budget.left_s() / 2))))
    except Stopped:
        return {"values": values, "missing": "its bytes take too long to count for a page"}
    except Raised:
        return _predicted(kernel, values, machine, traffic)  # raises it in this process
    return found


def _predicted(kernel: Kernel, values: dict[str, int], machine: Machine, traffic: Traffic | None) -> dict[str, Any]:
    try:
        found = predict(kernel, values, machine, Options(traffic=traffic, code=Code()))
    except (CommandError, InputError, TooHard) as error:
        return {"values": values, "missing": str(error).split("\n", maxsplit=1)[0]}
    if found.expected is None:
        return {"values": values, "missing": found.no_expected}
    causes = [{"cause": c.cause, "share": float(c.share_s)} for c in found.expected.causes]
    return {
        "values": values,
        "seconds": float(found.expected.expected_s),
        "bound": float(found.bound_s),
        "model": found.expected.model,
        "causes": causes,
    }

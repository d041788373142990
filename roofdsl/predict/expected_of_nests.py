"""The expected time of a launch whose loop nests follow each other: the sum of their times.

Within one loop nest, arithmetic and transfers overlap by the machine's rule, unless long inner loops follow each other
(`expected_of_inner_loops`). The arithmetic of one nest does not overlap with the transfers of the next: a core looks
only a few hundred instructions ahead.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from operator import add

from roofdsl.incore.result import InCore
from roofdsl.lang.record import Record, replace
from roofdsl.loops.model import Kernel
from roofdsl.predict.expected import Expected, NestTime, Rung, causes_of, launch_rung
from roofdsl.predict.expected_of_inner_loops import InnerLoops
from roofdsl.predict.hardware_traffic import Moving
from roofdsl.predict.prediction import Prediction

IN_SEQUENCE = "loops follow each other, and do not overlap"
"""The cause of time above the bound: the bound takes each term for all loops together."""


class Nest(Record):
    """A loop nest of a launch. bound: its terms of the bound, without the launch, with the bytes that it moves after
    the nests before it. kernel: its statements alone. moving: what the hardware moves in it. inner: its inner loops, if
    several follow each other.
    """

    bound: Prediction
    kernel: Kernel
    moving: Moving
    inner: InnerLoops | None = None


def in_sequence(whole: Expected, bound_s: Fraction, launch_s: Fraction, nests: Sequence[NestTime]) -> Expected:
    """The expected time of one launch with these nests. bound_s, launch_s: the bound of the launch, and its term for
    launching. whole: all nests composed as one, of which everything is kept that is not a time.
    """
    together = reduce(add, [nest.expected for nest in nests])
    relaxed_s, called = together.relaxed_s, whole.launch_s
    times = [nest.bound_s for nest in nests]
    ladder = [Rung(IN_SEQUENCE, "", max(launch_s, sum(times, Fraction(0))))]
    for k, nest in enumerate(nests):
        for rung in nest.expected.ladder[:-1]:
            times[k] = rung.reached_s
            ladder.append(replace(rung, reached_s=max(launch_s, sum(times, Fraction(0)))))
    ladder.append(launch_rung(ladder[-1].reached_s, together.expected_s + called))
    return replace(
        whole,
        expected_s=together.expected_s + called,
        causes=causes_of(bound_s, ladder),
        core_s=together.core_s,
        loads_s=together.loads_s,
        transfers=together.transfers,
        data_s=together.data_s,
        relaxed_s=None if relaxed_s is None else relaxed_s + called,
        ladder=tuple(ladder),
        past_caches_s=sum((nest.expected.past_caches_s for nest in nests), Fraction(0)),
        nests=tuple(nests),
    )


def shared_out(core: InCore, alone: Sequence[InCore]) -> list[InCore]:
    """The in-core times of nests, such that they add up to that of all nests together, `core`. alone: of each nest as
    a function of its own, whose entry and exit take time, too.
    """
    last, ends = core.steps[-1], [nest.steps[-1] for nest in alone]
    overlapping = _factor(last.overlapping_s, sum(end.overlapping_s for end in ends))
    loads = _factor(last.loads_s, sum(end.loads_s for end in ends))
    found = []
    for nest in alone:
        steps = tuple(
            replace(step, overlapping_s=step.overlapping_s * overlapping, loads_s=step.loads_s * loads)
            for step in nest.steps
        )
        found.append(replace(nest, steps=steps, launch_s=0.0, masked=core.masked))
    return found


def _factor(whole: float, parts: float) -> float:
    return whole / parts if parts else 1.0

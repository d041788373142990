"""Loops over the turns that threads take, if a launch has fewer threads than iterations (`loops.thread_blocks`).

In each turn, every block moves on to its next chunk, past those of the other blocks. So what a block touches has gaps,
and blocks that have nothing left in the last turn take one turn fewer.
"""

from __future__ import annotations

from collections.abc import Sequence

from roofdsl.counts.loop_intervals import Bounds, Env, LoopIntervals
from roofdsl.loops.affine import affine
from roofdsl.loops.integers import Sym, sub
from roofdsl.loops.model import For, Node
from roofdsl.loops.transform import loops_in


def leaves_gaps(intervals: LoopIntervals, loop: For) -> bool:
    """Whether a loop inside `loop` starts at its variable and covers less than one of its steps. False if
    `LoopIntervals.hull` finds these gaps.
    """
    step, name = intervals.bounds(loop).step, loop.var
    if step == 1 or name in intervals.subscripted:
        return False
    starts_here = (intervals.bounds(inner) for inner in loops_in(loop.body) if name in inner.start.symbols())
    return any(_reach(inner, name) < step for inner in starts_here if not inner.in_chunks(name))


def _reach(bounds: Bounds, name: str) -> float:
    """How far a loop that starts at a variable goes on from there: a number from its stops, otherwise its length."""
    from_it = [affine(sub(stop, Sym(name))) for stop in bounds.loop.stops]
    return min((form.constant for form in from_it if not form.terms), default=bounds.length)


def has_empty(intervals: LoopIntervals, nodes: Sequence[Node], env: Env, moving: set[str]) -> bool:
    """Whether a loop that starts at variables of `moving` has no iteration for the last values of the loops around it,
    because of an end that does not move with them. env: the values of the loops outside `nodes`.

    Raises NoAnswer.
    """
    for loop in nodes:
        if not isinstance(loop, For):
            continue
        moves = bool(loop.start.symbols() & moving)
        bounds = intervals.bounds(loop)
        if moves:
            ends = [form.interval(env)[1] for form in bounds.stops if not moving & {*form.symbols}]
            if ends and max(form.interval(env)[1] for form in bounds.starts) >= min(ends):
                return True
        inside = intervals.hull(loop, env)
        more = moving | {loop.var} if moves else moving
        if inside is not None and has_empty(intervals, loop.body, {**env, loop.var: inside}, more):
            return True
    return False

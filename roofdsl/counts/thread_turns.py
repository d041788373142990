"""Loops over the turns that threads take, if a launch has fewer threads than iterations (`loops.thread_blocks`).

A turn goes on with the next chunk of every block. So what a block touches has gaps, and the blocks for which the last
turn leaves nothing have a turn less than the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import NamedTuple

from roofdsl.counts.loop_intervals import Env, LoopIntervals
from roofdsl.loops.affine import affine
from roofdsl.loops.integers import Sym, sub
from roofdsl.loops.model import For, Node


class Gaps(NamedTuple):
    """When iterations of a loop leave gaps that only a walk finds: always, or while none of the variables in one of
    these sets moves, which are those of turns.
    """

    always: bool
    unless_moving: tuple[frozenset[str], ...]

    def are_left(self, env: Env) -> bool:
        """Whether they do with these values of the variables of outer loops."""
        moving = {name for name, values in env.items() if not values.is_one}
        return self.always or any(not turns & moving for turns in self.unless_moving)


def gaps_of(intervals: LoopIntervals, loop: For) -> Gaps:
    """The gaps that a loop leaves: a loop inside runs over a chunk at its variable that is shorter than a step of it.
    `LoopIntervals.hull` finds them if that loop has steps of 1.

    In one turn, `for i in range(ii + turn, min(n, ii + 64, ii + turn + 8))` leaves gaps of 56. In all turns, it leaves
    none if `ii` is in steps of 64.
    """
    step, name = intervals.bounds(loop).step, loop.var
    if step == 1 or name in intervals.subscripted:
        return Gaps(always=False, unless_moving=())
    inside = list(_loops(loop.body))
    chunks = [i for i in inside if name in i.start.symbols() and not intervals.bounds(i).in_chunks(name)]
    always = any(_reach(intervals, inner, name) < step for inner in chunks)
    own = {inner.var for inner in inside}
    shorter = (inner for inner in chunks if min(intervals.bounds(inner).lengths(), default=inf) < step)
    turns = (frozenset(inner.start.symbols() - {name}) for inner in shorter)
    return Gaps(always, tuple(dict.fromkeys(t for t in turns if not t & own)))


def _reach(intervals: LoopIntervals, loop: For, name: str) -> float:
    """How far a loop that starts at a variable goes on from there, as far as its bounds say so by a number."""
    from_it = [affine(sub(stop, Sym(name))) for stop in loop.stops]
    in_all = [form.constant for form in from_it if not form.terms]
    return min(in_all or intervals.bounds(loop).lengths(), default=inf)


def _loops(nodes: Sequence[Node]) -> Iterator[For]:
    for node in nodes:
        if isinstance(node, For):
            yield node
            yield from _loops(node.body)


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

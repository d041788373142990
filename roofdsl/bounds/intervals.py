"""Interval products: results (i, j) made of results (i, k) and (k, j) of the same array, i < k < j.

Both operands are final values of one array, so one value may be the left operand of some executions and the right
operand of others. The inequality of Loomis and Whitney, |E|^2 <= |left| |right| |running|, also holds if left and right
are the same set. So values with both roles could allow more executions than values with one role each. They do not:

Theorem. Let E be a finite set of triples i < k < j. Let F be the set of the pairs (i, k) and (k, j) of its triples, R
the set of the pairs (i, j), and x the number of pairs in R that are also the left pair of a triple. Then |E| <= ((|F| +
|R| + 5 x) / 3)^(3/2). Without such pairs, |E| <= |F| sqrt(|R|) / 2, as for three different sets.

docs/proofs.md has the proof.

If every operand is the last version of its element, and all updates of an element form one chain (`_final`), each of
the x pairs is finished and used in the same segment. It is finished once in a run, and counts as FINISHED arrivals.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import islpy as isl

from roofdsl.bounds.counting import count
from roofdsl.bounds.flow import Flow, Read, Statement, computed, sets
from roofdsl.bounds.pieces import Piece
from roofdsl.loops.affine import Affine, affine
from roofdsl.loops.integers import Sym

FINISHED = 6
"""A value made on chip counts as this many arrivals: itself, and the 5 of the theorem."""


def interval_product(flow: Flow, statement: Statement, piece: Piece) -> Piece | None:
    """The piece with its two operands in separate classes.

    None if it is not an interval product, or if the operands are already separate.
    """
    running = [s for s in piece.slots if s.running]
    operands = [s for s in piece.slots if not s.running]
    if len(piece.loops) != 3 or len(running) != 1 or len(operands) != 2:
        return None
    if operands[0].group != operands[1].group or operands[0].group == running[0].group:
        return None
    place, *reads = (next(r for r in statement.reads if r.text == s.text) for s in (*running, *operands))
    executions = piece.executions.set_tuple_name(statement.name)
    # The text of a product may have its operands in either order.
    if not any(_between(executions, statement, left, right) for left, right in (reads, reads[::-1])):
        return None
    inside = isl.UnionSet.from_set(executions)
    operand_values = reads[0].values.union(reads[1].values).intersect_domain(inside).range()
    if not _final(flow, statement, place, operand_values):
        return None
    finals = computed(operand_values)
    begun = computed(place.values.intersect_domain(inside).range().subtract(inside))
    right = max(piece.objects) + 1
    slots = tuple(replace(s, group=right) if s is operands[1] else s for s in piece.slots)
    objects = piece.objects | {right: piece.objects[operands[1].group]}
    return replace(
        piece, slots=slots, objects=objects, made=(count(flow, begun.coalesce()),),
        finished=count(flow, finals.coalesce()),
    )  # fmt: skip


def _final(flow: Flow, statement: Statement, place: Read, values: Any) -> bool:
    """Whether each value is the last of its element in one chain of updates by the statement, or the statement never
    updates its element.

    A segment that updates an element and uses its value as an operand makes that value itself, since all updates come
    before the use.
    """
    own = isl.UnionSet.from_set(statement.domain)
    follow = place.values.intersect_range(own)
    begin = own.subtract(follow.domain())
    chains = isl.UnionMap.from_map(statement.element).intersect_domain(begin)
    if not chains.is_injective() or not values.intersect(own).is_disjoint(follow.range()):
        return False
    updated = statement.element.range()
    makers = {s.name: s.element for s in flow.statements}
    for part in sets(values):
        name = part.get_tuple_name()
        if name == statement.name:
            continue
        elements = part.apply(makers[name]) if name in makers else part.set_tuple_name(updated.get_tuple_name())
        if not elements.is_disjoint(updated):
            return False
    return True


def _between(executions: Any, statement: Statement, left: Read, right: Read) -> bool:
    """Whether left is (i, k), right (k, j) and the target (i, j), all of one array, with k always between i and j.

    An element (x, y) is the pair of points x and y + c, where left has k - c and right has k.
    """
    if any(r.array.name != statement.array.name or len(r.subscripts) != 2 for r in (left, right)):
        return False
    i, j = map(affine, statement.target)
    here, before = map(affine, left.subscripts)
    k, there = map(affine, right.subscripts)
    if not (_same(i, here) and _same(j, there) and _same(k, before, but_for_a_number=True)):
        return False
    side = _side(executions, statement, k, i)
    return side != 0 and side == _side(executions, statement, j, before)


def _same(a: Affine, b: Affine, but_for_a_number: bool = False) -> bool:
    return dict(a.terms) == dict(b.terms) and (but_for_a_number or a.constant == b.constant)


def _side(executions: Any, statement: Statement, a: Affine, b: Affine) -> int:
    """1 if a > b in all executions, -1 if a < b in all, otherwise 0."""
    space = isl.LocalSpace.from_space(executions.get_space())
    difference = isl.Aff.zero_on_domain(space).add_constant_val(isl.Val(a.constant - b.constant))
    for form, sign in ((a, 1), (b, -1)):
        for term, factor in form.terms:
            if not isinstance(term, Sym):
                return 0
            if term.name in statement.loops:
                kind, at = isl.dim_type.in_, statement.loops.index(term.name)
            else:
                kind, at = isl.dim_type.param, space.find_dim_by_name(isl.dim_type.param, f"p_{term.name}")
            if at < 0:
                return 0
            value = difference.get_coefficient_val(kind, at).add(isl.Val(sign * factor))
            difference = difference.set_coefficient_val(kind, at, value)
    zero = isl.Aff.zero_on_domain(space)
    if executions.intersect(difference.le_set(zero)).is_empty():
        return 1
    return -1 if executions.intersect(difference.ge_set(zero)).is_empty() else 0

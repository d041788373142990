"""Windows between iterations of loops with one body, in which references move along with the iteration.

A stencil touches x[i + o] for some dozens of offsets o. From an access back to the one before it on its line, always as
many iterations away, lie whole iterations, which are the same for all accesses that far apart, and two parts of
iterations, after the one and before the other. Of these, an element that no whole iteration touches counts once, which
is a condition on the iteration: nothing is counted for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import islpy as isl

from roofdsl.sets.cardinality import added
from roofdsl.sets.images import Images
from roofdsl.sets.stream import Reference

Offset = tuple[int, ...]

_IN, _OUT, _SET = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.set


@dataclass
class OneBody:
    """Counts what windows touch of the arrays whose references all move along with the iteration.

    boxes, first: array -> isl.Map from an iteration to all that it touches, and to what its first reference touches.
    offsets: array -> (place in the text, element relative to the iteration) of each of its references.
    """

    iterations: Any
    boxes: Mapping[str, Any]
    images: Mapping[str, Images]
    offsets: Mapping[str, list[tuple[int, Offset]]]
    first: Mapping[str, Any]
    line_bytes: Mapping[str, int]
    _windows: dict[Offset, _Windows] = field(default_factory=dict)

    def bytes_since(self, previous: Any) -> Any | None:
        """isl.PwQPolynomial on iterations: bytes of `offsets` touched from the previous access, included, up to the
        access; None where that is not always as many iterations back. previous: an isl.Map of one basic map.
        """
        after, before = _place(previous.range()), _place(previous.domain())
        back = _point(without_place(without_place(previous).reverse()).deltas())
        if after is None or before is None or back is None:
            return None
        if back not in self._windows:
            self._windows[back] = _Windows(self, back)
        return self._windows[back].bytes_between(after, before)


def one_body(
    groups: Mapping[str, Sequence[Reference]],
    boxes: Mapping[str, Any],
    images: Mapping[str, Images],
    line_bytes: Mapping[str, int],
) -> OneBody | None:
    """None where references are not all made in every iteration, or none moves along with it.

    boxes: array -> isl.Map from an iteration, at one place or at each, to all that it touches.
    """
    iterations: Any = None
    offsets: dict[str, list[tuple[int, Offset]]] = {}
    for name, references in groups.items():
        own = list[tuple[int, Offset]]()
        for r in references:
            place, here = _place(r.domain), _loops(r.domain)
            iterations = here if iterations is None else iterations
            if place is None or not here.is_equal(iterations):
                return None
            offset = _point(images[name].relative(without_place(r.location)).range())
            if offset is not None:
                own.append((place, offset))
        if len(own) == len(references):
            offsets[name] = own
    first = {name: without_place(groups[name][0].location) for name in offsets}
    moving = {name: without_place(boxes[name]) for name in offsets}
    return OneBody(iterations, moving, images, offsets, first, line_bytes) if offsets else None


class _Windows:
    """The windows between iterations that lie `back` apart."""

    def __init__(self, body: OneBody, back: Offset) -> None:
        self.body, self.back = body, back
        names = [f"i{k}" for k in range(len(back))]
        there = ", ".join(f"{name} - {by}" for name, by in zip(names, back, strict=True))
        tuple_name = body.iterations.get_tuple_name()
        shift = isl.Map(f"{{ {tuple_name}[{', '.join(names)}] -> {tuple_name}[{there}] }}")
        self.shift = shift.intersect_domain(body.iterations).intersect_range(body.iterations)
        self._news: dict[tuple[str, Offset], Any] = {}
        self._known: dict[tuple[int, int], Any] = {}

    def bytes_between(self, after: int, before: int) -> Any:
        """From place `after` of the first iteration up to place `before` of the last."""
        key = after, before
        if key not in self._known:
            counts = [self._whole] if any(self.back) and self._whole is not None else []
            counts += self._extra(self._touched(after, before))
            zero = isl.QPolynomial.zero_on_domain(self.body.iterations.get_space())
            # Between two places of one iteration there may be nothing that moves along.
            self._known[key] = added(counts or [isl.PwQPolynomial.from_qpolynomial(zero)])
        return self._known[key]

    def _touched(self, after: int, before: int) -> set[tuple[str, Offset]]:
        """What the parts of iterations at both ends touch, relative to the last one."""
        found = set[tuple[str, Offset]]()
        for name, references in self.body.offsets.items():
            for place, offset in references:
                if any(self.back):
                    found |= {(name, offset)} if place < before else set()
                    moved = tuple(o - by for o, by in zip(offset, self._moved[name], strict=True))
                    found |= {(name, moved)} if place >= after else set()
                elif after <= place < before:
                    found.add((name, offset))
        return found

    @cached_property
    def _moved(self) -> dict[str, Offset]:
        """array -> how far its elements move in as many iterations."""
        found = {}
        for name, references in self.body.offsets.items():
            earlier = self.body.images[name].relative(self.shift.apply_range(self.body.first[name]))
            here, there = references[0][1], _point(earlier.range())
            assert there is not None  # all references move along
            found[name] = tuple(a - b for a, b in zip(here, there, strict=True))
        return found

    @cached_property
    def _relations(self) -> dict[str, Any]:
        """array -> isl.Map from an iteration to what the whole iterations in its window touch."""
        space = self.shift.get_space().range()
        between = self.shift.apply_range(isl.Map.lex_lt(space)).intersect(isl.Map.lex_gt(space))
        return {name: between.apply_range(box) for name, box in self.body.boxes.items()}

    @cached_property
    def _whole(self) -> Any:
        """Bytes that whole iterations touch; None where there are none."""
        counts = []
        for name, relation in self._relations.items():
            count = self.body.images[name].count(relation)
            if count is not None:
                counts.append(count.scale_val(isl.Val(self.body.line_bytes[name])))
        return added(counts) if counts else None

    def _extra(self, touched: Iterable[tuple[str, Offset]]) -> list[Any]:
        """Bytes of elements that no whole iteration touches: one count for each set of iterations where that is so."""
        weights: dict[str, int] = {}
        sets: dict[str, Any] = {}
        for name, offset in touched:
            new = self._new(name, offset)
            if not new.is_empty():
                text = str(new)
                sets[text] = new
                weights[text] = weights.get(text, 0) + self.body.line_bytes[name]
        one = isl.QPolynomial.one_on_domain(self.shift.domain().get_space())
        whole = isl.PwQPolynomial.from_qpolynomial(one)
        return [whole.intersect_domain(sets[text]).scale_val(isl.Val(weight)) for text, weight in weights.items()]

    def _new(self, name: str, offset: Offset) -> Any:
        """The iterations in whose windows no whole iteration touches the element."""
        if (name, offset) not in self._news:
            relation = self._relative[name]
            for k, value in enumerate(offset):
                relation = relation.fix_val(_OUT, k, isl.Val(value))
            self._news[name, offset] = self.shift.domain().subtract(relation.domain()).coalesce()
        return self._news[name, offset]

    @cached_property
    def _relative(self) -> dict[str, Any]:
        return {name: self.body.images[name].relative(relation) for name, relation in self._relations.items()}


def without_place(relation: Any) -> Any:
    """An isl.Map from accesses as one from iterations: without the last dimension, a place in the text."""
    last = relation.dim(_IN) - 1
    name = relation.get_tuple_name(_IN)
    return relation.project_out(_IN, last, 1).set_tuple_name(_IN, name)


def _loops(accesses: Any) -> Any:
    last = accesses.dim(_SET) - 1
    return accesses.project_out(_SET, last, 1).set_tuple_name(accesses.get_tuple_name()).coalesce()


def _place(accesses: Any) -> int | None:
    """The place in the text of all `accesses`; None where they are in several."""
    value = accesses.plain_get_val_if_fixed(_SET, accesses.dim(_SET) - 1)
    return int(value.to_python()) if value.is_int() else None


def _point(values: Any) -> Offset | None:
    """The one point of a set, in numbers; None where there are more."""
    found = [values.plain_get_val_if_fixed(_SET, k) for k in range(values.dim(_SET))]
    return tuple(int(v.to_python()) for v in found) if all(v.is_int() for v in found) else None

"""Windows between iterations of loops with one body, in which references move along with the iteration.

A stencil touches x[i + o] for a few dozen offsets o. Suppose that an access is always the same number of iterations
after the previous access to its line. The window between the two consists of whole iterations, which are the same for
all accesses that far apart, and of two parts: the rest of the first iteration and the beginning of the last. An element
of these parts counts once, and only if no whole iteration touches it: that is a condition on the iteration, and takes
no counting.

The elements of some arrays do not move along, such as those of a mask `M[k % 2, i]`. Such an array is counted once for
all windows whose parts of iterations contain the same references to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import islpy as isl

from roofdsl.sets.access_sets import Reference
from roofdsl.sets.cardinality import added
from roofdsl.sets.images import Images
from roofdsl.sets.whole_iterations import Offset, point, touched_boxes, without_place, without_places

_OUT, _SET = isl.dim_type.out, isl.dim_type.set

MOST_PLACES = 8
"""Accesses are told apart by their places if all of them lie within this many places of the text."""


@dataclass
class OneBody:
    """Counts the bytes that windows touch.

    boxes, first: array -> isl.Map from an iteration to everything that it touches, and to what its first reference
    touches. offsets: array whose references all move along with the iteration -> (place in the text, element relative
    to the iteration) for each of them. others: each other array -> (place, isl.Map from an iteration to the element).
    alike: array -> the first array whose elements are touched in the same iterations, and which stands for it in
    counts.
    """

    iterations: Any
    boxes: Mapping[str, Any]
    images: Mapping[str, Images]
    offsets: Mapping[str, list[tuple[int, Offset]]]
    others: Mapping[str, list[tuple[int, Any]]]
    first: Mapping[str, Any]
    alike: Mapping[str, str]
    line_bytes: Mapping[str, int]
    _windows: dict[Offset, _Windows] = field(default_factory=dict)

    def counted(self, previous: Any) -> list[tuple[Any, Any | None]]:
        """`previous`, an isl.Map of one basic map, in parts: each with its `bytes_since`.

        It is cut at the places of the accesses if a part then has a count. In a row, for example, several accesses may
        each touch what the next place touched an iteration before: with the place, the distance is always the same.
        """
        found = self.bytes_since(previous)
        if found is None:
            cut = [(part, self.bytes_since(part)) for part in _at_each_place(previous)]
            if any(count is not None for _, count in cut):
                return cut
        return [(previous, found)]

    def bytes_since(self, previous: Any) -> Any | None:
        """isl.PwQPolynomial on iterations: the bytes touched from the previous access (included) to the access.

        None if the previous access is not always the same number of iterations back. previous: an isl.Map of one basic
        map.
        """
        after, before = _place(previous.range()), _place(previous.domain())
        back = point(without_place(without_place(previous).reverse()).deltas())
        if after is None or before is None or back is None:
            return None
        if back not in self._windows:
            self._windows[back] = _Windows(self, back)
        return self._windows[back].bytes_between(after, before)


def one_body(
    groups: Mapping[str, Sequence[Reference]],
    boxes: Mapping[str, Any] | None,
    images: Mapping[str, Images],
    alike: Mapping[str, str],
    line_bytes: Mapping[str, int],
) -> OneBody | None:
    """The body; None if some references are not made in every iteration, or if no array moves along with it.

    boxes: array -> isl.Map from an iteration, at one place or at each, to everything that it touches.
    """
    iterations: Any = None
    offsets: dict[str, list[tuple[int, Offset]]] = {}
    others: dict[str, list[tuple[int, Any]]] = {}
    for name, references in groups.items():
        own, lines = list[tuple[int, Offset]](), list[tuple[int, Any]]()
        for r in references:
            place, here = _place(r.domain), without_places(r.domain)
            iterations = here if iterations is None else iterations
            if place is None or not here.is_equal(iterations):
                return None
            lines.append((place, without_place(r.location)))
            offset = point(images[name].relative(lines[-1][1]).range())
            if offset is not None:
                own.append((place, offset))
        if len(own) == len(references):
            offsets[name] = own
        else:
            others[name] = lines
    first = {name: without_place(groups[name][0].location) for name in offsets}
    if boxes is None:
        whole = {name: touched_boxes(references, images[name]) for name, references in groups.items()}
    else:
        whole = {name: without_place(box) for name, box in boxes.items()}
    return OneBody(iterations, whole, images, offsets, others, first, alike, line_bytes) if offsets else None


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
        self._cut: dict[tuple[str, Offset], Any] = {}
        self._known: dict[tuple[int, int], Any] = {}
        self._unmoved: dict[tuple[str, tuple[int, ...], tuple[int, ...]], Any] = {}

    def bytes_between(self, after: int, before: int) -> Any:
        """The bytes from place `after` of the first iteration (included) to place `before` of the last (excluded)."""
        key = after, before
        if key not in self._known:
            counts = [self._whole] if any(self.back) and self._whole is not None else []
            counts += self._extra(self._touched(after, before))
            counts += [c for name in self.body.others if (c := self._other(name, after, before)) is not None]
            zero = isl.QPolynomial.zero_on_domain(self.body.iterations.get_space())
            # Between two places of one iteration, there may be no reference that moves along.
            self._known[key] = added(counts or [isl.PwQPolynomial.from_qpolynomial(zero)])
        return self._known[key]

    def _touched(self, after: int, before: int) -> Iterable[tuple[str, Offset]]:
        """The elements that the parts of iterations at both ends touch, relative to the last iteration, each once."""
        found = list[tuple[str, Offset]]()
        for name, references in self.body.offsets.items():
            for place, offset in references:
                if any(self.back):
                    found += [(name, offset)] if place < before else []
                    moved = tuple(o - by for o, by in zip(offset, self._moved[name], strict=True))
                    found += [(name, moved)] if place >= after else []
                elif after <= place < before:
                    found.append((name, offset))
        return dict.fromkeys(found)

    @cached_property
    def _moved(self) -> dict[str, Offset]:
        """array -> how far its elements move from the first iteration to the last."""
        found = {}
        for name, references in self.body.offsets.items():
            earlier = self.body.images[name].relative(self.shift.apply_range(self.body.first[name]))
            here, there = references[0][1], point(earlier.range())
            assert there is not None  # all references move along
            found[name] = tuple(a - b for a, b in zip(here, there, strict=True))
        return found

    @cached_property
    def _relations(self) -> dict[str, Any]:
        """array that moves along -> isl.Map from an iteration to what the whole iterations in its window touch.

        Arrays that others stand for are left out.
        """
        firsts = dict.fromkeys(self.body.alike[name] for name in self.body.offsets)
        return {name: self._between.apply_range(self.body.boxes[name]) for name in firsts}

    @cached_property
    def _between(self) -> Any:
        """isl.Map from an iteration to the whole iterations in its window."""
        space = self.shift.get_space().range()
        return self.shift.apply_range(isl.Map.lex_lt(space)).intersect(isl.Map.lex_gt(space)).coalesce()

    def _other(self, name: str, after: int, before: int) -> Any:
        """The bytes of an array that does not move along, from `after` to `before`; None if there are none."""
        references = self.body.others[name]
        if any(self.back):
            early = tuple(k for k, (place, _) in enumerate(references) if place >= after)
            late = tuple(k for k, (place, _) in enumerate(references) if place < before)
        else:
            early, late = (), tuple(k for k, (place, _) in enumerate(references) if after <= place < before)
        key = name, early, late
        if key not in self._unmoved:
            here = isl.Map.identity(self.shift.get_space()).intersect_domain(self.shift.domain())
            parts = [self._between.apply_range(self.body.boxes[name])] if any(self.back) else []
            parts += [self.shift.apply_range(references[k][1]) for k in early]
            parts += [here.apply_range(references[k][1]) for k in late]
            count = self.body.images[name].count(reduce(isl.Map.union, parts).coalesce()) if parts else None
            self._unmoved[key] = None if count is None else count.scale_val(isl.Val(self.body.line_bytes[name]))
        return self._unmoved[key]

    @cached_property
    def _whole(self) -> Any:
        """The bytes that whole iterations touch; None if there are none."""
        counts = []
        for first, relation in self._relations.items():
            count = self.body.images[first].count(relation)
            if count is not None:
                weight = sum(self.body.line_bytes[name] for name in self.body.offsets if self.body.alike[name] == first)
                counts.append(count.scale_val(isl.Val(weight)))
        return added(counts) if counts else None

    def _extra(self, touched: Iterable[tuple[str, Offset]]) -> list[Any]:
        """The bytes of elements that no whole iteration touches: one count for each set of iterations for which that is
        so.
        """
        weights: dict[str, int] = {}
        sets: dict[str, Any] = {}
        for name, offset in touched:
            new = self._new(self.body.alike[name], offset)
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
            touched = self._at(name, offset).domain()
            self._news[name, offset] = self.shift.domain().subtract(touched).coalesce()
        return self._news[name, offset]

    def _at(self, name: str, offset: Offset) -> Any:
        """`_relative` of an array, with numbers for its outer dimensions; elements share most of these."""
        if not offset:
            return self._relative[name]
        if (name, offset) not in self._cut:
            outer = self._at(name, offset[:-1])
            self._cut[name, offset] = outer.fix_val(_OUT, len(offset) - 1, isl.Val(offset[-1]))
        return self._cut[name, offset]

    @cached_property
    def _relative(self) -> dict[str, Any]:
        return {name: self.body.images[name].relative(relation) for name, relation in self._relations.items()}


def _at_each_place(previous: Any) -> list[Any]:
    """An isl.Map between accesses, cut by the places of both in the text; uncut if these lie far apart."""
    parts = [previous]
    if previous.is_empty():
        return parts
    for kind, accesses in ((isl.dim_type.in_, previous.domain()), (_OUT, previous.range())):
        last = accesses.dim(_SET) - 1
        low, high = (each.to_python() for each in (accesses.dim_min_val(last), accesses.dim_max_val(last)))
        if high - low >= MOST_PLACES:
            return [previous]
        parts = [part.fix_val(kind, last, isl.Val(place)) for part in parts for place in range(low, high + 1)]
        parts = [part for part in parts if not part.is_empty()]
    return parts


def _place(accesses: Any) -> int | None:
    """The place in the text of all `accesses`; None if they are at several places."""
    value = accesses.plain_get_val_if_fixed(_SET, accesses.dim(_SET) - 1)
    return int(value.to_python()) if value.is_int() else None

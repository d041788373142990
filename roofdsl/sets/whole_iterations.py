"""What the accesses of a whole iteration of the innermost loops touch, as few boxes.

For example, HPGMG's stencil reads 25 elements x[k + c, j + b, i + a]. They are the union of six boxes that overlap:
three squares of nine elements and three rows of five. A window of iterations touches what these six boxes touch, so its
set has six parts instead of 25.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import reduce
from itertools import permutations, product
from typing import Any

import islpy as isl

from roofdsl.sets.access_sets import Reference
from roofdsl.sets.images import Images

Offset = tuple[int, ...]
Box = tuple[Offset, Offset]
"""The least and the greatest of its points in every dimension."""

MOST_POINTS, MOST_DIMENSIONS = 128, 4
"""For more, looking for boxes takes time; the points are left as they are."""

FEW = 0.5
"""Boxes are used if there are at most this many for each reference: one for each would be as many parts as before."""

_IN, _OUT, _SET = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.set


def in_one_box(touch: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """array -> isl.Map from an iteration, at place 0, to its lines; None if these are no boxes, or as many as before.

    touch: array -> isl.Map from accesses to their lines.
    """
    boxes = {}
    for name, location in touch.items():
        if not location.dim(_IN):  # one statement, outside any loop
            return None
        spread = _at_place_0(without_place(location))
        # A hull that contains nothing else is the touched set in one piece, so lines that several references share
        # need not be distinguished in the count.
        hull = isl.Map.from_basic_map(spread.simple_hull())
        if not hull.is_subset(spread):
            return None
        boxes[name] = hull
    # One box for each reference would be as many as before.
    return boxes if len(boxes) < sum(len(t.get_basic_maps()) for t in touch.values()) else None


def in_few_boxes(groups: Mapping[str, Sequence[Reference]], images: Mapping[str, Images]) -> Mapping[str, Any] | None:
    """As `in_one_box`, with several boxes for an array; None if there are not much fewer than references, or if some
    lines do not move along with the iteration.

    groups: array -> the references to it. images: array -> its locations relative to accesses.
    """
    boxes = {}
    for name, references in groups.items():
        if not references[0].location.dim(_IN) or any(_offset(r, images[name]) is None for r in references):
            return None
        boxes[name] = _at_place_0(touched_boxes(references, images[name]))
    few = sum(len(b.get_basic_maps()) for b in boxes.values())
    return boxes if few <= FEW * sum(map(len, groups.values())) else None


def touched_boxes(references: Sequence[Reference], images: Images) -> Any:
    """isl.Map from an iteration to what it touches of one array: boxes of references in the same iterations, at fixed
    distances from each other, and all other references as they are.
    """
    together: list[tuple[Any, Any, list[Offset]]] = []
    parts = []
    for r in references:
        location, offset = without_place(r.location), _offset(r, images)
        if offset is None:
            parts.append(location)
            continue
        iterations = without_places(r.domain)
        known = next((offsets for here, _, offsets in together if here.is_equal(iterations)), None)
        if known is None:
            together.append((iterations, location, [offset]))
        else:
            known.append(offset)
    for _, location, offsets in together:
        space = location.get_space().range()
        parts += [location.apply_range(_shift(space, offsets[0], box)) for box in cover(offsets)]
    return reduce(isl.Map.union, parts)


def _offset(reference: Reference, images: Images) -> Offset | None:
    """Where the reference touches its array relative to the iteration; None if that is not always the same, or if only
    some remainders are executed: comparing such iterations takes long.
    """
    if any(basic.dim(isl.dim_type.div) for basic in reference.location.get_basic_maps()):
        return None
    return point(images.relative(without_place(reference.location)).range())


def cover(points: Collection[Offset]) -> list[Box]:
    """Boxes, some of which may overlap, that contain these points and no others."""
    every = frozenset(points)
    dims = len(next(iter(every), ()))
    if len(every) > MOST_POINTS or dims > MOST_DIMENSIONS:
        return [(p, p) for p in sorted(every)]
    # Each point that no box has yet begins one, grown in all orders of the dimensions: which is the largest depends on
    # where it grows first, as in an L. Boxes may overlap: the touched set is their union.
    left = set(every)
    found: list[Box] = []
    for each in sorted(every):
        if each in left:
            boxes = [_grown(each, order, every) for order in permutations(range(dims))]
            found.append(max(boxes, key=lambda box: len(left.intersection(_points(box)))))
            left.difference_update(_points(found[-1]))
    return found


def _grown(start: Offset, order: tuple[int, ...], every: frozenset[Offset]) -> Box:
    """A box around a point, extended as far as possible in one dimension after the other."""
    low, high = list(start), list(start)
    for k in order:
        for ends, step in ((low, -1), (high, 1)):
            while all(p in every for p in _slab(low, high, k, ends[k] + step)):
                ends[k] += step
    return tuple(low), tuple(high)


def _slab(low: list[int], high: list[int], k: int, at: int) -> Iterator[Offset]:
    """The points of the box with `at` in dimension k."""
    return _points(((*low[:k], at, *low[k + 1 :]), (*high[:k], at, *high[k + 1 :])))


def _points(box: Box) -> Iterator[Offset]:
    return product(*(range(a, b + 1) for a, b in zip(*box, strict=True)))


def _shift(space: Any, here: Offset, box: Box) -> Any:
    """isl.Map from the element at `here` to those in a box around the same iteration."""
    low, high = ([b - a for a, b in zip(here, end, strict=True)] for end in box)
    before, after = [f"o{k}" for k in range(len(low))], [f"p{k}" for k in range(len(low))]
    within = [f"{o} + {a} <= {p} <= {o} + {b}" for o, p, a, b in zip(before, after, low, high, strict=True)]
    name = space.get_tuple_name(_SET)
    text = f"{name}[{', '.join(before)}] -> {name}[{', '.join(after)}]"
    return isl.Map(f"{{ {text} : {' and '.join(within) or 'true'} }}")


def _at_place_0(relation: Any) -> Any:
    """An isl.Map from iterations as one from accesses at place 0, the last dimension: an iteration with everything that
    its statements touch.
    """
    last, name = relation.dim(_IN), relation.get_tuple_name(_IN)
    return relation.insert_dims(_IN, last, 1).fix_val(_IN, last, isl.Val(0)).set_tuple_name(_IN, name)


def without_place(relation: Any) -> Any:
    """An isl.Map from accesses as one from iterations: without the last dimension, which is a place in the text."""
    last = relation.dim(_IN) - 1
    name = relation.get_tuple_name(_IN)
    return relation.project_out(_IN, last, 1).set_tuple_name(_IN, name)


def without_places(accesses: Any) -> Any:
    """An isl.Set of accesses as one of iterations."""
    last = accesses.dim(_SET) - 1
    return accesses.project_out(_SET, last, 1).set_tuple_name(accesses.get_tuple_name()).coalesce()


def point(values: Any) -> Offset | None:
    """The only point of a set, in numbers; None if there are more, or if that is not seen at once."""
    found = [values.plain_get_val_if_fixed(_SET, k) for k in range(values.dim(_SET))]
    return tuple(int(v.to_python()) for v in found) if all(v.is_int() for v in found) else None

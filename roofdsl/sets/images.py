"""The number of locations that each access's window touches, counted so that the sets stay simple.

The library's cost grows steeply with the number of parameters and dimensions, and with how many polyhedra overlap. So
locations are expressed relative to the access. Its loop variables then mostly take no part in the count and are left
out of it. Dimensions with few values (the planes of a stencil) are cut into slices, each of which is then a box or two.
Nothing is approximated: each step maps the images of a point one to one, or partitions them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import islpy as isl

from roofdsl.lang.record import Record, field
from roofdsl.sets.by_text import text_of
from roofdsl.sets.cardinality import added, cardinalities

MOST_SLICES, MOST_SLICES_OF_ALL = 8, 32
"""The maximum number of values of one dimension, and of all together, into which a set of images is cut."""

_IN, _OUT, _PARAM = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.param


class Images:
    """Counts the images of maps from accesses to locations of one array."""

    def __init__(self, touch: Any) -> None:
        """touch: isl.Map from accesses to the array's locations."""
        self._touch = touch
        self._moved: dict[int, Any] = {}

    def relative(self, relation: Any) -> Any:
        """`relation` with locations relative to the access; accesses with or without their place in the text."""
        if relation.get_tuple_name(_IN) != self._touch.get_tuple_name(_IN):
            return relation  # from lines of the array
        relation = relation.set_tuple_name(_OUT, self._touch.get_tuple_name(_OUT))  # of an array that is touched alike
        loops = relation.dim(_IN)
        if loops not in self._moved:
            self._moved[loops] = _moved(self._touch, loops)
        return relation.wrap().apply(self._moved[loops]).unwrap()

    def count(self, relation: Any) -> Any:
        """The count as an isl.PwQPolynomial on the domain of `relation`, 0 where it has no piece; None for an empty
        map.

        Raises TooHard.
        """
        if relation.is_empty():
            return None
        relative, unused, domain = self._alone(relation)
        return restored(_count(relative), unused, domain)

    def asked(self, relation: Any) -> Asked | None:
        """The question that `count` answers; None for an empty map."""
        if relation.is_empty():
            return None
        floors = max(basic.dim(isl.dim_type.div) for basic in relation.get_basic_maps())
        if floors:  # seldom asked again, and may be too hard: then the work for all other questions would be in vain
            return Asked(text_of(relation), floors, partial(self.count, relation), _unchanged)
        relative, unused, domain = self._alone(relation)
        relative = _unnamed(relative)
        return Asked(
            text_of(relative), floors, partial(_count, relative), partial(restored, missing=unused, domain=domain)
        )

    def _alone(self, relation: Any) -> tuple[Any, list[int], Any]:
        """(isl.Map with as many images, relative to the access; the dimensions of accesses that it lacks; the domain of
        `relation`).
        """
        domain = relation.domain().coalesce()
        # Constraints that hold for every access of the domain are removed. A loop variable that is then unconstrained
        # does not change the number of locations: it is left out of the count, and put back afterwards.
        relative = self.relative(relation).gist_domain(domain)
        unused = [i for i in range(relative.dim(_IN)) if not relative.involves_dims(_IN, i, 1)]
        here = domain
        for i in reversed(unused):
            relative, here = relative.project_out(_IN, i, 1), here.project_out(isl.dim_type.set, i, 1)
        name = domain.get_tuple_name()
        relative = relative.set_tuple_name(_IN, name).intersect_domain(here.set_tuple_name(name).coalesce())
        return relative, unused, domain


class Asked(Record):
    """A question for a number of locations. Those with the same text have the same count.

    floors: the most in a basic map. count: counts the locations; raises TooHard. answer: the count -> it on the domain
    of the map that was asked about.
    """

    text: str
    floors: int
    count: Callable[[], Any] = field(compare=False)
    answer: Callable[[Any], Any] = field(compare=False)


def _count(relative: Any) -> Any:
    return added(cardinalities([part.coalesce() for part in _slices(relative)])).coalesce()


def _unchanged(count: Any) -> Any:
    return count


def _unnamed(relation: Any) -> Any:
    """An isl.Map with the same names for all loops and arrays, so that the same question has the same text."""
    for kind, letter in ((_IN, "i"), (_OUT, "o")):
        for k in range(relation.dim(kind)):
            relation = relation.set_dim_name(kind, k, f"{letter}{k}")
        relation = relation.set_tuple_name(kind, letter)
    return relation


def restored(count: Any, missing: Iterable[int], domain: Any) -> Any:
    """`count`, an isl.PwQPolynomial without some dimensions of `domain` (in ascending order), on all of `domain`."""
    for i in missing:
        count = count.insert_dims(_IN, i, 1)
    named = count.get_domain_space().set_tuple_name(isl.dim_type.set, domain.get_tuple_name())
    return count.reset_domain_space(named).intersect_domain(domain)


def _moved(touch: Any, dims: int) -> Any:
    """isl.Map: an access with a location -> the same access with that location relative to one that it touches (as if
    it were at the first place of the text).

    dims: the dimensions of the access that count, all of them or only outer ones. Dimensions of the array that are not
    affine functions of the loops stay as they are. Any map of `touch` serves: whatever is subtracted, the number of
    images of an access stays the same.
    """
    space = touch.get_space()
    loops, places = [f"i{k}" for k in range(dims)], [f"o{k}" for k in range(touch.dim(_OUT))]
    params = [space.get_dim_name(_PARAM, i) for i in range(touch.dim(_PARAM))]
    moved = list(places)
    for constraint in (c for basic in touch.get_basic_maps()[:1] for c in basic.get_constraints()):
        used = [k for k in range(len(places)) if constraint.involves_dims(_OUT, k, 1)]
        floors = constraint.dim(isl.dim_type.div)
        if not constraint.is_equality() or len(used) != 1 or constraint.involves_dims(isl.dim_type.div, 0, floors):
            continue
        of = constraint.get_coefficient_val(_OUT, used[0])
        # of * o + terms + number = 0 with of = 1 or -1: o + of * terms is a constant. For x[i + 3], o = i + 3 becomes
        # o - i, the same in all iterations.
        if abs(of.to_python()) == 1:
            names = [(name, _IN, k) for k, name in enumerate(loops)]
            names += [(name, _PARAM, k) for k, name in enumerate(params)]
            terms = [(constraint.get_coefficient_val(kind, k).mul(of).to_python(), name) for name, kind, k in names]
            moved[used[0]] = " + ".join([places[used[0]], *(f"{c}*{name}" for c, name in terms if c)])
    access = f"{space.get_tuple_name(_IN)}[{', '.join(loops)}]"
    array = space.get_tuple_name(_OUT)
    before, after = f"{array}[{', '.join(places)}]", f"{array}[{', '.join(moved)}]"
    return isl.Map(f"[{', '.join(params)}] -> {{ [{access} -> {before}] -> [{access} -> {after}] }}")


def _slices(relation: Any) -> list[Any]:
    """`relation` in disjoint parts, in each of which every range dimension with few values has a single value."""
    parts = [relation]
    images = relation.range()
    last = images.dim(isl.dim_type.set)
    for k in range(last):
        values = images.project_out(isl.dim_type.set, k + 1, last - k - 1).project_out(isl.dim_type.set, 0, k)
        values = values.project_out(_PARAM, 0, values.dim(_PARAM))
        low, high = values.dim_min_val(0), values.dim_max_val(0)
        if not low.is_int() or not high.is_int() or low == high:
            continue
        least, most = low.to_python(), high.to_python()
        if most - least < MOST_SLICES and (most - least + 1) * len(parts) <= MOST_SLICES_OF_ALL:
            cut = (part.fix_val(_OUT, k, isl.Val(v)) for part in parts for v in range(least, most + 1))
            parts = [part for part in cut if not part.is_empty()]
    return parts

"""The previous access to the same location, and the certificate that it is.

See docs/rules.md, step S2.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import islpy as isl

from roofdsl.lang.record import Record, field
from roofdsl.sets.by_text import ByText
from roofdsl.sets.native_calls import last_images


class NotCertified(Exception):
    """A map that should give the previous access fails its certificate."""


def earlier_on_same_line(touch: Any) -> Any:
    """isl.Map from each access to every earlier access of its location; `touch` maps T to locations."""
    after = isl.Map.lex_gt(touch.get_space().domain())
    return touch.apply_range(touch.reverse()).intersect(after)


def certify_previous(previous: Any, candidates: Any) -> None:
    """Check that `previous` is the lexicographic maximum of `candidates` (access -> earlier accesses).

    Raises NotCertified if it has another domain, several values, a value that is not a candidate, or a candidate
    strictly in between.
    """
    # The four tests together define a maximum, using only the map and its candidates. They are needed because `lexmax`
    # has been wrong, and a wrong predecessor would make every number wrong.
    if not previous.is_subset(candidates):
        raise NotCertified("it names an access that is no earlier one of the same line")
    if not candidates.domain().is_subset(previous.domain()):
        raise NotCertified("it misses accesses that have an earlier one")
    if not previous.is_single_valued():
        raise NotCertified("it names several accesses for one")
    after = isl.Map.lex_lt(previous.get_space().range())
    # Every part of the map is compared with the candidates of its own accesses only, instead of every part with all.
    for basic in previous.get_basic_maps():
        part = isl.Map.from_basic_map(basic)
        if not part.apply_range(after).is_disjoint(candidates.intersect_domain(part.domain())):
            raise NotCertified("a later candidate lies between")


class Claim(Record):
    """The library's map from each access to the previous one, not yet certified, and all earlier accesses to the line.

    The previous one should be the last of these.
    """

    candidates: Any = field(compare=False)
    latest: Any = field(compare=False)

    @cached_property
    def merged(self) -> Any:
        """`latest` in as few parts as possible: the certificate looks at every pair of parts."""
        return self.latest.coalesce()

    @cached_property
    def certified(self) -> Any:
        """The certified map: `merged`, or where that is wrong, what other methods find, which avoid known errors of the
        library.

        Raises NotCertified if all fail.
        """
        failure = NotCertified("no way tried")
        for way in (None, _coalesced, _reparsed, _by_parts):
            previous = self.merged if way is None else way(self.candidates).coalesce()
            try:
                certify_previous(previous, self.candidates)
            except NotCertified as error:
                failure = error
                continue
            return previous
        raise failure


MOST_CLAIMS = 64

_claims = ByText[Claim](MOST_CLAIMS)
"""Claims about what is touched. Attempts with more and more operations begin with the same question."""


def claimed_previous(touch: Any) -> Claim:
    """The library's answer, before its certificate, which may take seconds: a caller may have no use for the map.

    Raises TooHard.
    """
    return _claims.of(touch, lambda: _claimed(touch))


def _claimed(touch: Any) -> Claim:
    candidates = earlier_on_same_line(touch)
    return Claim(candidates, last_images(candidates))


def previous_access(touch: Any) -> Any:
    """The certified map from each access to the previous one on its line. Raises NotCertified and TooHard."""
    return claimed_previous(touch).certified


def _coalesced(candidates: Any) -> Any:
    return candidates.coalesce().lexmax()


def _reparsed(candidates: Any) -> Any:
    return isl.Map(str(candidates.coalesce())).lexmax()


def _by_parts(candidates: Any) -> Any:
    """The lexmax of each basic map, then of the union of the results."""
    best: Any = isl.Map.empty(candidates.get_space())
    for part in candidates.get_basic_maps():
        one = isl.Map.from_basic_map(part).lexmax()
        both = best.domain().intersect(one.domain())
        best = (
            best.union(one)
            .subtract(best.intersect_domain(both))
            .subtract(one.intersect_domain(both))
            .union(best.intersect_domain(both).union(one.intersect_domain(both)).lexmax())
        )
    return best

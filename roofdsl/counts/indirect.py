"""`derive` for kernels with index arrays: exact where data do not matter, the rest as a share between two bounds.

The loops of `loops.summed` run as often in total as those of the kernel, so that W and the traffic of what the loops
alone reach are exact. An array whose elements the data choose moves alpha times its accesses times the bytes of an
element (`indirect_shares.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from roofdsl.counts.closed_forms import NoClosedForm
from roofdsl.counts.derived import Between, Derivation, Quantity, Share, Traffics, combined
from roofdsl.counts.index_array_traffic import ExactTraffic
from roofdsl.counts.indirect_groups import Counted, Group, PlacedAccesses, all_written
from roofdsl.counts.indirect_shares import share_of
from roofdsl.counts.quantity_of import quantity
from roofdsl.counts.work_quantities import work_quantities
from roofdsl.lang.record import Record, replace
from roofdsl.loops.accesses import scalar_bytes
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.loops.parameter_values import numbers
from roofdsl.sets.cases import Cases
from roofdsl.sets.quasi import Quasi

NO_PLATEAUS = "which accesses find their element in a cache depends on the data (`simulate --data ... --histogram`)"


def derive_indirect(
    kernel: Kernel,
    values: Mapping[str, int],
    convention: Traffic,
    cache_bytes: int | None,
    line_bytes: int | None,
    *,
    any_cache: bool = False,
) -> Derivation:
    """W, Q and I of a kernel with index arrays; exact values if the index arrays have values.

    any_cache: also the bounds of Q(Z), for every Z from a small one on. Raises CommandError if the total number of
    iterations of a loop is not known.
    """
    given = numbers(kernel, values, complete=False)
    counted = Counted(kernel, given, line_bytes)
    exact = ExactTraffic(kernel, given, line_bytes)
    compulsory = _moved(counted, exact, convention, None)
    at_cache = compulsory if cache_bytes is None else _moved(counted, exact, convention, cache_bytes)
    return Derivation(
        kernel,
        given,
        convention,
        cache_bytes,
        line_bytes,
        work_quantities(counted.closed, given, None),
        compulsory.traffics,
        compulsory.by_array,
        at_cache.traffics,
        _moved(counted, exact, "once", cache_bytes).traffics.bytes,
        (),
        NO_PLATEAUS,
        {},
        {name: _quantity(form, given) for name, form in counted.closed.counters().items()},
        () if kernel.data is None else tuple(f"values of {text}" for text in kernel.data.about),
        shares=compulsory.shares,
        cache_shares=() if cache_bytes is None else at_cache.shares,
        **(_any_cache(counted, convention) if any_cache else {}),
    )


def _any_cache(counted: Counted, convention: Traffic) -> dict[str, Any]:
    """Q(Z) for every Z that holds a line for each access of the text: the bounds of alpha in the smallest such cache.

    A larger LRU cache of whole lines has no further misses (Mattson et al., 1970), so the upper bound of the smallest
    one holds in all of them. The lower bound is what moves once, in any cache.
    """
    smallest = sum(len(nest.accesses()) for nest in counted.nests) * _longest_line(counted)
    unknown = ExactTraffic(replace(counted.kernel, data=None), counted.given, counted.line_bytes)
    found = _moved(counted, unknown, convention, smallest)
    whole = counted.number(0)
    for group in counted.groups:
        whole = combined(whole, counted.whole(group.array), 1)
    return {"any_cache": found.traffics, "between": Between(found.shares, smallest, whole)}


def _longest_line(counted: Counted) -> int:
    return counted.line_bytes or max(group.array.type.bytes for group in counted.groups)


class _Moved(Record):
    """The traffic of one cache, the shares it depends on, and the bytes of the lines of each array."""

    traffics: Traffics
    shares: tuple[Share, ...]
    by_array: Mapping[str, Quantity]


def _moved(counted: Counted, exact: ExactTraffic, convention: Traffic, cache_bytes: int | None) -> _Moved:
    """What crosses the boundary of a cache (None: one that holds everything)."""
    scalars = scalar_bytes(counted.kernel)
    loads, stores = counted.number(0 if convention == "once" else scalars[0]), counted.number(scalars[1])
    shares: list[Share] = []
    by_array: dict[str, Quantity] = {}
    for group in counted.groups:
        name = group.array.name
        try:
            share = share_of(counted, group, convention, cache_bytes)
            more = _traffic(counted, group, share, convention)
            by_array[name] = _begun(counted, group, share)
        except NoClosedForm as error:
            share, more = None, (Quantity(None, None, str(error)),) * 2
            by_array[name] = more[0]
        loads, stores = combined(loads, more[0], 1), combined(stores, more[1], 1)
        value = exact.of_array(name, cache_bytes)
        by_array[name] = replace(by_array[name], value=by_array[name].value if value is None else value)
        if share is not None:
            shares.append(_with_value(share, value))
    total = combined(loads, stores, 1)
    values = exact.moved(cache_bytes, convention)
    known = {
        n: q if values[n] is None else replace(q, value=values[n])
        for n, q in (("loads", loads), ("stores", stores), ("bytes", total))
    }
    traffics = Traffics(known["loads"], known["stores"], known["bytes"])
    if convention == "once":
        traffics = Traffics(None, None, known["bytes"])
    return _Moved(traffics, tuple(shares), by_array)


def _with_value(share: Share, moved: Fraction | None) -> Share:
    could = share.accesses.value
    return share if moved is None or not could else replace(share, value=moved / (could * share.element_bytes))


def _traffic(counted: Counted, group: Group, share: Share | None, convention: Traffic) -> tuple[Quantity, Quantity]:
    """(loads, stores) of an array; in `once` (0, bytes). Raises NoClosedForm."""
    none = counted.number(0)
    if not group.every:
        return none, none
    if share is not None:
        moved = _by_share(counted, share)
        if convention == "once":
            return none, moved
        loaded = share.loads or (convention == "write_allocate" and group.is_written)
        return (moved if loaded else none), (moved if share.stores else none)
    whole = _whole_traffic(counted, group, convention)
    if whole is not None:
        return whole
    loads, stores = scalar_bytes(counted.kernel)
    found = counted.traffic(_in_order(group), convention)
    if found.loads is None or found.stores is None:
        return none, combined(_quantity(found.total, counted.given), counted.number(stores), -1)
    return (
        combined(_quantity(found.loads, counted.given), counted.number(loads), -1),
        combined(_quantity(found.stores, counted.given), counted.number(stores), -1),
    )


def _whole_traffic(counted: Counted, group: Group, convention: Traffic) -> tuple[Quantity, Quantity] | None:
    """(loads, stores) of an array that the loops reach as a whole, always in one way; None for others.

    They are counted for the array as one block of lines, however long its rows are.
    """
    if not counted.reaches_all(group.array, group.known):
        return None
    none, whole = counted.number(0), counted.whole(group.array)
    kept = group.array.intent != "temp"
    if convention == "once":
        return none, whole
    if not group.is_written:
        return whole, none
    if not all_written(group.known) or (group.array.intent == "inout" and not group.is_always_read and group.is_read):
        return None
    begun_by_read = group.array.intent == "inout" and group.is_always_read
    return (whole if begun_by_read or convention == "write_allocate" else none), (whole if kept else none)


def _begun(counted: Counted, group: Group, share: Share | None) -> Quantity:
    """The bytes of the lines of an array that the cache takes in."""
    if share is not None:
        return _by_share(counted, share)
    return counted.touched(group.array, group.known) if group.known else counted.number(0)


def _in_order(group: Group) -> PlacedAccesses:
    """The accesses at elements that the loops determine, in the order in which each element meets them. Raises
    NoClosedForm.
    """
    if len(group.known) == 1 or not (group.is_read and group.is_written) or all_written(group.known):
        return group.known
    if group.array.intent == "inout":
        raise NoClosedForm(f"whether {group.array.name} is read or written first depends on loops over data")
    return tuple(sorted(group.known, key=lambda n: not n[1][0].is_write))  # `out` and `temp` are written first


def _by_share(counted: Counted, share: Share) -> Quantity:
    """alpha times the bytes that the accesses of an array could move."""
    alpha = Quasi.symbol(share.name) if share.stated is None else Quasi.constant(share.stated)
    return counted.times(share.accesses, alpha * share.element_bytes)


def _quantity(form: Cases, given: Mapping[str, int]) -> Quantity:
    return quantity(lambda: form, given)

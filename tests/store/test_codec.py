"""Results as text and back: the same values, the same sharing, and nothing that is not written whole."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofdsl.counts.derived import Quantity
from roofdsl.lang.record import Record
from roofdsl.lang.source import Span
from roofdsl.sets.cases import Case, Cases
from roofdsl.sets.quasi import Quasi, floor
from roofdsl.store.codec import Damaged, NotStorable, meaning, read, write

N = Quasi.symbol("n")
HALF = floor(N * Fraction(1, 2))
FORM = Cases((Case((((N - 4, False), (HALF, True)),), N * HALF + Fraction(1, 3)), Case((), N)), ("n >= 4",))


def through_text(value: object, **known: object) -> Any:
    return read(json.loads(json.dumps(write(value, known))), known)


plain = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**80), 2**80),
    st.text(),
    st.floats(allow_nan=False),
    st.fractions(),
    st.frozensets(st.text()),
    st.just(FORM),
    st.just(Quantity(FORM, Fraction(7, 2), "é")),
)
values = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(st.text() | st.integers(), inner)
    ),
    max_leaves=12,
)


def same(a: Any, b: Any) -> bool:
    """Equal, of the same types all through."""
    if type(a) is not type(b) or a != b:
        return False
    if isinstance(a, (list, tuple)):
        return all(map(same, a, b))
    if isinstance(a, dict):
        return all(same(x, y) and same(a[x], b[y]) for x, y in zip(a, b, strict=True))  # in the same order
    return True


@given(values)
def test_what_comes_back_is_what_was_written(value: object) -> None:
    assert same(through_text(value), value)


def test_what_is_shared_stays_shared_and_the_kernel_is_the_callers() -> None:
    shared, kernel = Quantity(FORM), object()
    a, b, k = through_text((shared, shared, kernel), kernel=kernel)
    assert a is b
    assert k is kernel


def test_no_depth_is_too_deep() -> None:
    value: Any = N
    for _ in range(300):
        value = (value,)
    assert through_text(value) == value


class Foreign(Record):
    n: int


@dataclass
class Other:
    n: int


class Number(int):
    pass


@pytest.mark.parametrize("value", [Foreign(1), Other(1), Number(1), {1, 2}, object(), b"", 1j, Quasi, frozenset({1})])
def test_what_has_no_text_is_refused_as_a_whole(value: object) -> None:
    with pytest.raises(NotStorable):
        write((1, value))


def test_a_record_with_more_than_its_fields_is_refused() -> None:
    q = Quantity(FORM)
    object.__setattr__(q, "later", 1)
    with pytest.raises(NotStorable, match="later"):
        write(q)


def test_what_a_class_computes_for_itself_is_no_more() -> None:
    value = N + 1
    assert value.constant_value() == 1  # kept in the object from now on
    assert through_text(value) == value


TABLE = json.loads(json.dumps(write(Quantity(FORM))))
CALL = ["os", "system", "command"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda t: t["classes"].append(CALL),
        lambda t: t["classes"].append(["roofdsl.lang.record", "Record"]) or t["nodes"].append(["record", 99]),
        lambda t: t["classes"].__setitem__(0, [*t["classes"][0], "more"]),
        lambda t: t["classes"].__setitem__(0, t["classes"][0][:-1]),
        lambda t: t["classes"].append(["roofdsl.counts.derive", "derive", "kernel"]),
        lambda t: t["classes"].append(["roofdsl.counts..derive", "derive"]),
        lambda t: t["classes"].append(["roofdsl.counts.nothing", "Nothing"]),
        lambda t: t["nodes"].insert(0, ["tuple", [1]]),  # refers to a later node
        lambda t: t["nodes"].append(["eval", "1"]),
        lambda t: t["nodes"].append(["tuple", 0.5]),
        lambda t: t["nodes"].append(["ratio", 1, 0]),
        lambda t: t["nodes"].append(["ratio", "1", 2]),
        lambda t: t["nodes"].append(["float", "import"]),
        lambda t: t["nodes"].append(["known", "nobody"]),
        lambda t: t["nodes"].append(["record"]),
        lambda t: t["nodes"].append([]),
        lambda t: t["nodes"].append(["dict", 1]),
        lambda t: t["nodes"].append(["dict", [0], 1, 2]),
        lambda t: t.pop("root"),
        lambda t: t.__setitem__("root", [10**9]),
        lambda t: t.__setitem__("nodes", 7),
    ],
)
def test_a_table_that_nobody_wrote_is_damaged(damage: Any) -> None:
    table = json.loads(json.dumps(TABLE))
    damage(table)
    with pytest.raises(Damaged):
        read(table)


@pytest.mark.parametrize("table", [None, 1, "x", [], {}, {"classes": 1, "nodes": [], "root": 0}])
def test_other_json_is_damaged(table: object) -> None:
    with pytest.raises(Damaged):
        read(table)


def test_meaning_knows_types_and_values_apart_but_not_places() -> None:
    from roofdsl.loops.model import Parameter

    different = [1, 1.0, True, "1", None, (1,), ("1",), (1, 1), Fraction(1), ((1,), 1), (1, (1,)), "(int 1,)", {1: 1}]
    assert len({meaning(v) for v in different}) == len(different)
    assert meaning(Parameter("n", None, Span(1, 1, 1, 2))) == meaning(Parameter("n", None, Span(7, 1, 7, 2)))
    assert meaning({"a": 1, "b": 2}) == meaning({"b": 2, "a": 1})
    with pytest.raises(NotStorable):
        meaning(object())

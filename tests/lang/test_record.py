"""Records behave as the frozen dataclasses that they stand for."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any, ClassVar

import pytest

from roofdsl.lang.record import Record, field, replace


class Node(Record):
    """A node."""

    KIND: ClassVar[str] = "node"
    name: str
    span: int = field(compare=False, repr=False)


class Leaf(Node):
    value: float = 1.5


class Pair(Record):
    left: object
    right: object = None

    def swapped(self) -> Pair:
        return Pair(self.right, self.left)


class Empty(Record):
    pass


@dataclasses.dataclass(frozen=True)
class DataNode:
    name: str
    span: int = dataclasses.field(compare=False, repr=False)


@dataclasses.dataclass(frozen=True)
class DataPair:
    left: object
    right: object = None


@dataclasses.dataclass(frozen=True)
class DataEmpty:
    pass


BOTH: list[tuple[Any, Any]] = [(Node, DataNode), (Pair, DataPair), (Empty, DataEmpty)]
CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}),
    (("a",), {}),
    (("a", 1), {}),
    (("a", 2), {}),
    (("b", 1), {}),
    (("a", 1, 2), {}),
    (("a",), {"span": 1}),
    ((), {"name": "a", "span": 3}),
    ((), {"right": 1, "left": "a"}),
    (("a",), {"left": 1}),
    (("a",), {"other": 1}),
    ((["unhashable"],), {}),
]


def outcome(make: Any, *arguments: Any, **named: Any) -> Any:
    try:
        return make(*arguments, **named)
    except TypeError:
        return TypeError


@pytest.mark.parametrize(("record", "data"), BOTH)
def test_as_the_dataclass(record: Any, data: Any) -> None:
    values = [(outcome(record, *a, **k), outcome(data, *a, **k)) for a, k in CALLS]
    made = [(r, d) for r, d in values if d is not TypeError]
    assert made
    assert [r is TypeError for r, _ in values] == [d is TypeError for _, d in values]
    for r, d in made:
        assert repr(r) == repr(d).removeprefix("Data")
        assert {n: getattr(r, n) for n in r.__match_args__} == {
            f.name: getattr(d, f.name) for f in dataclasses.fields(d)
        }
        for q, e in made:
            assert (r == q) is (d == e)
            assert (r != q) is (d != e)
        assert (outcome(hash, r) is TypeError) is (outcome(hash, d) is TypeError)
        assert r != d


def test_hash_and_equality_leave_out_what_is_not_compared() -> None:
    assert Node("a", 1) == Node("a", 2)
    assert len({Node("a", 1), Node("a", 2), Node("b", 1)}) == 2
    assert Leaf("a", 1) != Node("a", 1)


def test_fields_of_the_base_come_first() -> None:
    leaf = Leaf("a", 0)
    assert Leaf.__match_args__ == ("name", "span", "value")
    assert (leaf.name, leaf.span, leaf.value) == ("a", 0, 1.5)
    assert repr(leaf) == "Leaf(name='a', value=1.5)"


def test_frozen() -> None:
    pair = Pair(1, 2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        pair.left = 3  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del pair.left
    assert pair == Pair(1, 2)


def test_replace_copies() -> None:
    assert replace(Pair(1, 2), right=3) == Pair(1, 3)
    with pytest.raises(TypeError):
        replace(Pair(1, 2), middle=3)


def test_matching_and_pickling() -> None:
    match Pair(Node("a", 1), 2).swapped():
        case Pair(2, Node("a", span)):
            assert span == 1
        case _:
            pytest.fail("no match")
    for value in (Node("a", 1), Pair(Empty(), (Pair(1, 2),))):
        assert pickle.loads(pickle.dumps(value)) == value
        assert copy.deepcopy(value) == value


def test_no_default_factories() -> None:
    with pytest.raises(TypeError, match="default factories"):
        type("Bad", (Record,), {"__annotations__": {"items": "list[int]"}, "items": field(default_factory=list)})

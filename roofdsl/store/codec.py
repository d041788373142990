"""Results as text and back: records, exact numbers and plain containers, and nothing else.

A result is written as a table of nodes in which each node refers to earlier ones. This preserves sharing, and no
nesting is too deep. A value that cannot be written raises NotStorable: a result is stored as a whole or not at all.
Reading creates only classes of this package that hold plain fields; it calls nothing else and executes no text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from typing import Any

from roofdsl.lang.record import Record

Table = dict[str, Any]
"""{"classes": [[module, name, field, ...], ...], "nodes": [[kind, ...], ...], "root": child}; JSON values."""

STAGES = (
    "bounds", "counts", "checks", "formulas", "sets", "loops", "lang", "machine", "codegen", "incore", "predict",
    "advise", "sol",
)  # fmt: skip
HOMES = tuple(f"roofdsl.{stage}." for stage in STAGES)
"""The packages in which the classes of results are defined."""


class NotStorable(Exception):
    """A value contains something that cannot be written as text."""


class Damaged(Exception):
    """A table that does not come from `write`."""


def fields_of(kind: type) -> tuple[str, ...] | None:
    """The names of all fields of a record or dataclass, in the order of its constructor; None for other classes, and
    for a dataclass with fields that its constructor does not take.
    """
    if issubclass(kind, Record):
        return kind.__match_args__
    found: Mapping[str, Any] | None = getattr(kind, "__dataclass_fields__", None)
    if found is None or not all(f.init for f in found.values()):
        return None
    return tuple(found)


# ---- writing ----


def write(value: object, known: Mapping[str, object] | None = None) -> Table:
    """The table of `value`; objects in `known` (by identity) are written as their names. Raises NotStorable."""
    writer = _Writer(known or {})
    root = writer.child(value)
    return {"classes": [list(c) for c in writer.classes], "nodes": writer.nodes, "root": root}


class _Writer:
    def __init__(self, known: Mapping[str, object]) -> None:
        self.known = {id(value): name for name, value in known.items()}
        self.nodes: list[list[Any]] = []
        self.classes: dict[tuple[str, ...], int] = {}
        self.places: dict[int, tuple[int, object]] = {}  # by id; kept alive, so that no other value gets the same id

    def child(self, value: Any) -> Any:
        """A plain value itself, otherwise `[number of its node]`."""
        if value is None or type(value) in (bool, int, str):
            return value
        if id(value) not in self.places:
            node = self._node(value)
            self.nodes.append(node)
            self.places[id(value)] = len(self.nodes) - 1, value
        return [self.places[id(value)][0]]

    def _node(self, value: Any) -> list[Any]:
        if id(value) in self.known:
            return ["known", self.known[id(value)]]
        kind = type(value)
        if kind is Fraction:
            return ["ratio", value.numerator, value.denominator]
        if kind is float:
            return ["float", value.hex()]
        if kind is tuple or kind is list:
            return [kind.__name__, *map(self.child, value)]
        if kind is dict:
            return ["dict", *(self.child(part) for item in value.items() for part in item)]
        if kind is frozenset and all(type(v) is str for v in value):
            return ["frozenset", *sorted(value)]
        return self._record(value, kind)

    def _record(self, value: Any, kind: type) -> list[Any]:
        names = fields_of(kind)
        if names is None or not f"{kind.__module__}.".startswith(HOMES) or "." in kind.__qualname__:
            raise NotStorable(f"{kind.__module__}.{kind.__qualname__}")
        extra = [n for n in vars(value) if n not in names and not isinstance(getattr(kind, n, None), cached_property)]
        if extra:
            raise NotStorable(f"{kind.__qualname__}.{extra[0]} is not a field")
        place = self.classes.setdefault((kind.__module__, kind.__qualname__, *names), len(self.classes))
        return ["record", place, *(self.child(getattr(value, n)) for n in names)]


# ---- reading ----


def read(table: object, known: Mapping[str, object] | None = None) -> Any:
    """The value of a table; `known` gives the object for a name. Raises Damaged."""
    try:
        return _read(table, known or {})
    except Damaged:
        raise
    except Exception as error:  # classes may reject the contents of a forged table in many ways
        raise Damaged(f"{type(error).__name__}: {error}") from error


def _read(table: Any, known: Mapping[str, object]) -> Any:
    classes = [_class(*row) for row in table["classes"]]
    values: list[Any] = []

    def child(c: Any) -> Any:
        if type(c) is not list:
            return _plain(c)
        (place,) = c
        if type(place) is not int or not 0 <= place < len(values):
            raise Damaged("a node before its own")
        return values[place]

    for kind, *parts in table["nodes"]:
        values.append(_value(kind, parts, child, classes, known))
    return child(table["root"])


def _plain(value: Any) -> Any:
    if value is None or type(value) in (bool, int, str):
        return value
    raise Damaged(f"{type(value).__name__} is not a plain value")


def _value(kind: str, parts: list[Any], child: Any, classes: list[type], known: Mapping[str, object]) -> Any:
    if kind == "record":
        place, *children = parts
        names = fields_of(classes[place]) or ()
        if len(children) != len(names):
            raise Damaged(f"{classes[place].__name__} has other fields")
        return classes[place](*map(child, children))
    if kind == "ratio":
        above, below = parts
        if type(above) is not int or type(below) is not int:
            raise Damaged("a ratio of other than integers")
        return Fraction(above, below)
    if kind == "tuple":
        return tuple(map(child, parts))
    if kind == "list":
        return list(map(child, parts))
    if kind == "dict":
        found = list(map(child, parts))
        return dict(zip(found[::2], found[1::2], strict=True))
    if kind == "frozenset":
        return frozenset(map(_plain, parts))
    if kind == "float":
        return float.fromhex(*parts)
    if kind == "known":
        return known[parts[0]]
    raise Damaged(f"a node `{kind}`")


def _class(module: str, name: str, *names: str) -> type:
    """The class of this name, if it is one with exactly these fields."""
    if not module.startswith(HOMES) or not all(part.isidentifier() for part in module.split(".")):
        raise Damaged(f"a class of {module}")
    found = getattr(import_module(module), name, None)
    if not isinstance(found, type) or found.__module__ != module or fields_of(found) != names:
        raise Damaged(f"{module}.{name} has other fields")
    return found


# ---- meaning ----


def meaning(value: object) -> str:
    """A text that is the same for equal values of the same types and differs for others; a list counts as a tuple. It
    omits fields that do not take part in equality (positions in a file). Raises NotStorable.
    """
    out: list[str] = []
    _mean(value, out)
    return "".join(out)


def _mean(value: Any, out: list[str]) -> None:
    kind = type(value)
    if value is None or kind in (bool, int, str, float):
        out.append(f"{kind.__name__} {value!r}")  # repr of a float is exact
    elif kind is Fraction:
        out.append(f"{value.numerator}/{value.denominator}")
    elif kind in (tuple, list):
        _means("(", value, ")", out)
    elif isinstance(value, Mapping):
        _means("{", sorted(value.items(), key=lambda item: meaning(item[0])), "}", out)
    elif kind is frozenset:
        _means("<", sorted(value, key=meaning), ">", out)
    elif issubclass(kind, Record):
        out.append(kind.__qualname__)
        _means("(", (getattr(value, n) for n in kind._compared), ")", out)
    else:
        raise NotStorable(f"{kind.__module__}.{kind.__qualname__}")


def _means(opening: str, values: Iterable[Any], closing: str, out: list[str]) -> None:
    out.append(opening)
    for value in values:
        _mean(value, out)
        out.append(",")
    out.append(closing)

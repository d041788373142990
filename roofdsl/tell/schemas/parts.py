"""The vocabulary in which schemas are written: objects without further keys, lists, tables, choices, references."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from inspect import get_annotations
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from roofdsl.lang.record import Record

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
WHOLE: Schema = {"type": "integer"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
AMOUNT: Schema = {"type": "number", "minimum": 0}
NOTHING: Schema = {"type": "null"}


def said(schema: Schema, about: str) -> Schema:
    """The schema with a description."""
    return {**schema, "description": about}


SECONDS = said(AMOUNT, "in seconds")
JOULES = said(AMOUNT, "in joules")
BYTES = said(COUNT, "in bytes")
BYTES_PER_S = said(AMOUNT, "in bytes per second")
OPERATIONS = said(COUNT, "number of operations")
OPERATIONS_PER_S = said(AMOUNT, "in operations per second")
INTENSITY = said(AMOUNT, "in operations per byte")


def record(keys: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None, about: str = "") -> Schema:
    """An object with these keys and no others; those of `optional` may be absent."""
    made: Schema = {"type": "object", "description": about} if about else {"type": "object"}
    return made | {
        "properties": {**keys, **(optional or {})},
        "required": list(keys),
        "additionalProperties": False,
    }


def table(values: Schema, about: str = "") -> Schema:
    """An object whose keys are names of the user's, such as parameters."""
    return {"type": "object", "additionalProperties": values} | ({"description": about} if about else {})


def many(items: Schema, about: str = "") -> Schema:
    """A list of any length."""
    return {"type": "array", "items": items} | ({"description": about} if about else {})


def maybe(schema: Schema) -> Schema:
    """The schema, or null."""
    if isinstance(schema.get("type"), str) and "enum" not in schema and "const" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    return either(*schema.get("anyOf", [schema]), NOTHING)


def either(*schemas: Schema) -> Schema:
    """Any of the schemas."""
    return {"anyOf": list(schemas)}


def one_of(literal: Any) -> Schema:
    """One of the words of a Literal type, or of a list."""
    return {"enum": list(get_args(literal) or literal)}


def exactly(value: str) -> Schema:
    """This text alone."""
    return {"const": value}


def ref(name: str) -> Schema:
    """The definition of this name (`commands.DEFINITIONS`)."""
    return {"$ref": f"#/$defs/{name}"}


def of_record(kind: type[Record]) -> Schema:
    """The fields of a record as `attribute_text.numbers` writes them: fractions as numbers."""
    hints = get_annotations(kind, eval_str=True)
    return record({name: of_type(hints[name]) for name in kind.__match_args__})


def of_type(kind: Any) -> Schema:
    """A field of type str, bool, int, float, Fraction, or a union of them and None. Raises TypeError for any other."""
    plain = {str: TEXT, bool: FLAG, int: WHOLE, float: NUMBER, Fraction: NUMBER}
    if kind in plain:
        return plain[kind]
    if get_origin(kind) in (Union, UnionType):
        others = [of_type(k) for k in get_args(kind) if k is not NoneType]
        one = others[0] if len(others) == 1 else either(*others)
        return maybe(one) if NoneType in get_args(kind) else one
    raise TypeError(f"{kind} has no schema")


def names_in(schema: Any) -> Iterator[str]:
    """The definitions that a schema refers to."""
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"].removeprefix("#/$defs/")
        for value in schema.values():
            yield from names_in(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from names_in(value)


def needed(schema: Schema, definitions: Mapping[str, Schema]) -> dict[str, Schema]:
    """The definitions that a schema refers to, directly or through others, by name."""
    found: dict[str, Schema] = {}
    waiting: list[str] = list(names_in(schema))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = definitions[name]
            waiting += names_in(definitions[name])
    return dict(sorted(found.items()))


def several(schema: str, definitions: Iterable[str], key: str = "kernels") -> Schema:
    """One of the documents, or several in a list under `key`, as commands print those of many kernels."""
    documents = [ref(name) for name in definitions]
    item = documents[0] if len(documents) == 1 else either(*documents)
    return either(*documents, record({"schema": exactly(schema), key: many(item)}))

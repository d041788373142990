"""`--value alpha=1.0`: numbers that a function is read with in place of arguments, so that its conditions on them are
known.
"""

from __future__ import annotations

from math import copysign, inf
from struct import pack, unpack
from typing import Any

from pycparser import c_ast

from roofdsl.frontends.c.context import Context, Value
from roofdsl.frontends.c.static_types import FLT_MAX
from roofdsl.frontends.c.variables import Variable, walk
from roofdsl.frontends.poly import Poly
from roofdsl.frontends.refuse import Refused
from roofdsl.lang import tree
from roofdsl.lang.record import Record
from roofdsl.lang.source import Span


class Given(Record):
    """The numbers of arguments, as C writes them, by name."""

    numbers: dict[str, str]

    @property
    def note(self) -> str:
        """`with alpha = 1.0, beta = 0`; empty without numbers."""
        named = [f"{name} = {number}" for name, number in self.numbers.items()]
        return f"with {', '.join(named)}" if named else ""


def give(context: Context, arguments: list[Variable], numbers: dict[str, str]) -> Given:
    """Gives arguments their numbers. Raises Refused for one that is no number, or whose type has no such value."""
    found: dict[str, str] = {}
    for variable in arguments:
        text = numbers.get(variable.name)
        if text is None:
            continue
        if not variable.type.is_plain or variable.type.is_structure:
            message = f"`--value {variable.name}={text}` is a number, and `{variable.name}` is not"
            raise Refused("c-name", message, variable.node, "give only arguments that are numbers")
        found[variable.name] = f"'{text}'" if text.isalpha() else text
        text = str(ord(text)) if text.isalpha() else text
        if not variable.type.is_integer:
            context.lets[variable] = Value(variable.type.base, None, _written(text, context.spans(variable.node)))
        elif text.lstrip("-").isdigit():
            context.env[variable] = Poly.number(int(text))
        else:
            message = (
                f"`--value {variable.name}={text}` is no integer, and `{variable.name}` is `{variable.type.words}`"
            )
            raise Refused("c-type", message, variable.node)
    return Given(found)


def _written(text: str, span: Span) -> tree.Expr:
    number = tree.Number(text.lstrip("-"), float(text.lstrip("-")), span)
    return tree.Unary("-", number, span) if text.startswith("-") else number


def number_of(value: Value) -> float | None:
    """The value of a plain number in its type; None for anything else."""
    if value.poly is not None:
        return value.poly.value
    number = _plain(value)
    if number is None or value.type == "f64":
        return number
    if value.type != "f32":
        return None
    return unpack("<f", pack("<f", number))[0] if abs(number) < FLT_MAX else copysign(inf, number)


def _plain(value: Value) -> float | None:
    match value.expr if value.own is None else None:
        case tree.Number(value=number):
            return number
        case tree.Unary("-", tree.Number(value=number)):
            return -number
        case _:
            return None


def arguments_in(condition: Any, context: Context) -> list[str]:
    """The floating-point arguments that decide a condition; [] if something else has a part in it."""
    parts = [p for p in walk(condition) if isinstance(p, c_ast.ID)]
    found = [context.scopes.find(p.name) for p in parts]
    plain = all(v is not None and v.type.is_plain and v.place == "parameter" for v in found)
    others = any(isinstance(p, c_ast.ArrayRef | c_ast.StructRef | c_ast.FuncCall) for p in walk(condition))
    names = [v.name for v in found if v is not None and not v.type.is_integer and v not in context.lets]
    return list(dict.fromkeys(names)) if plain and not others else []


def help_for(condition: Any, context: Context, otherwise: str) -> str:
    """What to write where a condition on arguments is not known; `otherwise` for other conditions."""
    names = arguments_in(condition, context)
    if not names:
        return otherwise
    return f"say what it is for: `--value {','.join(f'{name}=1.0' for name in names)}`"

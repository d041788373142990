"""The type of an expression from its form alone, without its value: what C's conversions depend on."""

from __future__ import annotations

from typing import Any

from pycparser import c_ast

from roofdsl.frontends.c.c_types import CType, common, is_integer, promoted
from roofdsl.frontends.c.context import Context
from roofdsl.lang.record import replace

FUNCTIONS = {
    "sqrt": "sqrt", "exp": "exp", "log": "log", "tanh": "tanh", "sin": "sin", "cos": "cos", "fabs": "abs",
    "fmax": "max", "fmin": "min", "conj": "conj", "creal": "real", "cimag": "imag", "cabs": "abs",
}  # fmt: skip
"""Functions of C's library that are read, in double, and what the language calls them."""

_OTHER = {"pow": "f64", "fma": "f64", "abs": "i32", "labs": "i64"}
_ESCAPES = {"n": 10, "t": 9, "r": 13, "0": 0, "a": 7, "b": 8, "f": 12, "v": 11, "\\": 92, "'": 39, '"': 34}
_BOOLEAN = ("<", ">", "<=", ">=", "==", "!=", "&&", "||")
LARGEST = 2**63 - 1
FLT_MAX = 3.4028234663852886e38


def integer_constant(text: str) -> tuple[int, str]:
    """The value of an integer constant and its type: the first type in the list of C's standard that can hold it."""
    text = text.lower()
    digits = text.rstrip("ul")
    suffix = text[len(digits) :]
    octal = len(digits) > 1 and digits.isdigit() and digits[0] == "0"
    number = int(digits, 8) if octal else int(digits, 0)
    decimal = not octal and digits.isdigit()
    types = ["u32", "u64"] if "u" in suffix else ["i32", "i64"] if decimal else ["i32", "u32", "i64", "u64"]
    types = [t for t in types if not ("l" in suffix and t[1:] == "32")]
    return number, next((t for t in types if number <= largest(t)), types[-1])


def character(text: str) -> int | None:
    """The value of `'x'`, which is an int in C; None for what is more than one character."""
    inner = text[1:-1] if text[:1] == "'" else ""
    if len(inner) == 1 and inner.isascii():
        return ord(inner)
    return _ESCAPES.get(inner[1]) if len(inner) == 2 and inner[0] == "\\" else None


def largest(type_: str) -> int:
    """The largest integer of a type."""
    bits = int(type_[1:])
    return (1 << (bits - 1)) - 1 if type_[0] == "i" else (1 << bits) - 1


def smallest(type_: str) -> int:
    """The smallest integer of a type."""
    return -(1 << (int(type_[1:]) - 1)) if type_[0] == "i" else 0


def static_type(node: Any, context: Context) -> str | None:
    """C's type of an arithmetic expression; None if its form does not show it."""
    match node:
        case c_ast.Constant():
            return _constant(node)
        case c_ast.ID() | c_ast.ArrayRef() | c_ast.StructRef() | c_ast.UnaryOp(op="*"):
            found = place_type(node, context)
            return None if found is None else _number(found)
        case c_ast.UnaryOp(op="!"):
            return "i32"
        case c_ast.UnaryOp(op="sizeof"):
            return "u64"
        case c_ast.UnaryOp():
            inner = static_type(node.expr, context)
            return promoted(inner) if inner is not None and node.op in "+-~" else inner
        case c_ast.BinaryOp() if node.op in _BOOLEAN:
            return "i32"
        case c_ast.BinaryOp(op="<<" | ">>"):
            left = static_type(node.left, context)
            return None if left is None else promoted(left)
        case c_ast.BinaryOp():
            return _common(node.left, node.right, context)
        case c_ast.TernaryOp():
            return _common(node.iftrue, node.iffalse, context)
        case c_ast.Cast():
            return _number(context.type_of(node.to_type.type))
        case c_ast.FuncCall():
            return _call(node, context)
        case _:
            return None


def _number(type_: CType) -> str | None:
    return None if type_.base in ("other", "void", "struct") else type_.base


def place_type(node: Any, context: Context) -> CType | None:
    """C's type of what has a place in memory and of pointers: `x`, `a[i]`, `*p`, `p->x`, `&x`, `p + k`. None for other
    expressions.
    """
    match node:
        case c_ast.ID():
            variable = context.scopes.find(node.name)
            return None if variable is None else variable.type
        case c_ast.ArrayRef() | c_ast.UnaryOp(op="*"):
            inner = node.expr if isinstance(node, c_ast.UnaryOp) else node.name
            found = place_type(inner, context)
            if isinstance(node, c_ast.ArrayRef) and (found is None or found.is_plain):
                found = place_type(node.subscript, context)  # `k[a]` is `a[k]`
            return None if found is None else found.target
        case c_ast.UnaryOp(op="&"):
            found = place_type(node.expr, context)
            return None if found is None else replace(found, pointers=found.pointers + 1)
        case c_ast.StructRef():
            found = place_type(node.name, context)
            of = found.target if found is not None and node.type == "->" else found
            return None if of is None else member_type(of, node.field.name, context)
        case c_ast.BinaryOp(op="+" | "-"):
            sides = [place_type(side, context) for side in (node.left, node.right)]
            return next((side for side in sides if side is not None and not side.is_plain), None)
        case c_ast.Cast():
            return context.type_of(node.to_type.type)
        case c_ast.CompoundLiteral():
            return context.type_of(node.type.type)
        case c_ast.FuncCall() if isinstance(node.name, c_ast.ID) and node.name.name in context.program.functions:
            return context.type_of(context.program.functions[node.name.name].decl.type.type)
        case _:
            return None


def member_type(of: CType, name: str, context: Context) -> CType | None:
    """The type of a member of a structure; None if there is no such member."""
    if not of.is_structure:
        return None
    decl = next((d for d in of.structure.decls if d.name == name), None)
    return None if decl is None else context.type_of(decl.type)


def _common(a: Any, b: Any, context: Context) -> str | None:
    first, second = static_type(a, context), static_type(b, context)
    return None if first is None or second is None else common(first, second)


def _constant(node: Any) -> str | None:
    if character(node.value) is not None:
        return "i32"
    if "'" in node.value or '"' in node.value:
        return None
    if node.type.endswith("int"):
        return integer_constant(node.value)[1]
    return "f32" if node.value[-1] in "fF" and not node.value.lower().startswith("0x") else "f64"


def _call(node: Any, context: Context) -> str | None:
    name = node.name.name if isinstance(node.name, c_ast.ID) else ""
    if name in context.program.functions:
        return _number(context.type_of(context.program.functions[name].decl.type.type))
    if name in _OTHER:
        return _OTHER[name]
    single = name.endswith("f") and (name[:-1] in FUNCTIONS or name[:-1] in _OTHER)
    stem = name[:-1] if single else name
    if stem not in FUNCTIONS and stem not in _OTHER:
        return None
    if stem == "conj":
        return "c64" if single else "c128"
    return "f32" if single else "f64"


def fits(value: int, type_: str) -> bool:
    """Whether an integer type can hold a number."""
    return not is_integer(type_) or smallest(type_) <= value <= largest(type_)

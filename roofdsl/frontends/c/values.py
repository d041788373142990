"""Values: arithmetic in C's types, written where the language computes in the same ones, refused where it does not."""

from __future__ import annotations

from typing import Any, Protocol

from pycparser import c_ast

from roofdsl.frontends.c.c_types import common, index_element, is_integer, is_unsigned, joined, promoted, same, steady
from roofdsl.frontends.c.conditions import Condition, Conditions
from roofdsl.frontends.c.context import Again, Context, Known, Passed, Value
from roofdsl.frontends.c.float_exact import is_exact
from roofdsl.frontends.c.functions import Functions
from roofdsl.frontends.c.pointers import Peel, Pointers, step_inside
from roofdsl.frontends.c.static_types import FLT_MAX, LARGEST, character, fits, integer_constant, static_type
from roofdsl.frontends.c.variables import OfData, Pointer, Unknown, Variable, Wrapped
from roofdsl.frontends.c.whole_numbers import divided
from roofdsl.frontends.c.writing import word
from roofdsl.frontends.operators import LEVELS, grouped
from roofdsl.frontends.poly import Poly
from roofdsl.frontends.refuse import Refused
from roofdsl.lang import tree
from roofdsl.lang.source import Span

_NOWHERE = Span(1, 1, 1, 1)
_DATA_DECIDE = "compute it from loop variables, sizes, and elements of integer arrays that the function only reads"
_INDEXED = ("a subscript", "an offset", "a loop bound", "the start of a loop", "the condition of a loop")
"""Where an element of an index array may stand."""
_DBL_MAX = 1.7976931348623157e308


class NeedsData(Exception):
    """The value of an integer is needed but not known."""

    def __init__(self, variable: Variable, node: Any, why: str) -> None:
        self.variable, self.node, self.why = variable, node, why


class Caller(Protocol):
    """Inlines the functions of the program."""

    def value(self, node: Any) -> Value: ...

    def structure(self, node: Any) -> Pointer: ...


class Values:
    """Reads expressions. Side effects are refused: statements have them, values do not."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.pointers = Pointers(context, self.integer)
        self.conditions = Conditions(context, self)
        self.functions = Functions(context, self)
        self.caller: Caller | None = None

    # ---- entry points ----

    def integer(self, node: Any, what: str) -> Poly:
        """The value of an integer expression of loop variables, parameters and elements of index arrays. Raises Refused
        for anything else.
        """
        indexing = what in _INDEXED
        try:
            value = self.index(node) if indexing else self.plain(node)
        except NeedsData as need:
            if indexing and isinstance(self.context.env.get(need.variable), OfData):
                self.pointers.indices.learn(need.variable)
            message = f"{what} needs the value of `{need.variable.name}`, which is not known: {need.why}"
            raise Refused("c-index", message, node, "compute it from loop variables and sizes") from None
        if value.poly is None:
            if is_integer(value.type):
                if indexing:
                    self.pointers.indices.learn_names(node)
                if isinstance(value.expr, tree.Ref) and isinstance(node, c_ast.UnaryOp | c_ast.ArrayRef):
                    message = f"{what} is read through a pointer, so that it is data and not a size"
                    raise Refused("c-index", message, node, "pass the number itself, as in `int n` for `int *n`")
                message = f"{what} depends on data: what the loop touches is not known from the text"
                raise Refused("c-index", message, node, _DATA_DECIDE)
            raise Refused("c-index", f"{what} must be an integer, but this is not", node)
        return value.poly

    def index(self, node: Any) -> Value:
        """The value of an expression in which elements of integer arrays are indices."""
        with self.context.reading(indexing=True):
            return self.value(node)

    def plain(self, node: Any) -> Value:
        """The value of an expression in which elements of integer arrays are data."""
        with self.context.reading(indexing=False):
            return self.value(node)

    def followed(self, variable: Variable, node: Any) -> Value:
        """The new value of an integer that is followed."""
        return self.index(node) if variable.key in self.context.learnt.indexed else self.plain(node)

    def value(self, node: Any) -> Value:
        """The value of an expression. Raises Refused for unsupported code."""
        match node:
            case Passed():
                return node.value
            case c_ast.Constant():
                return self._constant(node)
            case c_ast.ID():
                return self._name(node)
            case c_ast.ArrayRef() | c_ast.UnaryOp(op="*"):
                return self.pointers.element(node)[1]
            case c_ast.UnaryOp():
                return self._unary(node)
            case c_ast.BinaryOp():
                return self._binary(node)
            case c_ast.TernaryOp():
                return self._ternary(node)
            case c_ast.Cast():
                return self.cast(self.value(node.expr), self._scalar_type(node), node)
            case c_ast.FuncCall():
                return self._call(node)
            case c_ast.Assignment():
                message = "an assignment inside an expression is a side effect"
                raise Refused("c-effect", message, node, "write it as a statement of its own")
            case c_ast.StructRef():
                found = self.pointers.member(node)
                return (
                    self.of_variable(found, node)
                    if isinstance(found, Variable)
                    else self.pointers.access(found, node)[1]
                )
            case c_ast.ExprList():
                raise Refused("c-effect", "the comma operator is not supported", node, "write two statements")
            case _:
                raise Refused("c-statement", "this expression is not supported", node)

    def to(self, value: Value, type_: str, node: Any) -> Value:
        """The value, unchanged: the store converts it to `type_`, as in C. Raises Refused if that loses a fraction or
        an imaginary part, or if the language would round differently.
        """
        if value.type == type_ or value.poly is not None:
            return value
        self.exact(value, type_, node)
        if is_integer(type_) and not is_integer(value.type):
            message = f"storing a {word(value.type)} in an integer drops the fraction"
            raise Refused("c-type", message, node, "keep it in a floating-point variable")
        if value.type[0] == "c" and type_[0] != "c":
            raise Refused("c-type", "storing a complex value in a real variable drops a part", node, "write `creal(x)`")
        return value

    def exact(self, value: Value, type_: str, node: Any) -> None:
        """Refuses what C rounds to float and uses as double: the language would not round it to float."""
        if value.type != "f32" or type_ not in ("f64", "c128"):
            return
        if value.own is None and value.poly is None and not is_exact(value.expr):
            message = "a number is rounded to float here, and used as double"
            raise Refused("c-type", message, node, "write numbers without `f`, and `(double)` for `(float)`")
        if value.own in ("i32", "i64"):
            message = f"this {word(value.own)} is rounded to float here, and used as double"
            raise Refused("c-type", message, node, "write `(double)` for `(float)`")

    # ---- leaves ----

    def _constant(self, node: Any) -> Value:
        text, span = node.value.lower(), self.context.spans(node)
        code = character(node.value)
        if code is not None:
            return Value("i32", None, None, Poly.number(code))
        if "'" in text or '"' in text:
            raise Refused("c-type", "text is not supported", node)
        if node.type.endswith("int"):
            number, type_ = integer_constant(text)
            if number > LARGEST:
                raise Refused("c-integer", "this integer is larger than 2**63 - 1", node)
            return Value(type_, None, None, Poly.number(number))
        if text.startswith("0x"):
            raise Refused("c-type", "hexadecimal floating-point numbers are not supported", node, "write it in decimal")
        digits = text.rstrip("fl")
        suffix = text[len(digits) :]
        if suffix == "l":
            raise Refused("c-type", "`long double` is not a type of the language", node, "use double")
        if float(digits) > (FLT_MAX if suffix else _DBL_MAX):
            kind = "float" if suffix else "double"
            raise Refused("c-type", f"this number is larger than every {kind}", node, "write a smaller number")
        return Value("f32" if suffix else "f64", None, tree.Number(digits, float(digits), span))

    def _name(self, node: Any) -> Value:
        variable = self.context.scopes.find(node.name)
        if variable is None:
            raise Refused("c-name", f"`{node.name}` is not declared", node, "define a macro with `-D NAME=VALUE`")
        return self.of_variable(variable, node)

    def of_variable(self, variable: Variable, node: Any) -> Value:
        """The value of a variable, or of a member of a single structure. Raises Refused if it is no number."""
        name = variable.name
        if variable.type.is_structure:
            raise Refused(
                "c-pointer", "this is a whole structure, and a number is needed", node, "write a member of it"
            )
        if not variable.type.is_plain:
            raise Refused("c-pointer", f"`{name}` is a pointer, and a number is needed", node, "write an element")
        steady(variable.type, node, name)
        state = self.context.state(variable)
        match state:
            case Value():
                return state
            case Poly() if state.entries and not self.context.indexing:
                written = state.tree(self.context.spans(node))
                return Value(variable.type.base, index_element(variable.type), written)
            case Poly():
                return Value(variable.type.base, None, None, state)
            case Wrapped():
                raise Peel(state.loop, variable)
            case Unknown():
                raise NeedsData(variable, node, state.why)
            case Pointer():
                raise Refused("c-pointer", f"`{name}` is a pointer, and a number is needed", node)
        if variable in self.context.lets:
            return self.context.lets[variable]
        return self.context.scalar(variable, node)

    def _scalar_type(self, node: Any) -> str:
        type_ = self.context.type_of(node.to_type.type)
        if not type_.is_plain or type_.base in ("other", "void"):
            raise Refused("c-type", f"a cast to `{type_.words}` is not supported", node)
        return type_.base

    def cast(self, value: Value, to: str, node: Any) -> Value:
        """`(to) value`. Raises Refused if the cast changes a value that the language would keep."""
        if value.type == to:
            return value
        if is_integer(to):
            if value.poly is None or int(to[1:]) < 32:
                raise Refused("c-type", f"a cast to {word(to)} may change the value", node, "leave the cast out")
            if is_unsigned(to) and not self.context.facts.not_negative(value.poly):
                raise Refused("c-integer", "this cast to unsigned wraps a negative value around", node)
            return self._checked(Value(to, None, None, value.poly), node)
        if value.poly is not None:
            return Value(to, None, value.poly.tree(self.context.spans(node)))
        self.exact(value, to, node)
        if value.own is not None and not is_integer(value.own) and common(value.type, to) != to:
            message = f"this cast rounds a {word(value.type)} inside an expression, which the language does in stores"
            raise Refused("c-type", message, node, "store it in a variable of that type first")
        return Value(to, value.own, value.expr)

    # ---- operations ----

    def _unary(self, node: Any) -> Value:
        if node.op in ("++", "--", "p++", "p--"):
            raise step_inside(node)
        if node.op == "sizeof":
            return Value("u64", None, None, self.pointers.layouts.bytes_of(node.expr))
        if node.op == "&":
            raise Refused("c-pointer", "an address is not a number", node)
        if node.op == "!":
            raise Refused("c-condition", "a comparison is not a number in the language", node, "write `c ? 1 : 0`")
        if node.op == "~":
            raise Refused("c-integer", "bit operations are not supported", node)
        value = self.value(node.expr)
        type_ = promoted(value.type)
        if node.op == "+":
            return value
        if value.poly is not None:
            return self._checked(Value(type_, None, None, -value.poly), node)
        span = self.context.spans(node)
        return Value(type_, value.own, tree.Unary("-", grouped(value.written(span), 3), span))

    def _binary(self, node: Any) -> Value:
        if node.op in ("<", ">", "<=", ">=", "==", "!=", "&&", "||"):
            help = "write `condition ? 1 : 0`"
            raise Refused("c-condition", "a condition is not a number in the language", node, help)
        if node.op in ("<<", ">>", "&", "|", "^"):
            a, b = self.value(node.left), self.value(node.right)
            if node.op == "<<" and a.poly is not None and b.poly is not None and b.poly.value is not None:
                return self._shifted(promoted(a.type), a.poly, b.poly.value, node)
            is_data = a.poly is None or b.poly is None
            help = "integer data may be added, subtracted and multiplied" if is_data else "write `*`, `/` and `%`"
            raise Refused("c-integer", "bit operations are not supported", node, help)
        if self.pointers.is_pointer(node.left) or self.pointers.is_pointer(node.right):
            raise Refused("c-pointer", "arithmetic with pointers does not give a number", node)
        return self.operate(node.op, self.value(node.left), self.value(node.right), node)

    def _shifted(self, type_: str, value: Poly, by: int, node: Any) -> Value:
        most = max(k for k in range(63) if fits(2**k, type_))
        if not 0 <= by <= most:
            help = f"shift by 0 to {most}" + ("" if most == 62 else ", or use a wider type, such as `1L` for `1`")
            raise Refused("c-integer", f"a shift of {word(type_)} by {by} is not supported", node, help)
        return self._checked(Value(type_, None, None, value * 2**by), node)

    def operate(self, op: str, a: Value, b: Value, node: Any) -> Value:
        """`a op b` in the type in which C computes it. Raises Refused if the language would use another type."""
        type_ = common(a.type, b.type)
        if a.poly is not None and b.poly is not None:
            return self._checked(Value(type_, None, None, self._integers(op, a.poly, b.poly, node)), node)
        if is_integer(type_) and op in "/%":
            message = f"`{op}` of integer data is not supported"
            raise Refused("c-integer", message, node, "compute it in floating point")
        if op == "%":
            raise Refused("c-type", "`%` needs integers", node)
        if is_integer(type_) and type_[0] == "u":
            raise Refused("c-integer", "unsigned arithmetic of data wraps around", node, "use signed integers")
        self.exact(a, type_, node)
        self.exact(b, type_, node)
        owns = [t for t in (a.own, b.own) if t is not None]
        if owns:
            own = joined(owns)
            if not same(own, type_):
                raise self._mixed(op, type_, own, node)
        elif type_ in ("f16", "bf16", "f32") and not (is_exact(a.written(_NOWHERE)) and is_exact(b.written(_NOWHERE))):
            message = f"C rounds each step of this to {word(type_)}, and the language computes numbers in double"
            raise Refused("c-type", message, node, "name a part of it by a variable of that type, in another statement")
        span = self.context.spans(node)
        level = LEVELS[op]
        left = grouped(a.written(span), level)
        right = grouped(b.written(span), level + 1)
        return Value(type_, own if owns else None, tree.Binary(op, left, right, span))

    def _mixed(self, op: str, type_: str, own: str, node: Any) -> Refused:
        message = f"C computes this `{op}` in {word(type_)}, and the language in the type of its arrays, {word(own)}"
        help = "use one type for all operands"
        if own == "f32":
            help = "write numbers as `0.5f` and functions as `sqrtf`, or assign operands to variables of type `double`"
        return Refused("c-type", message, node, help)

    def _checked(self, value: Value, node: Any) -> Value:
        """An integer that fits in its type. Raises Refused if it is unsigned and may be negative, or overflows."""
        assert value.poly is not None
        if is_unsigned(value.type) and not self.context.facts.not_negative(value.poly):
            message = "this unsigned value wraps around where it would be negative"
            raise Refused("c-integer", message, node, "use signed integers, such as `int` or `long`")
        if value.poly.value is not None and not fits(value.poly.value, value.type):
            verb = "wraps around" if is_unsigned(value.type) else "overflows"
            message = f"the value {value.poly.value} {verb} in {word(value.type)}"
            raise Refused("c-integer", message, node, "use a wider type, such as `long`, or `2L` for `2`")
        return value

    def _integers(self, op: str, a: Poly, b: Poly, node: Any) -> Poly:
        if op in "+-*":
            return a + b if op == "+" else a - b if op == "-" else a * b
        return divided(self.context, op, a, b, node)

    # ---- choices and calls ----

    def _ternary(self, node: Any) -> Value:
        with self.context.reading(indexing=False):
            condition = self.conditions.read(node.cond)
        if isinstance(condition, Known):
            answer = condition.value if condition.value is not None else self.context.chosen(node, condition)
            found = self.value(node.iftrue if answer else node.iffalse)
            type_ = static_type(node, self.context)
            if type_ is None:
                raise Refused("c-type", "the type of this choice is not known", node, "write it as an `if`")
            return found if is_integer(found.type) and found.type == promoted(type_) else self.cast(found, type_, node)
        return self.select(condition, self.value(node.iftrue), self.value(node.iffalse), node)

    def select(self, condition: Condition, a: Value, b: Value, node: Any) -> Value:
        """`condition ? a : b` on data."""
        type_ = common(a.type, b.type) if a.type != b.type else a.type
        owns = [v.own for v in (a, b) if v.own is not None]
        wrong = next((own for own in owns if not same(own, type_)), None)
        if wrong is not None:
            raise self._mixed("?:", type_, wrong, node)
        self.exact(a, type_, node)
        self.exact(b, type_, node)
        written = self.conditions.select(condition, a, b, node)
        return Value(type_, joined(owns) if owns else None, written)

    def _call(self, node: Any) -> Value:
        name = node.name.name if isinstance(node.name, c_ast.ID) else ""
        if not name:
            raise Refused("c-call", "a call through a pointer is not followed", node, "call the function by its name")
        if name in self.context.program.functions:
            assert self.caller is not None
            with self.context.reading(indexing=False):
                return self.caller.value(node)
        return self.functions.value(name, node)

    def learn_data(self, need: NeedsData) -> Again:
        """Records that an integer is data, and returns the exception to raise. Raises Refused if that is already known,
        and for an argument.
        """
        variable = need.variable
        if variable.key in self.context.learnt.data or variable.place == "parameter":
            message = f"the value of `{variable.name}` is not known here: {need.why}"
            raise Refused("c-integer", message, need.node)
        self.context.learnt.data.add(variable.key)
        return Again()

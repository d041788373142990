"""Values: arithmetic in C's types, written where the language computes in the same ones, refused where it does not."""

from __future__ import annotations

from typing import Any, Protocol

from pycparser import c_ast

from roofdsl.frontends.c.c_types import common, is_integer, is_unsigned, promoted
from roofdsl.frontends.c.conditions import Condition, Conditions
from roofdsl.frontends.c.context import Again, Context, Known, Value
from roofdsl.frontends.c.float_exact import is_exact
from roofdsl.frontends.c.pointers import Peel, Pointers
from roofdsl.frontends.c.refuse import Refused
from roofdsl.frontends.c.variables import Pointer, Unknown, Variable, Wrapped
from roofdsl.frontends.poly import Poly, quotient
from roofdsl.lang import tree
from roofdsl.lang.source import Span

_FUNCTIONS = {
    "sqrt": "sqrt", "exp": "exp", "log": "log", "tanh": "tanh", "sin": "sin", "cos": "cos", "fabs": "abs",
    "fmax": "max", "fmin": "min", "conj": "conj", "creal": "real", "cimag": "imag", "cabs": "abs",
}  # fmt: skip
_OF_COMPLEX = ("conj", "creal", "cimag", "cabs")
_NOWHERE = Span(1, 1, 1, 1)
_LEVELS = {"+": 1, "-": 1, "*": 2, "/": 2, "//": 2, "%": 2, "**": 4}
LARGEST = 2**63 - 1


class NeedsData(Exception):
    """An integer's value is needed and not known."""

    def __init__(self, variable: Variable, node: Any, why: str) -> None:
        self.variable, self.node, self.why = variable, node, why


class Caller(Protocol):
    """Puts in the functions of the program."""

    def value(self, node: Any) -> Value: ...


class Values:
    """Reads expressions. Side effects are refused: statements have them, values do not."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.pointers = Pointers(context, self.integer)
        self.conditions = Conditions(context, self)
        self.caller: Caller | None = None

    # ---- entry points ----

    def integer(self, node: Any, what: str) -> Poly:
        """The value of an integer expression of loop variables and parameters. Raises Refused for anything else."""
        try:
            value = self.value(node)
        except NeedsData as need:
            message = f"{what} needs the value of `{need.variable.name}`, which is not known: {need.why}"
            raise Refused("c-index", message, node, "compute it from loop variables and sizes") from None
        if value.poly is None:
            if is_integer(value.type):
                message = f"{what} depends on data: what the loop touches is not known from the text"
                raise Refused("c-index", message, node, "use a subscript that loop variables and sizes give")
            raise Refused("c-index", f"{what} is an integer, and this is not", node)
        return value.poly

    def value(self, node: Any) -> Value:
        """The value of an expression. Raises Refused for what is not read."""
        match node:
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
                raise Refused("c-pointer", "members of structures are not read", node, "use arrays and scalars")
            case c_ast.ExprList():
                raise Refused("c-effect", "the comma operator is not read", node, "write two statements")
            case _:
                raise Refused("c-statement", "this expression is not read", node)

    def to(self, value: Value, type_: str, node: Any) -> Value:
        """A value converted to the type of what it is stored in, as C does silently; the store itself converts."""
        if value.type == type_ or value.poly is not None:
            return value
        self.exact(value, type_, node)
        if is_integer(type_) and not is_integer(value.type):
            message = f"storing a {_word(value.type)} in an integer cuts its fraction off"
            raise Refused("c-type", message, node, "keep it in a floating-point variable")
        if value.type[0] == "c" and type_[0] != "c":
            raise Refused("c-type", "storing a complex value in a real variable drops a part", node, "write `creal(x)`")
        return value

    def exact(self, value: Value, type_: str, node: Any) -> None:
        """Refuses a number written as float where it is used as double: the language would not round it to float."""
        if value.own is None and value.type == "f32" and type_ in ("f64", "c128") and not is_exact(value.expr):
            message = "a number is rounded to float here, and used as double"
            raise Refused("c-type", message, node, "write numbers without `f`, and `(double)` for `(float)`")

    # ---- leaves ----

    def _constant(self, node: Any) -> Value:
        text, span = node.value.lower(), self.context.spans(node)
        if node.type in ("string", "char"):
            raise Refused("c-type", "text is not read", node)
        if node.type.endswith("int"):
            digits = text.rstrip("ul")
            suffix = text[len(digits) :]
            octal = len(digits) > 1 and digits.isdigit() and digits[0] == "0"
            number = int(digits, 8) if octal else int(digits, 0)
            if number > LARGEST:
                raise Refused("c-integer", "this integer is larger than 2**63 - 1", node)
            type_ = "i64" if "l" in suffix or number > 2**31 - 1 else "i32"
            return Value("u" + type_[1:] if "u" in suffix else type_, None, None, Poly.number(number))
        if text.startswith("0x"):
            raise Refused("c-type", "hexadecimal floating-point numbers are not read", node, "write it in decimal")
        digits = text.rstrip("fl")
        suffix = text[len(digits) :]
        if suffix == "l":
            raise Refused("c-type", "`long double` is not a type of the language", node, "use double")
        return Value("f32" if suffix else "f64", None, tree.Number(digits, float(digits), span))

    def _name(self, node: Any) -> Value:
        variable = self.context.scopes.find(node.name)
        if variable is None:
            raise Refused("c-name", f"`{node.name}` is not declared", node, "define a macro with `-D NAME=VALUE`")
        if not variable.type.is_plain:
            raise Refused("c-pointer", f"`{node.name}` is a pointer, and a number is needed", node, "write an element")
        state = self.context.state(variable)
        match state:
            case Value():
                return state
            case Poly():
                return Value(variable.type.base, None, None, state)
            case Wrapped():
                raise Peel(state.loop, variable)
            case Unknown():
                raise NeedsData(variable, node, state.why)
            case Pointer():
                raise Refused("c-pointer", f"`{node.name}` is a pointer, and a number is needed", node)
        if variable in self.context.lets:
            return self.context.lets[variable]
        return self.context.scalar(variable, node)

    def _scalar_type(self, node: Any) -> str:
        type_ = self.context.type_of(node.to_type.type)
        if not type_.is_plain or type_.base in ("other", "void"):
            raise Refused("c-type", f"a cast to `{type_.words}` is not read", node)
        return type_.base

    def cast(self, value: Value, to: str, node: Any) -> Value:
        """`(to) value`, where that changes no value that the language would keep."""
        if value.type == to:
            return value
        if is_integer(to):
            if value.poly is None or int(to[1:]) < 32:
                raise Refused("c-type", f"a cast to {_word(to)} may change the value", node, "leave the cast out")
            if is_unsigned(to) and not self.context.facts.not_negative(value.poly):
                raise Refused("c-integer", "this cast to unsigned wraps a negative value around", node)
            return Value(to, None, None, value.poly)
        if value.poly is not None:
            return Value(to, None, value.poly.tree(self.context.spans(node)))
        if value.own is not None and not is_integer(value.own) and common(value.type, to) != to:
            message = f"this cast rounds a {_word(value.type)} inside an expression, which the language does in stores"
            raise Refused("c-type", message, node, "store it in a variable of that type first")
        return Value(to, value.own, value.expr)

    # ---- operations ----

    def _unary(self, node: Any) -> Value:
        if node.op in ("++", "--", "p++", "p--"):
            raise Refused("c-effect", f"`{node.op[-2:]}` inside an expression is a side effect", node,
                          "write it as a statement of its own")  # fmt: skip
        if node.op == "sizeof":
            raise Refused("c-integer", "`sizeof` is not read", node, "write the number")
        if node.op == "&":
            raise Refused("c-pointer", "an address is not a number", node)
        if node.op == "!":
            raise Refused("c-condition", "a comparison is not a number in the language", node, "write `c ? 1 : 0`")
        if node.op == "~":
            raise Refused("c-integer", "bit operations are not read", node)
        value = self.value(node.expr)
        type_ = promoted(value.type)
        if node.op == "+":
            return value
        if value.poly is not None:
            return self._checked(Value(type_, None, None, -value.poly), node)
        if value.type != type_:
            raise self._mixed("-", type_, value.own or "", node)
        span = self.context.spans(node)
        return Value(type_, value.own, tree.Unary("-", _grouped(value.written(span), 3), span))

    def _binary(self, node: Any) -> Value:
        if node.op in ("<", ">", "<=", ">=", "==", "!=", "&&", "||"):
            help = "write `condition ? 1 : 0`"
            raise Refused("c-condition", "a condition is not a number in the language", node, help)
        if node.op in ("<<", ">>", "&", "|", "^"):
            a, b = self.value(node.left), self.value(node.right)
            if node.op == "<<" and a.poly is not None and b.poly is not None and b.poly.value is not None:
                return self._checked(Value(promoted(a.type), None, None, a.poly * 2 ** min(b.poly.value, 62)), node)
            raise Refused("c-integer", "bit operations are not read", node, "write `*`, `/` and `%`")
        if self.pointers.is_pointer(node.left) or self.pointers.is_pointer(node.right):
            raise Refused("c-pointer", "arithmetic of pointers gives no number", node)
        return self.operate(node.op, self.value(node.left), self.value(node.right), node)

    def operate(self, op: str, a: Value, b: Value, node: Any) -> Value:
        """`a op b` in the type that C computes it in. Raises Refused where the language would use another type."""
        type_ = common(a.type, b.type)
        if a.poly is not None and b.poly is not None:
            return self._checked(Value(type_, None, None, self._integers(op, a.poly, b.poly, node)), node)
        if is_integer(type_) and op in "/%":
            message = f"`{op}` of integer data rounds towards zero, which the language does not do"
            raise Refused("c-integer", message, node, "compute it in floating point")
        if op == "%":
            raise Refused("c-type", "`%` is of integers", node)
        if is_integer(type_) and type_[0] == "u":
            raise Refused("c-integer", "unsigned arithmetic of data wraps around", node, "use signed integers")
        self.exact(a, type_, node)
        self.exact(b, type_, node)
        owns = [t for t in (a.own, b.own) if t is not None]
        if owns:
            own = owns[0] if len(owns) == 1 else common(*owns) if owns[0] != owns[1] else owns[0]
            if own != type_:
                raise self._mixed(op, type_, own, node)
        elif type_ in ("f16", "bf16", "f32") and not (is_exact(a.written(_NOWHERE)) and is_exact(b.written(_NOWHERE))):
            message = f"C rounds each step of this to {_word(type_)}, and the language computes numbers in double"
            raise Refused("c-type", message, node, "name a part of it by a variable of that type, in another statement")
        span = self.context.spans(node)
        level = _LEVELS[op]
        left = _grouped(a.written(span), level)
        right = _grouped(b.written(span), level + 1)
        return Value(type_, type_ if owns else None, tree.Binary(op, left, right, span))

    def _mixed(self, op: str, type_: str, own: str, node: Any) -> Refused:
        message = f"C computes this `{op}` in {_word(type_)}, although its operands are {_word(own)}"
        help = "write numbers as `0.5f`, and functions as `sqrtf`" if own == "f32" else "use one type for all operands"
        return Refused("c-type", message, node, help)

    def _checked(self, value: Value, node: Any) -> Value:
        """An integer that does not wrap around. Raises Refused where it is unsigned and may be negative."""
        assert value.poly is not None
        if is_unsigned(value.type) and not self.context.facts.not_negative(value.poly):
            message = "this unsigned value wraps around where it would be negative"
            raise Refused("c-integer", message, node, "use signed integers, such as `int` or `long`")
        if value.poly.value is not None and abs(value.poly.value) > LARGEST:
            raise Refused("c-integer", "this integer is larger than 2**63 - 1", node)
        return value

    def _integers(self, op: str, a: Poly, b: Poly, node: Any) -> Poly:
        if op in "+-*":
            return a + b if op == "+" else a - b if op == "-" else a * b
        by = b.value
        if by is None or by <= 0:
            if op == "/" and by is not None and by < 0 and a.value is not None:
                return Poly.number(-(abs(a.value) // -by) if a.value > 0 else abs(a.value) // -by)
            help = "define the size as a number: `-D NAME=VALUE` for a macro"
            raise Refused("c-integer", f"`{op}` of integers divides by a positive number only", node, help)
        if a.value is not None:
            whole = abs(a.value) // by * (1 if a.value >= 0 else -1)
            return Poly.number(whole if op == "/" else a.value - whole * by)
        exact = all(c % by == 0 for c in a.terms.values())
        if not exact and not self.context.facts.not_negative(a):
            message = f"`{op}` rounds towards zero, and nothing shows that this is not negative"
            raise Refused("c-integer", message, node, "divide only what cannot be negative")
        return quotient("//" if op == "/" else "%", a, by)

    # ---- choices and calls ----

    def _ternary(self, node: Any) -> Value:
        condition = self.conditions.read(node.cond)
        if isinstance(condition, Known):
            answer = condition.value if condition.value is not None else self.context.chosen(node, condition)
            return self.value(node.iftrue if answer else node.iffalse)
        return self.select(condition, self.value(node.iftrue), self.value(node.iffalse), node)

    def select(self, condition: Condition, a: Value, b: Value, node: Any) -> Value:
        """`condition ? a : b` of data."""
        type_ = common(a.type, b.type) if a.type != b.type else a.type
        owns = [v.own for v in (a, b) if v.own is not None]
        if any(own != type_ for own in owns):
            raise self._mixed("?:", type_, owns[0], node)
        written = self.conditions.select(condition, a, b, node)
        return Value(type_, owns[0] if owns else None, written)

    def _call(self, node: Any) -> Value:
        name = node.name.name if isinstance(node.name, c_ast.ID) else ""
        if not name:
            raise Refused("c-call", "a call through a pointer is not followed", node, "call the function by its name")
        if name in self.context.program.functions:
            assert self.caller is not None
            return self.caller.value(node)
        args = list(node.args.exprs) if node.args is not None else []
        span = self.context.spans(node)
        if name in ("pow", "powf") and len(args) == 2:
            return self._power(name, args, node)
        if name in ("fma", "fmaf") and len(args) == 3:
            a, b, c = (self._argument(v, "f32" if name[-1] == "f" else "f64", node) for v in args)
            return self.operate("+", self.operate("*", a, b, node), c, node)
        if name in ("abs", "labs") and len(args) == 1:
            value = self.value(args[0])
            if value.own not in ("i32", "i64"):
                raise Refused("c-type", "`abs` of an index is not affine", node, "split the loop")
            return Value(value.type, value.own, tree.Call(tree.Name("abs", span), (value.written(span),), span))
        known = _FUNCTIONS.get(name) or (_FUNCTIONS.get(name[:-1]) if name[-1] == "f" else None)
        if known is None:
            listed = "sqrt, exp, log, tanh, sin, cos, fabs, fmin, fmax, pow(x, 2) and those of this file"
            raise Refused("c-call", f"the function `{name}` is not known", node, f"functions that are read: {listed}")
        single = name not in _FUNCTIONS
        stem = name[:-1] if single else name
        if stem in _OF_COMPLEX:
            values = [self._argument(v, "c64" if single else "c128", node) for v in args]
            type_ = values[0].type if stem == "conj" else "f32" if single else "f64"
        else:
            type_ = "f32" if single else "f64"
            values = [self._argument(v, type_, node) for v in args]
        owns = [v.own for v in values if v.own is not None]
        own = (type_ if stem not in _OF_COMPLEX or stem != "conj" else owns[0]) if owns else None
        return Value(type_, own, tree.Call(tree.Name(known, span), tuple(v.written(span) for v in values), span))

    def _argument(self, node: Any, type_: str, call: Any) -> Value:
        """An argument of a library function, which computes in `type_`. Raises Refused for another type."""
        value = self.value(node)
        if value.own is not None and value.own != type_:
            message = f"this function computes in {_word(type_)}, and its argument is {_word(value.own)}"
            help = "write `sqrtf`, `expf`, ... for float" if type_ == "f64" else "use one type for all operands"
            raise Refused("c-type", message, call, help)
        return Value(type_, value.own, value.expr, value.poly)

    def _power(self, name: str, args: list[Any], node: Any) -> Value:
        exponent = self.value(args[1])
        number = exponent.expr.value if isinstance(exponent.expr, tree.Number) else None
        if exponent.poly is not None:
            number = exponent.poly.value
        if number != 2:
            help = "write `x * x * x` for `pow(x, 3)`, `sqrt(x)` for `pow(x, 0.5)`, `exp(y * log(x))` for `pow(x, y)`"
            raise Refused("c-call", f"`{name}` is read with the exponent 2 only", node, help)
        base = self._argument(args[0], "f32" if name[-1] == "f" else "f64", node)
        span = self.context.spans(node)
        written = tree.Binary("**", _grouped(base.written(span), 5), tree.Number("2", 2, span), span)
        return Value(base.type, base.own, written)

    def learn_data(self, need: NeedsData) -> Again:
        """Notes that an integer is data. Raises Refused where it already is."""
        variable = need.variable
        if variable.key in self.context.learnt.data or variable.place == "parameter":
            message = f"the value of `{variable.name}` is not known here: {need.why}"
            raise Refused("c-integer", message, need.node)
        self.context.learnt.data.add(variable.key)
        return Again()


def _level(e: tree.Expr) -> int:
    match e:
        case tree.Binary(op):
            return _LEVELS[op]
        case tree.Unary():
            return 3
        case _:
            return 9


def _grouped(e: tree.Expr, level: int) -> tree.Expr:
    """In parentheses where it binds less tightly than `level`."""
    return e if _level(e) >= level else tree.Group(e, e.span)


def _word(type_: str) -> str:
    words = {"f16": "half precision", "bf16": "bfloat16", "f32": "float", "f64": "double", "c64": "float complex",
             "c128": "double complex", "i8": "char", "i16": "short", "i32": "int", "i64": "long"}  # fmt: skip
    return words.get(type_, "unsigned")

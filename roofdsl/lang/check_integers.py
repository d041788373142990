"""Checks integer expressions (subscripts, bounds, dimensions, conditions) and how far they are affine."""

from __future__ import annotations

import operator

from roofdsl.lang import tree
from roofdsl.lang.build import MAX_INTEGER
from roofdsl.lang.findings import Report, plural
from roofdsl.lang.functions import FUNCTIONS
from roofdsl.lang.record import Record, replace
from roofdsl.lang.scope import Scope, Symbol
from roofdsl.lang.source import Span

MAX_EXPONENT = 64

_ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod}


class Place(Record):
    """The place of an integer expression: how messages call it, the code of its errors, and what it may contain."""

    what: str
    code: str
    affine: bool = True
    parameters_only: bool = False
    any_divisor: bool = False  # `n // b` with a parameter b
    extrema: bool = False  # min and max anywhere
    instead: str = ""  # what to write where data is read
    reads: bool = False  # elements of index arrays


class Shape(Record):
    """`constant`: made of numbers and `const` parameters; `value` is known if it is made of numbers alone.

    `fault` is the smallest part that makes it not affine, with the reason. `degree` is the largest number of variables
    that are multiplied. `fixed`: made of numbers and parameters, which may all be `const`.
    """

    constant: bool
    value: int | None = None
    fault: tuple[Span, str] | None = None
    degree: int = 0
    fixed: bool = True


UNSURE = Shape(True)
_A_SIZE = "a size is a parameter: put it in the parentheses after the name of the kernel or program"
_ONLY_NUMBERS = "a default consists of numbers alone, such as `2**12`"
_INDICES = "a subscript may read arrays declared with `index(m)`, `in idx: i32[n] index(m)`"
_CONST = "write a number, or make the parameter a `const` one: `kernel k(n, const s = 2):`"
_AFFINE = (
    "affine expressions are sums of variables times numbers, such as `2 * i + j - 1`, with `//` and `%` by numbers"
)
_COUNTED = "a count that depends on data is unknown: give its average as a parameter"
SUBSCRIPT = Place("a subscript", "subscript-affine", instead=_INDICES, reads=True)
DIMENSION = Place("a dimension", "dimension", False, True, True, True)
ARGUMENT = Place("an argument", "run-value", False, True, True, True)
DEFAULT = Place("a default", "parameter-default", False, True)
ASSUMPTION = Place("an assumption", "assume", False, True, True)
TILE_SIZE = Place("a tile size", "tile-size", False, True)
AMOUNT = Place("a counted amount", "number-integer", False, instead=_COUNTED)
VALUE = Place("`//` or `%`", "integer-only", False)
CONDITION = Place(
    "a condition", "condition-affine", instead="write `select(c, a, b)` for a choice that depends on data"
)
BOUND = Place(
    "a loop bound",
    "bound-affine",
    instead="give the trip count as a parameter, such as an average length of a row",
    reads=True,
)


class Integers:
    """Checks the integer expressions of one scope. The parser keeps their depth below 200, so it may recurse."""

    def __init__(self, scope: Scope, report: Report) -> None:
        self.scope = scope
        self.report = report

    def require(self, expression: tree.Expr, place: Place) -> Shape:
        """The shape of an expression; reports it if `place` needs an affine one and it is not affine."""
        shape = self.shape(expression, place)
        if place.affine and shape.fault is not None:
            span, reason = shape.fault
            self.report.error(place.code, f"{place.what} must be affine, and {reason}", span, _advice(reason, place))
            return UNSURE
        return shape

    def condition(self, expression: tree.Expr, place: Place) -> bool:
        """Checks a condition made of comparisons, `and`, `or`, `not`; False if numbers alone decide it."""
        match expression:
            case tree.Group(inner):
                return self.condition(inner, place)
            case tree.Unary("not", operand):
                return self.condition(operand, place)
            case tree.Logic(_, left, right):
                sides = (self.condition(left, place), self.condition(right, place))
                return any(sides)
            case tree.Compare(first, rest):
                shapes = [self.require(operand, place) for operand in (first, *(e for _, e in rest))]
                return any(shape.value is None for shape in shapes)
            case _:
                message = f"{place.what} compares integers, but this is a value"
                example = "n > 4" if place.parameters_only else "i < n"
                help = f"write a comparison, such as `{example}`"
                self.report.error("condition-value", message, expression.span, help)
                return True

    def shape(self, expression: tree.Expr, place: Place) -> Shape:
        """The shape of an expression, its names and operators checked."""
        match expression:
            case tree.Number(_, value):
                if isinstance(value, float):
                    self.report.error("number-integer", f"{place.what} may contain only integers", expression.span)
                    return UNSURE
                return Shape(True, value)
            case tree.Ref():
                return self._ref(expression, place)
            case tree.Group(inner):
                return self.shape(inner, place)
            case tree.Unary("-" | "+" as op, operand):
                inner_shape = self.shape(operand, place)
                negative = op == "-" and inner_shape.value is not None
                return replace(inner_shape, value=-(inner_shape.value or 0)) if negative else inner_shape
            case tree.Binary(op, left, right):
                return self._binary(expression, op, left, right, place)
            case tree.Index(name):
                symbol = self.scope.symbols.get(name.text)
                if place.reads and symbol is not None and symbol.index:
                    return self._read(expression, symbol)
                self._data(name.text, expression.span, place, "array", self._index_array(symbol, place))
                return UNSURE
            case tree.Call(name):
                return self._call(expression, name, place)
            case _:
                message = f"{place.what} is an integer, but this is a condition"
                self.report.error("condition-value", message, expression.span)
                return UNSURE

    def _ref(self, ref: tree.Ref, place: Place) -> Shape:
        loop = f"name it in a loop, `for {ref.name} in range(n):`, or among the kernel's parameters"
        help = loop if place is SUBSCRIPT else _ONLY_NUMBERS if place is DEFAULT else _A_SIZE
        symbol = self.scope.find(tree.Name(ref.name, ref.span), help, ("parameter", "const", "loop"))
        if symbol is None:
            return UNSURE
        if not symbol.is_integer:
            self._data(ref.name, ref.span, place, symbol.word.partition(" ")[2].split(" given")[0])
            return UNSURE
        if place.parameters_only and symbol.kind == "loop":
            message = f"{place.what} may contain only parameters, but `{ref.name}` is a loop variable"
            self.report.error(place.code, message, ref.span)
            return UNSURE
        return Shape(symbol.kind == "const", degree=1, fixed=symbol.kind != "loop")

    def _read(self, index: tree.Index, symbol: Symbol) -> Shape:
        """An element of an index array, whose own subscripts are checked like any; its value is not known here."""
        self.scope.indexed.add(symbol.name)
        for subscript in index.subscripts:
            self.require(subscript, SUBSCRIPT)
        if len(index.subscripts) != symbol.rank:
            subscripts = plural(symbol.rank, "subscript")
            message = f"`{symbol.name}` has {plural(symbol.rank, 'dimension')} and takes {subscripts}"
            help = f"it is declared on line {symbol.span.line}"
            self.report.error("subscript-count", f"{message}, not {len(index.subscripts)}", index.span, help)
        return Shape(False, degree=1, fixed=False)

    def _data(self, name: str, span: Span, place: Place, kind: str, help: str = "") -> None:
        if place is VALUE:
            message = "`//` and `%` apply only to integers that do not depend on data, but this is a computed value"
            self.report.error(
                "integer-only", message, span, "their operands are parameters, loop variables and integers"
            )
            return
        parts = "parameters and integers" if place.parameters_only else "parameters, loop variables and integers"
        parts = "parameters, loop variables, integers and elements of index arrays" if place.reads else parts
        message = f"{place.what} may contain only {parts}, but this one reads the {kind} `{name}`"
        self.report.error("subscript-indirect", message, span, help or place.instead)

    @staticmethod
    def _index_array(symbol: Symbol | None, place: Place) -> str:
        """How to make an array one of indices; empty where it cannot be one, or its elements cannot stand here."""
        if not place.reads or symbol is None or symbol.type is None or symbol.type.kind != "int":
            return ""
        if symbol.intent != "in":
            return f"only an `in` array holds indices, and `{symbol.name}` is `{symbol.intent}`"
        dims = ", ".join("n" for _ in range(symbol.rank))
        declared = f"`in {symbol.name}: {symbol.type}[{dims}] index(m)` if they are 0 to m - 1"
        if place is SUBSCRIPT:
            return f"declare what its values are: {declared}"
        return f"say what its values are: `assume {symbol.name} rises from 0 to m`, or {declared}"

    def _call(self, call: tree.Call, name: tree.Name, place: Place) -> Shape:
        extremum = name.text in ("min", "max")
        if extremum and place.extrema:
            for arg in call.args:
                self.shape(arg, place)
            if len(call.args) < 2:
                message = f"`{name.text}` takes two arguments or more"
                self.report.error("function-arguments", message, call.span)
            return Shape(False, fault=(call.span, f"`{name.text}` is not"))
        if extremum and place is BOUND:
            help = "only a whole stop can be a `min`, and only a whole start a `max`: `range(0, min(n, b))`"
            self.report.error("bound-affine", f"`{name.text}` is not allowed here in a loop bound", call.span, help)
        elif name.text in FUNCTIONS:
            message = f"{place.what} may contain only integers, so `{name.text}` cannot be part of it"
            self.report.error("function-place", message, name.span)
        elif (symbol := self.scope.symbols.get(name.text)) is not None and symbol.kind == "array":
            self._data(name.text, call.span, place, "array")
        else:
            help = _A_SIZE if name.text in ("len", "size", "shape") else ""
            self.report.error("function-unknown", f"there is no integer function `{name.text}`", name.span, help)
        return UNSURE

    def _binary(self, node: tree.Binary, op: str, left: tree.Expr, right: tree.Expr, place: Place) -> Shape:
        if op == "**":
            return self._power(node, left, right, place)
        a, b = self.shape(left, place), self.shape(right, place)
        constant = a.constant and b.constant
        if op == "/":
            message = f"{place.what} must be an integer, but `/` may give a fraction"
            self.report.error("integer-division", message, node.span, "write `//`, which rounds down")
            return UNSURE
        if op in ("//", "%"):
            if b.value is not None and b.value <= 0:
                self.report.error(
                    "divisor", f"`{op}` must divide by a positive integer, but this is {b.value}", right.span
                )
                return UNSURE
            if not b.constant and not place.any_divisor:
                help = _CONST if b.fixed else _AFFINE
                message = f"`{op}` in {'a value' if place is VALUE else place.what} divides by an integer constant only"
                self.report.error("divisor", message, right.span, help)
                return UNSURE
            fault = a.fault or (None if b.constant else (right.span, f"`{op}` divides by a parameter"))
        elif op == "*":
            both = not a.constant and not b.constant
            factors = "parameters or loop variables" if a.fixed or b.fixed else "two variables"
            fault = a.fault or b.fault or ((node.span, f"this multiplies {factors}") if both else None)
        else:
            fault = a.fault or b.fault
        degree = a.degree + b.degree if op == "*" else max(a.degree, b.degree)
        value = self._fold(node, op, a.value, b.value)
        return self._limited(node, Shape(constant, value, fault, degree, a.fixed and b.fixed))

    def _limited(self, node: tree.Binary, shape: Shape) -> Shape:
        if shape.degree <= MAX_EXPONENT:
            return shape
        factors = f"{shape.degree} parameters and loop variables as factors"
        message = f"this product has {factors}, and at most {MAX_EXPONENT} are allowed"
        self.report.error("exponent", message, node.span)
        return UNSURE

    def _fold(self, node: tree.Binary, op: str, a: int | None, b: int | None) -> int | None:
        if a is None or b is None:
            return None
        value = _ARITHMETIC[op](a, b)
        return self._in_range(node, value)

    def _in_range(self, node: tree.Binary, value: int) -> int | None:
        if abs(value) > MAX_INTEGER:
            self.report.error("number-range", "this integer is larger than 2**63 - 1", node.span)
            return None
        return value

    def _power(self, node: tree.Binary, left: tree.Expr, right: tree.Expr, place: Place) -> Shape:
        base = self.shape(left, place)
        exponent = self.exponent(right)
        if exponent is None:
            return UNSURE
        fault = base.fault
        if exponent > 1 and not base.constant:
            fault = fault or (node.span, "this is a power")
        value = None if base.value is None else self._in_range(node, base.value**exponent)
        return self._limited(node, Shape(base.constant, value, fault, base.degree * exponent, base.fixed))

    def exponent(self, expression: tree.Expr) -> int | None:
        """The value of an exponent; None, and an error, unless it is an integer from 0 to 64."""
        inner = expression
        while isinstance(inner, tree.Group):
            inner = inner.inner
        if isinstance(inner, tree.Number) and isinstance(inner.value, int) and inner.value <= MAX_EXPONENT:
            return inner.value
        help = "write `sqrt(x)` for `x**0.5`, `1 / x**2` for `x**-2`, `exp(y * log(x))` for `x**y`"
        message = f"an exponent must be an integer from 0 to {MAX_EXPONENT}"
        self.report.error("exponent", message, expression.span, help)
        return None


def _advice(reason: str, place: Place) -> str:
    if reason.endswith("two variables"):
        return _AFFINE
    if "multiplies" in reason and place is SUBSCRIPT:
        return "declare the array with its dimensions and write `A[i, j]` for `A[i*n + j]`, or make the factor `const`"
    if "multiplies" in reason or "divides" in reason:
        return "one factor must be a number or a `const` parameter"
    return _AFFINE

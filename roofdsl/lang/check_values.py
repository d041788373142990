"""Checks computed values: operands, functions, and what has no meaning for complex numbers."""

from __future__ import annotations

from roofdsl.lang import tree
from roofdsl.lang.check_integers import SUBSCRIPT, VALUE, Integers
from roofdsl.lang.findings import Report, did_you_mean, listed, plural
from roofdsl.lang.format_text import comma
from roofdsl.lang.functions import FUNCTIONS, MANY
from roofdsl.lang.scope import Scope, Symbol
from roofdsl.lang.types import ElementType, widest_of

_OTHER_FUNCTIONS = {
    "pow": "powers are written `x**2`",
    "power": "powers are written `x**2`",
    "fma": "write `a * b + c`; it is counted as one fused pair",
    "where": "write `select(a < b, x, y)`",
    "fabs": "write `abs(x)`",
    "fmin": "write `min(a, b)`",
    "fmax": "write `max(a, b)`",
    "minimum": "write `min(a, b)`",
    "maximum": "write `max(a, b)`",
    "relu": "write `max(x, 0)`",
    "sqr": "powers are written `x**2`",
    "square": "powers are written `x**2`",
    "tan": "write `sin(x) / cos(x)`",
    "log2": "write `log(x)` times a number",
    "log10": "write `log(x)` times a number",
    "exp2": "write `exp(x)` with x times a number",
    "dot": "write a loop: `s += x[i] * y[i]`",
    "matmul": "write loops: `C[i, j] += A[i, k] * B[k, j]`",
    "mean": "write a loop that adds to a scalar",
    "prod": "write a loop that multiplies a scalar",
    "zeros": "an array is declared, `out C: f64[n]`, and set in a loop",
    "ones": "an array is declared, `out C: f64[n]`, and set in a loop",
    "empty": "an array is declared, `out C: f64[n]`, and set in a loop",
    "transpose": "a transposed array is read as `A[j, i]`",
    "len": "sizes are parameters of the kernel",
    "size": "sizes are parameters of the kernel",
    "shape": "sizes are parameters of the kernel",
    "ln": "write `log(x)`",
    "sum": "write a loop that adds to a scalar",
    "float": "values are converted where they are stored",
    "int": "values are converted where they are stored",
}
_SUBSCRIPTS = "ijklmn"


def element_of(array: Symbol) -> str:
    """An element of an array, as an example: `A[i, j]`."""
    return f"{array.name}[{', '.join(_SUBSCRIPTS[k % len(_SUBSCRIPTS)] for k in range(array.rank))}]"


class Values:
    """Checks the expressions of one scope's statements. The parser keeps their depth below 200."""

    def __init__(self, scope: Scope, report: Report) -> None:
        self.scope = scope
        self.report = report
        self.integers = Integers(scope, report)
        self.read: set[str] = set()

    def value(self, expression: tree.Expr) -> ElementType | None:
        """Checks an expression; returns its type, None if it has none of its own (or is wrong)."""
        match expression:
            case tree.Number():
                return None
            case tree.Ref(name):
                return self._ref(tree.Name(name, expression.span))
            case tree.Index():
                symbol = self.element(expression)
                if symbol is not None:
                    self.read.add(symbol.name)
                return symbol.type if symbol else None
            case tree.Group(inner):
                return self.value(inner)
            case tree.Unary("-" | "+", operand):
                return self.value(operand)
            case tree.Binary("//" | "%"):
                self.integers.require(expression, VALUE)
                return None
            case tree.Binary("**", left, right):
                self.integers.exponent(right)
                return self.value(left)
            case tree.Binary(_, left, right):
                return widest_of([self.value(left), self.value(right)])
            case tree.Call():
                return self._call(expression)
            case _:
                help = "comparisons are allowed in `if` and as the first argument of `select(c, a, b)`"
                self.report.error("condition-value", "a value is needed, not a condition", expression.span, help)
                return None

    def _ref(self, name: tree.Name) -> ElementType | None:
        help = f"declare it: `in {name.text}: f64` for a scalar, `kernel k({name.text}):` for an integer"
        symbol = self.scope.find(name, help, ("parameter", "const", "scalar", "loop", "let"))
        if symbol is None:
            return None
        if symbol.kind == "array":
            self._wrong_rank(symbol, 0, name)
        self.read.add(symbol.name)
        return symbol.type

    def element(self, index: tree.Index, intent: str = "in") -> Symbol | None:
        """Checks `A[i, j]`, read or written; returns the array, None if there is none of that name.

        intent: the intent with which the help declares an unknown array.
        """
        dims = ", ".join("n" for _ in index.subscripts)
        symbol = self.scope.find(index.name, f"declare it: `{intent} {index.name.text}: f64[{dims}]`", ("array",))
        for subscript in index.subscripts:
            self.integers.require(subscript, SUBSCRIPT)
        if symbol is None:
            return None
        if symbol.kind not in ("array", "scalar"):
            message = f"`{symbol.name}` is {symbol.word} and has no elements"
            self.report.error("name-kind", message, index.name.span)
            return None
        if symbol.rank != len(index.subscripts):
            self._wrong_rank(symbol, len(index.subscripts), index)
        return symbol

    def _wrong_rank(self, symbol: Symbol, given: int, node: tree.Index | tree.Name) -> None:
        if symbol.rank == 0:
            message = f"`{symbol.name}` is a scalar and takes no subscripts"
            self.report.error("subscript-count", message, node.span, f"write `{symbol.name}`")
            return
        if not given:
            message = f"`{symbol.name}` is an array, but a statement works on single elements"
            help = f"write `{element_of(symbol)}` inside loops over its elements"
            self.report.error("subscript-count", message, node.span, help)
            return
        subscripts = plural(symbol.rank, "subscript")
        message = f"`{symbol.name}` has {plural(symbol.rank, 'dimension')} and takes {subscripts}, not {given}"
        self.report.error("subscript-count", message, node.span, f"it is declared on line {symbol.span.line}")

    def _call(self, call: tree.Call) -> ElementType | None:
        name = call.name.text
        function = FUNCTIONS.get(name)
        if function is None:
            self._unknown(call)
            for arg in call.args:
                if not self._is_whole_array(arg):  # what it lacks follows from the function that there is not
                    self.value(arg)
            return None
        wanted = function.arguments
        if len(call.args) != wanted and not (wanted == MANY and len(call.args) >= 2):
            many = "two arguments or more" if wanted == MANY else plural(wanted, "argument")
            message = f"`{name}` takes {many}, not {len(call.args)}"
            self.report.error("function-arguments", message, call.span)
            return None
        if name == "select":
            return self._select(call)
        types = [self.value(a) for a in call.args]
        result = widest_of(types)
        if result is not None and result.kind == "complex":
            if not function.takes_complex:
                others = [f.name for f in FUNCTIONS.values() if f.takes_complex and f.name != "select"]
                known = f"`+ - * / **`, {listed(others, 'and')} take complex values"
                message = f"`{name}` takes real values, but this is {result}"
                self.report.error("type-complex", message, call.span, known)
            if function.gives == "component":
                return result.component
        return result

    def _is_whole_array(self, arg: tree.Expr) -> bool:
        symbol = self.scope.symbols.get(arg.name) if isinstance(arg, tree.Ref) else None
        return symbol is not None and symbol.kind == "array"

    def _select(self, call: tree.Call) -> ElementType | None:
        condition = call.args[0]
        while isinstance(condition, tree.Group):
            condition = condition.inner
        if isinstance(condition, tree.Compare) and len(condition.rest) == 1:
            types = [self.value(condition.first), self.value(condition.rest[0][1])]
            compared = widest_of(types)
            if compared is not None and compared.kind == "complex" and condition.rest[0][0] not in ("==", "!="):
                message = f"complex values have no order, but this is {compared}"
                self.report.error("type-complex", message, condition.span, "compare `abs(x)` or `real(x)`")
        else:
            help = "write `select(a < b, x, y)`; nest one `select` in another for `and` and `or`"
            message = "the first argument of `select` is one comparison"
            self.report.error("select-condition", message, call.args[0].span, help)
        return widest_of([self.value(call.args[1]), self.value(call.args[2])])

    def _unknown(self, call: tree.Call) -> None:
        name = call.name.text
        symbol = self.scope.symbols.get(name)
        if symbol is not None and symbol.kind == "array":
            message = f"`{name}` is an array; write its elements with brackets"
            self.report.error("function-unknown", message, call.name.span, f"write `{name}[{comma(call.args)}]`")
            return
        help = _OTHER_FUNCTIONS.get(name.lower(), "")
        help = help or did_you_mean(name, FUNCTIONS, f"the functions are {listed(FUNCTIONS, 'and')}")
        self.report.error("function-unknown", f"there is no function `{name}`", call.name.span, help)

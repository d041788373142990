"""Checks the statements of a kernel: loops, branches, assignments, `let`, `count`."""

from __future__ import annotations

from collections.abc import Sequence

from roofdsl.lang import tree
from roofdsl.lang.check_integers import AMOUNT, BOUND, CONDITION, Integers
from roofdsl.lang.check_values import Values
from roofdsl.lang.findings import Report, did_you_mean
from roofdsl.lang.format_text import expression
from roofdsl.lang.layout import MAX_BLOCKS
from roofdsl.lang.scope import Scope, Symbol
from roofdsl.lang.types import ElementType

MAX_LOOPS = 16
MAX_STATEMENTS = 1000
_DECLARATIONS = (
    tree.Declaration | tree.Assume | tree.DataFact | tree.Traffic | tree.Tile | tree.Order | tree.Unit | tree.Compute
)


class Body:
    """Checks the statements of one kernel. Blocks are at most 64 deep, so it may recurse."""

    def __init__(self, scope: Scope, report: Report) -> None:
        self.scope = scope
        self.report = report
        self.values = Values(scope, report)
        self.integers = Integers(scope, report)
        self.assigned: set[str] = set()  # by `=`
        self.updates: dict[str, tree.Assign] = {}
        self.streams: dict[str, tree.Assign] = {}  # the first store of each array that bypasses the caches
        self.stored: set[str] = set()  # by all other assignments
        self.statements = 0

    def block(self, items: Sequence[tree.Item], depth: int) -> None:
        """Checks the items of a block inside `depth` loops; names defined in it are known in it."""
        with self.scope.block():
            for item in items:
                self._item(item, depth)

    def _item(self, item: tree.Item, depth: int) -> None:
        match item:
            case tree.Assign():
                self._count_statement(item)
                self._assign(item)
            case tree.Let(name, value):
                self._count_statement(item)
                self.scope.define(Symbol(name.text, "let", name.span, self.values.value(value)))
            case tree.Count(_, amount):
                self._count_statement(item)
                self.integers.require(amount, AMOUNT)
            case tree.For():
                self._for(item, depth)
            case tree.If():
                self._if(item, depth)
            case _:
                self.nested(item, depth)

    def nested(self, item: _DECLARATIONS, depth: int) -> None:
        """Reports a declaration or directive inside a loop or an `if`."""
        what = "a declaration" if isinstance(item, tree.Declaration) else "a directive"
        message = f"{what} belongs at the top level of the kernel, not inside a loop or an `if`"
        help = "use `let` to name a value within one iteration" if isinstance(item, tree.Declaration) else ""
        self.report.error("declaration-nested", message, item.span, help)

    def _count_statement(self, item: tree.Item) -> None:
        self.statements += 1
        if self.statements == MAX_STATEMENTS + 1:
            message = f"a kernel has at most {MAX_STATEMENTS:,} statements; this is one too many"
            self.report.error("limit-statements", message, item.span, "split the kernel into parts that a program runs")

    # ---- assignments ----

    def _assign(self, item: tree.Assign) -> None:
        value = self.values.value(item.value)
        symbol = self._target(item.target)
        if symbol is None:
            return
        if symbol.intent == "in":
            message = f"`{symbol.name}` is declared `in` and cannot be written"
            intents = "`inout` or `out`" if item.op == "=" else "`inout`"
            help = f"declare it {intents} on line {symbol.span.line}"
            self.report.error("intent-write", message, item.target.span, help)
        if item.op == "=":
            self.assigned.add(symbol.name)
        else:
            self.updates.setdefault(symbol.name, item)
        if item.stream:
            self._stream(item, symbol)
        else:
            self.stored.add(symbol.name)
        self._assign_type(item, symbol, value)

    def _stream(self, item: tree.Assign, symbol: Symbol) -> None:
        self.streams.setdefault(symbol.name, item)
        if symbol.kind != "array":
            message = f"`stream` is for elements of arrays, but `{symbol.name}` is a scalar, which stays in a register"
            self.report.error("stream-store", message, item.target.span, "leave out `stream`")
        elif item.op != "=":
            message = f"`stream` is for plain stores: `{item.op}` also reads `{symbol.name}`, and that needs the caches"
            self.report.error("stream-store", message, item.target.span, "leave out `stream`")

    def _target(self, target: tree.Ref | tree.Index) -> Symbol | None:
        if isinstance(target, tree.Index):
            return self.values.element(target, "out")
        name = tree.Name(target.name, target.span)
        symbol = self.scope.find(name, f"declare it (`out {target.name}: f64`), or write `let {target.name} = ...`")
        if symbol is None:
            return None
        if symbol.kind == "array":
            self.values.element(tree.Index(name, (), target.span))
        elif symbol.kind != "scalar":
            message = f"`{target.name}` is {symbol.word} and cannot be assigned"
            help = "declare a scalar `temp t: f64` for a value that changes" if symbol.kind == "let" else ""
            self.report.error("assign-target", message, target.span, help)
            return None
        return symbol

    def _assign_type(self, item: tree.Assign, symbol: Symbol, value: ElementType | None) -> None:
        complex_value = value is not None and value.kind == "complex"
        if symbol.type is None:
            return
        if complex_value and symbol.type.kind != "complex":
            message = f"a complex value cannot be stored in `{symbol.name}`, which is {symbol.type}"
            self.report.error("type-complex", message, item.value.span, "write `real(...)`, `imag(...)` or `abs(...)`")
        elif item.op in ("min=", "max=") and (complex_value or symbol.type.kind == "complex"):
            self.report.error("type-complex", f"complex values have no order for `{item.op}`", item.span)

    # ---- loops and branches ----

    def _for(self, item: tree.For, depth: int) -> None:
        with self.scope.block():
            for clause in item.clauses[: MAX_LOOPS + 1]:
                depth += 1
                if depth > MAX_LOOPS:
                    message = f"loops are nested deeper than the limit of {MAX_LOOPS}"
                    self.report.error("limit-loops", message, clause.span)
                    return
                self._clause(clause)
            self.block(item.body, depth)

    def _clause(self, clause: tree.Clause) -> None:
        if clause.function.text != "range":
            help = did_you_mean(clause.function.text, ["range"], "write `range(stop)` or `range(start, stop, step)`")
            self.report.error("loop-range", "a loop runs over `range(...)`", clause.function.span, help)
        elif len(clause.args) > 3:
            message = f"`range` takes a start, a stop and a step, not {len(clause.args)} arguments"
            self.report.error("loop-range", message, clause.span)
        args = clause.args
        start, stop = (None, args[0]) if len(args) == 1 else (args[0], args[1])
        if start is not None:
            self._bound(start, "max")
        self._bound(stop, "min")
        if len(args) == 3:
            self._step(clause, args[2])
        self.scope.define(Symbol(clause.var.text, "loop", clause.var.span))

    def _bound(self, bound: tree.Expr, allowed: str) -> None:
        inner = bound
        while isinstance(inner, tree.Group):
            inner = inner.inner
        if isinstance(inner, tree.Call) and inner.name.text == allowed and len(inner.args) >= 2:
            for arg in inner.args:
                self._bound(arg, allowed)
        else:
            self.integers.require(bound, BOUND)

    def _step(self, clause: tree.Clause, step: tree.Expr) -> None:
        inner = step
        while isinstance(inner, tree.Group):
            inner = inner.inner
        shape = self.integers.require(step, BOUND)
        symbol = self.scope.symbols.get(inner.name) if isinstance(inner, tree.Ref) else None
        if shape.value is not None and shape.value <= 0:
            help = _forwards(clause, -shape.value) if shape.value < 0 else ""
            self.report.error(
                "loop-step", f"a step must be a positive integer, but this one is {shape.value}", step.span, help
            )
        elif not shape.constant and (symbol is None or symbol.kind != "parameter"):
            message = "a step must be a positive integer or a parameter"
            help = "make the step a parameter of the kernel" if shape.fixed else ""
            self.report.error("loop-step", message, step.span, help)

    def _if(self, item: tree.If, depth: int) -> None:
        if len(item.branches) > MAX_BLOCKS:
            message = f"an `if` has at most {MAX_BLOCKS} branches"
            self.report.error("limit-blocks", message, item.branches[MAX_BLOCKS].span)
            return
        for branch in item.branches:
            self.integers.condition(branch.condition, CONDITION)
            self.block(branch.body, depth)
        self.block(item.orelse, depth)


def _forwards(clause: tree.Clause, step: int) -> str:
    """How to write a loop that counts down by `step`."""
    start, stop = (expression(e) for e in clause.args[:2])
    if start == "0" and step == 1 and stop != "-1":
        var = clause.var.text
        return f"to count up, write `range({stop})`; to count down in it, write `{stop} - 1 - {var}` for `{var}`"
    if stop in ("0", "-1"):
        length = f"{start}{' + 1' if stop == '-1' else ''}".replace(" - 1 + 1", "")
    else:
        length = f"{start} - {stop if stop.isalnum() else f'({stop})'}"
    forwards, var = length if step == 1 else f"0, {length}, {step}", clause.var.text
    return f"run the loop forwards over `range({forwards})`, and write `{start} - {var}` for `{var}`"

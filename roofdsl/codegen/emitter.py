"""The loop emitter: it writes a checked kernel's statements and loops in any target language, with the same layout."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from roofdsl.codegen.computed_types import Computed, component, computed, join, kind_of, settled
from roofdsl.codegen.expressions import Expressions
from roofdsl.codegen.syntax import PRODUCT, SUM, Lines, Syntax, Text
from roofdsl.lang.source import Source, Span
from roofdsl.loops.accesses import elements
from roofdsl.loops.affine import is_positive
from roofdsl.loops.integers import Condition, sub
from roofdsl.loops.model import (
    Array,
    Assign,
    Count,
    Element,
    Expr,
    For,
    If,
    Let,
    Node,
    ScalarRef,
)

LoopHeader = Callable[[Lines, str, Text, Text, Text], None]
"""Opens a loop: (lines, variable, start, stop, step)."""


class Emitter(Expressions):
    """Writes the body of one function.

    source: the file whose lines are quoted above the code they became. headers: how to open the loops (by identity)
    that are not ordinary serial loops. places: where assignments (by identity) store for now, instead of to their own
    target. atomic: updates (by identity) with which several threads may change the same element. held: arrays that the
    function declares for itself.
    """

    def __init__(
        self, syntax: Syntax, out: Lines, names: Mapping[str, str], source: Source, parameters: Sequence[str]
    ) -> None:
        super().__init__(syntax, names)
        self.out = out
        self.source = source
        self.parameters = frozenset(parameters)
        self.headers: dict[int, LoopHeader] = {}
        self.places: dict[int, Text] = {}
        self.held: Sequence[Array] = ()
        self.atomic: frozenset[int] = frozenset()
        self._declared: dict[str, Computed] = {}
        self._sums: dict[str, int] = {}
        self._quoted = 0

    # ---- statements ----

    def block(self, nodes: Sequence[Node]) -> None:
        """The statements of a block."""
        before = dict(self.lets)
        done = 0
        for node in nodes:
            match node:
                case For():
                    self.loop(node)
                case If(condition, then, orelse):
                    self._if(node, condition, then, orelse)
                case Let():
                    self._let(node)
                case Assign():
                    self.assign(node)
                case Count(name, amount):
                    self._comment(f"count {name} {amount}: its total is derived, not counted here")
                    done -= 1
            done += 1
        if done == 0 and self.syntax.empty:
            self.out.add(self.syntax.empty)
        self.lets = before

    def _comment(self, text: str) -> None:
        self.out.add(f"{self.syntax.comment} {text}")

    def quote(self, span: Span) -> None:
        """Quote a source line above the code it became, unless it is the line quoted last."""
        if span.line == self._quoted:
            return
        self._quoted = span.line
        text = self.source.line(span.line).split("#")[0].strip()
        self._comment(f"line {span.line}: {plain(text)}")

    def _if(self, node: If, condition: Condition, then: Sequence[Node], orelse: Sequence[Node]) -> None:
        self.quote(node.span)
        self.syntax.condition(self.out, self.truth(condition).text)
        self.block(then)
        if orelse:
            self.syntax.otherwise(self.out)
            self.block(orelse)
        self.syntax.close(self.out)

    def _let(self, node: Let) -> None:
        self.quote(node.span)
        kind = computed(node.type)
        name = self.name(node.name)
        if not self.syntax.scoped and self._declared.setdefault(name, kind) != kind:
            name = f"{name}_{kind}"  # blocks share variables, so each type needs its own name
        text = self.syntax.declare(name, kind, self.value(node.value, kind), constant=True)
        self.lets[node.name] = name
        self.out.add(text)

    def assign(self, node: Assign) -> None:
        """An assignment or update in memory, or of a scalar in its register."""
        self.quote(node.span)
        array = node.target.array
        if isinstance(node.target, ScalarRef):
            self.update_register(self.name(array.name), computed(array.type), node.op, node.value)
            return
        place = self.places.get(id(node)) or self.place(node.target)
        if id(node) in self.atomic:
            kind = computed(array.type)
            self.out.add(self.syntax.end(self.syntax.atomic(place, node.op, self.value(node.value, kind), array)))
            return
        kind = self._of_update(array, node.value) if node.op != "=" else self._of(node.value, array)
        if node.op == "=":
            value = self.syntax.stored(self.value(node.value, kind), kind, array)
        elif (
            node.op in ("+=", "-=", "*=", "/=") and self.syntax.updates_in_place(array, kind) and not self._apart(node)
        ):
            value = self.operand(node.value, kind)
            self.out.add(self.syntax.end(f"{place.text} {node.op} {value.text}"))
            return
        else:
            held = self.syntax.convert(self.loaded(place, array), computed(array.type), kind)
            value = self.syntax.stored(self._combined(node.op, held, node.value, kind), kind, array)
        self.out.add(self.syntax.end(f"{place.text} = {value.text}"))

    def _apart(self, node: Assign) -> bool:
        """Whether the update is a division that the target does not write as `/=`."""
        return node.op == "/=" and not self.syntax.divides_in_place(computed(node.target.array.type))

    def _of(self, value: Expr, array: Array) -> Computed:
        """The type in which a value to be stored in `array` is computed."""
        kind = kind_of(value)
        return component(computed(array.type)) if kind in ("whole", "plain") else settled(kind)

    def _of_update(self, array: Array, value: Expr) -> Computed:
        return settled(join((computed(array.type), kind_of(value))))

    def combine(self, op: str, held: Text, value: Text, kind: Computed, by: Computed | None = None) -> Text:
        """`held op value`, for an update; `by` is the type of the value if that is not `kind`."""
        if op in ("min=", "max="):
            return self.syntax.call(op[:-1], [held, value], kind)
        if op == "/=":
            return self.syntax.division(held, value, kind, by or kind)
        level = SUM if op in ("+=", "-=") else PRODUCT
        return Text(f"{held.at(level)} {op[0]} {value.at(level + 1)}", level)

    def _combined(self, op: str, held: Text, value: Expr, kind: Computed) -> Text:
        return self.combine(op, held, self.operand(value, kind), kind, self.kept(value, kind))

    def update_register(self, name: str, own: Computed, op: str, value: Expr) -> None:
        """`name op value` for a variable of type `own`."""
        kind = settled(join((own, kind_of(value))))
        if op == "=":
            self.out.add(self.syntax.end(f"{name} = {self.value(value, own).text}"))
        elif op in ("+=", "-=", "*=", "/=") and kind == own and (op != "/=" or self.syntax.divides_in_place(own)):
            self.out.add(self.syntax.end(f"{name} {op} {self.operand(value, kind).text}"))
        else:
            held = self.syntax.convert(Text(name), own, kind)
            result = self._combined(op, held, value, kind)
            self.out.add(self.syntax.end(f"{name} = {self.syntax.convert(result, kind, own).text}"))

    # ---- loops ----

    def loop(self, node: For) -> None:
        """A loop with its body; a reduction over it stays in a register."""
        header = self.headers.get(id(node))
        update = self._accumulated(node)
        if header is None and update is not None:
            self._accumulate(node, update)
            return
        self.quote(node.span)
        start, stop, step = self.integer(node.start), self.integer(node.stop), self.integer(node.step)
        (header or self.syntax.loop)(self.out, self.name(node.var), start, stop, step)
        self.block(node.body)
        self.syntax.close(self.out)

    def _accumulated(self, node: For) -> Assign | None:
        """The only statement of the perfect nest that begins with the loop, if it updates one element of an array that
        its value does not read; otherwise None.
        """
        chain = list(chain_of(node))
        leaf = chain[-1].body
        if len(leaf) != 1 or not isinstance(leaf[0], Assign) or any(id(loop) in self.headers for loop in chain):
            return None
        update = leaf[0]
        if update.op == "=" or not isinstance(update.target, Element) or id(update) in self.atomic:
            return None
        variables = {loop.var for loop in chain}
        if any(s.symbols() & variables for s in update.target.subscripts):
            return None
        if any(e.array.name == update.target.array.name for e in elements(update.value)):
            return None
        nonempty = all(self._runs(loop) for loop in chain)
        return update if nonempty or len(chain) == 1 else None

    def _runs(self, loop: For) -> bool:
        """Whether the loop certainly has an iteration; parameters are at least 1."""
        return is_positive(sub(loop.stop, loop.start), dict.fromkeys(self.parameters, 1))

    def _accumulate(self, node: For, update: Assign) -> None:
        target = update.target
        if not isinstance(target, Element):
            raise TypeError("only elements are accumulated")
        chain = list(chain_of(node))
        guarded = not all(self._runs(loop) for loop in chain)
        self.quote(node.span)
        if guarded:  # without iterations, the element may not exist
            start, stop = self.integer(node.start), self.integer(node.stop)
            self.syntax.condition(self.out, f"{start.at(SUM)} < {stop.at(SUM)}")
        kind, place = computed(target.array.type), self.place(target)
        name = (
            f"{self.name(target.array.name)}_sum" if update.op in ("+=", "-=") else f"{self.name(target.array.name)}_"
        )
        self._sums[name] = self._sums.get(name, 0) + 1
        if self._sums[name] > 1:
            name += str(self._sums[name])
        self.out.add(self.syntax.declare(name, kind, self.loaded(place, target.array), constant=False))
        for loop in chain:
            self.quote(loop.span)
            bounds = (self.integer(loop.start), self.integer(loop.stop), self.integer(loop.step))
            self.syntax.loop(self.out, self.name(loop.var), *bounds)
        self.quote(update.span)
        self.update_register(name, kind, update.op, update.value)
        for _ in chain:
            self.syntax.close(self.out)
        self.out.add(self.syntax.end(f"{place.text} = {self.syntax.stored(Text(name), kind, target.array).text}"))
        if guarded:
            self.syntax.close(self.out)


def chain_of(root: For) -> Iterator[For]:
    """The loops of the perfect nest that begins with `root`, outermost first."""
    yield root
    while len(root.body) == 1 and isinstance(inner := root.body[0], For):
        root = inner
        yield root


def plain(text: str) -> str:
    """The text without anything that would end a comment or continue it."""
    shown = "".join(c if c.isprintable() and c.isascii() else " " for c in text)
    return shown.replace("\\", "/").replace("??", "? ").replace("*/", "* /").strip()

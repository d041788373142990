"""Checked syntax tree to the loop model: names resolved, types known, `const` parameters replaced by numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import cast

from roofdsl.lang import tree
from roofdsl.lang.build import MAX_INTEGER
from roofdsl.lang.checked import CheckedKernel
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.types import TYPES, ElementType
from roofdsl.loops.integers import Condition, Const, IntExpr
from roofdsl.loops.lower_integers import Integers
from roofdsl.loops.lower_values import Values, type_of
from roofdsl.loops.model import (
    Array,
    Assign,
    Count,
    DataFact,
    For,
    HasAlpha,
    If,
    Intent,
    Kernel,
    Let,
    Node,
    Order,
    Parameter,
    Rises,
    ScalarRef,
    Takes,
    Tile,
    Traffic,
)
from roofdsl.loops.plain_lets import type_of_plain_let


def lower(checked: CheckedKernel, settings: Mapping[str, int]) -> Kernel:
    """The kernel, its directives not yet applied; `settings` gives the `const` parameters their numbers.

    Raises CommandError if a `const` parameter has no value, or one that is not a positive integer, or if an assumption
    does not hold for these numbers; InputError if the numbers reveal an error in the text, such as a step of zero.
    """
    return _Lowering(checked, settings).kernel()


def default_of(parameter: tree.Parameter) -> int | None:
    """The value of a parameter if no other is given."""
    if parameter.default is None:
        return None
    value = Integers(tree.Source("", ""), {}).lower(parameter.default)
    return value.evaluate({})


class _Lowering:
    def __init__(self, checked: CheckedKernel, settings: Mapping[str, int]) -> None:
        self.checked = checked
        self.tree = checked.tree
        self.constants = self._constants(settings)
        self.integers = Integers(checked.source, self.constants)
        self.arrays: dict[str, Array] = {}
        self.integers.arrays = self.arrays
        for item in self.tree.body:
            if isinstance(item, tree.Declaration):
                self._declaration(item)
        self.values = Values(self.integers, self.arrays)

    def _constants(self, settings: Mapping[str, int]) -> dict[str, int]:
        constants: dict[str, int] = {}
        for parameter in self.tree.parameters:
            if not parameter.const:
                continue
            name = parameter.name.text
            value = settings[name] if name in settings else default_of(parameter)
            if value is None:
                message = f"the kernel `{self.tree.name.text}` needs a number for its `const` parameter `{name}`"
                raise CommandError(message, f"give it with --set {name}=2")
            if not 0 < value <= MAX_INTEGER:
                raise CommandError(f"the parameter `{name}` is a positive integer, but {value} is given")
            constants[name] = value
        return constants

    def kernel(self) -> Kernel:
        directives = tuple(self._directive(item) for item in self.tree.body if isinstance(item, tree.Tile | tree.Order))
        units = [item.name.text for item in self.tree.body if isinstance(item, tree.Unit)]
        computes = [item.type.text for item in self.tree.body if isinstance(item, tree.Compute)]
        parameters = tuple(Parameter(p.name.text, default_of(p), p.span) for p in self.tree.parameters if not p.const)
        return Kernel(
            self.tree.name.text,
            parameters,
            tuple(self.arrays.values()),
            self._assumptions(),
            cast(Traffic | None, self.checked.traffic),
            directives,
            self._block(self.tree.body),
            self.checked.source,
            self.tree.span,
            self.checked.costs,
            units[0] if units else None,
            TYPES[computes[0]] if computes else None,
            tuple(self.constants.items()),
            tuple(self._fact(item) for item in self.tree.body if isinstance(item, tree.DataFact)),
        )

    def _declaration(self, item: tree.Declaration) -> None:
        intent = cast(Intent, item.intent)
        for group in item.groups:
            dims = tuple(self.integers.lower(d) for d in group.dims)
            for dim, written in zip(dims, group.dims, strict=True):
                if isinstance(dim, Const) and dim.value <= 0:
                    message = f"a dimension must be positive, but this one is {dim.value}"
                    raise self.integers.fail("dimension", message, written.span)
            below = None if group.below is None else self.integers.lower(group.below)
            for name in group.names:
                type_ = TYPES[group.type.text]
                self.arrays[name.text] = Array(name.text, type_, dims, intent, group.column_major, name.span, below)

    def _fact(self, item: tree.DataFact) -> DataFact:
        name = item.array.text
        if item.word == "alpha":
            return HasAlpha(name, Fraction(cast(tree.Number, item.values[0]).text.replace("_", "")))
        first, *rest = (self.integers.lower(e) for e in item.values)
        return Takes(name, first) if item.word == "takes" else Rises(name, first, rest[0])

    def _assumptions(self) -> tuple[Condition, ...]:
        assumptions: list[Condition] = []
        for item in self.tree.body:
            if not isinstance(item, tree.Assume):
                continue
            for written in item.conditions:
                condition = self.integers.condition(written)
                if condition.symbols():
                    assumptions.append(condition)
                elif not condition.holds({}):
                    given = ", ".join(f"{n} = {v}" for n, v in self.constants.items())
                    where = f"{self.checked.source.name}:{written.span.line}"
                    raise CommandError(
                        f"{where}: an assumption of the kernel does not hold with {given or 'any value'}"
                    )
        return tuple(assumptions)

    def _directive(self, item: tree.Tile | tree.Order) -> Tile | Order:
        loops = tuple(name.text for name in item.loops)
        if isinstance(item, tree.Order):
            return Order(loops, item.span)
        sizes = tuple(self.integers.lower(s) for s in item.sizes)
        for size, written in zip(sizes, item.sizes, strict=True):
            if isinstance(size, Const) and size.value <= 0:
                message = f"a tile size must be positive, but this one is {size.value}"
                raise self.integers.fail("tile-size", message, written.span)
        return Tile(loops, sizes * len(loops) if len(sizes) == 1 else sizes, item.span)

    # ---- statements; blocks are at most 64 deep ----

    def _block(self, items: Sequence[tree.Item]) -> tuple[Node, ...]:
        before = dict(self.values.lets)
        nodes: list[Node] = []
        for i, item in enumerate(items):
            match item:
                case tree.Assign(target, op, value):
                    lowered = self.values.lower(value)
                    place = (
                        self.values.element(target)
                        if isinstance(target, tree.Index)
                        else ScalarRef(self.arrays[target.name], target.span)
                    )
                    nodes.append(Assign(place, op, lowered, item.span, item.stream))
                case tree.Let():
                    nodes.append(self._let(item, items[i + 1 :]))
                case tree.Count(name, amount):
                    nodes.append(Count(name.text, self.integers.lower(amount), item.span))
                case tree.For():
                    nodes.append(self._for(item))
                case tree.If():
                    nodes.append(self._if(item, 0))
                case _:
                    continue  # declarations and directives have their own places in the kernel
        self.values.lets = before
        return tuple(nodes)

    def _let(self, item: tree.Let, rest: Sequence[tree.Item]) -> Let:
        value = self.values.lower(item.value)
        type_: ElementType = type_of(value) or type_of_plain_let(item, rest, self.arrays, self.values.lets)
        self.values.lets[item.name.text] = type_
        return Let(item.name.text, type_, value, item.span)

    def _for(self, item: tree.For) -> For:
        ranges = [self._range(clause) for clause in item.clauses]
        body = self._block(item.body)
        for clause, (start, stop, step) in zip(reversed(item.clauses), reversed(ranges), strict=True):
            body = (For(clause.var.text, start, stop, step, item.parallel, body, clause.span),)
        node = body[0]
        if not isinstance(node, For):
            raise TypeError("a `for` has a clause")
        return node

    def _range(self, clause: tree.Clause) -> tuple[IntExpr, IntExpr, IntExpr]:
        args = [self.integers.lower(a) for a in clause.args]
        if len(args) == 1:
            return Const(0), args[0], Const(1)
        step = args[2] if len(args) == 3 else Const(1)
        if isinstance(step, Const) and step.value <= 0:
            raise self.integers.fail(
                "loop-step", f"a step must be positive, but this one is {step.value}", clause.args[2].span
            )
        return args[0], args[1], step

    def _if(self, item: tree.If, at: int) -> If:
        branch = item.branches[at]
        condition = self.integers.condition(branch.condition)
        then = self._block(branch.body)
        last = at + 1 == len(item.branches)
        orelse = self._block(item.orelse) if last else (self._if(item, at + 1),)
        return If(condition, then, orelse, branch.span)

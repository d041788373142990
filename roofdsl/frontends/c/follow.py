"""How integers and pointers change from one iteration of a loop to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pycparser import c_ast

from roofdsl.frontends.c.context import Context, Known, Split, Value
from roofdsl.frontends.c.pointers import Peel
from roofdsl.frontends.c.values import NeedsData, Values
from roofdsl.frontends.c.variables import (
    Choice,
    OfData,
    Pointer,
    State,
    Unknown,
    Variable,
    assigned_names,
    member_path,
    walk,
)
from roofdsl.frontends.poly import Poly
from roofdsl.frontends.refuse import Refused

_FOLLOWED = (Poly, Pointer, Choice)
_UPDATES = {"++": 1, "p++": 1, "--": -1, "p--": -1}


class Follower:
    """Follows integers and pointers through statements, without writing anything."""

    def __init__(self, context: Context, values: Values) -> None:
        self.context, self.values = context, values
        self.loops: Callable[[Any], None] | None = None  # follows a `for`

    def changed(self, nodes: Sequence[Any]) -> list[Variable]:
        """The integers and pointers from outside that statements may change, in order."""
        found: dict[Variable, None] = {}
        for node in nodes:
            inside = {part.name for part in walk(node) if isinstance(part, c_ast.Decl)}
            for name in sorted(assigned_names(node) - inside):
                variable = self.context.named(name)
                if variable is not None and self.is_followed(variable):
                    found[variable] = None
        return list(found)

    def is_followed(self, variable: Variable) -> bool:
        """Whether the value of a variable is known from its place in the program, and not kept in the kernel."""
        if not variable.type.is_plain:
            return not variable.type.dims or bool(variable.type.pointers)
        return variable.type.is_integer and variable.key not in self.context.learnt.data

    def iteration(self, nodes: Sequence[Any], symbols: dict[Variable, Poly]) -> dict[Variable, State | None]:
        """The values of variables after statements, if they begin as symbols."""
        context = self.context
        env, dry, accesses = dict(context.env), context.dry, len(context.accesses)
        context.dry = True
        try:
            for variable, symbol in symbols.items():
                before = context.state(variable)
                if isinstance(before, Pointer) and before.subscripts:
                    context.env[variable] = before.at(symbol)
                else:
                    context.env[variable] = symbol if variable.type.is_plain else Unknown("it changes in a loop")
            with context.scopes.block():
                for node in nodes:
                    self.follow(node)
            return {v: _state(context.env.get(v)) for v in symbols}
        finally:
            context.env, context.dry = env, dry
            del context.accesses[accesses:]

    # ---- statements ----

    def follow(self, node: Any) -> None:
        """The effect of a statement on integers and pointers; unsupported statements make them unknown."""
        match node:
            case c_ast.Compound():
                with self.context.scopes.block():
                    for item in node.block_items or ():
                        self.follow(item)
            case c_ast.Decl():
                self._declare(node)
            case c_ast.DeclList():
                for decl in node.decls:
                    self._declare(decl)
            case c_ast.Assignment() | c_ast.UnaryOp():
                self._assign(node)
            case c_ast.If():
                self._if(node)
            case c_ast.For() if self.loops is not None:
                self._loop(node)
            case None | c_ast.Pragma() | c_ast.EmptyStatement() | c_ast.FuncCall() | c_ast.Return():
                return
            case _:
                self.forget([node], "a loop or a jump changes it")

    def _loop(self, node: Any) -> None:
        assert self.loops is not None
        before = dict(self.context.env)
        try:
            self.loops(node)
        except (Refused, NeedsData, Split, Peel):
            self.context.env = before
            self.forget([node], "a loop changes it")

    def forget(self, nodes: Sequence[Any], why: str) -> None:
        """The values that statements may change become unknown."""
        for variable in self.changed(nodes):
            self.context.env[variable] = Unknown(why)

    def _declare(self, node: Any) -> None:
        type_ = self.context.type_of(node.type)
        variable = self.context.variable(node.name, type_, node, "local")
        self.context.scopes.declare(variable)
        if self.is_followed(variable):
            found: State = Unknown("it is not set")
            if node.init is not None:
                found = self._unless_split(lambda: self._value(node.init, variable))
            self.context.env[variable] = found

    def _assign(self, node: Any) -> None:
        target = node.lvalue if isinstance(node, c_ast.Assignment) else node.expr
        variable = self.context.named(member_path(target))
        if isinstance(node, c_ast.Assignment) and isinstance(node.rvalue, c_ast.Assignment):  # `a = b = v`
            self._assign(node.rvalue)
            node = c_ast.Assignment(node.op, target, node.rvalue.lvalue, node.coord)
        if variable is None or not self.is_followed(variable):
            return
        self.context.env[variable] = self._unless_split(lambda: self.assigned(variable, node))

    def _unless_split(self, read: Callable[[], State]) -> State:
        try:
            return read()
        except Split:
            return Unknown("it depends on a condition")

    def each_way(self, read: Callable[[], State]) -> State:
        """What `read` gives, for each answer to the conditions on loop variables and sizes that it depends on. Raises
        Split if it writes statements.
        """
        context = self.context
        accesses, out = len(context.accesses), len(context.out)
        try:
            return read()
        except Split as split:
            if len(context.out) != out:
                raise
            del context.accesses[accesses:]
            ways = []
            for answer, known in ((True, split.condition.holds), (False, split.condition.fails)):
                with context.answering(split.place, answer), context.within(context.facts.given_all(known)):
                    ways.append(self.each_way(read))
            if len(context.out) != out:
                raise
            return ways[0] if ways[0] == ways[1] else Choice(split.place, split.condition, *ways)

    def assigned(self, variable: Variable, node: Any) -> State:
        """The value of an integer or pointer after an assignment; unknown if it is not followed. Raises Split."""
        if isinstance(node, c_ast.Assignment) and node.op == "=":
            return self._value(node.rvalue, variable)
        before = _state(self.context.state(variable))
        if isinstance(node, c_ast.UnaryOp):
            if node.op not in _UPDATES:
                return Unknown("its address is taken")
            by: State = Poly.number(_UPDATES[node.op])
        elif node.op in ("+=", "-=", "*="):
            by = self._value(node.rvalue, None)
        else:
            return Unknown(f"it is changed by `{node.op}`")
        if isinstance(before, Unknown):
            return before
        if not isinstance(by, Poly):
            return by if isinstance(by, Unknown) else Unknown("it is changed by a pointer")
        if isinstance(before, Pointer):
            if not before.subscripts:
                return Unknown("it points beside a single structure")
            return before.moved(-by if getattr(node, "op", "") == "-=" else by)
        if not isinstance(before, Poly):
            return Unknown("nothing has been assigned to it")
        op = node.op[0] if isinstance(node, c_ast.Assignment) else "+"
        return before + by if op == "+" else before - by if op == "-" else before * by

    def _value(self, node: Any, variable: Variable | None) -> State:
        try:
            if variable is not None and not variable.type.is_plain:
                if is_allocation(node) and variable.place in ("local", "outer"):
                    return Pointer(variable, (Poly.number(0),))
                found = self.values.pointers.pointer(node)
                self.values.pointers.fits(found, variable.type, node)
                return found
            value = self.values.plain(node) if variable is None else self.values.followed(variable, node)
        except Refused as refused:
            return Unknown(refused.message)
        except (NeedsData, Peel) as needed:
            return Unknown(f"it depends on `{needed.variable.name}`")
        if value.poly is None:
            return OfData()
        return value.poly

    def _if(self, node: Any) -> None:
        context = self.context
        try:
            condition = self.values.conditions.read(node.cond)
        except (Refused, NeedsData, Split, Peel):
            condition = None
        if isinstance(condition, Known) and condition.value is not None:
            self.follow(node.iftrue if condition.value else node.iffalse)
            return
        before = dict(context.env)
        self.follow(node.iftrue)
        first, context.env = context.env, before
        self.follow(node.iffalse)
        context.env = merged(first, context.env)


def is_allocation(node: Any) -> bool:
    """Whether an expression allocates memory: `malloc(...)`, with or without a cast."""
    while isinstance(node, c_ast.Cast):
        node = node.expr
    named = isinstance(node, c_ast.FuncCall) and isinstance(node.name, c_ast.ID)
    return named and node.name.name in ("malloc", "calloc", "aligned_alloc", "alloca")


Env = dict[Variable, State | Value]


def merged(a: Env, b: Env, split: Split | None = None) -> Env:
    """The state after either of two branches. split: the known condition that the first one runs under."""
    found: Env = {}
    for variable in {**a, **b}:
        first, second = a.get(variable), b.get(variable)
        if first is None or second is None:
            found[variable] = Unknown("it is set in only one of two branches")
        elif first == second:
            found[variable] = first
        elif split is not None and isinstance(first, _FOLLOWED) and isinstance(second, _FOLLOWED):
            found[variable] = Choice(split.place, split.condition, first, second)
        else:
            unknown = next((s for s in (first, second) if isinstance(s, Unknown)), None)
            found[variable] = unknown or Unknown("it depends on a condition")
    return found


def _state(found: State | Value | None) -> State | None:
    return Unknown("it is a value") if isinstance(found, Value) else found

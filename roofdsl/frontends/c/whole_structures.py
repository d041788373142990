"""Whole structures: copies, initial values, arguments and results of functions, one member after the other.

`pointers` reads single members, and makes arrays of arrays of structures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pycparser import c_ast

from roofdsl.frontends.c.c_types import CType
from roofdsl.frontends.c.conditions import is_null
from roofdsl.frontends.c.context import Context, Value
from roofdsl.frontends.c.static_types import member_type
from roofdsl.frontends.c.values import Values
from roofdsl.frontends.c.variables import Pointer, Variable
from roofdsl.frontends.poly import Poly
from roofdsl.frontends.refuse import Refused
from roofdsl.lang import tree
from roofdsl.lang.record import replace

_MOST_MEMBERS = 64

Steps = tuple[str | int, ...]
"""The way from a structure to a number in it: names of members, and subscripts."""


class Structures:
    """Reads and writes whole structures. `put` assigns a value to a place, and `begin` gives a new local variable its
    first value, in a `let` if `is_let`.
    """

    def __init__(
        self,
        context: Context,
        values: Values,
        put: Callable[[Any, Value, Any], None],
        begin: Callable[[Variable, Value, Any], None],
        is_let: Callable[[Variable], bool],
    ) -> None:
        self.context, self.values, self.put, self.begin, self.is_let = context, values, put, begin, is_let
        self.pointers = values.pointers
        self.pointers.temporary = self.temporary
        self.wish = ""  # the name of the variable that gets the structure that is read next

    # ---- members ----

    def steps(self, type_: CType, node: Any) -> list[Steps]:
        """The ways to all numbers and pointers in a structure. Raises Refused if there are too many."""
        found = list(self._steps(type_, node))
        if len(found) > _MOST_MEMBERS:
            message = f"`{type_.words}` holds more than {_MOST_MEMBERS} numbers, too many to copy one by one"
            raise Refused("c-statement", message, node, "copy the members that are needed, in loops")
        return found

    def _steps(self, type_: CType, node: Any) -> Iterator[Steps]:
        if type_.is_structure:
            for decl in type_.structure.decls:
                for rest in self._steps(self.context.type_of(decl.type), node):
                    yield (decl.name, *rest)
        elif type_.dims and not type_.pointers:
            length = self.values.integer(type_.dims[0], "a dimension").value
            if length is None or length > _MOST_MEMBERS:
                message = f"`{type_.words}` has too many members to copy one by one"
                raise Refused("c-statement", message, node, "copy them in a loop")
            for k in range(length):
                for rest in self._steps(replace(type_, dims=type_.dims[1:]), node):
                    yield (k, *rest)
        else:
            yield ()

    def _reached(self, where: Pointer, steps: Steps, node: Any) -> Variable | Pointer:
        """What lies at the end of a way that begins at the structure `where`."""
        place = where
        for step in steps:
            if isinstance(step, str):
                found = self.pointers.field(place, step, node)
                place = found if isinstance(found, Pointer) else Pointer(found, ())
            else:
                place = self.pointers.item(place, step, node)
        return place.array if not place.subscripts else place

    def _read(self, where: Pointer, steps: Steps, node: Any) -> Value | Pointer:
        """The value of a member."""
        found = self._reached(where, steps, node)
        if isinstance(found, Pointer):
            return self.pointers.access(found, node)[1]
        return self.pointers.state(found, node) if found.type.pointers else self.values.of_variable(found, node)

    # ---- whole structures ----

    def declare(self, variable: Variable, init: Any, node: Any) -> None:
        """A local structure, and its initial values."""
        for member in self._within(variable):
            self.context.env.pop(member, None)
            self.context.lets.pop(member, None)
        self.context.env.pop(variable, None)
        if init is not None:
            self.wish = variable.name if isinstance(init, c_ast.FuncCall) else ""
            for steps, value in self._given(variable.type, init, node):
                self._begin(variable, steps, value, node)

    def constants(self, variable: Variable, init: Any) -> None:
        """The integers in a constant structure of the file: they are numbers, if its initial values can be read."""
        try:
            given = self._given(variable.type, init, init)
        except Refused:
            return
        for steps, value in given:
            found = self._reached(Pointer(variable, ()), steps, init)
            if isinstance(found, Variable) and found.type.is_integer and isinstance(value, Value) and value.poly:
                self.context.env[found] = value.poly

    def copy(self, to: Pointer, type_: CType, value: Any, node: Any) -> None:
        """`*to = value` of structures."""
        given = self._given(type_, value, node)
        if isinstance(value, c_ast.CompoundLiteral):  # it may read what is overwritten
            given = [(steps, self._named(v, node)) for steps, v in given]
        for steps, one in given:
            if isinstance(one, Pointer):
                message = f"this copies the pointer `{'.'.join(map(str, steps))}` from one structure to another"
                raise Refused("c-pointer", message, node, "copy the members that are numbers")
            self.put(self._reached(to, steps, node), one, node)

    def temporary(self, node: Any) -> Pointer:
        """The structure that a call or a literal is, with its members in `let`s."""
        if isinstance(node, c_ast.CompoundLiteral):
            type_ = self.context.type_of(node.type.type)
            return self.kept("t", type_, node.init, node)
        assert self.values.caller is not None
        return self.values.caller.structure(node)

    def named(self, name: str) -> str:
        """The name for the structure that is read now: that of the variable that gets it, if there is one."""
        wish, self.wish = self.wish, ""
        return wish or name

    def kept(self, name: str, type_: CType, value: Any, node: Any) -> Pointer:
        """A structure with the present values of another one."""
        kept = self.context.variable(name, type_, node, "local")
        if not type_.is_structure:
            raise Refused("c-pointer", f"`{type_.words}` is no structure", node)
        given = self._given(type_, value, node)
        for steps, one in given:
            self._keep(kept, steps, one, node)
        return Pointer(kept, ())

    def _keep(self, kept: Variable, steps: Steps, value: Value | Pointer, node: Any) -> None:
        member = self._member(kept, steps, node)
        if isinstance(value, Pointer) or value.poly is not None:
            self.context.env[member] = value if isinstance(value, Pointer) else value.poly or Poly.number(0)
            return
        value = self.values.to(value, self.context.element_of(member), node)
        self.context.lets[member] = self._named(value, node, member.label)

    def argument(self, variable: Variable, where: Pointer, fields: set[str] | None, node: Any) -> None:
        """Gives an argument the present values of a structure: of the members that the function names, or all."""
        for steps in self.steps(variable.type, node):
            if fields is None or steps[0] in fields:
                self._begin(variable, steps, self._read(where, steps, node), node)

    def _named(self, value: Any, node: Any, name: str = "t") -> Any:
        """A value in a `let`, unless it is a number or one already."""
        if isinstance(value, Pointer) or value.poly is not None:
            return value
        if isinstance(value.expr, tree.Number) or self._is_named(value) or value.own is None:
            return value
        return self.context.let(name, value, node)

    def _is_named(self, value: Value) -> bool:
        """Whether a value is a `let`, which nothing changes."""
        name = value.expr.name if isinstance(value.expr, tree.Ref) else ""
        return any(name in names for names in self.context.active)

    def _begin(self, variable: Variable, steps: Steps, value: Value | Pointer, node: Any) -> None:
        found = self._reached(Pointer(variable, ()), steps, node)
        if isinstance(found, Pointer):
            if isinstance(value, Pointer):
                raise Refused("c-pointer", "an array of pointers is not followed", node)
            self.put(found, value, node)
        elif isinstance(value, Pointer):
            self.context.env[found] = value
        elif found.type.is_integer and found.key not in self.context.learnt.data and value.poly is not None:
            self.context.env[found] = value.poly
        elif self.is_let(found) and value.own == found.type.base and self._is_named(value):
            self.context.lets[found] = value
        else:
            self.begin(found, value, node)

    def _member(self, variable: Variable, steps: Steps, node: Any) -> Variable:
        found = self._reached(Pointer(variable, ()), steps, node)
        if isinstance(found, Pointer):
            message = f"`{variable.name}` holds an array, and is passed as a value"
            raise Refused("c-pointer", message, node, "pass a pointer to it")
        return found

    def _within(self, variable: Variable) -> Iterator[Variable]:
        for member in self.context.members.get(variable, {}).values():
            yield member
            yield from self._within(member)

    # ---- values ----

    def _given(self, type_: CType, value: Any, node: Any) -> list[tuple[Steps, Value | Pointer]]:
        """The values of all members: of another structure, or from a list."""
        if isinstance(value, c_ast.CompoundLiteral):
            value = value.init
        if isinstance(value, c_ast.InitList):
            return list(self._listed(type_, value, ()))
        where = self.pointers.structure(value)
        own = where.inner or replace(where.array.type, dims=(), pointers=0)
        if own.structure is not type_.structure:
            raise Refused("c-type", f"this is no `{type_.words}`", value)
        return [(steps, self._read(where, steps, value)) for steps in self.steps(type_, node)]

    def _listed(self, type_: CType, given: Any, before: Steps) -> Iterator[tuple[Steps, Value | Pointer]]:
        """`{1, 2}` and `{.x = 1}`; what is not named is 0."""
        places = self._places(type_, given)
        found: dict[str | int, Any] = {}
        following = 0
        for one in given.exprs:
            expr = one
            if isinstance(one, c_ast.NamedInitializer):
                if len(one.name) != 1 or not isinstance(one.name[0], c_ast.ID) or one.name[0].name not in places:
                    raise Refused("c-type", "this initial value is of no member", one)
                following, expr = places.index(one.name[0].name), one.expr
            if following >= len(places):
                raise Refused("c-type", "there are more initial values than members", one)
            found[places[following]] = expr
            following += 1
        for place in places:
            inner = member_type(type_, place, self.context) if isinstance(place, str) else type_.target
            assert inner is not None
            steps, expr = (*before, place), found.get(place)
            if inner.is_structure or (inner.dims and not inner.pointers):
                yield from self._inner(inner, expr, steps, given)
            elif inner.pointers:
                if expr is not None and not is_null(expr):
                    yield steps, self.pointers.pointer(expr)
            else:
                zero = Value("i32", None, None, Poly.number(0))
                yield steps, zero if expr is None else self.values.value(expr)

    def _inner(self, inner: CType, expr: Any, steps: Steps, given: Any) -> Iterator[tuple[Steps, Value | Pointer]]:
        """A member that is a structure or an array."""
        if expr is None or isinstance(expr, c_ast.InitList):
            yield from self._listed(inner, expr or c_ast.InitList([], given.coord), steps)
        elif inner.is_structure:
            for rest, value in self._given(inner, expr, given):
                yield (*steps, *rest), value
        else:
            raise Refused("c-type", "the values of this array need braces around them", expr, "write `{{1, 2}, 3}`")

    def _places(self, type_: CType, node: Any) -> list[str | int]:
        if type_.is_structure:
            return [decl.name for decl in type_.structure.decls]
        length = self.values.integer(type_.dims[0], "a dimension").value
        if length is None or length > _MOST_MEMBERS:
            raise Refused("c-type", "this array has too many initial values", node, "assign its elements in a loop")
        return list(range(length))

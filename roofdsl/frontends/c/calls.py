"""Calls of functions in the same file: they are inlined, statement by statement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pycparser import c_ast

from roofdsl.frontends.c.c_types import is_integer
from roofdsl.frontends.c.context import Context, Value
from roofdsl.frontends.c.given_values import number_of
from roofdsl.frontends.c.memory_calls import NAMES as MEMORY_CALLS
from roofdsl.frontends.c.statements import Statements
from roofdsl.frontends.c.values import Values
from roofdsl.frontends.c.variables import Pointer, Variable, assigned_names, base_name, parameters, walk
from roofdsl.frontends.refuse import Refused
from roofdsl.lang import tree

MAX_DEPTH = 16
_EFFECTS = (c_ast.FuncCall, c_ast.Assignment, c_ast.UnaryOp)


class Calls:
    """Inlines functions."""

    def __init__(self, context: Context, values: Values, statements: Statements) -> None:
        self.context, self.values, self.statements = context, values, statements

    def statement(self, node: Any) -> None:
        """A call as a statement."""
        function = self._function(node)
        with self._inside(node, function) as items:
            returns = bool(items) and isinstance(items[-1], c_ast.Return)
            self.statements.block(items[:-1] if returns else items)
            given = items[-1].expr if returns else None
            # the returned value is not used, but what it calls or changes has to be refused
            if given is not None and any(isinstance(p, _EFFECTS) for p in walk(given)):
                self.values.value(given)

    def value(self, node: Any) -> Value:
        """A call inside an expression. Raises Refused if the function changes what the expression may read."""
        function = self._function(node)
        self._pure(function, node)
        type_ = self.context.type_of(function.decl.type.type)
        if not type_.is_plain or type_.base in ("void", "other"):
            raise Refused("c-call", f"`{function.decl.name}` returns no number", node)
        with self._inside(node, function) as items:
            if not items or not isinstance(items[-1], c_ast.Return) or items[-1].expr is None:
                message = f"`{function.decl.name}` does not end in `return` with a value"
                raise Refused("c-call", message, node, "write one `return` at its end, and `c ? a : b` for a choice")
            self.statements.block(items[:-1])
            value = self.values.value(items[-1].expr)
            if value.own not in (None, type_.base) or (is_integer(type_.base) and value.poly is None):
                message = f"`{function.decl.name}` converts its result to another type"
                raise Refused("c-type", message, items[-1], "return a value of the function's own type")
            if len(items) > 1 and value.poly is None and not isinstance(value.expr, tree.Number):
                value = self.context.let(function.decl.name, value, node)  # another call may use its variables again
            if value.poly is None:
                return Value(type_.base, value.own, value.expr)
            if not is_integer(type_.base):
                return self.values.cast(value, type_.base, items[-1])
            self.statements.assignments.integer(f"{function.decl.name}()", type_.base, value.poly, items[-1])
            return Value(type_.base, None, None, value.poly)

    def structure(self, node: Any) -> Pointer:
        """A call whose result is a structure. Raises Refused as `value` does."""
        name = node.name.name if isinstance(node.name, c_ast.ID) else ""
        if name not in self.context.program.functions:
            raise Refused("c-call", f"the function `{name}` is not known", node, "define it in the same file")
        wish = self.statements.structures.named(name)
        function = self._function(node)
        self._pure(function, node)
        type_ = self.context.type_of(function.decl.type.type)
        with self._inside(node, function) as items:
            if not items or not isinstance(items[-1], c_ast.Return) or items[-1].expr is None:
                message = f"`{name}` does not end in `return` with a value"
                raise Refused("c-call", message, node, "write one `return` at its end")
            self.statements.block(items[:-1])
            return self.statements.structures.kept(wish, type_, items[-1].expr, node)

    def _function(self, node: Any) -> Any:
        name = node.name.name
        function = self.context.program.functions[name]
        if any(call.name.name == name for call in self.context.calls):
            raise Refused("c-call", f"`{name}` calls itself", node, "write the recursion as a loop")
        if len(self.context.calls) >= MAX_DEPTH:
            raise Refused("c-call", f"calls are nested deeper than {MAX_DEPTH}", node)
        return function

    def _pure(self, function: Any, node: Any) -> None:
        """Refuses a call inside an expression that changes what the expression may read."""
        if name := self._changed(function):
            message = f"`{function.decl.name}` changes `{name}`, and stands inside an expression"
            raise Refused("c-effect", message, node, "call it as a statement of its own")

    def _changed(self, function: Any, seen: tuple[Any, ...] = ()) -> str:
        """The name of something outside a function that it may change, also by calls; empty if there is none."""
        types = {p.name: self.context.type_of(p.type) for p in walk(function.body) if isinstance(p, c_ast.Decl)}
        own = {name for name, type_ in types.items() if not type_.pointers}  # a pointer may point outside
        own |= {p.name for p in parameters(function) if self.context.type_of(p.type).is_plain}
        for part in walk(function.body):
            named = isinstance(part, c_ast.FuncCall) and isinstance(part.name, c_ast.ID)
            called = self.context.program.functions.get(part.name.name) if named else None
            if called is not None and called not in seen and (name := self._changed(called, (*seen, called))):
                return name
            target = part.lvalue if isinstance(part, c_ast.Assignment) else None
            if isinstance(part, c_ast.UnaryOp) and part.op in ("++", "--", "p++", "p--"):
                target = part.expr
            if named and part.name.name in MEMORY_CALLS and part.args is not None:
                target = part.args.exprs[0]
            if target is not None and base_name(target) not in own:
                return base_name(target) or "memory"
        return ""

    @contextmanager
    def _inside(self, node: Any, function: Any) -> Iterator[list[Any]]:
        """The scope of a function with its parameters bound; gives its statements."""
        context = self.context
        args = list(node.args.exprs) if node.args is not None else []
        declared = parameters(function)
        if len(args) != len(declared):
            raise Refused("c-call", f"`{function.decl.name}` takes {len(declared)} arguments, not {len(args)}", node)
        if any(name in assigned_names(function.body) for name in _followed_globals(context)):
            message = f"`{function.decl.name}` changes a variable of the file"
            raise Refused("c-call", message, node, "give results back by `return`, or in arrays")
        context.changing.append(assigned_names(function.body))
        bound = [self._bound(p, arg) for p, arg in zip(declared, args, strict=True)]
        context.calls.append(node)
        with context.scopes.function():
            try:
                for variable, state in bound:
                    context.scopes.declare(variable)
                    if variable.type.is_structure:
                        self._bind_structure(function, variable, state, node)
                    elif isinstance(state, Value) and state.poly is None:
                        self._bind_value(variable, state, node, _used_once(function, variable.name))
                    else:
                        context.env[variable] = state.poly if isinstance(state, Value) and state.poly else state
                for variable, _ in bound:
                    if not variable.type.is_plain:
                        self.statements.shape(variable, node)
                        self.values.pointers.fits(context.env[variable], variable.type, node)  # type: ignore[arg-type]
                yield list(function.body.block_items or ())
            finally:
                context.calls.pop()
                context.changing.pop()

    def _bound(self, declared: Any, arg: Any) -> tuple[Variable, Any]:
        type_ = self.context.type_of(declared.type)
        variable = self.context.variable(declared.name, type_, declared, "local")
        if not type_.is_plain:
            return variable, self.values.pointers.pointer(arg)
        if type_.is_structure:
            return variable, self.values.pointers.structure(arg)
        value = self.values.value(arg)
        if type_.is_integer:
            value = self.values.index(arg) if value.poly is None else value
            if value.poly is None:
                message = f"the argument `{declared.name}` depends on data"
                raise Refused("c-index", message, arg, "give it loop variables and sizes")
            self.statements.assignments.integer(variable.name, type_.base, value.poly, arg)
            return variable, value
        if value.poly is not None:  # an integer becomes a floating-point number
            return variable, self.values.cast(value, type_.base, arg)
        return variable, value

    def _bind_structure(self, function: Any, variable: Variable, where: Pointer, node: Any) -> None:
        """A structure that is passed as a value: the present values of the members that the function names. A single
        structure, arrays in one, and one that is handed on are the caller's own, unless the function may change
        something.
        """
        self.context.env.pop(variable, None)
        changed = any(path.split(".")[0] == variable.name for path in assigned_names(function.body))
        pure = not changed and not self._changed(function)
        refs = [p for p in walk(function.body) if isinstance(p, c_ast.StructRef) and isinstance(p.name, c_ast.ID)]
        fields = {p.field.name for p in refs if p.name.name == variable.name}
        uses = sum(isinstance(p, c_ast.ID) and p.name == variable.name for p in walk(function.body))
        every = uses > sum(p.name.name == variable.name for p in refs)
        types = {d.name: self.context.type_of(d.type) for d in variable.type.structure.decls}
        scalars = all(types[f].is_plain and not types[f].is_structure for f in fields if f in types)
        if pure and (every or not scalars or not where.subscripts):
            self.context.env[variable] = where
            return
        self.statements.structures.declare(variable, None, node)
        self.statements.structures.argument(variable, where, None if every else fields, node)

    def _bind_value(self, variable: Variable, value: Value, node: Any, once: bool) -> None:
        """A floating-point argument. An argument that is used once, or that costs nothing to write twice, is inserted
        as it is.
        """
        changed = variable.name in self.context.changing[-1]
        shared = {n for v, n in self.context.declared.items() if v.place == "global" or not v.type.is_plain}
        changed = changed or (isinstance(value.expr, tree.Ref) and value.expr.name in shared)
        cheap = isinstance(value.expr, tree.Ref) or number_of(value) is not None or once
        if not changed and cheap and value.own in (None, variable.type.base):
            self.context.lets[variable] = Value(variable.type.base, value.own, value.expr)
            return
        self.context.env.pop(variable, None)
        self.statements.assignments.bind(variable, value, node)


def _used_once(function: Any, name: str) -> bool:
    """Whether a function is a single `return` that contains the name at most once."""
    items = list(function.body.block_items or ())
    uses = [p for p in walk(function.body) if isinstance(p, c_ast.ID) and p.name == name]
    return len(items) == 1 and isinstance(items[0], c_ast.Return) and len(uses) <= 1


def _followed_globals(context: Context) -> list[str]:
    """The integers and pointers of the file: their values are followed only in the analyzed function."""
    of_file = context.scopes.levels[0].items()
    return [name for name, v in of_file if v.type.pointers or (v.type.is_plain and v.type.is_integer)]

"""One function, or the region marked in it, as the tree of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pycparser import c_ast

from roofdsl.frontends.assumptions import names_in
from roofdsl.frontends.c.blocks import assumed, need_whole_steps
from roofdsl.frontends.c.c_types import CType, element
from roofdsl.frontends.c.calls import Calls
from roofdsl.frontends.c.context import Again, Context, Learnt, Program, Split, Unit, Value
from roofdsl.frontends.c.declarations import declarations, first_intents
from roofdsl.frontends.c.given_values import Given, give
from roofdsl.frontends.c.pointers import Peel
from roofdsl.frontends.c.rows import require_rows_kept
from roofdsl.frontends.c.scop_region import Region, outside, targets_of_globals
from roofdsl.frontends.c.statements import Statements
from roofdsl.frontends.c.values import NeedsData, Values
from roofdsl.frontends.c.variables import Variable, assigned_names, parameters
from roofdsl.frontends.free_names import free_name
from roofdsl.frontends.inferred_intents import read_first
from roofdsl.frontends.poly import Poly
from roofdsl.frontends.refuse import Refused
from roofdsl.lang import tree
from roofdsl.lang.format_text import expression
from roofdsl.lang.record import Record
from roofdsl.lang.source import Span
from roofdsl.reading_options import current

_MOST_RUNS = 200
_LARGE = str(2**20)
"""A size that only assertions such as `lda >= m` and `lda % 8 == 0` mention, where the function is called."""


class Reading(Record):
    """A kernel, and the variables of its names: arrays and scalars, and parameters, by their names.

    result: the name of the returned value; empty if nothing is returned, or if it is not a number of the kernel. notes:
    which element of each structure is which member, and the numbers given for arguments. given: these numbers, and
    numbers for sizes that only an assertion mentions.
    """

    kernel: tree.Kernel
    program: Program
    region: Region
    names: tuple[tuple[str, Variable], ...]
    parameters: tuple[tuple[str, Variable], ...]
    result: str
    notes: tuple[str, ...]
    given: tuple[tuple[str, str], ...]


def reading(program: Program, region: Region, spans: Callable[[Any], Span]) -> Reading:
    """The kernel of a function. Raises Refused for unsupported code."""
    learnt = Learnt()
    for _ in range(_MOST_RUNS):
        try:
            return _Run(program, region, learnt, spans).reading()
        except Again:
            continue
    message = f"the types and sizes in this function are not all known after reading it {_MOST_RUNS} times"
    raise Refused("c-statement", message, region.function, "split it into smaller functions")


def members(name: str, unit: Unit) -> str:
    """Which element of a structure is which member: `members of p: 0-2 pos, 3 mass`."""
    parts = [f"{first} {field}" if first == last else f"{first}-{last} {field}" for field, first, last in unit.fields]
    return f"members of {name}: {', '.join(parts)}"


class _Run:
    def __init__(self, program: Program, region: Region, learnt: Learnt, spans: Callable[[Any], Span]) -> None:
        self.region = region
        self.context = context = Context(program, learnt, spans)
        self.values = Values(context)
        self.statements = Statements(context, self.values)
        self.values.caller = Calls(context, self.values, self.statements)
        self.given = Given({})
        self.results: set[Variable] = set()
        self.returned: Variable | None = None

    def reading(self) -> Reading:
        context = self.context
        kernel = self._kernel()
        used = {name.text for d in kernel.body if isinstance(d, tree.Declaration) for g in d.groups for name in g.names}
        names = tuple((name, v) for v, name in context.declared.items() if name in used)
        kept = {p.name.text for p in kernel.parameters}
        sizes = [(next(iter(p.names)), v) for v, p in context.sizes.items()]
        parameters = tuple((name, v) for name, v in sizes if name in kept)
        unread = {v.name: _LARGE for name, v in sizes if name not in kept}
        result = context.declared.get(self.returned, "") if self.returned is not None else ""
        units = [(name, context.units[v]) for name, v in names if v in context.units]
        notes = [*filter(None, [self.given.note]), *(members(name, unit) for name, unit in units if unit.count > 1)]
        given = tuple((unread | self.given.numbers).items())
        return Reading(kernel, context.program, self.region, names, parameters, result, tuple(notes), given)

    def _kernel(self) -> tree.Kernel:
        context, region = self.context, self.region
        function = region.function
        context.changing.append(assigned_names(function.body))
        self._enumerators()
        for node in context.program.globals:
            variable = context.variable(node.name, context.type_of(node.type), node, "global")
            context.scopes.levels[0][node.name] = variable
            self._global(variable, node)
        targets_of_globals(context)
        context.scopes.levels.append({})
        for node in parameters(function):
            variable = context.variable(node.name, context.type_of(node.type), node, "parameter")
            context.scopes.declare(variable)
        arguments = list(context.scopes.levels[-1].values())
        self.given = give(context, arguments, dict(current().values))
        for variable in arguments:
            if not variable.type.is_plain:
                self.statements.shape(variable, variable.node)
        outside(region, context, self.statements)
        items = list(region.items)
        given = items.pop() if not region.marked and items and isinstance(items[-1], c_ast.Return) else None
        try:
            self.statements.block(items)
            if given is not None and given.expr is not None:
                self._result(given)
        except NeedsData as need:
            raise self.values.learn_data(need) from None
        except Split as split:
            message = f"the returned value depends on whether `{expression(split.condition.written)}`"
            raise Refused("c-condition", message, given, "return a number that is computed from arrays") from None
        except Peel as peel:
            message = f"`{peel.variable.name}` still has its value from the iteration before"
            raise Refused("c-loop", message, peel.loop) from None
        if not context.out:
            raise Refused("c-statement", "nothing is computed or stored here", function.decl)
        need_whole_steps(context)
        first, otherwise = first_intents(context, self._needed())
        name = free_name(function.decl.name, set())
        head = context.spans(function.decl)
        whole = Span(head.line, head.column, max(head.end_line, *(i.span.end_line for i in context.out)), 1)

        indices = self.values.pointers.indices

        def made(intents: dict[Variable, str]) -> tree.Kernel:
            lines = declarations(context, intents, indices)
            rising = indices.rising(intents)
            body = (*assumed(context, (*lines, *rising, *context.out)), *lines, *rising, *context.out)
            return tree.Kernel(tree.Name(name, head), self._parameters(body), body, whole)

        kept = read_first(made(first), {context.declared[v]: v for v in otherwise})
        whole_kernel = made(first | {v: otherwise[v] for v in kept})
        require_rows_kept(context, whole_kernel)
        return whole_kernel

    def _parameters(self, body: Sequence[tree.Item]) -> tuple[tree.Parameter, ...]:
        """The parameters in the order of the signature, without those that only an `assert` mentions."""
        context, places = self.context, {p.name: k for k, p in enumerate(parameters(self.region.function))}
        roots = {next(iter(size.names)): variable.root.name for variable, size in context.sizes.items()}
        order = {name: places.get(roots.get(name, name), len(places)) for name in context.parameters}
        unread = context.only_asserted - names_in(body)
        wanted = sorted((n for n in context.parameters if n not in unread), key=lambda n: order.get(n, len(order)))
        return tuple(
            tree.Parameter(tree.Name(n, context.parameters[n]), None, False, context.parameters[n]) for n in wanted
        )

    def _enumerators(self) -> None:
        """Names of `enum`s: each is a number, one more than the one before unless a value is given."""
        context = self.context
        for node in context.program.enums:
            following = Poly.number(0)
            for one in node.values.enumerators if node.values is not None else ():
                value = following if one.value is None else self.values.integer(one.value, "an enumerator")
                variable = context.variable(one.name, CType("i32", "int", const=True), one, "global")
                context.scopes.levels[0][one.name] = variable
                context.env[variable] = value
                following = value + 1

    def _global(self, variable: Variable, node: Any) -> None:
        """A variable of the file: notes the value of a constant integer, and the dimensions of an array."""
        if variable.type.is_plain and variable.type.is_integer and variable.type.const and node.init is not None:
            value = self.values.value(node.init)
            if value.poly is not None:
                self.context.env[variable] = value.poly
        elif variable.type.is_structure and variable.type.const and isinstance(node.init, c_ast.InitList):
            self.statements.structures.constants(variable, node.init)
        elif not variable.type.is_plain:
            self.statements.shape(variable, node)

    def _needed(self) -> set[Variable]:
        """The scalars whose values are used after the region."""
        found = set(self.results)
        for name in self.region.after:
            variable = self.context.scopes.find(name)
            if variable is not None:
                found.add(variable)
        return found

    def _result(self, given: Any) -> None:
        """`return value;` at the end: an `out` scalar of the kernel."""
        context = self.context
        expr = given.expr
        if isinstance(expr, c_ast.ID):
            variable = context.scopes.find(expr.name)
            returned = context.type_of(self.region.function.decl.type.type).base
            if (
                variable is not None and variable.type.is_plain and variable in context.declared
                and variable.type.base == returned
            ):  # fmt: skip
                self.results.add(variable)
                self.returned = variable
                return
        value = self.values.value(expr)
        type_ = context.type_of(self.region.function.decl.type.type)
        if value.poly is not None:
            return
        result = context.variable("result", type_, given, "local")
        self.values.to(value, element(type_, given, "result"), given)
        span = context.spans(given)
        target = tree.Ref(context.top_name(result), span)
        assert isinstance(value, Value)
        context.emit(tree.Assign(target, "=", value.written(span), span), given)
        self.results.add(result)
        self.returned = result

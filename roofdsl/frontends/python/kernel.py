"""One function as the tree of a kernel."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from roofdsl.frontends.assumptions import assumption, names_in
from roofdsl.frontends.free_names import free_name
from roofdsl.frontends.fusion import fused
from roofdsl.frontends.inferred_intents import read_first
from roofdsl.frontends.python.context import Again, Context, Frame, Learnt, Module, arguments_of, storage
from roofdsl.frontends.python.signature import Given, Signature
from roofdsl.frontends.python.statements import Statements
from roofdsl.frontends.python.user_functions import Argument, Reading, Returned
from roofdsl.frontends.python.values import ONE, ZERO, Buffer, Constant, Items, View
from roofdsl.frontends.refuse import Refused
from roofdsl.frontends.uses import Use, uses
from roofdsl.lang import tree
from roofdsl.lang.source import Span

INTENTS = ("in", "inout", "out", "temp")
_MOST_RUNS = 200


def kernel(module: Module, function: ast.FunctionDef, shapes: Mapping[str, Given], *, fuse: bool = False) -> Reading:
    """The kernel of a function; `fuse`: with its loops fused. Raises Refused for unsupported code."""
    learnt = Learnt()
    for _ in range(_MOST_RUNS):
        try:
            return _Run(module, function, shapes, learnt).reading(fuse)
        except Again:
            continue
    message = f"the types and sizes in this function are not all known after reading it {_MOST_RUNS} times"
    raise Refused("py-statement", message, function, "split it into smaller functions")


class _Run:
    def __init__(self, module: Module, function: ast.FunctionDef, shapes: Mapping[str, Given], learnt: Learnt) -> None:
        self.function = function
        self.context = Context(module, learnt, _words(module))
        self.context.frames.append(Frame(function, ()))
        self.shapes = shapes
        self.returned: list[Returned] = []

    def reading(self, fuse: bool) -> Reading:
        context, function = self.context, self.function
        Signature(context, function, self.shapes).bind()
        statements = Statements(context)
        statements.plain(function)
        found = statements.body(function)
        self._results(found, statements)
        if not context.out:
            context.refuse("py-statement", "nothing is computed or stored here", function)
        made = self._kernel(fuse)
        arguments = tuple(map(self._argument, arguments_of(function)))
        return Reading(function.name, made, arguments, tuple(self.returned), context.exact)

    def _argument(self, arg: ast.arg) -> Argument:
        buffer = self.context.buffers.get(("argument", arg.arg))
        if buffer is None:
            equal = self.context.learnt.equal.get(arg.arg)
            return Argument(arg.arg, "size", value=None if equal is None else equal.value)
        kind = "array" if buffer.dims else "number" if buffer.weak else "scalar"
        return Argument(arg.arg, kind, buffer.name, dims=buffer.dims, type=storage(buffer))

    # ---- what is returned ----

    def _results(self, found: Any, statements: Statements) -> None:
        for k, value in enumerate(found.values if isinstance(found, Items) else (found,)):
            if isinstance(value, Constant) and value.value is None:
                self.returned.append(Returned(None))
                continue
            self._result(value, k, statements)

    def _result(self, found: Any, k: int, statements: Statements) -> None:
        context = self.context
        node = self.function.body[-1]
        if isinstance(found, Items | Constant):
            context.refuse("py-type", "this is not returned by a kernel", node, "return arrays and numbers")
        value = statements.expressions.arithmetic.value(found, node)
        view = value.view
        if view is None or (not view.buffer.dims and view.buffer.place == "argument"):
            if value.is_scalar:
                buffer = context.buffer(("result", k), "result", value.type, (), node)
                written = statements.expressions.nests.written(value, value.at(()), node)
                context.assign(buffer, (), "=", written, node)
                view = View(buffer, (), ())
            else:
                value = statements.expressions.nests.materialized(value, node, "result", ("result", k))
                view = value.view
        assert view is not None
        if view.buffer.place == "local":
            view.buffer.place = "result"
        self.returned.append(_returned(view))

    # ---- declarations ----

    def _fuse(self) -> None:
        """Fuses loops; temporaries that become scalars lose their dimensions."""
        context, used = self.context, uses(self.context.out)
        own = [b for b in context.buffers.values() if b.name in used]
        temporaries = {b.name: storage(b) for b in own if b.place == "local" and b.dims}
        found = fused(context.out, temporaries, {b.name: storage(b) for b in own})
        context.out = list(found.items)
        for buffer in own:
            if buffer.name in found.scalars:
                buffer.dims = ()
        context.buffers = {k: b for k, b in context.buffers.items() if b.name not in found.lets}

    def _kernel(self, fuse: bool) -> tree.Kernel:
        context, function = self.context, self.function
        head = context.span(function)
        end = max(head.end_line, *(item.span.end_line for item in context.out))
        whole = Span(head.line, head.column, end, 1)
        used = uses(context.out)
        unused = {k for k, b in context.buffers.items() if b.name not in used and b.place != "argument"}
        if unused - context.learnt.unused:
            context.learnt.unused |= unused  # their names are free for others
            raise Again
        if fuse:
            self._fuse()
            used = uses(context.out)
        first, otherwise = self._intents(used)
        spans = {b: context.span(b.node) for b in first}
        name = free_name(function.name, set())

        def made(intents: Mapping[Buffer, str]) -> tree.Kernel:
            lines = self._declarations(intents, spans)
            used_names = names_in((*lines, *context.out)) | {n for p in context.assumed for n in p.names}
            used_names |= {n for pair in context.learnt.whole_steps for p in pair for n in p.names}
            parameters = tuple(
                tree.Parameter(tree.Name(n, context.span(node)), None, False, context.span(node))
                for n, node in context.parameters.items()
                if n in used_names
            )
            assumed = assumption(context.assumed, context.learnt.whole_steps, context.span)
            body = (*assumed, *lines, *context.out)
            return tree.Kernel(tree.Name(name, head), parameters, body, whole)

        kept = read_first(made(first), {b.name: b for b in otherwise})
        return made(first | {b: otherwise[b] for b in kept})

    def _intents(self, used: Mapping[str, Use]) -> tuple[dict[Buffer, str], dict[Buffer, str]]:
        """The intents of arrays and scalars; and the one of those that are read, too, if that turns out to happen
        before they are written.
        """
        first: dict[Buffer, str] = {}
        otherwise: dict[Buffer, str] = {}
        for buffer in self.context.buffers.values():
            use = used.get(buffer.name)
            if use is None:
                continue
            if buffer.place != "argument":
                if not (use.assigned or use.updated):
                    message = f"`{buffer.name}` is read, and nothing has been stored in it"
                    self.context.refuse("py-name", message, buffer.node, "give it values, as `np.zeros` does")
                first[buffer] = "out" if buffer.place == "result" else "temp"
            elif use.assigned:
                first[buffer] = "out"
                if use.read or use.updated:
                    otherwise[buffer] = "inout"
            else:  # `x += 1` alone reads what the caller gives
                first[buffer] = "inout" if use.updated else "in"
        return first, otherwise

    def _declarations(self, intents: Mapping[Buffer, str], spans: Mapping[Buffer, Span]) -> list[tree.Item]:
        found: list[tree.Item] = []
        for intent in INTENTS:
            groups: dict[object, tree.Declared] = {}
            for buffer in intents:
                if intents[buffer] != intent:
                    continue
                span = spans[buffer]
                name, type_ = tree.Name(buffer.name, span), tree.Name(storage(buffer), span)
                dims = tuple(d.tree(span) for d in buffer.dims)
                names = groups[type_, dims].names if (type_, dims) in groups else ()
                groups[type_, dims] = tree.Declared((*names, name), type_, dims, False, span)
            if groups:
                found.append(tree.Declaration(intent, tuple(groups.values()), next(iter(groups.values())).span))
        return found


def _returned(view: View) -> Returned:
    axes: list[int] = []
    for a, dim in zip(view.axes, view.buffer.dims, strict=True):
        if a.axis is None or a.start != ZERO or a.step != ONE or view.shape[a.axis] != dim:
            return Returned(None)
        axes.append(a.axis)
    return Returned(view.buffer.name, (*axes, *(k for k in range(len(view.shape)) if k not in axes)))


def _words(module: Module) -> set[str]:
    """The names that the functions of a file use for anything but loop counters."""
    found: set[str] = set()
    for function in module.functions.values():
        counters = {n.id for f in ast.walk(function) if isinstance(f, ast.For) for n in ast.walk(f.target)
                    if isinstance(n, ast.Name)}  # fmt: skip
        found |= {a.arg for a in arguments_of(function)}
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id not in counters:
                found.add(node.id)
    return found

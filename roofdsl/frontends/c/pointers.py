"""Elements and pointers: every access is of a known array with known subscripts, or is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pycparser import c_ast

from roofdsl.frontends.assumptions import at_least
from roofdsl.frontends.c.c_types import CType, element
from roofdsl.frontends.c.context import Access, Context, Value
from roofdsl.frontends.c.variables import Pointer, Unknown, Variable, Wrapped
from roofdsl.frontends.linear import rows_need, steps_for_rows, subscripts_of
from roofdsl.frontends.poly import Poly
from roofdsl.frontends.refuse import Refused
from roofdsl.lang import tree
from roofdsl.lang.format_text import expression
from roofdsl.lang.source import Span

_ROWS = "declare a two-dimensional array, `double A[n][m]`, or one block of memory with `A[i*m + j]`"
_NOWHERE = Span(1, 1, 1, 1)


class Peel(Exception):
    """A value comes from the previous iteration, so the first iteration of `loop` has to be written separately."""

    def __init__(self, loop: Any, variable: Variable) -> None:
        self.loop, self.variable = loop, variable


def step_inside(node: Any) -> Refused:
    """A `++` or `--` inside an expression."""
    message = f"`{node.op[-2:]}` inside an expression is a side effect"
    return Refused("c-effect", message, node, "write it as a statement of its own")


def member(node: Any) -> Refused:
    """A member of a structure, read or assigned."""
    return Refused("c-pointer", "members of structures are not supported", node, "use arrays and scalars")


class Pointers:
    """Reads lvalues and pointers. `integer` gives the value of a subscript."""

    def __init__(self, context: Context, integer: Callable[[Any, str], Poly]) -> None:
        self.context, self.integer = context, integer

    # ---- what an expression points at ----

    def is_pointer(self, node: Any) -> bool:
        """Whether an expression is a pointer or an array, from its form and the types of its names."""
        match node:
            case c_ast.ID():
                variable = self.context.scopes.find(node.name)
                return variable is not None and not variable.type.is_plain
            case c_ast.BinaryOp(op="+" | "-"):
                return self.is_pointer(node.left) or self.is_pointer(node.right)
            case c_ast.UnaryOp(op="&"):
                return True
            case c_ast.UnaryOp(op="*") | c_ast.ArrayRef():
                inner = node.expr if isinstance(node, c_ast.UnaryOp) else node.name
                return self.is_pointer(inner) and self._levels(inner) > 1
            case c_ast.Cast():
                return not self.context.type_of(node.to_type.type).is_plain
            case _:
                return False

    def _levels(self, node: Any) -> int:
        """The number of subscripts that an expression still takes."""
        match node:
            case c_ast.ID():
                variable = self.context.scopes.find(node.name)
                return 0 if variable is None else len(variable.type.dims) + variable.type.pointers
            case c_ast.BinaryOp():
                return max(self._levels(node.left), self._levels(node.right))
            case c_ast.UnaryOp(op="&"):
                return self._levels(node.expr) + 1
            case c_ast.UnaryOp(op="*"):
                return self._levels(node.expr) - 1
            case c_ast.ArrayRef():
                return self._levels(node.name) - 1
            case c_ast.Cast():
                type_ = self.context.type_of(node.to_type.type)
                return len(type_.dims) + type_.pointers
            case _:
                return 0

    def pointer(self, node: Any) -> Pointer:
        """The array and the subscripts that an expression points at. Raises Refused if that is not known."""
        match node:
            case c_ast.ID():
                return self._named(node)
            case c_ast.BinaryOp(op="+" | "-" as op):
                if op == "+" and self.is_pointer(node.right):
                    return self.pointer(node.right).moved(self.integer(node.left, "an offset"))
                if self.is_pointer(node.right):
                    raise Refused("c-pointer", "a difference of pointers is not followed", node, "use integers")
                by = self.integer(node.right, "an offset")
                return self.pointer(node.left).moved(by if op == "+" else -by)
            case c_ast.UnaryOp(op="&"):
                if not isinstance(node.expr, c_ast.ArrayRef):
                    message = "the address of a variable is not followed"
                    raise Refused("c-pointer", message, node, "use the variable itself")
                return self._at(node.expr)
            case c_ast.UnaryOp(op="*") | c_ast.ArrayRef():
                found = self._at(node)
                return Pointer(found.array, (*found.subscripts, Poly.number(0)))
            case c_ast.Cast():
                return self._cast(node)
            case c_ast.UnaryOp(op="++" | "--" | "p++" | "p--"):
                raise step_inside(node)
            case _:
                help = "point at an array's element, such as `p = a + k`"
                raise Refused("c-pointer", "what this points at is not known", node, help)

    def _named(self, node: Any) -> Pointer:
        variable = self.context.scopes.find(node.name)
        if variable is None:
            raise Refused("c-name", f"`{node.name}` is not declared", node)
        if variable.type.pointers > 1:
            message = f"`{node.name}` is a pointer to pointers, whose rows may lie anywhere"
            raise Refused("c-pointer", message, node, _ROWS)
        if variable.type.base in ("other", "void"):
            message = f"`{node.name}` points at `{variable.type.words}`, which is not supported"
            raise Refused("c-pointer", message, node, "use arrays of numbers")
        state = self.context.state(variable)
        if isinstance(state, Wrapped):
            raise Peel(state.loop, variable)
        if isinstance(state, Unknown):
            message = f"what `{node.name}` points at is not known: {state.why}"
            raise Refused("c-pointer", message, node, "use the array itself with a subscript")
        if not isinstance(state, Pointer):
            raise Refused("c-pointer", f"`{node.name}` is not a pointer", node)
        return state

    def _cast(self, node: Any) -> Pointer:
        found = self.pointer(node.expr)
        to = self.context.type_of(node.to_type.type)
        self.fits(found, to, node)
        return found

    def fits(self, found: Pointer, to: CType, node: Any) -> None:
        """Checks that a pointer of type `to` reads an array as it is. Raises Refused."""
        array = found.array
        if to.base != array.type.base:
            message = f"this reads `{array.name}` of `{array.type.words}` as `{to.words}`"
            raise Refused("c-pointer", message, node, "read each array in its own type")
        rows = rank(array) - len(found.subscripts)
        if len(to.dims) + to.pointers != rows + 1:
            message = f"this reads `{array.name}` with another number of dimensions than it is declared with"
            raise Refused("c-pointer", message, node, "use the same dimensions everywhere")
        inner = to.dims if to.pointers else to.dims[1:]
        own = self.context.dims[array][rank(array) - rows :]
        for ours, theirs in zip(own, inner, strict=True):
            if ours is None or theirs is None or ours != self.integer(theirs, "a dimension"):
                message = f"this reads `{array.name}` with other dimensions than it is declared with"
                raise Refused("c-pointer", message, node, "use the same dimensions everywhere")

    def _at(self, node: Any) -> Pointer:
        """The target of `p[i]` or `*p`: an element, or a row if subscripts are missing."""
        if isinstance(node, c_ast.UnaryOp):
            found = self.pointer(node.expr)
        else:
            base, index = node.name, node.subscript
            if not self.is_pointer(base) and self.is_pointer(index):
                base, index = index, base
            if isinstance(base, c_ast.StructRef) or not self.is_pointer(base):
                raise Refused("c-pointer", "this is not an array", base, "use arrays of numbers, without structures")
            found = self.pointer(base).moved(self.integer(index, "a subscript"))
        if len(found.subscripts) > rank(found.array):
            raise Refused("c-pointer", f"`{found.array.name}` takes fewer subscripts", node)
        return found

    # ---- elements ----

    def element(self, node: Any) -> tuple[Variable, Value]:
        """The array and the value of `a[i]`, `a[i][j]`, `*p`."""
        found = self._at(node)
        array = found.array
        if len(found.subscripts) != rank(array):
            raise Refused("c-pointer", f"`{array.name}` takes more subscripts", node)
        type_ = element(array.type, node, array.name)
        context = self.context
        context.accesses.append(Access(array, found.subscripts, context.facts, node, bool(context.guarded)))
        span = context.spans(node)
        name = context.top_name(array)
        if array.key in context.learnt.single:
            return array, Value(type_, type_, tree.Ref(name, span))
        subscripts = found.subscripts
        inner = context.learnt.shapes.get(array.key)
        if inner is not None:
            split = subscripts_of(subscripts[0], inner, context.facts)
            if split is None:
                context.learn_whole_steps(steps_for_rows(subscripts[0], inner, context.facts), context.accesses[-1])
                dims = "".join(f"[{extent}]" for extent in ("?", *inner))
                message = f"nothing shows that this subscript stays within `{array.name}`, which is read as "
                message += f"`{array.name}{dims}` with an unknown number of rows"
                raise Refused("c-index", message, node, self._rows_help(subscripts[0], inner))
            subscripts = split
        index = tree.Index(tree.Name(name, span), tuple(s.tree(span) for s in subscripts), span)
        return array, Value(type_, type_, index)

    def _rows_help(self, subscript: Poly, inner: Sequence[Poly]) -> str:
        """What to write where rows may overlap: an assertion, if one about sizes suffices."""
        context = self.context
        least = rows_need(subscript, inner, context.facts)
        if least is None or not context.is_size(least):
            return "declare the array with its dimensions, `double A[n][m]`"
        return f"write `assert({expression(at_least(least, _NOWHERE))});` at the beginning of the function"


def rank(array: Variable) -> int:
    """The number of subscripts of an element of the array."""
    return len(array.type.dims) + array.type.pointers

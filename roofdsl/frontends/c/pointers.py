"""Elements and pointers: every access is of a known array with known subscripts, or is refused.

An array of structures has one more dimension, along which the members lie (`Pointers.field`, `layouts`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pycparser import c_ast

from roofdsl.frontends.assumptions import at_least
from roofdsl.frontends.c.c_types import CType, element, index_element
from roofdsl.frontends.c.context import Access, Again, Context, Unit, Value
from roofdsl.frontends.c.index_arrays import IndexArrays
from roofdsl.frontends.c.layouts import Layouts
from roofdsl.frontends.c.static_types import member_type, place_type
from roofdsl.frontends.c.variables import Pointer, Swapped, Unknown, Variable, Wrapped
from roofdsl.frontends.c.writing import word
from roofdsl.frontends.integer_facts import Facts
from roofdsl.frontends.linear import rows_need, steps_for_rows, subscripts_of
from roofdsl.frontends.poly import Poly, quotient
from roofdsl.frontends.refuse import Refused
from roofdsl.lang import tree
from roofdsl.lang.format_text import expression
from roofdsl.lang.record import replace
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


class Pointers:
    """Reads lvalues and pointers. `integer` gives the value of a subscript."""

    def __init__(self, context: Context, integer: Callable[[Any, str], Poly]) -> None:
        self.context, self.integer = context, integer
        self.layouts = Layouts(context, integer)
        self.indices = IndexArrays(context)
        self.temporary: Callable[[Any], Pointer] | None = None  # the structure that a call or a literal is

    # ---- what an expression points at ----

    def is_pointer(self, node: Any) -> bool:
        """Whether an expression is a pointer or an array, from its form and the types of its names."""
        found = place_type(node, self.context)
        return found is not None and not found.is_plain

    def pointer(self, node: Any) -> Pointer:
        """The array and the subscripts that an expression points at. Raises Refused if that is not known."""
        match node:
            case c_ast.ID():
                return self._named(node)
            case c_ast.BinaryOp(op="+" | "-" as op):
                if op == "+" and self.is_pointer(node.right):
                    return self._moved(self.pointer(node.right), self.integer(node.left, "an offset"), node)
                if self.is_pointer(node.right):
                    raise Refused("c-pointer", "a difference of pointers is not followed", node, "use integers")
                by = self.integer(node.right, "an offset")
                return self._moved(self.pointer(node.left), by if op == "+" else -by, node)
            case c_ast.UnaryOp(op="&"):
                return self._address(node)
            case c_ast.UnaryOp(op="*") | c_ast.ArrayRef():
                return self._first(self.place(node), node)
            case c_ast.StructRef():
                found = self.member(node)
                return self.state(found, node) if isinstance(found, Variable) else self._first(found, node)
            case c_ast.Cast():
                return self._cast(node)
            case c_ast.UnaryOp(op="++" | "--" | "p++" | "p--"):
                raise step_inside(node)
            case _:
                help = "point at an array's element, such as `p = a + k`"
                raise Refused("c-pointer", "what this points at is not known", node, help)

    def _address(self, node: Any) -> Pointer:
        """`&a[i]`, `&p[i].x`, and `&v` of a structure."""
        if isinstance(node.expr, c_ast.ArrayRef):
            return self.place(node.expr)
        found: Variable | Pointer | None = None
        if isinstance(node.expr, c_ast.StructRef):
            found = self.member(node.expr)
        elif isinstance(node.expr, c_ast.ID):
            found = self.context.scopes.find(node.expr.name)
        if isinstance(found, Pointer):
            return found
        if found is not None and found.type.is_structure:
            return self.whole(found)
        raise Refused("c-pointer", "the address of a variable is not followed", node, "use the variable itself")

    def _first(self, found: Pointer, node: Any) -> Pointer:
        """The pointer to its first element that an array becomes."""
        if found.inner is None:
            return Pointer(found.array, (*found.subscripts, Poly.number(0)))
        if found.inner.pointers or found.inner.target is None:
            message = f"this is a pointer inside `{found.array.name}`, and may point anywhere"
            raise Refused("c-pointer", message, node, "use arrays of numbers, without pointers in their elements")
        return self._inside(found.array, found.subscripts, found.inner.target, node)

    def _inside(self, array: Variable, subscripts: tuple[Poly, ...], type_: CType, node: Any) -> Pointer:
        """A place inside an element that is a structure, whose last subscript is in bytes."""
        return Pointer(array, subscripts, type_, self.layouts.size(type_, node))

    def _named(self, node: Any) -> Pointer:
        variable = self.context.scopes.find(node.name)
        if variable is None:
            raise Refused("c-name", f"`{node.name}` is not declared", node)
        return self.state(variable, node)

    def state(self, variable: Variable, node: Any) -> Pointer:
        """What a pointer or an array points at. Raises Refused if that is not known."""
        name = variable.name
        if variable.type.pointers > 1:
            message = f"`{name}` is a pointer to pointers, whose rows may lie anywhere"
            raise Refused("c-pointer", message, node, _ROWS)
        if variable.type.base in ("other", "void"):
            message = f"`{name}` points at `{variable.type.words}`, which is not supported"
            raise Refused("c-pointer", message, node, "use arrays of numbers")
        state = self.context.state(variable)
        if isinstance(state, Wrapped):
            raise Peel(state.loop, variable)
        if isinstance(state, Unknown):
            message = f"what `{name}` points at is not known: {state.why}"
            help = "use the array itself with a subscript"
            if isinstance(state, Swapped):
                help = "write two steps in each iteration, from one array to the other and back, or copy with `memcpy`"
            raise Refused("c-pointer", message, node, help)
        if not isinstance(state, Pointer):
            raise Refused("c-pointer", f"`{name}` is not a pointer", node)
        return state

    def _cast(self, node: Any) -> Pointer:
        found = self.pointer(node.expr)
        to = self.context.type_of(node.to_type.type)
        self.fits(found, to, node)
        return found

    def fits(self, found: Pointer, to: CType, node: Any) -> None:
        """Checks that a pointer of type `to` reads an array as it is. Raises Refused."""
        array = found.array
        own_type = found.inner or array.type
        if to.base != own_type.base or to.structure is not own_type.structure:
            message = f"this reads `{array.name}` of `{own_type.words}` as `{to.words}`"
            raise Refused("c-pointer", message, node, "read each array in its own type")
        if found.inner is not None or not found.subscripts:
            self._fits_inside(found, to, node)
            return
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

    def _fits_inside(self, found: Pointer, to: CType, node: Any) -> None:
        """`fits` for a pointer to a whole structure, or into one."""
        dims = found.inner.dims if found.inner is not None else ()
        wanted = to.dims if to.pointers else to.dims[1:]
        same = len(dims) == len(wanted) and all(
            theirs is not None and self.integer(ours, "a dimension") == self.integer(theirs, "a dimension")
            for ours, theirs in zip(dims, wanted, strict=True)
        )
        if not same or to.pointers > 1:
            message = f"this reads `{found.array.name}` with other dimensions than it is declared with"
            raise Refused("c-pointer", message, node, "use the same dimensions everywhere")

    def place(self, node: Any) -> Pointer:
        """The target of `p[i]` or `*p`: an element, or a row if subscripts are missing."""
        if isinstance(node, c_ast.UnaryOp):
            found = self.pointer(node.expr)
        else:
            base, index = node.name, node.subscript
            if not self.is_pointer(base) and self.is_pointer(index):
                base, index = index, base
            if not self.is_pointer(base):
                if isinstance(base, c_ast.StructRef):
                    self.member(base)  # refuses members that do not exist
                raise Refused("c-pointer", "this is not an array", base, "use arrays of numbers")
            found = self._moved(self.pointer(base), self.integer(index, "a subscript"), node)
        if found.inner is None and len(found.subscripts) > rank(found.array):
            raise Refused("c-pointer", f"`{found.array.name}` takes fewer subscripts", node)
        return found

    def _moved(self, found: Pointer, by: Poly, node: Any) -> Pointer:
        if found.subscripts:
            self.indices.chosen(found, by)
            return found.moved(by)
        if by.value != 0:
            message = f"`{found.array.name}` is a single structure, and this lies beside it"
            raise Refused("c-pointer", message, node, "use an array of structures")
        return found

    # ---- structures ----

    def member(self, node: Any) -> Variable | Pointer:
        """What `v.x` or `p->x` denotes: a variable of its own for a single structure, otherwise a place in an array."""
        where = self.pointer(node.name) if node.type == "->" else self.structure(node.name)
        return self.field(where, node.field.name, node)

    def structure(self, node: Any) -> Pointer:
        """The structure that an expression denotes. Raises Refused if there is none."""
        found: Variable | Pointer | None = None
        match node:
            case c_ast.ID():
                found = self.context.scopes.find(node.name)
            case c_ast.ArrayRef() | c_ast.UnaryOp(op="*"):
                found = self.place(node)
            case c_ast.StructRef():
                found = self.member(node)
            case c_ast.FuncCall() | c_ast.CompoundLiteral() if self.temporary is not None:
                found = self.temporary(node)
        if isinstance(found, Variable):
            found = self.whole(found) if found.type.is_structure else None
        if found is None:
            type_ = place_type(node, self.context)
            words = "this" if type_ is None else f"`{type_.words}`"
            message = f"members of {words} are not read"
            raise Refused("c-pointer", message, node, "use structures, and pointers to structures")
        return found

    def whole(self, variable: Variable) -> Pointer:
        """The place of a single structure; that of an argument may be the caller's own."""
        found = self.context.env.get(variable)
        return found if isinstance(found, Pointer) else Pointer(variable, ())

    def owner(self, where: Pointer, node: Any) -> Variable | None:
        """The single structure, or the pointer to it, that a place is; None for an element of an array. Raises Again if
        a pointer turns out to point at several structures.
        """
        array, learnt = where.array, self.context.learnt
        if not where.subscripts:
            return array
        if array.type.base != "struct" or where.inner is not None or array.type.dims or array.key in learnt.arrays:
            return None
        if where.subscripts[0].value == 0:
            return array
        learnt.arrays.add(array.key)
        raise Again

    def field(self, where: Pointer, name: str, node: Any) -> Variable | Pointer:
        """A member of the structure at a place."""
        of = where.inner or replace(where.array.type, dims=(), pointers=0)
        complete = where.inner is not None or not where.subscripts or len(where.subscripts) == rank(where.array)
        if of.base != "struct" or not complete or (where.inner is not None and not where.inner.is_structure):
            message = f"members of `{of.words}` are not read"
            raise Refused("c-pointer", message, node, "use structures, and pointers to structures")
        type_ = member_type(of, name, self.context)
        if type_ is None:
            raise Refused("c-name", f"`{of.words}` has no member `{name}`", node)
        owner = self.owner(where, node)
        if owner is not None:
            return self._variable(owner, name, type_)
        offset = self.layouts.of(of).fields[name].offset
        if where.inner is None:
            return self._inside(where.array, (*where.subscripts, Poly.number(offset)), type_, node)
        return self._inside(where.array, where.at(where.subscripts[-1] + offset).subscripts, type_, node)

    def item(self, where: Pointer, k: int, node: Any) -> Pointer:
        """An element of an array that is a member."""
        if where.inner is None:
            return Pointer(where.array, (*where.subscripts, Poly.number(k)))
        assert where.inner.target is not None
        return self._inside(where.array, where.subscripts, where.inner.target, node).moved(Poly.number(k))

    def _variable(self, owner: Variable, name: str, type_: CType) -> Variable:
        variable = self.context.member(owner, name, type_)
        if not type_.is_plain and variable not in self.context.dims and type_.pointers < 2 and type_.base != "other":
            dims = [None if d is None else self.integer(d, "a dimension") for d in type_.dims]
            self.context.dims[variable] = (*[None] * type_.pointers, *dims)
        return variable

    def _unit(self, array: Variable, type_: CType, node: Any) -> int:
        """The bytes of the elements that an array of structures is read in, of type `type_` here. Raises Refused if it
        is read in another type elsewhere.
        """
        own = element(type_, node, array.name)
        size = self.layouts.size(type_, node)
        known = self.context.units.get(array)
        if known is None:
            whole = self.layouts.of(replace(array.type, dims=(), pointers=0))
            fields = tuple(
                (name, f.offset // size, (f.offset + self.layouts.size(f.type, node)) // size - 1)
                for name, f in whole.fields.items()
                if f.type.base in (type_.base, "struct") and not f.type.pointers
            )
            self.context.units[array] = Unit(own, whole.size // size, node, fields)
        elif known.type != own:
            first, second = word(known.type), word(own)
            message = (
                f"`{array.name}` is used for members of type {first} and of type {second}, which one array of the "
            )
            message += "language cannot hold"
            help = "read and write members of one type, or use an array for each member"
            raise Refused("c-type", message, node, help)
        return size

    # ---- elements ----

    def element(self, node: Any) -> tuple[Variable, Value]:
        """The array and the value of `a[i]`, `a[i][j]`, `*p`."""
        return self.access(self.place(node), node)

    def access(self, found: Pointer, node: Any) -> tuple[Variable, Value]:
        """The array and the value at a place."""
        array, subscripts = found.array, found.subscripts
        if array.type.base == "struct":
            self.owner(found, node)
        if (found.inner is None and len(subscripts) != rank(array)) or (
            found.inner is not None and not found.inner.is_plain
        ):
            raise Refused("c-pointer", f"`{array.name}` takes more subscripts", node)
        if (found.inner or replace(array.type, dims=(), pointers=0)).base == "struct":
            raise Refused(
                "c-pointer", "this is a whole structure, and a number is needed", node, "write a member of it"
            )
        context = self.context
        if found.inner is not None:
            size = self._unit(array, found.inner, node)
            within = (quotient("//", subscripts[-1], size),) if context.units[array].count > 1 else ()
            subscripts = (*subscripts[:-1], *within)
        own = found.inner or array.type
        indexing = context.indexing and own.is_integer and own.base != "u1"
        type_ = index_element(own) if indexing else element(own, node, array.name)
        context.accesses.append(Access(array, subscripts, context.facts, node, bool(context.guarded)))
        self._require_positive(subscripts, node)
        span = context.spans(node)
        name = context.top_name(array)
        if array.key in context.learnt.single:
            return array, Value(type_, type_, tree.Ref(name, span))
        inner = context.learnt.shapes.get(array.key)
        if inner is not None:
            split = subscripts_of(subscripts[0], inner, context.facts)
            if split is None:
                self.indices.within_rows(rows_need(subscripts[0], inner, context.facts))
                context.learn_whole_steps(steps_for_rows(subscripts[0], inner, context.facts), context.accesses[-1])
                dims = "".join(f"[{extent}]" for extent in ("?", *map(context.in_c, inner)))
                message = f"nothing shows that this subscript stays within `{array.name}`, which is read as "
                message += f"`{array.name}{dims}` with an unknown number of rows"
                raise Refused("c-index", message, node, self._rows_help(subscripts[0], inner))
            subscripts = (*split, *subscripts[1:])
        if indexing:
            return array, self.indices.element(array, subscripts, own.base, node)
        index = tree.Index(tree.Name(name, span), tuple(s.tree(span) for s in subscripts), span)
        return array, Value(type_, type_, index)

    def _require_positive(self, subscripts: Sequence[Poly], node: Any) -> None:
        """Refuses subscripts such as `col[k] - 1`, which may be negative."""
        facts = self.context.facts
        wrong = next((s for s in subscripts if s.entries and not facts.not_negative(s)), None)
        moving = {*(r.var for r in facts.ranges), *(wrong.entries if wrong is not None else ())}
        if wrong is not None and any(sum(a in moving for a in m) > 1 for m in wrong.terms):
            message = "this subscript multiplies an element of an index array by another one, or by a loop variable"
            raise Refused("c-index", message, node, "use an array with a subscript for each of them")
        if wrong is not None:
            message = f"nothing shows that the subscript `{wrong}` is not negative"
            help = "let indices count from 0, and keep what lies before such an element in an array of its own"
            raise Refused("c-index", message, node, help)

    def _rows_help(self, subscript: Poly, inner: Sequence[Poly]) -> str:
        """What to write where rows may overlap: an assertion, if one about sizes suffices."""
        context = self.context
        least = rows_need(subscript, inner, context.facts)
        if (
            least is None
            or not context.is_size(least)
            or Facts().not_negative(-least - 1)
            or least.names & {n for p in context.limits.values() for n in p.names}
        ):
            return "declare the array with its dimensions, `double A[n][m]`"
        return (
            f"write `assert({expression(at_least(context.in_c(least), _NOWHERE))});` at the beginning of the function"
        )


def rank(array: Variable) -> int:
    """The number of subscripts of an element of the array."""
    return len(array.type.dims) + array.type.pointers

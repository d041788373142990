"""Index arrays: elements of integer arrays in subscripts and loop bounds, as `rowptr` and `col` of a sparse matrix.

What their values are follows from their use. If a loop runs from `rowptr[i]` to `rowptr[i + 1]`, `rowptr` rises from 0
to a new parameter, `nnz`. In `x[col[k]]`, `col` holds subscripts of `x`: they are below the declared length of `x`, or
below a new parameter, `len_x`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pycparser import c_ast

from roofdsl.frontends.c.context import Again, Context, Limit, Value
from roofdsl.frontends.c.variables import Pointer, Variable, walk
from roofdsl.frontends.poly import Entry, Poly
from roofdsl.frontends.refuse import Refused
from roofdsl.lang import tree

_UNKNOWN = Poly.name("@most")
"""The greatest value of an index array before its use is known; nothing is known about this name."""


class IndexArrays:
    """Learns what the values of index arrays are, and writes it into the kernel."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.first: dict[Variable, Any] = {}  # index arrays, and where they are first read as such

    # ---- elements ----

    def element(self, array: Variable, subscripts: tuple[Poly, ...], type_: str, node: Any) -> Value:
        """An element as an integer."""
        if type_ in ("u8", "u16"):
            message = f"`{array.name}` holds indices in `{array.type.words}`, and the language has only signed types"
            raise Refused("c-type", message, node, "declare it as `int`, or as `short` if its values are below 32768")
        self.first.setdefault(array, node)
        limit = self.context.learnt.limits.get(array.key)
        most = _UNKNOWN if limit is None else self._limit(array, limit) - (1 if limit.kind == "chooses" else 0)
        return Value(type_, None, None, Poly.name(Entry(self.context.top_name(array), subscripts, most)))

    def chosen(self, where: Pointer, by: Poly) -> None:
        """Notes that `by` is added to the last subscript of `where`. Raises Again if that shows what its elements of
        index arrays choose from.
        """
        array, place = where.array, len(where.subscripts) - 1
        for entry in by.entries:
            index = self._array(entry)
            known = self.context.learnt.limits.get(index.key)
            alone = by == Poly.name(entry)
            declared = alone and self._declared(array.key, place) is not None
            if known is not None and not (declared and self._is_open(known)):
                continue
            of = ("subscript", array.key, place, array.label) if alone else ("index", index.key)
            self.context.learnt.limits[index.key] = Limit("chooses", of)
            raise Again

    def bounds(self, starts: Sequence[Poly], stops: Sequence[Poly]) -> None:
        """Notes the bounds of a loop. Raises Again if they show what the values of index arrays are."""
        learnt = self.context.learnt
        entries = [e for bound in (*starts, *stops) for e in bound.entries]
        rising = _consecutive(stops[0] - starts[0]) if len(starts) == len(stops) == 1 else ()
        for entry in entries:
            index, first = self._array(entry), self._array(entries[0])
            known = learnt.limits.get(index.key)
            kind = "rises" if entry in rising else "ends"
            if known is None or (kind == "rises" and known.kind != "rises"):
                counts = kind == "ends" and all(start.value is not None for start in starts)
                learnt.limits[index.key] = Limit(kind, ("count" if counts else "end", first.key))
                raise Again

    def offset(self, starts: Sequence[Poly], stops: Sequence[Poly]) -> Poly:
        """What to add to the counter of a loop: `rowptr[i]` if it runs from 0 to `rowptr[i + 1] - rowptr[i]`, since
        what is known of a rising array is about loops from one element to the next. Otherwise 0.
        """
        alone = len(starts) == len(stops) == 1 and starts[0].value == 0
        return Poly.name(found[0]) if alone and (found := _consecutive(stops[0])) else Poly({})

    def within_rows(self, missing: Poly | None) -> None:
        """Notes that `missing` has to be nonnegative for `a[i*m + k]` to stay in its row. Raises Again if that is a
        size minus what the end of the loop over k is known to be at most: the size is its limit then.
        """
        if missing is None:
            return
        context = self.context
        for of, top in context.limits.items():
            size = top + missing
            if of[0] == "count" and context.is_size(size) and not size.names & top.names:
                kept = {k: v for k, v in context.learnt.limits.items() if v == Limit("ends", of)}
                context.learnt.limits.update(dict.fromkeys(kept, Limit("ends", ("size", size))))
                if kept:
                    raise Again

    def learn(self, variable: Variable) -> None:
        """Raises Again if an integer that depends on data has not been read as an element of an index array yet."""
        learnt = self.context.learnt
        if variable.key not in learnt.indexed:
            learnt.indexed.add(variable.key)
            learnt.data.discard(variable.key)
            raise Again

    def learn_names(self, node: Any) -> None:
        """`learn` for the integers in an expression that are kept in the kernel as data."""
        for name in [p.name for p in walk(node) if isinstance(p, c_ast.ID)]:
            variable = self.context.scopes.find(name)
            if variable is not None and variable.key in self.context.learnt.data:
                self.learn(variable)

    def _array(self, entry: Entry) -> Variable:
        return next(v for v, name in self.context.declared.items() if name == entry.array)

    def _declared(self, key: object, place: int) -> Poly | None:
        """A dimension that an array is declared with."""
        dims = next((d for v, d in self.context.dims.items() if v.key == key), ())
        dim = dims[place] if place < len(dims) else None
        return dim if dim is not None and self.context.is_size(dim) else None

    def _is_open(self, limit: Limit) -> bool:
        """Whether an index array chooses from an array that is declared without its length."""
        match limit.of:
            case ("subscript", key, int(place), _):
                return self._declared(key, place) is None
            case _:
                return False

    def _limit(self, array: Variable, limit: Limit) -> Poly:
        """What an index array rises to, or is below: a declared dimension, or a parameter."""
        context = self.context
        match limit.of:
            case ("size", Poly() as size):
                return size
            case ("subscript", key, int(place), label):
                dim = self._declared(key, place)
                if dim is not None:
                    return dim
                wish = f"len_{label}"
            case ("end", _):
                wish = "nnz" if array.owner is None else f"{array.owner.label}_nnz"
            case ("count", _):
                wish = f"most_{array.label}"
            case _:
                wish = f"end_{array.label}"
        if limit.of not in context.limits:
            context.limits[limit.of] = context.new_parameter(wish, array.node)
        return context.limits[limit.of]

    # ---- the kernel ----

    def below(self, array: Variable) -> tree.Expr | None:
        """The `m` of `index(m)` in the declaration of an index array; None for one that rises and for other arrays."""
        limit = self.context.learnt.limits.get(array.key)
        if limit is None or limit.kind == "rises":
            return None
        top = self._limit(array, limit)
        return (top if limit.kind == "chooses" else top + 1).tree(self.context.spans(array.node))

    def rising(self, intents: Mapping[Variable, str]) -> list[tree.Item]:
        """`assume rowptr rises from 0 to nnz`. Raises Refused for index arrays that the kernel writes."""
        context = self.context
        found: list[tree.Item] = []
        for array, node in self.first.items():
            limit = context.learnt.limits.get(array.key)
            if intents.get(array, "in") != "in":
                message = f"`{array.name}` holds indices, which the function itself computes"
                raise Refused("c-index", message, node, "compute them in another function, and pass the array")
            if limit is not None and limit.kind == "rises" and array in intents:
                span = context.spans(array.node)
                ends = (tree.Number("0", 0, span), self._limit(array, limit).tree(span))
                found.append(tree.DataFact("rises", tree.Name(context.declared[array], span), ends, span))
        return found


def _consecutive(length: Poly) -> tuple[Entry, ...]:
    """The two entries that a number of iterations is the difference of, if one follows the other in a rising array."""
    plus = [m[0] for m, c in length.terms.items() if len(m) == 1 and c == 1]
    minus = [m[0] for m, c in length.terms.items() if len(m) == 1 and c == -1]
    match plus, minus:
        case [Entry(array, (stop,)) as b], [Entry(other, (start,)) as a] if len(length.terms) == 2 and array == other:
            return (a, b) if stop - start == Poly.number(1) else ()
        case _:
            return ()

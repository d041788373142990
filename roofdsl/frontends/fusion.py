"""What a compiler could do with statements: loops with the same bounds made one, temporaries kept in scalars.

Two nests share as many of their outermost loops as is safe: an array that one of them writes and both touch has, for
each of these loops, a dimension whose subscript is the same everywhere and moves with that loop alone. Iterations then
share no element with other iterations. A temporary array whose elements are used only in the iteration that stores them
becomes a scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from roofdsl.frontends.free_names import free_name
from roofdsl.lang import tree
from roofdsl.lang.format_text import expression
from roofdsl.lang.record import Record, replace


class Fused(Record):
    """The statements, and the temporary arrays that have become scalars and `let`s."""

    items: tuple[tree.Item, ...]
    scalars: frozenset[str]
    lets: frozenset[str]


def fused(items: Sequence[tree.Item], temporaries: Mapping[str, str], types: Mapping[str, str]) -> Fused:
    """The statements after fusion. temporaries: arrays that are not needed afterwards; types: of all arrays and
    scalars.
    """
    found = _block(items, types.keys())
    scalars: set[str] = set()
    lets: set[str] = set()
    for name, type_ in temporaries.items():
        own = _contracted(found, name, type_, types, _touches(found, name))
        if own is not None:
            found, is_scalar = own
            (scalars if is_scalar else lets).add(name)
    return Fused(tuple(found), frozenset(scalars), frozenset(lets))


# ---- what statements touch ----


def _parts(node: Any) -> Iterator[Any]:
    """Every node of a tree, the node itself first."""
    pending = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, tuple | list):
            pending += reversed(part)
        elif isinstance(part, Record):
            yield part
            pending += [getattr(part, f) for f in reversed(part.__match_args__) if f != "span"]


def _touches(node: Any, name: str) -> int:
    return sum(isinstance(p, tree.Index) and p.name.text == name for p in _parts(node))


class _Use:
    """Arrays with all their subscripts, scalars, and which of them are written."""

    def __init__(self, node: Any, names: Any) -> None:
        self.arrays: dict[str, list[tuple[tree.Expr, ...]]] = {}
        self.scalars: set[str] = set()
        self.written: set[str] = set()
        for p in _parts(node):
            match p:
                case tree.Index(name, subscripts):
                    self.arrays.setdefault(name.text, []).append(subscripts)
                case tree.Ref(name) if name in names:
                    self.scalars.add(name)
                case tree.Assign(target):
                    self.written.add(target.name if isinstance(target, tree.Ref) else target.name.text)


# ---- fusion ----


def _block(items: Sequence[tree.Item], names: Any) -> list[tree.Item]:
    """The statements of a block, loops fused from the first to the last and then inside."""
    out: list[tree.Item] = []
    for item in items:
        at = _partner(out, item, names) if isinstance(item, tree.For) else None
        joined = _joined(out[at], item, names) if at is not None else None
        if at is None or joined is None:
            out.append(item)
        else:
            out[at:] = [*out[at + 1 :], joined]  # statements in between move before both loops
    return [_inside(item, names) for item in out]


def _inside(item: tree.Item, names: Any) -> tree.Item:
    match item:
        case tree.For():
            body = _block(item.body, names)
            inner = body[0] if len(body) == 1 else None
            if isinstance(inner, tree.For) and inner.parallel == item.parallel:
                return tree.For((*item.clauses, *inner.clauses), item.parallel, inner.body, item.span)
            return replace(item, body=tuple(body))
        case tree.If(branches, orelse):
            ways = tuple(replace(b, body=tuple(_block(b.body, names))) for b in branches)
            return replace(item, branches=ways, orelse=tuple(_block(orelse, names)))
        case _:
            return item


def _partner(out: list[tree.Item], item: tree.For, names: Any) -> int | None:
    """The last loop, if everything after it may move before it."""
    at = next((k for k in range(len(out) - 1, -1, -1) if isinstance(out[k], tree.For)), None)
    if at is None:
        return None
    before = _Use(out[at], names)
    for between in out[at + 1 :]:
        if not isinstance(between, tree.Let | tree.Assign):
            return None
        use = _Use(between, names)
        touched = {*use.arrays, *use.scalars, *use.written}
        if touched & before.written or use.written & {*before.arrays, *before.scalars, *before.written}:
            return None
    return at


def _joined(first: tree.Item, second: tree.Item, names: Any) -> tree.For | None:
    """One loop made of two, fused over as many levels as is safe; None if there is none, or no array in common."""
    if not isinstance(first, tree.For) or not isinstance(second, tree.For) or first.parallel or second.parallel:
        return None
    used = {*_given(first), *_given(second), *names, *(p.name for p in _parts(first) if isinstance(p, tree.Ref))}
    fresh: dict[str, str] = {}
    for name in _given(second):
        fresh[name] = free_name(f"{name}_", {*used, *fresh.values()})
    for depth in range(_alike(first, second), 0, -1):
        own = [c.var.text for c in first.clauses[:depth]]
        same = dict(zip((c.var.text for c in second.clauses[:depth]), own, strict=True))
        mine = _rest(first, depth)
        visible = {*own, *(i.name.text for i in mine if isinstance(i, tree.Let))}
        # the second loop keeps its own names where those of the first are not visible
        mapping = {n: n if n not in visible else new for n, new in fresh.items()} | same
        theirs = _rest(_renamed(second, mapping), depth)
        if _is_safe(mine, theirs, own, names):
            return tree.For(first.clauses[:depth], False, (*mine, *theirs), first.span)
    return None


def _alike(first: tree.For, second: tree.For) -> int:
    """The number of outermost loops with the same bounds."""
    names: dict[str, str] = {}
    for count, (a, b) in enumerate(zip(first.clauses, second.clauses, strict=False)):
        if [expression(x) for x in a.args] != [expression(_renamed(x, names)) for x in b.args]:
            return count
        names[b.var.text] = a.var.text
    return min(len(first.clauses), len(second.clauses))


def _rest(loop: tree.For, depth: int) -> tuple[tree.Item, ...]:
    """What is inside the first `depth` loops."""
    if len(loop.clauses) == depth:
        return loop.body
    return (tree.For(loop.clauses[depth:], False, loop.body, loop.span),)


def _given(node: Any) -> list[str]:
    """The names that loops and `let`s introduce."""
    found = [p.var.text if isinstance(p, tree.Clause) else p.name.text for p in _parts(node)
             if isinstance(p, tree.Clause | tree.Let)]  # fmt: skip
    return list(dict.fromkeys(found))


def _renamed(node: Any, names: Mapping[str, str]) -> Any:
    """The node with other names for loops and `let`s."""
    match node:
        case tuple():
            return tuple(_renamed(part, names) for part in node)
        case tree.Ref(name, span):
            return tree.Ref(names.get(name, name), span)
        case tree.Clause(var, function, args, span):
            return tree.Clause(_renamed_name(var, names), function, _renamed(args, names), span)
        case tree.Let(name, value, span):
            return tree.Let(_renamed_name(name, names), _renamed(value, names), span)
        case tree.Name() | tree.Number():
            return node
        case Record():
            return _rebuilt(node, lambda part: _renamed(part, names))
        case _:
            return node


def _rebuilt(node: Record, change: Callable[[Any], Any]) -> Any:
    """A node with some of its parts changed."""
    parts = {f: getattr(node, f) for f in node.__match_args__}
    return type(node)(**{f: part if f == "span" else change(part) for f, part in parts.items()})


def _renamed_name(name: tree.Name, names: Mapping[str, str]) -> tree.Name:
    return tree.Name(names.get(name.text, name.text), name.span)


def _is_safe(mine: Any, theirs: Any, loops: Sequence[str], names: Any) -> bool:
    """Whether each iteration may execute both bodies, one after the other; and whether they have an array in common."""
    a, b = _Use(mine, names), _Use(theirs, names)
    written = a.written | b.written
    if written & (a.scalars | (a.written - a.arrays.keys())) & (b.scalars | (b.written - b.arrays.keys())):
        return False
    common = a.arrays.keys() & b.arrays.keys()
    return bool(common) and all(
        _is_own(a.arrays[n] + b.arrays[n], loop, loops) for n in common & written for loop in loops
    )


def _is_own(accesses: Sequence[tuple[tree.Expr, ...]], loop: str, loops: Sequence[str]) -> bool:
    """Whether some dimension has the same subscript everywhere, which depends on this loop and no other of them."""
    for subscripts in zip(*accesses, strict=True):
        first = expression(subscripts[0])
        if all(expression(s) == first for s in subscripts[1:]) and _moves(subscripts[0], loop, loops):
            return True
    return False


def _moves(subscript: tree.Expr, loop: str, loops: Sequence[str]) -> bool:
    parts = list(_parts(subscript))
    refs = [p.name for p in parts if isinstance(p, tree.Ref)]
    plain = all(isinstance(p, tree.Ref | tree.Number) or (isinstance(p, tree.Binary) and p.op in "+-") for p in parts)
    return plain and refs.count(loop) == 1 and not any(r in loops for r in refs if r != loop)


# ---- temporaries ----


def _contracted(
    items: Sequence[tree.Item], name: str, type_: str, types: Mapping[str, str], total: int
) -> tuple[list[tree.Item], bool] | None:
    """The statements with a scalar in place of a temporary, and whether it is declared (otherwise it is a `let`); None
    if that is unsafe.
    """
    for k, item in enumerate(items):
        if not _touches(item, name):
            continue
        match item:
            case tree.Assign(tree.Index(own, subscripts), "=", value) if own.text == name:
                return _scalar(items, k, subscripts, value, (name, type_, types, total))
            case tree.For(body=body) if _touches(body, name) == total:
                inner = _contracted(body, name, type_, types, total)
                if inner is None:
                    return None
                return [*items[:k], replace(item, body=tuple(inner[0])), *items[k + 1 :]], inner[1]
        return None
    return None


def _scalar(
    items: Sequence[tree.Item],
    k: int,
    subscripts: tuple[tree.Expr, ...],
    value: tree.Expr,
    about: tuple[str, str, Mapping[str, str], int],
) -> tuple[list[tree.Item], bool] | None:
    name, type_, types, total = about
    # Every access is in this block, of the element that is stored here: no iteration needs what another one stored.
    accesses = _Use(items, types).arrays[name]
    text = [expression(s) for s in subscripts]
    if len(accesses) != total or any([expression(s) for s in a] != text for a in accesses) or _touches(value, name):
        return None
    # `t[j] = ...` once and `t[j]` in a loop over another j are the same text and different elements.
    inner = set(_given([i for i in items if isinstance(i, tree.For | tree.If)]))
    if any(isinstance(p, tree.Ref) and p.name in inner for s in subscripts for p in _parts(s)):
        return None
    writes = sum(isinstance(p, tree.Assign) and isinstance(p.target, tree.Index) and p.target.name.text == name
                 for p in _parts(list(items)))  # fmt: skip
    if writes == total:  # it is only written: there is nothing to keep
        return None
    replaced = [_as_scalar(item, name) for item in items]
    reads = {p.name.text for p in _parts(value) if isinstance(p, tree.Index)}
    # A `let` takes the type of its expression, which is the temporary's only if all arrays have that type.
    if writes == 1 and reads and set(types.values()) == {type_}:
        store = replaced[k]
        assert isinstance(store, tree.Assign)
        replaced[k] = tree.Let(tree.Name(name, store.span), store.value, store.span)
        return replaced, False
    return replaced, True


def _as_scalar(node: Any, name: str) -> Any:
    match node:
        case tuple():
            return tuple(_as_scalar(part, name) for part in node)
        case tree.Index(own, _, span) if own.text == name:
            return tree.Ref(name, span)
        case Record() if not isinstance(node, tree.Name | tree.Number):
            return _rebuilt(node, lambda part: _as_scalar(part, name))
        case _:
            return node

"""Changes of a kernel's syntax tree: directives added, types and layouts replaced, expressions rewritten."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from roofdsl.lang import tree
from roofdsl.lang.record import replace
from roofdsl.lang.source import Span

HERE = Span(1, 1, 1, 1)
"""The position of added items, which do not occur in the text."""


def name(text: str) -> tree.Name:
    return tree.Name(text, HERE)


def number(value: int) -> tree.Number:
    return tree.Number(str(value), value, HERE)


def ref(text: str) -> tree.Ref:
    return tree.Ref(text, HERE)


def binary(op: str, left: tree.Expr, right: tree.Expr) -> tree.Binary:
    return tree.Binary(op, left, right, HERE)


def grouped(e: tree.Expr) -> tree.Expr:
    """The expression in parentheses, unless it is a single value."""
    return e if isinstance(e, tree.Number | tree.Ref | tree.Index | tree.Call | tree.Group) else tree.Group(e, HERE)


def order(loops: Sequence[str]) -> tree.Order:
    """`order i, k, j`."""
    return tree.Order(tuple(name(v) for v in loops), HERE)


def tile(sizes: Mapping[str, int]) -> tree.Tile:
    """`tile k, i by 32, 64`, or a single size if all are equal."""
    values = list(sizes.values())
    texts = values[:1] if len(set(values)) == 1 else values
    return tree.Tile(tuple(name(v) for v in sizes), tuple(number(n) for n in texts), HERE)


def assume_multiple(extent: tree.Expr, of: int) -> tree.Assume:
    """`assume n % 4 == 0`."""
    condition = tree.Compare(binary("%", grouped(extent), number(of)), (("==", number(0)),), HERE)
    return tree.Assume((condition,), HERE)


def is_statement(item: tree.Item) -> bool:
    return isinstance(item, tree.Assign | tree.Let | tree.Count | tree.For | tree.If)


def with_items(kernel: tree.Kernel, items: Sequence[tree.Item]) -> tree.Kernel:
    """The kernel with directives or declarations added before its first statement."""
    at = next(k for k, item in enumerate(kernel.body) if is_statement(item))
    return replace(kernel, body=(*kernel.body[:at], *items, *kernel.body[at:]))


def with_statements(kernel: tree.Kernel, statements: Sequence[tree.Item]) -> tree.Kernel:
    """The kernel with its statements replaced; declarations and directives stay."""
    return replace(kernel, body=(*(item for item in kernel.body if not is_statement(item)), *statements))


def without(
    kernel: tree.Kernel, kind: type[tree.Traffic | tree.Unit | tree.Compute | tree.Tile | tree.Order]
) -> tree.Kernel:
    """The kernel without its lines of one kind."""
    return replace(kernel, body=tuple(item for item in kernel.body if not isinstance(item, kind)))


def declared(kernel: tree.Kernel, change: Callable[[tree.Declared, str], Sequence[tree.Declared]]) -> tree.Kernel:
    """The kernel with each group of declared names changed; `change` receives the group and its intent."""

    def of(item: tree.Item) -> tree.Item:
        if not isinstance(item, tree.Declaration):
            return item
        return replace(item, groups=tuple(new for group in item.groups for new in change(group, item.intent)))

    return replace(kernel, body=tuple(map(of, kernel.body)))


def with_types(kernel: tree.Kernel, types: Mapping[str, str], arrays: frozenset[str] | None = None) -> tree.Kernel:
    """The kernel with other element types, for all arrays and scalars or only the named ones."""

    def change(group: tree.Declared, intent: str) -> Sequence[tree.Declared]:
        to = types.get(group.type.text)
        if to is None:
            return (group,)
        moved = tuple(n for n in group.names if arrays is None or n.text in arrays)
        kept = tuple(n for n in group.names if n not in moved)
        new = (replace(group, names=moved, type=name(to)),) if moved else ()
        return ((replace(group, names=kept),) if kept else ()) + new

    return declared(kernel, change)


def with_layout(kernel: tree.Kernel, array: str) -> tree.Kernel:
    """The kernel with one array stored by columns instead of by rows, or the other way round."""

    def change(group: tree.Declared, intent: str) -> Sequence[tree.Declared]:
        moved = tuple(n for n in group.names if n.text == array)
        kept = tuple(n for n in group.names if n.text != array)
        if not moved:
            return (group,)
        new = replace(group, names=moved, column_major=not group.column_major)
        return ((replace(group, names=kept),) if kept else ()) + (new,)

    return declared(kernel, change)


def with_streams(kernel: tree.Kernel) -> tree.Kernel:
    """The kernel with all its plain stores to elements as ones that bypass the caches."""

    def of(item: tree.Item) -> tree.Item:
        match item:
            case tree.For(body=body):
                return replace(item, body=tuple(map(of, body)))
            case tree.If(branches, orelse):
                new = tuple(replace(b, body=tuple(map(of, b.body))) for b in branches)
                return replace(item, branches=new, orelse=tuple(map(of, orelse)))
            case tree.Assign(tree.Index(), "="):
                return replace(item, stream=True)
        return item

    return replace(kernel, body=tuple(map(of, kernel.body)))


def mapped(e: tree.Expr, change: Callable[[tree.Expr], tree.Expr]) -> tree.Expr:
    """The expression with `change` applied to every part, innermost first; subscripts are parts too."""

    def of(part: tree.Expr) -> tree.Expr:
        return mapped(part, change)

    match e:
        case tree.Index(subscripts=subscripts):
            e = replace(e, subscripts=tuple(map(of, subscripts)))
        case tree.Call(args=args):
            e = replace(e, args=tuple(map(of, args)))
        case tree.Group(inner):
            e = replace(e, inner=of(inner))
        case tree.Unary(operand=operand):
            e = replace(e, operand=of(operand))
        case tree.Binary(_, left, right) | tree.Logic(_, left, right):
            e = replace(e, left=of(left), right=of(right))
        case tree.Compare(first, rest):
            e = replace(e, first=of(first), rest=tuple((op, of(operand)) for op, operand in rest))
    return change(e)


def parts(e: tree.Expr) -> list[tree.Expr]:
    """Every part of an expression, itself included, innermost first, from left to right."""
    found: list[tree.Expr] = []

    def note(part: tree.Expr) -> tree.Expr:
        found.append(part)
        return part

    mapped(e, note)
    return found


def shifted(e: tree.Expr, by: Mapping[str, tree.Expr]) -> tree.Expr:
    """The expression at other iterations: each variable in `by` is increased by what is given for it."""

    def change(part: tree.Expr) -> tree.Expr:
        match part:
            case tree.Index(subscripts=subscripts):
                return replace(part, subscripts=tuple(map(_plain, subscripts)))
            case tree.Ref(text) if text in by:
                return tree.Group(binary("+", part, by[text]), HERE)
            case _:
                return part

    return mapped(e, change)


def _plain(subscript: tree.Expr) -> tree.Expr:
    """The subscript without parentheses around the whole."""
    return subscript.inner if isinstance(subscript, tree.Group) else subscript


def uses(e: tree.Expr) -> frozenset[str]:
    """The names that occur in an expression: variables, parameters, scalars, arrays."""
    return frozenset(
        part.name.text if isinstance(part, tree.Index) else part.name
        for part in parts(e)
        if isinstance(part, tree.Index | tree.Ref)
    )

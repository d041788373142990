"""The canonical text of single nodes: expressions, statements without their blocks, machine lines."""

from __future__ import annotations

from collections.abc import Sequence

from roofdsl.lang import tree
from roofdsl.lang.tree import Expr

WIDTH = 100


def expression(e: Expr) -> str:
    """An expression on one line, with the parentheses of the tree."""
    match e:
        case tree.Number(text):
            return text
        case tree.Ref(name):
            return name
        case tree.Index(name, subscripts):
            return f"{name.text}[{comma(subscripts)}]"
        case tree.Call(name, args):
            return f"{name.text}({comma(args)})"
        case tree.Group(inner):
            return f"({expression(inner)})"
        case tree.Unary(op, operand):
            return f"{op}{' ' if op == 'not' else ''}{expression(operand)}"
        case tree.Binary("**", left, right):
            return f"{expression(left)}**{expression(right)}"
        case tree.Binary(op, left, right) | tree.Logic(op, left, right):
            return f"{expression(left)} {op} {expression(right)}"
        case tree.Compare(first, rest):
            return expression(first) + "".join(f" {op} {expression(operand)}" for op, operand in rest)


def comma(expressions: Sequence[Expr]) -> str:
    """Expressions with commas between."""
    return ", ".join(map(expression, expressions))


def _names(names: Sequence[tree.Name]) -> str:
    return ", ".join(name.text for name in names)


def _declared(group: tree.Declared) -> str:
    dims = f"[{comma(group.dims)}]" if group.dims else ""
    order = " col" if group.column_major else ""
    index = "" if group.below is None else f" index({expression(group.below)})"
    return f"{_names(group.names)}: {group.type.text}{dims}{order}{index}"


def _data_fact(fact: tree.DataFact) -> str:
    values = [expression(e) for e in fact.values]
    match fact.word:
        case "rises":
            return f"assume {fact.array.text} rises from {values[0]} to {values[1]}"
        case "takes":
            return f"assume {fact.array.text} takes {values[0]} values"
    return f"assume {fact.array.text} has alpha {values[0]}"


def simple(item: tree.Item | tree.Use | tree.Run | tree.Collective) -> str:
    """The text of a node that takes one line and opens no block."""
    match item:
        case tree.Use(path):
            return f'use "{path.text}"'
        case tree.Traffic(convention):
            return f"traffic {convention.text}"
        case tree.Declaration(intent, groups):
            return f"{intent} {', '.join(map(_declared, groups))}"
        case tree.Assume(conditions):
            return f"assume {comma(conditions)}"
        case tree.DataFact():
            return _data_fact(item)
        case tree.Tile(loops, sizes):
            return f"tile {_names(loops)} by {comma(sizes)}"
        case tree.Order(loops):
            return f"order {_names(loops)}"
        case tree.Unit(name):
            return f"unit {name.text}"
        case tree.Compute(type_):
            return f"compute {type_.text}"
        case tree.Assign(target, op, value):
            return f"{'stream ' if item.stream else ''}{expression(target)} {op} {expression(value)}"
        case tree.Let(name, value):
            return f"let {name.text} = {expression(value)}"
        case tree.Count(name, amount):
            return f"count {name.text} {expression(amount)}"
        case tree.Run(kernel, args):
            return f"run {kernel.text}({comma(args)})"
        case tree.Collective(kind, array, type_, dims, devices, link, topology):
            over, by = (f" {word} {name.text}" if name else "" for word, name in (("over", link), ("by", topology)))
            array_text = f"{array.text}: {type_.text}[{comma(dims)}]"
            return f"collective {kind.text} {array_text} among {expression(devices)}{over}{by}"
        case _:
            raise TypeError(f"{type(item).__name__} opens a block")


def for_header(item: tree.For) -> str:
    """`for ...:`."""
    clauses = ", ".join(f"{c.var.text} in {c.function.text}({comma(c.args)})" for c in item.clauses)
    return f"{'parallel ' if item.parallel else ''}for {clauses}:"


def parameters(items: Sequence[tree.Parameter]) -> str:
    """The text in the parentheses of a kernel or program."""
    texts = []
    for p in items:
        default = f" = {expression(p.default)}" if p.default is not None else ""
        texts.append(f"{'const ' if p.const else ''}{p.name.text}{default}")
    return ", ".join(texts)


def _quantity(quantity: tree.Quantity) -> str:
    return f"{quantity.number} {quantity.unit}".rstrip()


def _option(option: tree.Option) -> str:
    return f"{option.name.text} {_quantity(option.quantity)}" if option.quantity else option.name.text


def machine_line(line: tree.MachineLine) -> str:
    """A line of a machine block, or a file's `cost`."""
    names = [name.text for name in line.names]
    label = f'"{line.label.text}"' if line.label else ""
    quantities = ", ".join(map(_quantity, line.quantities))
    if line.keyword == "link":
        body = f"{names[0]}: {names[1]} {line.arrow} {names[2]} {quantities}"
    else:
        body = " ".join(filter(None, [label, *names, quantities]))
    note = f' source "{line.source.text}"' if line.source else ""
    return line.keyword + " " + ", ".join(filter(None, [body, *map(_option, line.options)])) + note


def broken(text: str, width: int) -> str:
    """A line no longer than `width` where possible, broken inside brackets, where line ends do not count."""
    lines: list[str] = []
    indent = ""
    while len(indent) + len(text) > width:
        at = _break(text, width - len(indent), bool(lines))
        if at is None:
            break
        lines.append(indent + text[:at])
        text = text[at + 1 :]
        indent = " " * 8
    return "\n".join([*lines, indent + text])


def _break(text: str, width: int, inside: bool) -> int | None:
    """The last place within `width` with the fewest brackets around it, preferably after a comma.

    `inside`: some brackets began on earlier lines. A comma between subscripts is no better than other places.
    """
    best: tuple[tuple[int, bool], int] | None = None
    around = ["("] if inside else []
    in_text = False
    for i, character in enumerate(text):
        if i >= width and best is not None:
            break
        if character == '"':
            in_text = not in_text
        elif in_text:
            continue
        elif character in "([":
            around.append(character)
        elif character in ")]":
            del around[-1:]
        elif character == " " and around and text[i + 1 : i + 2] not in ("", " "):
            place = (len(around), around[-1] != "(" or text[i - 1] != ",")
            if not best or place <= best[0]:
                best = (place, i)
    return best[1] if best else None

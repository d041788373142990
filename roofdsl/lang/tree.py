"""The syntax tree of a `.roof` file.

Every node carries its `span`, which takes no part in equality: texts that differ in layout only give equal trees.
`parse` builds the tree; `check` verifies it and resolves machine blocks to `Machine`s with exact plain numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from roofdsl.lang.resolved import (
    Cache,
    Ceiling,
    Clock,
    Cost,
    Entry,
    Launch,
    Link,
    Machine,
    Memory,
    Peak,
    Pipes,
    Units,
)
from roofdsl.lang.source import Comment, Source, Span

__all__ = ["Cache", "Ceiling", "Clock", "Cost", "Entry", "Launch", "Link", "Machine", "Memory", "Peak", "Pipes"]
__all__ += ["Comment", "Source", "Span", "Units"]


@dataclass(frozen=True)
class Name:
    """A word as it stands in the text."""

    text: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Text:
    """What stands between two double quotes; there are no escapes."""

    text: str
    span: Span = field(compare=False, repr=False)


# ---- expressions; conditions are expressions too, the checker tells them apart ----


@dataclass(frozen=True)
class Number:
    """A literal: `text` as written, `value` an int or a finite float."""

    text: str
    value: int | float
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Ref:
    """A name used as a value, or as the target of an assignment."""

    name: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Index:
    """`name[subscripts]`."""

    name: Name
    subscripts: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Call:
    """`name(args)`."""

    name: Name
    args: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Group:
    """`(inner)`: parentheses as written, kept for the formatter."""

    inner: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Unary:
    """`op` is `-`, `+` or `not`."""

    op: str
    operand: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Binary:
    """`op` is one of `+ - * / // % **`."""

    op: str
    left: Expr
    right: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Compare:
    """`first op operand op operand ...`, chained as in Python; ops are `== != < <= > >=`."""

    first: Expr
    rest: tuple[tuple[str, Expr], ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Logic:
    """`left and right`, `left or right`."""

    op: str
    left: Expr
    right: Expr
    span: Span = field(compare=False, repr=False)


Expr = Number | Ref | Index | Call | Group | Unary | Binary | Compare | Logic

# ---- what a kernel's body holds ----


@dataclass(frozen=True)
class Declared:
    """`A, B: f64[n, n] col` in a declaration; `dims` is empty for a scalar."""

    names: tuple[Name, ...]
    type: Name
    dims: tuple[Expr, ...]
    column_major: bool
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Declaration:
    """`in A: f64[n], x: f64`: `intent` is `in`, `out`, `inout` or `temp`."""

    intent: str
    groups: tuple[Declared, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Assume:
    """`assume COND, ...`."""

    conditions: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Traffic:
    """`traffic NAME`, in a kernel or at the top of the file."""

    convention: Name
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Tile:
    """`tile i, j by bi, bj`; one size may serve all loops."""

    loops: tuple[Name, ...]
    sizes: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Order:
    """`order i, k, j`."""

    loops: tuple[Name, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Unit:
    """`unit tensor`."""

    name: Name
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Compute:
    """`compute tf32`: the type in which an f32 kernel multiplies (rule 6)."""

    type: Name
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Assign:
    """`target op value`; `op` is `=` or an update."""

    target: Ref | Index
    op: str
    value: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Let:
    """`let name = value`."""

    name: Name
    value: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Count:
    """`count name amount`."""

    name: Name
    amount: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Clause:
    """`var in range(args)`; `function` is the word before the parenthesis (the checker wants `range`)."""

    var: Name
    function: Name
    args: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class For:
    """`for clause, clause, ...: body`; `parallel` speaks of every loop on the line."""

    clauses: tuple[Clause, ...]
    parallel: bool
    body: tuple[Item, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Branch:
    """`if condition: body` or `elif condition: body`."""

    condition: Expr
    body: tuple[Item, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class If:
    """The branches in order, and the body of `else` (empty where there is none; `else_span` is then None)."""

    branches: tuple[Branch, ...]
    orelse: tuple[Item, ...]
    else_span: Span | None = field(compare=False, repr=False)
    span: Span = field(compare=False, repr=False)


Statement = Assign | Let | Count | For | If
Item = Declaration | Assume | Traffic | Tile | Order | Unit | Compute | Statement


@dataclass(frozen=True)
class Parameter:
    """`name`, `name = default`, `const name = default`."""

    name: Name
    default: Expr | None
    const: bool
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Kernel:
    """`kernel name(parameters): body`; `body` holds declarations and directives as well as statements."""

    name: Name
    parameters: tuple[Parameter, ...]
    body: tuple[Item, ...]
    span: Span = field(compare=False, repr=False)


# ---- programs ----


@dataclass(frozen=True)
class Run:
    """`run kernel(args)`: one launch; `args` are integer expressions in the program's parameters, by position."""

    kernel: Name
    args: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Repeat:
    """`repeat count: body`; `count` is an integer expression in the program's parameters."""

    count: Expr
    body: tuple[Step, ...]
    span: Span = field(compare=False, repr=False)


Step = Run | Repeat


@dataclass(frozen=True)
class Program:
    """`program name(parameters): body`."""

    name: Name
    parameters: tuple[Parameter, ...]
    body: tuple[Step, ...]
    span: Span = field(compare=False, repr=False)


# ---- machines as written ----


@dataclass(frozen=True)
class Quantity:
    """A number and its unit as written (`900`, `GB/s`; the unit is empty where none stands); see `lang.units`."""

    number: str
    unit: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class Option:
    """`line 64 B`, `write_allocate`: what follows a comma in a `cache` or `memory` line."""

    name: Name
    quantity: Quantity | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class MachineLine:
    """One line of a machine block (or a file's `cost`), as written, its parts by kind in the order they stand."""

    keyword: str
    names: tuple[Name, ...]
    quantities: tuple[Quantity, ...]
    options: tuple[Option, ...]
    label: Text | None
    arrow: str
    source: Text | None
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True)
class MachineBlock:
    """`machine name "title": lines`, before its units are resolved."""

    name: Name
    title: Text | None
    lines: tuple[MachineLine, ...]
    span: Span = field(compare=False, repr=False)


# ---- the file ----


@dataclass(frozen=True)
class Use:
    """`use "path"`."""

    path: Text
    span: Span = field(compare=False, repr=False)


Definition = Kernel | MachineBlock | Program
TopItem = Use | Traffic | MachineLine | Definition


@dataclass(frozen=True)
class File:
    """A parsed file. `damaged` names definitions left out because a syntax error lies inside them."""

    items: tuple[TopItem, ...]
    comments: tuple[Comment, ...] = field(compare=False, default=())
    damaged: frozenset[str] = field(compare=False, default=frozenset())
    source: Source = field(compare=False, repr=False, default=Source("<none>", ""))

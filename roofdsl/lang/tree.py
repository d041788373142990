"""The syntax tree of a `.roof` file.

Every node carries its `span`, which takes no part in equality: texts that differ in layout only give equal trees.
`parse` builds the tree; `check` verifies it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from roofdsl.lang.record import Record, field
from roofdsl.lang.source import Comment, Source, Span

__all__ = ["Comment", "Source", "Span"]


class Name(Record):
    """A word of the text."""

    text: str
    span: Span = field(compare=False, repr=False)


class Text(Record):
    """The text between two double quotes; there are no escapes."""

    text: str
    span: Span = field(compare=False, repr=False)


# ---- expressions; conditions are expressions too, the checker tells them apart ----


class Number(Record):
    """A literal: `text` as written, `value` an int or a finite float."""

    text: str
    value: int | float
    span: Span = field(compare=False, repr=False)


class Ref(Record):
    """A name used as a value, or as the target of an assignment."""

    name: str
    span: Span = field(compare=False, repr=False)


class Index(Record):
    """`name[subscripts]`."""

    name: Name
    subscripts: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False)


class Call(Record):
    """`name(args)`."""

    name: Name
    args: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False)


class Group(Record):
    """`(inner)`: parentheses as written, kept for the formatter."""

    inner: Expr
    span: Span = field(compare=False, repr=False)


class Unary(Record):
    """`op` is `-`, `+` or `not`."""

    op: str
    operand: Expr
    span: Span = field(compare=False, repr=False)


class Binary(Record):
    """`op` is one of `+ - * / // % **`."""

    op: str
    left: Expr
    right: Expr
    span: Span = field(compare=False, repr=False)


class Compare(Record):
    """`first op operand op operand ...`, chained as in Python; ops are `== != < <= > >=`."""

    first: Expr
    rest: tuple[tuple[str, Expr], ...]
    span: Span = field(compare=False, repr=False)


class Logic(Record):
    """`left and right`, `left or right`."""

    op: str
    left: Expr
    right: Expr
    span: Span = field(compare=False, repr=False)


Expr = Number | Ref | Index | Call | Group | Unary | Binary | Compare | Logic

# ---- what a kernel's body holds ----


class Declared(Record):
    """`A, B: f64[n, n] col` in a declaration; `dims` is empty for a scalar.

    below: the `n` of `index(n)`, which says that the values are 0 to n - 1; None for other arrays.
    """

    names: tuple[Name, ...]
    type: Name
    dims: tuple[Expr, ...]
    column_major: bool
    span: Span = field(compare=False, repr=False)
    below: Expr | None = None


class Declaration(Record):
    """`in A: f64[n], x: f64`: `intent` is `in`, `out`, `inout` or `temp`."""

    intent: str
    groups: tuple[Declared, ...]
    span: Span = field(compare=False, repr=False)


class Assume(Record):
    """`assume COND, ...`."""

    conditions: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False)


class DataFact(Record):
    """What is assumed of the data of an array: `word` is "rises", "takes" or "alpha".

    `assume a rises from 0 to m` has two values, `assume a takes m values` and `assume x has alpha 0.5` have one.
    """

    word: str
    array: Name
    values: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False)


class Traffic(Record):
    """`traffic NAME`, in a kernel or at the top of the file."""

    convention: Name
    span: Span = field(compare=False, repr=False)


class Tile(Record):
    """`tile i, j by bi, bj`; one size may serve all loops."""

    loops: tuple[Name, ...]
    sizes: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False)


class Order(Record):
    """`order i, k, j`."""

    loops: tuple[Name, ...]
    span: Span = field(compare=False, repr=False)


class Unit(Record):
    """`unit tensor`."""

    name: Name
    span: Span = field(compare=False, repr=False)


class Compute(Record):
    """`compute tf32`: the type that operations in f32 count as."""

    type: Name
    span: Span = field(compare=False, repr=False)


class Assign(Record):
    """`target op value`; `op` is `=` or an update. stream: it is `stream target = value`, past the caches."""

    target: Ref | Index
    op: str
    value: Expr
    span: Span = field(compare=False, repr=False)
    stream: bool = False


class Let(Record):
    """`let name = value`."""

    name: Name
    value: Expr
    span: Span = field(compare=False, repr=False)


class Count(Record):
    """`count name amount`."""

    name: Name
    amount: Expr
    span: Span = field(compare=False, repr=False)


class Clause(Record):
    """`var in range(args)`; `function` is the word before the parenthesis (the checker wants `range`)."""

    var: Name
    function: Name
    args: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False)


class For(Record):
    """`for clause, clause, ...: body`; `parallel` speaks of every loop on the line."""

    clauses: tuple[Clause, ...]
    parallel: bool
    body: tuple[Item, ...]
    span: Span = field(compare=False, repr=False)


class Branch(Record):
    """`if condition: body` or `elif condition: body`."""

    condition: Expr
    body: tuple[Item, ...]
    span: Span = field(compare=False, repr=False)


class If(Record):
    """The branches in order, and the body of `else` (empty where there is none; `else_span` is then None)."""

    branches: tuple[Branch, ...]
    orelse: tuple[Item, ...]
    else_span: Span | None = field(compare=False, repr=False)
    span: Span = field(compare=False, repr=False)


Statement = Assign | Let | Count | For | If
Item = Declaration | Assume | DataFact | Traffic | Tile | Order | Unit | Compute | Statement


class Parameter(Record):
    """`name`, `name = default`, `const name = default`."""

    name: Name
    default: Expr | None
    const: bool
    span: Span = field(compare=False, repr=False)


class Kernel(Record):
    """`kernel name(parameters): body`; `body` holds declarations and directives as well as statements."""

    name: Name
    parameters: tuple[Parameter, ...]
    body: tuple[Item, ...]
    span: Span = field(compare=False, repr=False)


# ---- programs ----


class Run(Record):
    """`run name(args)`: one launch of a kernel, or all those of a program.

    `args` are integer expressions in the parameters of the program it stands in, by position.
    """

    kernel: Name
    args: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False)


class Collective(Record):
    """`collective all_reduce Y: bf16[rows, d] among p over NVLink by switch`: devices exchange an array.

    `dims` and `devices` are integer expressions in the program's parameters; `link` is of the machine that the program
    is predicted on, None for its only one; `topology` None for a ring.
    """

    kind: Name
    array: Name
    type: Name
    dims: tuple[Expr, ...]
    devices: Expr
    link: Name | None
    topology: Name | None
    span: Span = field(compare=False, repr=False)


class Repeat(Record):
    """`repeat count: body`; `count` is an integer expression in the program's parameters."""

    count: Expr
    body: tuple[Step, ...]
    span: Span = field(compare=False, repr=False)


Step = Run | Collective | Repeat


class Program(Record):
    """`program name(parameters): body`."""

    name: Name
    parameters: tuple[Parameter, ...]
    body: tuple[Step, ...]
    span: Span = field(compare=False, repr=False)


# ---- machines as written ----


class Quantity(Record):
    """A number and its unit as written (`900`, `GB/s`; the unit is empty where none stands); see `lang.units`."""

    number: str
    unit: str
    span: Span = field(compare=False, repr=False)


class Option(Record):
    """`line 64 B`, `write_allocate`: one of the attributes that a line of a machine lists, separated by commas."""

    name: Name
    quantity: Quantity | None
    span: Span = field(compare=False, repr=False)


class MachineLine(Record):
    """One line of a machine block (or a file's `cost`), as written, its parts by kind in the order they stand."""

    keyword: str
    names: tuple[Name, ...]
    quantities: tuple[Quantity, ...]
    options: tuple[Option, ...]
    label: Text | None
    arrow: str
    source: Text | None
    span: Span = field(compare=False, repr=False)


class MachineBlock(Record):
    """`machine name "title": lines`, before its units are resolved."""

    name: Name
    title: Text | None
    lines: tuple[MachineLine, ...]
    span: Span = field(compare=False, repr=False)


# ---- the file ----


class Use(Record):
    """`use "path"`."""

    path: Text
    span: Span = field(compare=False, repr=False)


Definition = Kernel | MachineBlock | Program
TopItem = Use | Traffic | MachineLine | Definition


class File(Record):
    """A parsed file. `damaged` names definitions left out because a syntax error lies inside them."""

    items: tuple[TopItem, ...]
    comments: tuple[Comment, ...] = field(compare=False, default=())
    damaged: frozenset[str] = field(compare=False, default=frozenset())
    source: Source = field(compare=False, repr=False, default=Source("<none>", ""))


def runs(steps: Sequence[Step]) -> Iterator[Run]:
    """Every `run` of these steps, those inside `repeat` too, in order."""
    for step in steps:
        if isinstance(step, Repeat):
            yield from runs(step.body)
        elif isinstance(step, Run):
            yield step

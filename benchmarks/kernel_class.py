"""What a kernel is, from its structure alone: a stream, a stencil, a product, and so on.

Reports group runs by it. Of a kernel with several loop nests, the deepest one counts, and the first of several.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from roofdsl.lang.functions import FUNCTIONS
from roofdsl.loops.accesses import elements, statements
from roofdsl.loops.affine import Affine, affine
from roofdsl.loops.integers import Const, IntExpr, add, mul
from roofdsl.loops.model import (
    Assign,
    Binary,
    Call,
    DataCompare,
    Element,
    Expr,
    For,
    Kernel,
    Let,
    ScalarRef,
    Select,
    Unary,
)

CLASSES = {
    "half precision": "data in less than 32 bits: conversions, and everything that computes with them",
    "special functions": "exp, sqrt and the like in the innermost loop",
    "triangular": "a loop whose length depends on an outer loop",
    "recurrences": "an iteration of the innermost loop reads what the one before wrote",
    "stencils": "neighbors of an element of the same array",
    "convolutions": "products with a sum of two loop variables in a subscript",
    "products": "sums of products, all of whose operands are used again in some loop",
    "reductions": "sums over a loop, with an operand that is used once",
    "transposes": "rows are read and columns written, or the other way round",
    "streams": "everything else, element by element",
}
"""Each class and what it means; a kernel belongs to the first that fits."""

NARROW_BYTES = 4
"""Floating-point elements with fewer bytes have to be converted before most processors compute with them."""


class _Body:
    """The statements of the deepest nest, and the loops around them."""

    def __init__(self, kernel: Kernel) -> None:
        placed = [p for p in statements(kernel.body) if isinstance(p.statement, Assign | Let)]
        self.loops: tuple[For, ...] = max((p.loops for p in placed), key=len, default=())
        self.statements = [
            p.statement for p in placed if p.loops == self.loops and isinstance(p.statement, Assign | Let)
        ]
        self.variables = frozenset(loop.var for loop in self.loops)

    @property
    def assigns(self) -> list[Assign]:
        return [s for s in self.statements if isinstance(s, Assign)]

    def reads(self) -> list[Element]:
        return [e for s in self.statements for e in elements(s.value)]


def class_of(kernel: Kernel) -> str:
    """The first of CLASSES that fits the kernel."""
    if any(a.type.kind == "float" and a.type.bytes < NARROW_BYTES for a in kernel.arrays):
        return "half precision"
    body = _Body(kernel)
    if any(_has_special(s.value) for s in body.statements):
        return "special functions"
    if any(_is_triangular(p.loops) for p in statements(kernel.body)):
        return "triangular"
    if _is_recurrence(body):
        return "recurrences"
    if _has_neighbors(body):
        return "stencils"
    sums = [s for s in body.assigns if _summed_over(s, body)]
    if sums:
        if any(_is_convolution(s, body) for s in sums):
            return "convolutions"
        return "products" if any(_reuses_all(s, body) for s in sums) else "reductions"
    return "transposes" if _is_transposed(body) else "streams"


def _parts(expression: Expr | DataCompare) -> Iterator[Expr | DataCompare]:
    """The expression and all below it."""
    yield expression
    match expression:
        case Unary(_, operand):
            below: Sequence[Expr | DataCompare] = (operand,)
        case Binary(_, left, right) | DataCompare(_, left, right):
            below = (left, right)
        case Call(_, args):
            below = args
        case Select(condition, if_true, if_false):
            below = (condition, if_true, if_false)
        case _:
            below = ()
    for part in below:
        yield from _parts(part)


def _has_special(expression: Expr) -> bool:
    return any(isinstance(p, Call) and FUNCTIONS[p.function].cls == "special" for p in _parts(expression))


def _is_triangular(loops: Sequence[For]) -> bool:
    """Whether the length of a loop changes with an outer variable; ragged tiles (`min(i + b, n)`) do not count."""
    for depth, loop in enumerate(loops):
        outer = {other.var for other in loops[:depth]}
        lengths = [affine(add(stop, mul(Const(-1), start))) for stop in loop.stops for start in loop.starts]
        if all(outer & length.coefficients().keys() for length in lengths):
            return True
    return False


def _is_recurrence(body: _Body) -> bool:
    """Whether an element written in the innermost loop is read in a later iteration of it, at a fixed distance."""
    if not body.loops:
        return False
    inner = body.loops[-1].var
    written = [s.target for s in body.assigns if isinstance(s.target, Element)]
    for target in written:
        for read in body.reads():
            apart = _distances(target, read)
            if apart is None or not any(apart):
                continue
            steps = [affine(s).coefficients().get(inner, 0) for s in target.subscripts]
            if all(step * distance > 0 for step, distance in zip(steps, apart, strict=True) if distance):
                return True
    return _carries_scalar(body)


def _carries_scalar(body: _Body) -> bool:
    """Whether a scalar is read before an assignment gives it the value for the next iteration."""
    read: set[str] = set()
    for statement in body.statements:
        read |= {p.array.name for p in _parts(statement.value) if isinstance(p, ScalarRef)}
        target = statement.target if isinstance(statement, Assign) and statement.op == "=" else None
        if isinstance(target, ScalarRef) and target.array.name in read and target not in list(_parts(statement.value)):
            return True
    return False


def _distances(one: Element, other: Element) -> tuple[int, ...] | None:
    """one's subscripts minus other's, if they differ by numbers only; None for other arrays or other subscripts."""
    if one.array.name != other.array.name:
        return None
    pairs = [(affine(a), affine(b)) for a, b in zip(one.subscripts, other.subscripts, strict=True)]
    if any(dict(a.terms) != dict(b.terms) for a, b in pairs):
        return None
    return tuple(a.constant - b.constant for a, b in pairs)


def _symbols(subscripts: Sequence[IntExpr]) -> frozenset[str]:
    return frozenset().union(*(s.symbols() for s in subscripts))


def _target_variables(statement: Assign, body: _Body) -> frozenset[str]:
    target = statement.target
    return _symbols(target.subscripts) & body.variables if isinstance(target, Element) else frozenset()


def _summed_over(statement: Assign, body: _Body) -> frozenset[str]:
    """The loops over which the statement accumulates into one element; empty for one that does not accumulate."""
    again = statement.op != "=" or statement.target in list(_parts(statement.value))
    return body.variables - _target_variables(statement, body) if again else frozenset()


def _operands(statement: Assign, body: _Body) -> list[Element]:
    """What is read for the sum: its own reads, or those of the `let` before it; not the target."""
    own = [e for e in elements(statement.value) if e != statement.target]
    return own or [e for e in body.reads() if e != statement.target]


def _reuses_all(statement: Assign, body: _Body) -> bool:
    """Whether there is for every operand a loop in which it stays the same, and two operands at least."""
    operands = _operands(statement, body)
    return len(operands) > 1 and all(body.variables - _symbols(e.subscripts) for e in operands)


def _is_convolution(statement: Assign, body: _Body) -> bool:
    """Whether a subscript adds a variable that is summed over to one that is not."""
    kept, summed = _target_variables(statement, body), _summed_over(statement, body)
    forms = [affine(s) for e in _operands(statement, body) for s in e.subscripts]
    return any(kept & _named(form) and summed & _named(form) for form in forms)


def _named(form: Affine) -> frozenset[str]:
    return frozenset(form.coefficients()) | form.hidden()


def _has_neighbors(body: _Body) -> bool:
    """Whether two reads of an array meet the same element in different iterations, a fixed distance apart."""
    reads = list(dict.fromkeys(body.reads()))
    for k, one in enumerate(reads):
        for other in reads[:k]:
            apart = _distances(one, other)
            if apart is None:
                continue
            steps = [affine(s).coefficients() for s in one.subscripts]
            moved = [(distance, own) for distance, own in zip(apart, steps, strict=True) if distance]
            if moved and all(_is_reached(distance, own, body.variables) for distance, own in moved):
                return True
    return False


def _is_reached(distance: int, steps: Mapping[str, int], variables: frozenset[str]) -> bool:
    """Whether a whole number of steps of one loop covers the distance."""
    return any(distance % step == 0 for variable, step in steps.items() if variable in variables)


def _is_transposed(body: _Body) -> bool:
    """Whether the last subscripts of what is written and of what is read move with different loops."""
    for statement in body.assigns:
        if not isinstance(statement.target, Element) or len(statement.target.subscripts) < 2:
            continue
        written = statement.target.subscripts[-1].symbols() & body.variables
        for read in elements(statement.value):
            own = read.subscripts[-1].symbols() & body.variables
            if len(read.subscripts) > 1 and written and own and not written & own:
                return True
    return False

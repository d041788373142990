"""A kernel as products of matrices at its sizes: convolutions, batches of products and attention are such kernels.

Groups of their loops are the rows, columns and steps of each product (`sums`). Any order of rows, columns and steps
gives the same sums if nothing else changes what is read and written: the factors are inputs, every array that is
written is touched at a single place in each iteration, and a factor that the kernel itself computes (the scores of
attention) belongs to the rows of the product that uses it.
"""

from __future__ import annotations

from collections.abc import Mapping

from roofdsl.counts.executions import statement_executions
from roofdsl.lang.record import Record
from roofdsl.loops.accesses import PlacedStatement, accesses, statements
from roofdsl.loops.affine import NotAffineError, Range, at_most
from roofdsl.loops.integers import Const, IntExpr, Min, sub
from roofdsl.loops.model import Assign, For, Kernel, Let
from roofdsl.loops.sized import sized
from roofdsl.sol.sums import Factor, SumOfProducts, sums_of_products


class GroupedProduct(Record):
    """rows x columns results, each a sum of `steps` products, `batch` times over.

    executions: the total number of products, fewer than the extents say if loops are triangular. held: bytes of a
    running sum. left, right, result: bytes of an element, 0 for a value that stays on the chip. fresh: results are not
    loaded before their sums begin. left_once, right_once: bytes of the elements that are read, each counted once: fewer
    than those of rows x steps (or steps x columns) if windows overlap. names: the loops of rows and of columns.
    """

    rows: int
    columns: int
    steps: int
    batch: int
    executions: int
    held: int
    left: int
    right: int
    result: int
    left_once: int
    right_once: int
    fresh: bool
    names: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())


class Grouped(Record):
    """The products of a kernel, and the bytes that its other statements move to and from arrays (loads, stores)."""

    products: tuple[GroupedProduct, ...]
    others: tuple[int, int]


def grouped_products(kernel: Kernel, values: Mapping[str, int]) -> Grouped | None:
    """The products of a kernel; None if it has no sums of products, or if these may not be reordered.

    Raises what counting raises.
    """
    from roofdsl.counts.traffic_at import first_touches_at

    at = sized(kernel, values)
    sums = sums_of_products(at.kernel)
    if not sums or not _may_be_reordered(at.kernel, sums):
        return None
    placed = tuple(statements(at.kernel.body))
    executions = statement_executions(at.kernel, at.values)
    once = {a.name: a.begun_by_read * a.line_bytes for a in first_touches_at(kernel, values)}
    fresh = {a.name for a in kernel.arrays if a.intent == "out"}
    products = []
    for one in sums:
        trips = _trips(placed[one.place].loops, at.values)
        if trips is None:
            return None
        rows, columns, steps, batch = one.extents(trips)
        left, right, result = (f.type.bytes if f.array is not None else 0 for f in (one.left, one.right, one.target))
        products.append(GroupedProduct(
            rows, columns, steps, batch, executions[one.place],
            one.target.type.bytes, left, right, result,
            once.get(one.left.array or "", 0), once.get(one.right.array or "", 0), one.target.array in fresh,
            (one.rows, one.columns),
        ))  # fmt: skip
    summed = {one.place for one in sums}
    others = [_moved(p, n) for k, (p, n) in enumerate(zip(placed, executions, strict=True)) if k not in summed]
    return Grouped(tuple(products), (sum(loads for loads, _ in others), sum(stores for _, stores in others)))


def _may_be_reordered(kernel: Kernel, sums: tuple[SumOfProducts, ...]) -> bool:
    """Whether each sum may be computed in any order, and the products one after another for a block of rows."""
    places: dict[str, set[tuple[IntExpr, ...]]] = {}
    written: set[str] = set()
    for placed in statements(kernel.body):
        if not isinstance(placed.statement, Assign | Let):
            continue
        for access in accesses(placed.statement):
            name = access.element.array.name
            if access.element.array.intent != "temp":
                places.setdefault(name, set()).add(access.element.subscripts)
            if access.is_write:
                written.add(name)
    if any(len(places[name]) > 1 for name in written & places.keys()):
        return False

    def plain(factor: Factor) -> bool:
        return factor.array is not None and factor.array not in written

    first = sums[0].rows
    return all(
        plain(one.right) and (plain(one.left) or (k > 0 and one.rows == first)) for k, one in enumerate(sums)
    ) and all(bool(one.rows or one.columns) for one in sums)


def _trips(loops: tuple[For, ...], values: Mapping[str, int]) -> dict[str, int] | None:
    """The maximum number of iterations of each loop; None if the bounds of one have no simple maximum."""
    numbers = {name: Const(value) for name, value in values.items()}
    ranges: dict[str, Range] = {}
    found: dict[str, int] = {}
    for loop in loops:
        start, stop, step = (_folded(e.substitute(numbers)) for e in (loop.start, loop.stop, loop.step))
        ends = stop.terms if isinstance(stop, Min) else (stop,)
        try:
            most = [_folded(at_most(sub(end, start), ranges)) for end in ends]
        except NotAffineError:
            return None
        lengths = [m.value for m in most if isinstance(m, Const)]
        if not lengths or not isinstance(step, Const):
            return None
        found[loop.var] = max(1, -(-min(lengths) // step.value))
        ranges[loop.var] = Range(start, stop)
    return found


def _folded(e: IntExpr) -> IntExpr:
    """The expression with every part without symbols replaced by its value."""
    return e.rebuild(tuple(_folded(a) for a in e.args())) if e.symbols() else Const(e.evaluate({}))


def _moved(placed: PlacedStatement, executions: int) -> tuple[int, int]:
    """Bytes that a statement loads from and stores to arrays that are not temporary."""
    if not isinstance(placed.statement, Assign | Let):
        return 0, 0
    loads = stores = 0
    for access in accesses(placed.statement):
        if access.element.array.intent != "temp":
            loads += executions * access.element.array.type.bytes * (not access.is_write)
            stores += executions * access.element.array.type.bytes * access.is_write
    return loads, stores

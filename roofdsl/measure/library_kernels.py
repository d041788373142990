"""Kernels that a library provides: sums of products (dot, GEMV, GEMM and batched GEMM), and scaled additions.

They are recognized from the checked kernel, whatever its name and its arrays' names: one statement adds a product to
its target, in loops each of whose variables is a subscript of its arrays. The target may be set to zero before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.accesses import PlacedStatement, operands, statements
from roofdsl.loops.integers import IntExpr, Sym
from roofdsl.loops.model import Array, Assign, Binary, Element, Expr, For, Kernel, Let, LetRef, Number, ScalarRef
from roofdsl.measure.device import blas
from roofdsl.measure.runner import Call, Runner
from roofdsl.measure.timing import usable_cores

TYPES: Mapping[str, tuple[str, ...]] = {name: (name,) for name in ("f64", "f32", "c128", "c64")}
"""Element types of operands that BLAS has, each with those of targets."""


@dataclass(frozen=True)
class Operand:
    """An array and the loop variable of each of its dimensions; none for a scalar."""

    array: Array
    letters: tuple[str, ...]


@dataclass(frozen=True)
class Contraction:
    """target (+)= product of `scalars` and one or two operands, over the ranges of the loop variables.

    accumulate: whether the target's previous value is added; otherwise it starts from zero. kind: dot, gemv or gemm,
    each of them also batched, or axpy. batch, rows, columns, summed: the loop variables of both operands and the
    target, of the first and the target, of the second and the target, and of both operands alone.
    """

    kind: str
    target: Operand
    operands: tuple[Operand, ...]
    scalars: tuple[Array, ...]
    accumulate: bool
    ranges: Mapping[str, tuple[IntExpr, IntExpr]]
    batch: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    summed: tuple[str, ...] = ()


def recognize(kernel: Kernel, types: Mapping[str, tuple[str, ...]] = TYPES) -> Contraction:
    """The contraction that a kernel computes (as written, before its directives), with operands of one of these element
    types and a target of a matching one.

    Raises CommandError if the kernel computes no such contraction.
    """
    placed = list(statements(kernel.body))
    lets = {p.statement.name: p.statement.value for p in placed if isinstance(p.statement, Let)}
    assigns = [p for p in placed if isinstance(p.statement, Assign)]
    if len(lets) + len(assigns) != len(placed) or any(p.guards for p in placed):
        raise _none(kernel, "it counts or branches")
    if not 1 <= len(assigns) <= 2:
        raise _none(kernel, "it is not one sum of products")
    main = assigns[-1]
    target, product = _added(kernel, main, lets)
    if len(assigns) == 2:
        _check_zero(kernel, assigns[0], main, target)
    for p in placed:
        if isinstance(p.statement, Let) and (len(assigns) == 2 or p.loops != main.loops):
            _check_let(kernel, p.statement, target)
    factors, scalars = _factors(kernel, product, lets)
    found = _classified(kernel, main, target, factors, scalars=scalars, accumulate=len(assigns) == 1)
    given = {o.array.type.name for o in factors} | {a.type.name for a in scalars}
    if len(given) != 1 or target.array.type.name not in types.get(given.pop(), ()):
        wider = [f"{name} into {to}" for name, targets in types.items() for to in targets if to != name]
        others = f", and {', '.join(wider)}" if wider else ""
        raise _none(kernel, f"BLAS multiplies {', '.join(types)}, all of one type{others}")
    return found


def _none(kernel: Kernel, why: str) -> CommandError:
    return CommandError(
        f"kernel {kernel.name} is not a product that a library has: {why}",
        "the variant `library` is for dot, GEMV, GEMM, batched GEMM and scaled additions; use `loops` or `parallel`",
    )


def _check_let(kernel: Kernel, let: Let, target: Operand) -> None:
    """Raise CommandError if a `let` that may be older than the target's value reads it."""
    if any(x.array == target.array for x in operands(let.value)):
        raise _none(kernel, f"`{let.name}` holds an earlier value of {target.array.name}")


def _added(kernel: Kernel, placed: PlacedStatement, lets: Mapping[str, Expr]) -> tuple[Operand, Expr]:
    """(target, added value), for `T += e` and `T = T + e`. Raises CommandError for others."""
    statement = placed.statement
    assert isinstance(statement, Assign)
    target = statement.target
    operand = _operand(kernel, target)
    if statement.op == "+=":
        return operand, statement.value
    value = _resolved(statement.value, lets)
    if statement.op == "=" and isinstance(value, Binary) and value.op == "+":
        for a, b in ((value.left, value.right), (value.right, value.left)):
            if _resolved(a, lets) == target:
                return operand, b
    raise _none(kernel, f"`{statement.op}` is not a sum of products")


def _operand(kernel: Kernel, e: Element | ScalarRef) -> Operand:
    if isinstance(e, ScalarRef):
        return Operand(e.array, ())
    letters = []
    for s in e.subscripts:
        if not isinstance(s, Sym):
            raise _none(kernel, f"the subscript `{s}` of {e.array.name} is not a loop variable")
        letters.append(s.name)
    if len(set(letters)) != len(letters):
        raise _none(kernel, f"two subscripts of {e.array.name} are the same")
    return Operand(e.array, tuple(letters))


def _resolved(e: Expr, lets: Mapping[str, Expr]) -> Expr:
    while isinstance(e, LetRef) and e.name in lets:
        e = lets[e.name]
    return e


def _factors(kernel: Kernel, e: Expr, lets: Mapping[str, Expr]) -> tuple[tuple[Operand, ...], tuple[Array, ...]]:
    """The array factors of a product and its scalar ones."""
    operands: list[Operand] = []
    scalars: list[Array] = []
    pending = [e]
    while pending:
        part = _resolved(pending.pop(0), lets)
        match part:
            case Binary("*", left, right):
                pending = [left, right, *pending]
            case Element():
                operands.append(_operand(kernel, part))
            case ScalarRef(array) if array.intent == "in":
                scalars.append(array)
            case _:
                raise _none(kernel, "it adds something other than a product of array elements")
    if not 1 <= len(operands) <= 2:
        raise _none(kernel, f"it multiplies {len(operands)} arrays")
    return tuple(operands), tuple(scalars)


def _check_zero(kernel: Kernel, first: PlacedStatement, main: PlacedStatement, target: Operand) -> None:
    """Raise CommandError unless `T = 0` runs once for every element of the target before anything is added to it."""
    statement = first.statement
    assert isinstance(statement, Assign)
    zero = statement.op == "=" and isinstance(statement.value, Number) and statement.value.value == 0
    before = _operand(kernel, statement.target)
    if not zero or before.array != target.array or first.position > main.position:
        raise _none(kernel, "it does more than set its target to zero and add products")
    ranges = {loop.var: loop for loop in main.loops}
    mine = {loop.var: loop for loop in first.loops}
    matches = len(before.letters) == len(mine) and set(mine) == set(before.letters)
    for a, b in zip(before.letters, target.letters, strict=False):
        matches = matches and a in mine and b in ranges and _range(mine[a]) == _range(ranges[b])
    if not matches:
        raise _none(kernel, "it does not set each element of its target to zero once")


def _range(loop: For) -> tuple[IntExpr, IntExpr, IntExpr]:
    return loop.start, loop.stop, loop.step


def _classified(
    kernel: Kernel,
    main: PlacedStatement,
    target: Operand,
    operands: tuple[Operand, ...],
    *,
    scalars: tuple[Array, ...],
    accumulate: bool,
) -> Contraction:
    """The kind of the product, by the subscripts that its arrays share."""
    names = [loop.var for loop in main.loops]
    for loop in main.loops:
        if str(loop.step) != "1" or (loop.start.symbols() | loop.stop.symbols()) & set(names):
            raise _none(kernel, f"the loop `{loop.var}` is not a plain range")
    used = set().union(target.letters, *(o.letters for o in operands))
    if used != set(names):
        raise _none(kernel, "a loop variable is not a subscript of its arrays")
    if any(o.array == target.array for o in operands):
        raise _none(kernel, "it reads its own target")
    ranges = {loop.var: (loop.start, loop.stop) for loop in main.loops}
    if len(operands) == 1:
        if set(operands[0].letters) != set(target.letters):
            raise _none(kernel, "it sums one array alone")
        return Contraction("axpy", target, operands, scalars, accumulate, ranges, batch=target.letters)
    # C[b, i, j] += A[b, i, k] * B[b, k, j]: an index of all three is a batch, one of the target and an operand a row or
    # column, one of both operands alone is summed. One of a single array belongs to no matrix product.
    a, b, t = (set(o.letters) for o in (*operands, target))
    batch, rows, columns, summed = a & b & t, (a & t) - b, (b & t) - a, (a & b) - t
    if a | b != used or (a - b - t) or (b - a - t) or not summed:
        raise _none(kernel, "its subscripts are not those of a matrix product")
    if max(len(rows), len(columns), len(summed)) > 1 or len(batch) > 1:
        raise _none(kernel, "it has more indices than a batched matrix product")
    kind = {(0, 0): "dot", (1, 0): "gemv", (0, 1): "gemv", (1, 1): "gemm"}[len(rows), len(columns)]
    kind = f"batched {kind}" if batch else kind
    return Contraction(
        kind, target, operands, scalars, accumulate, ranges, tuple(batch), tuple(rows), tuple(columns), tuple(summed)
    )


# ---- running it ----


def matrix_views(found: Contraction, arrays: Mapping[str, Any], params: Mapping[str, int]) -> tuple[Any, Any, Any]:
    """(A, B, T) as views (batch..., rows, summed), (batch..., summed, columns), (batch..., rows, columns). Dimensions
    that a kernel lacks have size 1. Works on numpy and cupy arrays alike.
    """
    bounds = {v: slice(lo.evaluate(params), hi.evaluate(params)) for v, (lo, hi) in found.ranges.items()}

    def view(o: Operand, wanted: Sequence[tuple[str, ...]]) -> Any:
        array = arrays[o.array.name]
        if not o.letters:
            return array.reshape((1,) * len(wanted))
        part = array[tuple(bounds[v] for v in o.letters)]
        order = [o.letters.index(v) for group in wanted for v in group]
        part = part.transpose(order)
        return part[tuple(slice(None) if group else None for group in wanted)]

    lead = [found.batch] if found.batch else []
    a = view(found.operands[0], [*lead, found.rows, found.summed])
    b = view(found.operands[1], [*lead, found.summed, found.columns])
    return a, b, view(found.target, [*lead, found.rows, found.columns])


def library_runner(kernel: Kernel) -> Runner:
    """Runs numpy, which calls its BLAS. Raises CommandError for a kernel that is not such a product."""

    found = recognize(kernel)
    text = f"{found.kind}: {described(found)}"
    details = {"library": blas(), "operation": found.kind, "as": described(found)}
    threads = 1 if found.kind in ("axpy", "dot") else len(usable_cores())

    def bind(arrays: dict[str, NDArray[Any]], params: Mapping[str, int]) -> Call:
        return _axpy(found, arrays, params) if found.kind == "axpy" else _product(found, arrays, params)

    return Runner("library", f"numpy, {blas()}", threads, text, bind, details)


def described(found: Contraction, work: bool = True) -> str:
    """A description of the library call for the record. work: whether a work array holds the values that are added or
    scaled.
    """
    factor = "".join(f"{a.name} * " for a in found.scalars)
    sign = "+=" if found.accumulate else "="
    if found.kind == "axpy":
        through = ", through a work array" if factor else ""
        return f"{found.target.array.name} {sign} {factor}{found.operands[0].array.name}{through}"
    a, b = (o.array.name for o in found.operands)
    through = ", through a work array" if work and (found.accumulate or found.scalars) else ""
    return f"{found.target.array.name} {sign} {factor}matmul({a}, {b}){through}"


def scale_of(found: Contraction, arrays: Mapping[str, Any]) -> Any:
    """The product of the scalar factors; None if there are none."""
    scale = None
    for a in found.scalars:
        value = arrays[a.name].reshape(-1)[0]
        scale = value if scale is None else scale * value
    return scale


def _product(found: Contraction, arrays: Mapping[str, NDArray[Any]], params: Mapping[str, int]) -> Call:
    import numpy as np

    a, b, target = matrix_views(found, arrays, params)
    scale = scale_of(found, arrays)
    if not found.accumulate and scale is None and target.size and target.flags.c_contiguous:
        return lambda: np.matmul(a, b, out=target)
    work = np.empty(target.shape, target.dtype)

    def run() -> None:
        np.matmul(a, b, out=work)
        if scale is not None:
            np.multiply(work, scale, out=work)
        if found.accumulate:
            np.add(target, work, out=target)
        else:
            np.copyto(target, work)

    return run


def _axpy(found: Contraction, arrays: Mapping[str, NDArray[Any]], params: Mapping[str, int]) -> Call:
    import numpy as np

    bounds = {v: slice(lo.evaluate(params), hi.evaluate(params)) for v, (lo, hi) in found.ranges.items()}
    target, operand = found.target, found.operands[0]
    to = arrays[target.array.name][tuple(bounds[v] for v in target.letters)]
    part = arrays[operand.array.name][tuple(bounds[v] for v in operand.letters)]
    part = part.transpose([operand.letters.index(v) for v in target.letters])
    scale = scale_of(found, arrays)
    work = None if scale is None else np.empty(to.shape, to.dtype)

    def run() -> None:
        added = part if scale is None else np.multiply(part, scale, out=work)
        np.add(to, added, out=to) if found.accumulate else np.copyto(to, added)

    return run

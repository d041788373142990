"""Whether a kernel is a contraction, a sum of products of two arrays (docs/rules.md, rule 14)."""

from __future__ import annotations

from collections.abc import Iterator

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops import model


def is_contraction(kernel: model.Kernel) -> bool:
    """Whether some statement adds a product of two array elements to its target, and the others do no more.

    Other statements may start the sum (`s = 0`, `s = a[0] * b[0]`) or copy; a `let` may name an element or the product.
    Casts are allowed, since the types of reads and writes may differ.
    """
    sums, others = _sums(kernel)
    return sums > 0 and not others


def check_unit(unit: str | None, kernel: model.Kernel) -> None:
    """Matrix units are for contractions only (rule 14). Raises CommandError for another kernel."""
    if unit is None or is_contraction(kernel):
        return
    help = "matrix units compute sums of products of two arrays, as in `C[i, j] += A[i, k] * B[k, j]`"
    if _sums(kernel)[0]:
        help = (
            f"make the sum of products and the rest of {kernel.name} two kernels, and run them in a program: "
            "`program layer(n):` with the lines `run product(n)` and `run rest(n)`. The unit then applies to the "
            f"product. `sol` gives the least time of {kernel.name} as one launch, with the products on matrix units"
        )
    raise CommandError(f"{kernel.name} is not a contraction, so {unit} rates do not apply to it", help)


def _sums(kernel: model.Kernel) -> tuple[int, int]:
    """How many statements add a product, and how many do what a contraction does not."""
    sums = others = 0
    names: dict[str, model.Expr] = {}
    for statement in _statements(kernel.body):
        if isinstance(statement, model.Let):
            names[statement.name] = statement.value
            continue
        value = _resolve(statement.value, names)
        if _adds_product(statement, value, names):
            sums += 1
        elif not (statement.op == "=" and (_is_product(value, names) or _is_free(value))):
            others += 1
    return sums, others


def _statements(body: tuple[model.Node, ...]) -> Iterator[model.Assign | model.Let]:
    for node in body:
        if isinstance(node, model.For):
            yield from _statements(node.body)
        elif isinstance(node, model.If):
            yield from _statements(node.then)
            yield from _statements(node.orelse)
        elif isinstance(node, (model.Assign, model.Let)):
            yield node


def _resolve(expr: model.Expr, names: dict[str, model.Expr]) -> model.Expr:
    while isinstance(expr, model.LetRef) and expr.name in names:
        expr = names[expr.name]
    return expr


def _adds_product(statement: model.Assign, value: model.Expr, names: dict[str, model.Expr]) -> bool:
    if statement.op == "+=":
        return _is_product(value, names)
    return statement.op == "=" and _is_sum_into(statement.target, value, names)


def _is_product(expr: model.Expr, names: dict[str, model.Expr]) -> bool:
    if not (isinstance(expr, model.Binary) and expr.op == "*"):
        return False
    return all(isinstance(_factor(side, names), model.Element) for side in (expr.left, expr.right))


def _factor(expr: model.Expr, names: dict[str, model.Expr]) -> model.Expr:
    """A factor without `conj`, which costs nothing: `conj(A[i])` is A[i]."""
    expr = _resolve(expr, names)
    while isinstance(expr, model.Call) and expr.function == "conj":
        expr = _resolve(expr.args[0], names)
    return expr


def _is_sum_into(target: model.Element | model.ScalarRef, value: model.Expr, names: dict[str, model.Expr]) -> bool:
    """`C = C + A * B`, in either order."""
    if not (isinstance(value, model.Binary) and value.op == "+"):
        return False
    sides = (_resolve(value.left, names), _resolve(value.right, names))
    return any(a == target and _is_product(b, names) for a, b in (sides, sides[::-1]))


def _is_free(expr: model.Expr) -> bool:
    return isinstance(expr, (model.Number, model.IntValue, model.Element, model.ScalarRef))

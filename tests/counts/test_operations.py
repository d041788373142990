"""Rules 1 to 7 of docs/rules.md: each worked number, and each decision that operations.py documents."""

from __future__ import annotations

import pytest

from roofdsl.codegen.computed_types import kind_of, settled
from roofdsl.counts.operations import operation_counts
from roofdsl.counts.work_record import StatementOperations, WorkAt, weighed
from roofdsl.loops.model import Assign, Count, Let
from tests.oracle.enumerate import executions
from tests.oracle.families import families
from tests.oracle.loading import kernel_of
from tests.oracle.random_kernels import random_kernel
from tests.oracle.work import executed

REALS = "in a, b, c, d, x: {t}[n]; inout y: {t}[n]; in alpha: {t}"


def counts(statements: str, declarations: str = REALS, t: str = "f64", extra: str = "") -> list[StatementOperations]:
    """The counts of the statements (one a line) in a loop over i, without the `let`s."""
    lines = ["kernel k(n, m):"]
    lines += [f"    {d.strip()}" for d in declarations.format(t=t).split(";")]
    lines += [f"    {e}" for e in ([extra] if extra else [])]
    lines += ["    for i in range(n):", *(f"        {s}" for s in statements.split("\n"))]
    return list(operation_counts(kernel_of("\n".join(lines) + "\n")))


def one(statement: str, declarations: str = REALS, t: str = "f64", extra: str = "") -> StatementOperations:
    return counts(statement, declarations, t, extra)[-1]


def total(statements: list[StatementOperations]) -> WorkAt:
    return weighed(statements, [1] * len(statements))


@pytest.mark.parametrize(
    ("statement", "operations", "pairs"),
    [
        ("y[i] = a[i]", {}, 0),
        ("y[i] = a[i] + b[i]", {"add": 1}, 0),
        ("y[i] = a[i] - b[i]", {"add": 1}, 0),
        ("y[i] += alpha * x[i]", {"add": 1, "mul": 1}, 1),
        ("y[i] -= alpha * x[i]", {"add": 1, "mul": 1}, 1),
        ("y[i] = a[i]*b[i] + c[i]*d[i]", {"mul": 2, "add": 1}, 1),
        ("y[i] = x[i] + y[i]", {"add": 1}, 0),
        ("y[i] = 0.25 * (a[i] + b[i])", {"add": 1, "mul": 1}, 0),
        ("y[i] += 0.25 * (a[i] + b[i])", {"add": 2, "mul": 1}, 1),
        ("y[i] = (a[i]*x[i] + b[i])*x[i] + c[i]", {"add": 2, "mul": 2}, 2),
        ("y[i] = x[i]**2", {"mul": 1}, 0),
        ("y[i] = x[i]**3", {"mul": 2}, 0),
        ("y[i] = x[i]**4", {"mul": 2}, 0),
        ("y[i] = x[i]**7", {"mul": 4}, 0),
        ("y[i] = x[i]**1 + x[i]**0", {"add": 1}, 0),
        ("y[i] = x[i]**2 + a[i]", {"mul": 1, "add": 1}, 1),
        ("y[i] = 2 * n * a[i]", {"mul": 1}, 0),
        ("y[i] = a[i] * 2 * n", {"mul": 2}, 0),
        ("y[i] = i + 2 * n", {}, 0),
        ("y[i] = sqrt(2.0) * 3 + 1", {}, 0),
        ("y[i] = -a[i]", {}, 0),
        ("y[i] = a[i] - (-(b[i] * c[i]))", {"mul": 1, "add": 1}, 1),
        ("y[i] = -(a[i] * b[i]) + c[i]", {"mul": 1, "add": 1}, 1),
        ("y[i] = abs(a[i] * b[i]) + c[i]", {"mul": 1, "add": 1}, 0),
        ("y[i] = a[i] / b[i] + c[i]", {"div": 1, "add": 1}, 0),
        ("y[i] *= a[i]", {"mul": 1}, 0),
        ("y[i] *= a[i] * b[i]", {"mul": 2}, 0),
        ("y[i] /= a[i] * b[i]", {"mul": 1, "div": 1}, 0),
        ("y[i] min= a[i] * b[i]", {"min": 1, "mul": 1}, 0),
        ("y[i] max= a[i] + b[i]", {"min": 1, "add": 1}, 0),
        ("y[i] = min(a[i], b[i], c[i])", {"min": 2}, 0),
        ("y[i] = max(a[i], 0.0)", {"min": 1}, 0),
        ("y[i] = exp(a[i]) + sigmoid(b[i]) + rsqrt(c[i])", {"special": 3, "add": 2}, 0),
        ("y[i] += 1.0", {"add": 1}, 0),
        ("y[i] = a[i]*b[i] + c[i]*d[i] + x[i]*x[i]", {"mul": 3, "add": 2}, 2),
        ("y[i] += a[i] * b[i] + c[i] * d[i]", {"mul": 2, "add": 2}, 1),
    ],
)
def test_real_statements(statement: str, operations: dict[str, int], pairs: int) -> None:
    got = one(statement)
    assert got.operations == {("f64", name): n for name, n in operations.items()}
    assert got.fused_pairs == ({"f64": pairs} if pairs else {})
    assert (got.cmp, got.casts) == (0, 0)
    assert got.total == sum(operations.values())


def test_alpha_and_the_ceiling() -> None:
    """60 % fused is 80 % of the fused peak (rule 5)."""
    got = total(counts("y[i] += alpha * x[i]\n" * 3 + "y[i] = a[i] + b[i]\ny[i] = a[i] * b[i]"))
    alpha = got.fma_fraction
    assert alpha == pytest.approx(0.6)
    assert (2 * alpha + 1 - alpha) / 2 == pytest.approx(0.8)
    assert one("y[i] = a[i]").operations == {} and total(counts("y[i] = a[i]")).fma_fraction is None


@pytest.mark.parametrize(
    ("lines", "pairs"),
    [
        ("let t = a[i] * b[i]\ny[i] = t + c[i]", 1),
        ("let t = -(a[i] * b[i])\ny[i] -= t", 1),
        ("let t = a[i] * b[i]\nlet u = t\ny[i] += u", 1),
        ("let t = a[i] * b[i]\ny[i] = t + t", 0),
        ("let t = a[i] * b[i]\ny[i] = t + c[i]\ny[i] += t", 0),
        ("let t = a[i] * b[i] + 1.0\ny[i] += t", 1),
        ("let t = a[i] + b[i]\ny[i] += t", 0),
        ("let t = a[i] * b[i]\nif i > 2:\n    y[i] += t", 0),
        ("let t = a[i] * b[i]\nfor j in range(m):\n    y[i] += t", 0),
        ("if i > 2:\n    let t = a[i] * b[i]\n    y[i] += t", 1),
        ("let t = a[i] * b[i]\nfor j in range(m):\n    y[i] += c[i] * d[i]\ny[i] += t", 2),
    ],
)
def test_pairs_through_a_let(lines: str, pairs: int) -> None:
    got = total(counts(lines))
    assert sum(got.fused_pairs.values()) == pairs


def test_a_pair_through_a_let_is_counted_where_the_addition_is() -> None:
    let, update = counts("let t = a[i] * b[i]\ny[i] += t")
    assert isinstance(let.statement, Let)
    assert (let.operations, let.fused_pairs) == ({("f64", "mul"): 1}, {})
    assert (update.operations, update.fused_pairs) == ({("f64", "add"): 1}, {"f64": 1})


def test_names_of_lets_are_those_in_scope() -> None:
    """Two lets of one name in two blocks: each has its own uses."""
    lines = "if i > 2:\n    let t = a[i] * b[i]\n    y[i] += t\nelse:\n    let t = c[i] * d[i]\n    y[i] = t + t"
    got = counts(lines)
    assert [sum(s.fused_pairs.values()) for s in got] == [0, 1, 0, 0]


COMPLEX = "in a, b, x: {t}[n]; inout y: {t}[n]; in r: f64[n], q: f32[n]; out s: f64[n]"


@pytest.mark.parametrize(
    ("statement", "operations", "pairs"),
    [
        ("y[i] = a[i] + b[i]", {"add": 2}, 0),
        ("y[i] = r[i] * a[i]", {"mul": 2}, 0),
        ("y[i] = 0.5 * a[i]", {"mul": 2}, 0),
        ("y[i] = a[i] * b[i]", {"mul": 4, "add": 2}, 2),
        ("y[i] += a[i] * x[i]", {"mul": 4, "add": 4}, 4),
        ("y[i] -= x[i] * conj(a[i])", {"mul": 4, "add": 4}, 4),
        ("y[i] += r[i] * x[i]", {"mul": 2, "add": 2}, 2),
        ("y[i] += r[i] * r[i]", {"mul": 1, "add": 2}, 1),
        ("y[i] = a[i] * b[i] + x[i] * x[i]", {"mul": 8, "add": 6}, 6),
        ("y[i] = a[i] / b[i]", {"mul": 6, "add": 3, "div": 2}, 3),
        ("y[i] = a[i] / r[i]", {"div": 2}, 0),
        ("y[i] = r[i] / a[i]", {"mul": 4, "add": 1, "div": 2}, 1),
        ("y[i] *= a[i]", {"mul": 4, "add": 2}, 2),
        ("y[i] = a[i]**2", {"mul": 4, "add": 2}, 2),
        ("s[i] = abs(a[i])", {"mul": 2, "add": 1, "special": 1}, 1),
        ("s[i] = real(a[i]) + imag(b[i])", {"add": 1}, 0),
        ("y[i] = conj(a[i])", {}, 0),
        ("y[i] = conj(a[i] * b[i]) + x[i]", {"mul": 4, "add": 4}, 4),
    ],
)
def test_complex_arithmetic(statement: str, operations: dict[str, int], pairs: int) -> None:
    got = one(statement, COMPLEX, "c128")
    assert got.operations == {("f64", name): n for name, n in operations.items()}
    assert got.fused_pairs == ({"f64": pairs} if pairs else {})
    assert got.casts == 0


def test_complex_of_the_wider_component() -> None:
    got = one("y[i] = a[i] * r[i]", COMPLEX, "c64")
    assert got.operations == {("f64", "mul"): 2}
    assert got.casts == 2  # a into the operation, its result into y
    assert one("y[i] = a[i] * q[i]", COMPLEX, "c64").operations == {("f32", "mul"): 2}


def test_select_costs_both_arms_and_comparisons_stand_beside() -> None:
    got = one("y[i] = select(a[i] + b[i] < c[i], a[i] * b[i], exp(c[i]))")
    assert got.operations == {("f64", "add"): 1, ("f64", "mul"): 1, ("f64", "special"): 1}
    assert (got.cmp, got.total, got.fused_pairs) == (1, 3, {})
    assert one("y[i] = select(a[i] < 0, a[i] * b[i], 0.0) + c[i]").fused_pairs == {}


@pytest.mark.parametrize(
    ("value", "operations", "pairs"),
    [
        ("2 * select(a[i] < 0, 3, 4)", {("f64", "mul"): 1}, 0),
        ("select(a[i] < 0, 1, 2) * select(b[i] < 0, 3, n) + 1", {("f64", "mul"): 1, ("f64", "add"): 1}, 1),
        ("sqrt(select(a[i] < 0, 4, i)) - 3", {("f64", "special"): 1, ("f64", "add"): 1}, 0),
        ("select(a[i] < 0, select(b[i] < 0, 1, 2) / 3, 0)", {("f64", "div"): 1}, 0),
        ("select(select(a[i] < 0, 1, 2) + n < 9, 1, 2)", {("f64", "add"): 1}, 0),
        ("select(a[i] < 0, 3, 4)", {}, 0),
        ("2 * n * abs(3 - n)", {}, 0),
    ],
)
def test_operations_on_numbers_that_data_choose_count(
    value: str, operations: dict[tuple[str, str], int], pairs: int
) -> None:
    """Rule 2: only what contains no data is free."""
    cost = one(f"y[i] = {value}")
    assert (cost.operations, sum(cost.fused_pairs.values()), cost.casts) == (operations, pairs, 0)


def test_numbers_that_data_choose_have_the_type_of_what_they_meet() -> None:
    mixed = "in x, z: i32[n], w: f32[n]; out y: f64[n]"
    assert one("y[i] = select(x[i] < 0, 1, 2) * 3 * w[i]", mixed).operations == {("f32", "mul"): 2}
    assert one("y[i] = select(x[i] < 0, 1, 2) * 3 * z[i]", mixed).operations == {("i32", "mul"): 2}
    let, use = counts("let t = select(x[i] < 0, 1, 2) * 3\ny[i] = t * w[i]", mixed)
    assert let.total == use.total == 1


MIXED = "in h, g: f16[n], k: bf16[n], s: f32[n], d: f64[n], p: i8[n], e: i32[n], o: f8[n], z: tf32[n]; \
inout H: f16[n], S: f32[n], D: f64[n], E: i32[n]"


@pytest.mark.parametrize(
    ("statement", "operations", "pairs", "casts"),
    [
        ("S[i] += h[i] * g[i]", {("f16", "mul"): 1, ("f16", "add"): 1}, {"f16": 1}, 0),
        ("S[i] = s[i] + h[i] * g[i]", {("f16", "mul"): 1, ("f16", "add"): 1}, {"f16": 1}, 0),
        ("S[i] += h[i]", {("f32", "add"): 1}, {}, 1),
        ("S[i] += h[i] * s[i]", {("f32", "mul"): 1, ("f32", "add"): 1}, {"f32": 1}, 1),
        ("H[i] += s[i] * s[i]", {("f32", "mul"): 1, ("f32", "add"): 1}, {"f32": 1}, 2),
        ("S[i] = h[i] + k[i]", {("f32", "add"): 1}, {}, 2),
        ("H[i] = h[i] * k[i]", {("f32", "mul"): 1}, {}, 3),
        ("H[i] = s[i]", {}, {}, 1),
        ("D[i] = e[i] * d[i]", {("f64", "mul"): 1}, {}, 1),
        ("E[i] += p[i] * p[i]", {("i8", "mul"): 1, ("i8", "add"): 1}, {"i8": 1}, 0),
        ("E[i] += e[i] * e[i]", {("i32", "mul"): 1, ("i32", "add"): 1}, {"i32": 1}, 0),
        ("D[i] += e[i] * e[i]", {("i32", "mul"): 1, ("f64", "add"): 1}, {}, 1),
        ("D[i] = h[i]*g[i] + d[i]*d[i]", {("f16", "mul"): 1, ("f64", "mul"): 1, ("f64", "add"): 1}, {"f64": 1}, 1),
        ("S[i] += o[i] * o[i]", {("f8", "mul"): 1, ("f8", "add"): 1}, {"f8": 1}, 0),
        ("S[i] += z[i] * z[i]", {("tf32", "mul"): 1, ("tf32", "add"): 1}, {"tf32": 1}, 0),
        ("S[i] = s[i] * 2", {("f32", "mul"): 1}, {}, 0),
        ("S[i] = select(h[i] < s[i], s[i], s[i])", {}, {}, 1),
    ],
)
def test_types_and_casts(
    statement: str, operations: dict[tuple[str, str], int], pairs: dict[str, int], casts: int
) -> None:
    got = one(statement, MIXED)
    assert (got.operations, got.fused_pairs, got.casts) == (operations, pairs, casts)


INTEGERS = "in x, z: i32[n]; in w: f32[n]; in big: i64[n]; inout y: f64[n]; inout v: i32[n]"


@pytest.mark.parametrize(
    ("statement", "types", "casts"),
    [
        ("y[i] = 0.5 * x[i]", {("f64", "mul"): 1}, 1),
        ("y[i] = x[i] * z[i]", {("i32", "mul"): 1}, 1),
        ("y[i] = 2 * x[i] + 3", {("i32", "mul"): 1, ("i32", "add"): 1}, 1),
        ("y[i] = x[i] / 2", {("i32", "div"): 1}, 1),
        ("y[i] = (n / 2) * x[i]", {("f64", "mul"): 1}, 1),
        ("y[i] = (2 + 0.5 * 3) * x[i]", {("f64", "mul"): 1}, 1),
        ("y[i] = sqrt(n) * x[i]", {("f64", "mul"): 1}, 1),
        ("y[i] = sqrt(x[i])", {("f64", "special"): 1}, 1),
        ("y[i] = min(x[i], 0.5)", {("f64", "min"): 1}, 1),
        ("y[i] = max(x[i], z[i], 0)", {("i32", "min"): 2}, 1),
        ("y[i] = abs(x[i]) + 1", {("i32", "add"): 1}, 1),
        ("y[i] = max(0.5, 2) * x[i]", {("f64", "mul"): 1}, 1),
        ("y[i] = select(x[i] < z[i], 0.5, 1) * x[i]", {("f64", "mul"): 1}, 1),
        ("y[i] = 0.5 * w[i] + x[i]", {("f32", "mul"): 1, ("f32", "add"): 1}, 2),
        ("y[i] = 0.5 * big[i]", {("f64", "mul"): 1}, 1),
        ("v[i] += 0.5 * x[i]", {("f64", "mul"): 1, ("f64", "add"): 1}, 3),
        ("v[i] *= 0.5", {("f64", "mul"): 1}, 2),
    ],
)
def test_integers_with_a_fraction_are_f64(statement: str, types: dict[tuple[str, str], int], casts: int) -> None:
    """Rule 7; the types are those in which the generated code computes."""
    cost = one(statement, INTEGERS)
    assert (cost.operations, cost.casts) == (types, casts)
    assert isinstance(cost.statement, Assign)
    if cost.statement.op == "=" and "abs" not in statement:
        assert settled(kind_of(cost.statement.value)) in {name for name, _ in types}


@pytest.mark.parametrize("value", ["0.5 * x[i]", "sqrt(x[i])", "(n / 2) * x[i]", "min(x[i], 0.5)", "0.5 * big[i]"])
def test_a_let_of_integers_with_a_fraction_is_f64(value: str) -> None:
    """As the value is that is written in its place: one cast, and nothing is rounded to an integer."""
    let, use = counts(f"let t = {value}\ny[i] = t + t", INTEGERS)
    assert (let.casts, use.casts) == (1, 0)
    assert {name for name, _ in let.operations} == {"f64"} and use.operations == {("f64", "add"): 1}


def test_tf32_as_the_compute_type_of_an_f32_kernel() -> None:
    got = one("y[i] += a[i] * b[i]", t="f32", extra="compute tf32")
    assert got.operations == {("tf32", "mul"): 1, ("tf32", "add"): 1}
    assert (got.fused_pairs, got.casts) == ({"tf32": 1}, 0)


def test_every_statement_in_textual_order() -> None:
    lines = "count edges 2\nif i > 1:\n    y[i] = a[i]\nelse:\n    let t = a[i]\n    y[i] += t\ny[i] *= b[i]"
    got = counts(lines)
    assert [type(s.statement).__name__ for s in got] == ["Count", "Assign", "Let", "Assign", "Assign"]
    assert isinstance(got[0].statement, Count) and got[0].total == 0
    assert [s.total for s in got] == [0, 0, 0, 1, 1]


def test_weighed_multiplies_and_refuses_another_length() -> None:
    statements = counts("y[i] += a[i] * b[i]\ny[i] = select(a[i] < b[i], a[i] + b[i], 0.0)")
    assert weighed(statements, [10, 3]) == WorkAt({("f64", "mul"): 10, ("f64", "add"): 13}, {"f64": 10}, cmp=3)
    with pytest.raises(ValueError, match="zip"):
        weighed(statements, [1])


def test_dot_of_two_f16_vectors() -> None:
    """W = 2N for s = 0 first (the closed forms that must come out)."""
    kernel = kernel_of(next(f.text for f in families() if f.name == "dot"))
    got = weighed(operation_counts(kernel), list(executions(kernel, {"n": 9}).values()))
    assert (got.total, got.fused_pairs, got.fma_fraction) == (18, {"f16": 9}, 1.0)


@pytest.mark.spread(15, 150)
@pytest.mark.parametrize("seed", range(300))
def test_against_execution(seed: int) -> None:
    """Counting what an execution does gives the static counts times the executions."""
    case = random_kernel(seed)
    kernel = kernel_of(case.text)
    if any(a.type.kind == "complex" for a in kernel.arrays):
        return
    for size in case.sizes[:2]:
        got = weighed(operation_counts(kernel), list(executions(kernel, size).values()))
        seen = executed(kernel, size)
        by_class: dict[str, int] = {}
        for (_, name), n in got.operations.items():
            by_class[name] = by_class.get(name, 0) + n
        assert by_class == seen.operations, case.text
        assert got.cmp == seen.cmp
        if " if " not in case.text:
            assert sum(got.fused_pairs.values()) == seen.pairs, case.text

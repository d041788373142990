"""Lowering: what the loop model holds for a text."""

from __future__ import annotations

from functools import partial

import pytest

from roofdsl.counts.work_at import work_at
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.source import Source, Span
from roofdsl.lang.types import TYPES
from roofdsl.loops.integers import And, Compare, Const, FloorDiv, Max, Min, Mod, Not, Product, Sum, Sym
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import (
    Assign,
    Binary,
    Call,
    DataCompare,
    Element,
    Expr,
    For,
    If,
    IntValue,
    Kernel,
    Let,
    LetRef,
    Number,
    ScalarRef,
    Select,
    Tile,
    Unary,
)

HEAD = "kernel k(n, m, const s = 2):\n    in A: f64[n, n], x: f32[n], h: f16[n], g: bf16[n]\n"
HEAD += "    in z: c64[n], v: i32[n], c: f32\n"


def lowered(*lines: str, **settings: int) -> Kernel:
    text = HEAD + "    out y: f64[n], w: c128[n], u: i32[n]\n" + "".join(f"    {line}\n" for line in lines)
    return kernel(load_file(Source("t", text)), None, settings)


def value(text: str, **settings: int) -> Expr:
    body = lowered(f"for i in range(n): w[i] = {text}", **settings).body
    assert isinstance(body[0], For) and isinstance(body[0].body[0], Assign)
    return body[0].body[0].value


def first(*lines: str, **settings: int) -> For:
    node = lowered(*lines, **settings).body[0]
    assert isinstance(node, For)
    return node


SPAN = Span(1, 1, 1, 1)
number = partial(Number, span=SPAN)
integer = partial(IntValue, span=SPAN)
binary = partial(Binary, span=SPAN)
unary = partial(Unary, span=SPAN)
call = partial(Call, span=SPAN)
scalar = partial(ScalarRef, span=SPAN)
let_ref = partial(LetRef, span=SPAN)
select = partial(Select, span=SPAN)
compared = partial(DataCompare, span=SPAN)
i, n, m = Sym("i"), Sym("n"), Sym("m")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2", number(2)),
        ("-2.5", number(-2.5)),
        ("2 * 3 + 4", number(10)),
        ("7 // 2 - 7 % 4", number(0)),
        ("-7 // 2", number(-4)),
        ("i", integer(i)),
        ("s", number(2)),
        ("2 * n * s", integer(Product((Const(4), n)))),
        ("i - n", integer(Sum((i, Product((Const(-1), n)))))),
        ("-i", integer(Product((Const(-1), i)))),
        ("i**2", integer(Product((i, i)))),
        ("(i + 1) // 2 % 3", integer(Mod(FloorDiv(Sum((i, Const(1))), Const(2)), Const(3)))),
        ("i / n", binary("/", integer(i), integer(n))),
        ("0.5 * n", binary("*", number(0.5), integer(n))),
    ],
)
def test_integers_in_values(text: str, expected: Expr) -> None:
    assert value(text) == expected


def test_a_whole_number_is_no_number_with_a_fraction() -> None:
    """v[i] * 2 is of i32, v[i] * 2.0 of f64 (rule 7): what is kept of one kernel is not that of the other."""
    assert number(2) != number(2.0) and len({number(2), number(2.0)}) == 2
    whole, fraction = lowered("u[0] = v[0] * 2"), lowered("u[0] = v[0] * 2.0")
    assert whole != fraction and whole == lowered("u[0] = v[0] * 2")
    assert set(work_at(whole, {"n": 1, "m": 1}).by_type) == {"i32"} and set(
        work_at(fraction, {"n": 1, "m": 1}).by_type
    ) == {"f64"}


def test_integer_parts_of_products_stay_together() -> None:
    result = value("2 * n * x[i]")
    assert isinstance(result, Binary) and result.left == integer(Product((Const(2), n)))
    assert isinstance(result.right, Element)


def test_values() -> None:
    k = lowered("y[0] = c")
    arrays = {a.name: a for a in k.arrays}
    x = Element(arrays["x"], (i,), SPAN)
    assert value("c * x[i]") == binary("*", scalar(arrays["c"]), x)
    assert value("x[i]**3") == binary("**", x, number(3))
    assert value("-x[i]") == unary("-", x)
    assert value("+(x[i])") == x
    assert value("max(x[i], 0)") == call("max", (x, number(0)))
    assert value("select((x[i] <= c), 1, x[i])") == select(compared("<=", x, scalar(arrays["c"])), number(1), x)


def test_const_parameters_take_their_settings() -> None:
    assert lowered("y[0] = 1").constants == (("s", 2),)
    k = lowered("for i in range(n): y[s * i + s] = x[i // s]", s=3)
    assert [p.name for p in k.parameters] == ["n", "m"] and k.constants == (("s", 3),)
    loop = k.body[0]
    assert isinstance(loop, For) and isinstance(loop.body[0], Assign) and isinstance(loop.body[0].target, Element)
    assert loop.body[0].target.subscripts == (Sum((Product((Const(3), i)), Const(3))),)


def test_const_parameters_must_have_values() -> None:
    text = "kernel k(const s):\n    out y: f64[s]\n    y[0] = 1\n"
    with pytest.raises(CommandError, match="needs a number for its `const` parameter `s`"):
        kernel(load_file(Source("t", text)), "k", {})
    for wrong in (0, -2, 2**63):
        with pytest.raises(CommandError, match="positive integer"):
            kernel(load_file(Source("t", text)), "k", {"s": wrong})


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("for i in range(n): y[i // (s - 2)] = 1", "divisor"),
        ("for i in range(n): y[i] = i % (1 - s)", "divisor"),
        ("for i in range(0, n, s - 2): y[i] = 1", "loop-step"),
        ("for i in range(s ** 63): y[i] = 1", "number-range"),
        ("for i in range(n): y[i] = ((i**64)**64)**64", "exponent"),
    ],
)
def test_faults_that_constants_bring_out(line: str, code: str) -> None:
    with pytest.raises(InputError, match="with s = 2") as caught:
        lowered(line)
    assert caught.value.diagnostics[0].code == code
    assert caught.value.diagnostics[0].span.line == 5


def test_a_false_assumption_of_constants_is_an_error() -> None:
    text = "kernel k(n, const s = 2):\n    assume s > 3, n > s\n    out y: f64[n]\n    y[0] = 1\n"
    with pytest.raises(CommandError, match="an assumption of the kernel does not hold with s = 2"):
        kernel(load_file(Source("t", text)), None, {})
    assert kernel(load_file(Source("t", text)), None, {"s": 4}).assumptions == (Compare(">", n, Const(4)),)


def test_ranges() -> None:
    loop = first("for i in range(n): y[i] = 1")
    assert (loop.start, loop.stop, loop.step) == (Const(0), n, Const(1))
    loop = first("for i in range(max(0, n - m, 1), min(n, min(m, 5)), m): y[i] = 1")
    assert loop.start == Max((Sum((n, Product((Const(-1), m)))), Const(1)))
    assert (loop.stop, loop.step) == (Min((n, m, Const(5))), m)
    loop = first("parallel for i in range(n), j in range(i): y[i] = 1")
    inner = loop.body[0]
    assert isinstance(inner, For) and loop.parallel and inner.parallel and inner.stop == i


def test_conditions_and_branches() -> None:
    node = lowered("if 0 < n <= 4 and not n == 2: y[0] = 1", "elif n > m: y[0] = 2", "else: y[0] = 3").body[0]
    assert isinstance(node, If)
    between = (Compare("<", Const(0), n), Compare("<=", n, Const(4)))
    assert node.condition == And((*between, Not(Compare("==", n, Const(2)))))
    nested = node.orelse[0]
    assert isinstance(nested, If) and nested.condition == Compare(">", n, m)
    assert isinstance(nested.orelse[0], Assign) and nested.orelse[0].value == number(3)


@pytest.mark.parametrize(
    ("text", "use", "type_name"),
    [
        ("x[i]", "t", "f32"),
        ("x[i] * A[i, i]", "t", "f64"),
        ("h[i] + g[i]", "t", "f32"),
        ("v[i] * h[i]", "t", "f16"),
        ("v[i] + 1", "t", "i32"),
        ("v[i] / 2 + n", "t", "i32"),
        ("max(v[i], 2, n)", "t", "i32"),
        ("0.5 * v[i]", "t", "f64"),
        ("-(1 / n) * v[i]", "t", "f64"),
        ("(0.5 + n) * v[i] + v[i]", "t", "f64"),
        ("sqrt(v[i])", "t", "f64"),
        ("sqrt(n) * v[i]", "t", "f64"),
        ("min(v[i], 0.5)", "t", "f64"),
        ("select(v[i] < 0, v[i], 0.5)", "t", "f64"),
        ("select(v[i] < 0, 0.5, 2) * v[i]", "t", "f64"),
        ("0.5 * v[i] * x[i]", "t", "f64"),
        ("0.5 * x[i] * v[i]", "t", "f32"),
        ("x[i] * z[i]", "t", "c64"),
        ("A[i, i] * z[i]", "t", "c128"),
        ("abs(z[i])", "t", "f32"),
        ("select(A[i, i] < 0, x[i], h[i])", "t", "f32"),
        ("2.5", "t * x[i]", "f32"),
        ("2.5", "x[i] * z[i] * t", "f32"),
        ("2.5", "t * v[i]", "f64"),
        ("2 * n", "t * v[i]", "i32"),
        ("1 / n", "h[i] + t", "f16"),
        ("2", "t", "f64"),
    ],
)
def test_types_of_lets(text: str, use: str, type_name: str) -> None:
    body = first("for i in range(n):", f"    let t = {text}", f"    w[i] = {use}").body
    assert isinstance(body[0], Let) and body[0].type is TYPES[type_name]


def test_plain_lets_through_lets_and_blocks() -> None:
    body = first("for i in range(n):", "    let a = 0.5", "    let b = a * 2", "    if i > 2: y[i] = x[i] * b").body
    assert [node.type.name for node in body if isinstance(node, Let)] == ["f32", "f32"]


@pytest.mark.parametrize(
    ("lines", "type_name"),
    [
        (["let t = 2", "w[i] = A[i, i] + v[i] / t"], "i32"),  # what else the statement adds does not matter
        (["let t = 0.5", "w[i] = A[i, i] + x[i] * t"], "f32"),
        (["let t = 2", "let q = v[i]", "w[i] = q / t"], "i32"),
        (["let t = 2", "w[i] = A[i, i] + v[i] / (t + 1)"], "i32"),
        (["let t = 2", "w[i] = A[i, i] + select(v[i] < t, 1, 2)"], "i32"),
        (["let t = 2", "w[i] = A[i, i] + (v[i] - abs(-t**2))"], "i32"),
        (["let t = 7", "let q = t / 2", "w[i] = v[i] * q"], "f64"),  # q may have a fraction
        (["let t = 7", "w[i] = t / 2 * v[i]"], "f64"),
        (["let t = 7", "w[i] = v[i] * t / 2"], "i32"),
        (["let t = 7", "w[i] = v[i] * sqrt(t)"], "f64"),
    ],
)
def test_plain_lets_have_the_type_of_their_operand(lines: list[str], type_name: str) -> None:
    body = first("for i in range(n):", *(f"    {line}" for line in lines)).body
    assert isinstance(body[0], Let) and body[0].type is TYPES[type_name]


def test_lets_end_with_their_block() -> None:
    k = lowered(
        "for i in range(n):",
        "    let t = x[i]",
        "    y[i] = t",
        "for i in range(n):",
        "    let t = A[i, i]",
        "    y[i] = t",
    )
    second = k.body[1]
    assert isinstance(second, For) and isinstance(second.body[1], Assign)
    assert second.body[1].value == let_ref("t", TYPES["f64"])


def test_directives_and_properties() -> None:
    text = "cost div 4\ntraffic once\nkernel k(n, b, const s = 8):\n    in x: f32[n] col, c: f32\n"
    text += "    out y: f32[n, min(n, b)]\n"
    text += "    tile i by s\n    unit tensor\n    compute tf32\n    for i in range(n): y[i, 0] = x[i]\n"
    k = kernel(load_file(Source("t", text)), None, {})
    assert k.directives == (Tile(("i",), (Const(8),), SPAN),)
    assert (k.traffic, k.unit, k.compute_type, k.costs) == ("once", "tensor", TYPES["tf32"], (("div", 4.0),))
    x, c, y = k.arrays
    assert x.column_major and not c.dims and c.is_scalar and y.dims == (n, Min((n, Sym("b"))))

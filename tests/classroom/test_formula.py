"""The language of answers: what it takes, what it refuses and how it says so, and what counts as equal."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

from roofdsl.classroom.answer_language import parse, parse_condition, show
from roofdsl.classroom.equality import Symbol, equal, leading_equal, relation
from roofdsl.classroom.exact import dimension, evaluate, holds
from roofdsl.classroom.formula_errors import FormulaError

N = {"n": Symbol("n"), "m": Symbol("m")}
TILED = {"n": Symbol("n", multiple_of="b"), "b": Symbol("b")}

VALUES = [
    ("2*n**2 + 3", 2 * 7**2 + 3),
    ("-n**2", -49),
    ("2**-1", Fraction(1, 2)),
    ("2**3**2", 512),
    ("n//2*2", 6),
    ("1/2/2", Fraction(1, 4)),
    ("min(n, 3, 5) + max(1, n)", 10),
    ("floor(n/2) + ceil(n/2)", 7),
    ("sqrt(49) + log2(1024)", 17),
    ("4**(1/2)", 2),
    ("1_000 + .5 + 2e3", Fraction(6001, 2)),
    ("n × 2 − 1", 13),
    ("n² + n³", 49 + 343),
    ("((n))", 7),
    ("+n - -n", 14),
]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_values(text: str, value: Fraction) -> None:
    node = parse(text, ["n"])
    assert evaluate(node, {"n": Fraction(7)}) == value
    assert evaluate(parse(show(node), ["n"]), {"n": Fraction(7)}) == value


REFUSED = [
    ("", "empty"),
    ("2n", "`*`, as in 2*n"),
    ("n^2", "write powers as `**`"),
    ("W = 2*n", "only the right-hand side"),
    ("x + 1", "`x` is not known here; the only name is n"),
    ("n +", "ends where"),
    ("(n", "not closed"),
    ("n)", "`)` is not expected"),
    ("exp(n)", "there is no function `exp`"),
    ("sqrt", "is a function"),
    ("sqrt(1, 2)", "takes 1 values, and 2"),
    ("min(n)", "takes 2 to 8"),
    ("12 GB", "`GB` is a unit"),
    ("n.real", "`.` is not part"),
    ("n[0]", "`[` is not part"),
    ("'n'", "`'` is not part"),
    ("0,25", "decimal point"),
    ("n; n", "`;` is not part"),
    ("lambda: 0", "`:` is not part"),
    ("lambda + 0", "`lambda` is not known"),
    ("__import__(1)", "no function `__import__`"),
    ("\u0663", "is not part"),  # a digit of another script
    ("(" * 100 + "n" + ")" * 100, "nested more than 40"),
    ("-" * 100 + "n", "nested more than 40"),
    ("n" + "+n" * 400, "limit is 500"),
    ("1" * 60, "more digits"),
    ("1e200", "more digits"),
    ("n < 2", "`<` is not expected"),
]


@pytest.mark.parametrize(("text", "says"), REFUSED)
def test_what_is_no_formula_is_told(text: str, says: str) -> None:
    with pytest.raises(FormulaError) as error:
        parse(text, ["n"])
    assert says in str(error.value)


OUT_OF_REACH = [
    "9**9**9",
    "9**64**64",
    "n**1000",
    "2**n",
    "1/(n - n)",
    "sqrt(-n)",
    "log2(0)",
    "(1e90*1e90)**4",
    "0**-1",
]


@pytest.mark.parametrize("text", OUT_OF_REACH)
def test_what_has_no_value_is_told(text: str) -> None:
    with pytest.raises(FormulaError):
        evaluate(parse(text, ["n"]), {"n": Fraction(4711)})


EQUAL = [
    ("2*n*m", "m*(n + n)"),
    ("n/(4*n + 8)", "1/(4 + 8/n)"),
    ("(n + 1)**3", "n**3 + 3*n**2 + 3*n + 1"),
    ("sqrt(n)*sqrt(n)", "n"),
    ("sqrt(n**2)", "n"),
    ("log2(4*n)", "log2(n) + 2"),
    ("sqrt(n/24)/12", "sqrt(n)/(24*sqrt(6))"),
    ("floor(n)", "n"),
    ("max(n, -n)", "n"),
    ("n*(n - 1)//2", "n*(n - 1)/2"),
]
DIFFERENT = [
    ("n", "n + 1"),
    ("n", "n + 1/10**40"),
    ("sqrt(n)", "sqrt(n + 1/10**60)"),
    ("floor(n/2)", "n/2"),
    ("n**2", "n**3"),
    ("max(n, m)", "n"),
    ("0", "n"),
    ("n*m", "m"),
    ("2*n**2 + n//4096", "2*n**2"),
    ("2*n**2 + floor(n/10**9)", "2*n**2"),
    ("min(2*n**2, 10**9)", "2*n**2"),
    ("max(2*n**2, n**3/10**7)", "2*n**2"),
]
SMALL = [
    ("16", "min(n, 16)"),
    ("n", "max(n, 8)"),
    ("n - 3", "max(n - 3, 0)"),
    ("0", "floor(1/n)"),
    ("m", "min(8*n*n, m)"),
    ("n", "n//min(n, m)*min(n, m)"),
]


@pytest.mark.parametrize(("a", "b"), EQUAL)
def test_equal(a: str, b: str) -> None:
    assert equal(parse(a, N), parse(b, N), N) and equal(parse(b, N), parse(a, N), N)


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_different(a: str, b: str) -> None:
    assert not equal(parse(a, N), parse(b, N), N) and not equal(parse(b, N), parse(a, N), N)


@pytest.mark.parametrize(("answer", "right"), SMALL)
def test_different_for_some_sizes(answer: str, right: str) -> None:
    assert not equal(parse(answer, N), parse(right, N), N) and equal(parse(right, N), parse(right, N), N)


def test_a_right_formula_without_minima_may_be_for_large_sizes_only() -> None:
    assert equal(parse("max(n - 3, 0)", N), parse("n - 3", N), N)


def test_multiples_are_kept() -> None:
    assert equal(parse("floor(n/b)", TILED), parse("n/b", TILED), TILED)
    assert equal(parse("n/b", TILED), parse("floor(n/b)", TILED), TILED)
    assert not equal(parse("floor(n/(2*b))", TILED), parse("n/(2*b)", TILED), TILED)


def test_how_wrong_answers_are_related() -> None:
    right = parse("8*n**2 + 16*n", N)
    assert relation(parse("4*n**2 + 8*n", N), right, N) == "proportional"
    assert relation(parse("8*n**2", N), right, N) == "leading"
    assert relation(parse("8*n**3", N), right, N) == "different"
    assert relation(parse("16", N), parse("min(n, 16)", N), N) == "large"
    assert relation(parse("n**8", N), parse("1/n**4", N), N) == "different"
    assert relation(parse("n**9", N), right, N) == "different"
    assert relation(parse("floor(0.5)", N), parse("sqrt(n)", N), N) == "different"
    assert relation(parse("3", N), parse("sqrt(n)", N), N) == "different"
    assert relation(parse("3*sqrt(n)", N), parse("sqrt(n)", N), N) == "proportional"
    assert leading_equal(parse("24*n**3/b + n*b", TILED), parse("24*n**3/b", TILED), TILED)
    assert not leading_equal(parse("24*n**3/b + n**3", TILED), parse("24*n**3/b", TILED), TILED)


def test_one_size_does_not_stand_for_another_in_a_leading_term() -> None:
    two = {name: Symbol(name) for name in ("n", "S")}
    right = parse("2*n**3/sqrt(S)", two)
    assert leading_equal(parse("2*n**3/sqrt(S) + n**2", two), right, two)
    for wrong in ("2*n**2.5", "2*S**2.5", "2*S**3/sqrt(n)", "2*n*S**1.5"):
        assert not leading_equal(parse(wrong, two), right, two), wrong


def test_random_formulas_agree_with_python_floats() -> None:
    rng = random.Random(7)

    def made(depth: int) -> str:
        if depth == 0 or rng.random() < 0.2:
            return rng.choice(["n", "m", str(rng.randrange(1, 9)), "0.5"])
        a, b = made(depth - 1), made(depth - 1)
        return rng.choice(
            [f"({a} + {b})", f"({a} - {b})", f"{a}*{b}", f"({a})/({b} + 97)", f"max({a}, {b})", f"({a})**2"]
        )

    for _ in range(200):
        text = made(4)
        value = eval(text, {"n": 3.5, "m": 2.25, "max": max})  # our own text, of the six shapes above
        try:
            found = evaluate(parse(text, N), {"n": Fraction(7, 2), "m": Fraction(9, 4)})
        except FormulaError:
            assert abs(value) > 1e200 or len(text) > 500
            continue
        assert math.isclose(float(found), value, rel_tol=1e-9, abs_tol=1e-9), text


UNITS = [
    ("900 GB/s * 0.25 FLOP/B", "FLOP/s", 225e9),
    ("1 / 900 GB/s", "s/B", 1 / 900e9),
    ("225 GFLOPs/s", "FLOP/s", 225e9),
    ("2 us + 300 ns", "s", 2.3e-6),
    ("3 KiB", "B", 3072),
    ("8 Gbit/s", "B/s", 1e9),
    ("7.78 FLOP/B", "FLOP/B", 7.78),
    ("37.5 GF/sec", "FLOP/s", 37.5e9),
    ("2 µs", "s", 2e-6),
    ("2 TOP/s", "FLOP/s", 2e12),
]


@pytest.mark.parametrize(("text", "unit", "value"), UNITS)
def test_units(text: str, unit: str, value: float) -> None:
    node = parse(text, (), units=True)
    assert dimension(node).unit() == unit
    assert math.isclose(float(evaluate(node, {})), value)


@pytest.mark.parametrize("text", ["1 GB + 1 s", "sqrt(2 B)", "min(1 s, 1 B)", "GB", "(1 B)**0.5"])
def test_units_that_make_no_sense(text: str) -> None:
    with pytest.raises(FormulaError):
        dimension(parse(text, (), units=True))


def test_conditions() -> None:
    env = {"n": Fraction(8), "m": Fraction(2)}
    for text, right in [
        ("n > m and not n == 8", False),
        ("n >= 8 or 1/0 > 1", True),
        ("sqrt(n*m) == 4", True),
        ("sqrt(m) < n", True),
    ]:
        assert holds(parse_condition(text, N), env) is right

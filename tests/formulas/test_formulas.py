"""Closed forms as quotients: against sympy, and with sympy reading what is written."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from roofdsl.formulas import sympy_forms as expressions
from roofdsl.formulas.quotients import quotient, ratio_cases
from roofdsl.formulas.writing import form_text, latex, neat_text, ratio_text, text
from roofdsl.sets.cases import Case, Cases
from roofdsl.sets.quasi import Floor, Quasi

N, M, B = (Quasi.symbol(x) for x in ("n", "m", "b"))
LOCALS = {x: sympy.Symbol(x, integer=True, positive=True) for x in ("n", "m", "b")}
HALF = Quasi.symbol(Floor(N * Fraction(1, 2) + M * Fraction(1, 2)))


@pytest.mark.parametrize(
    ("top", "bottom", "expected"),
    [
        (2 * N**2, 8 * N**2 + 16 * N, "n/(4*n + 8)"),
        (2 * N**3, 24 * N**3 * B**-1, "b/12"),
        (N**3 * Fraction(1, 3) + N**2 * Fraction(1, 2) + N * Fraction(1, 6), 8 * N**2 + 8 * N, "n/24 + 1/48"),
        (N**2 - 1, N + 1, "n - 1"),
        (N**2 - M**2, N * 3 - M * 3, "m/3 + n/3"),
        (N * 0, N, "0"),
        (N + 2, -4 * N, "(-n - 2)/(4*n)"),
        (N * M * 2, N * M * 4 + N * 6, "m/(2*m + 3)"),
        (N + M, N * 2 + M * 2, "1/2"),
        (2 * N**2 * B, 3 * M * B**2, "2*n**2/(3*b*m)"),
        (N**2 * M * Fraction(1, 3), Quasi.constant(1), "m*n**2/3"),
        (24 * N**3, 5 * B, "24*n**3/(5*b)"),
        (HALF * N, 2 * N, "floor((m + n)/2)/2"),
    ],
)
def test_lowest_terms(top: Quasi, bottom: Quasi, expected: str) -> None:
    found = quotient(top, bottom)
    assert found is not None
    assert text(found) == expected
    difference = expressions.fraction(found) - expressions.polynomial(top) / expressions.polynomial(bottom)
    assert sympy.simplify(difference) == 0


def test_nothing_is_divided_by_nothing() -> None:
    assert quotient(N, N - N) is None


terms = st.dictionaries(
    st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(-1, 2)),
    st.fractions(-6, 6, max_denominator=6),
    max_size=4,
)


def _quasi(found: dict[tuple[int, int, int], Fraction]) -> Quasi:
    total = Quasi.constant(0)
    for (i, j, k), c in found.items():
        total = total + Quasi.constant(c) * N**i * M**j * B**k
    return total


@pytest.mark.thorough
@given(terms, terms, terms)
def test_quotients_keep_their_value_and_sympy_reads_them(
    first: dict[tuple[int, int, int], Fraction],
    second: dict[tuple[int, int, int], Fraction],
    common: dict[tuple[int, int, int], Fraction],
) -> None:
    factor = _quasi(common)
    top, bottom = _quasi(first) * factor, _quasi(second) * factor
    found = quotient(top, bottom)
    if found is None:
        assert not bottom
        return
    for n, m, b in ((7, 3, 2), (13, 29, 5), (1, 2, 3)):
        env = {"n": n, "m": m, "b": b}
        if bottom.evaluate(env):
            want = top.evaluate(env) / bottom.evaluate(env)
            assert found.top.evaluate(env) / found.bottom.evaluate(env) == want
            read = sympy.sympify(text(found), locals=LOCALS).subs({LOCALS[k]: v for k, v in env.items()})
            assert read == sympy.Rational(want.numerator, want.denominator)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (8 * N**2 + 16 * N, "8 n^{2} + 16 n"),
        (N**3 * Fraction(2, 3) - N, "\\frac{2 n^{3}}{3} - n"),
        (HALF * 8 * N, "8 n \\left\\lfloor \\frac{m + n}{2} \\right\\rfloor"),
        (N**2 * M * Fraction(1, 3) * B**-1, "\\frac{m n^{2}}{3 b}"),
        (N * 0 - 3, "-3"),
        (Quasi.symbol("batch") * Quasi.symbol("n_a"), "\\mathrm{batch} \\mathrm{n\\_a}"),
    ],
)
def test_latex(value: Quasi, expected: str) -> None:
    assert latex(value) == expected


@pytest.mark.parametrize("value", [8 * N**2 + 16 * N, N**2 * M * 3, N**3 * Fraction(2, 3), N**2 * Fraction(5, 1) - 7])
def test_latex_is_what_sympy_writes(value: Quasi) -> None:
    assert latex(value) == sympy.latex(expressions.polynomial(value))


SMALL = ((((N - 3), False),),)
EVEN = ((((N - 4), True),), ((N - 9, False), (M - 2, False)))


@pytest.mark.parametrize(
    ("top", "bottom", "expected"),
    [
        ("16*n - 16*h", "1", "16*ceiling(n/2)"),
        ("n**2", "16*h - 16*n - 64", "-n**2/(16*ceiling(n/2) + 64)"),  # the sign goes where the leading term is
        ("n**2 - n*h", "1", "n*ceiling(n/2)"),
        ("n + h", "1", "floor(n/2) + n"),  # not shorter
        ("h**2", "1", "floor(n/2)**2"),
    ],
)
def test_halves_are_rounded_up_where_that_is_shorter(top: str, bottom: str, expected: str) -> None:
    n, h = sympy.symbols("n h")
    half = Floor(Quasi.symbol("n") * Fraction(1, 2))

    def quasi(written: str) -> Quasi:
        polynomial = sympy.Poly(sympy.sympify(written, locals={"n": n, "h": h}), n, h)
        parts = (Quasi.symbol("n", a) * Quasi.symbol(half, b) * int(c) for (a, b), c in polynomial.terms())
        return sum(parts, Quasi.constant(0))

    value = quotient(quasi(top), quasi(bottom))
    assert value is not None
    told = neat_text(value)
    assert told == expected
    for size in range(1, 9):
        at = {"n": size, "h": size // 2}
        right = sympy.sympify(top).subs(at) / sympy.sympify(bottom).subs(at) if sympy.sympify(bottom).subs(at) else None
        assert right is None or sympy.sympify(told).subs({"n": size}) == right


def test_piecewise_forms_are_read_by_sympy() -> None:
    form = Cases((Case(SMALL, N * 2), Case(EVEN, N * M)))
    read = sympy.sympify(form_text(form), locals=LOCALS)
    for n in range(1, 12):
        for m in (1, 3):
            assert read.subs({LOCALS["n"]: n, LOCALS["m"]: m}) == form.evaluate({"n": n, "m": m})


@pytest.mark.parametrize("of_work", [True, False])
def test_ratios_of_cases(of_work: bool) -> None:
    top = Cases((Case(SMALL, N * 2),))
    bottom = Cases((Case(((((N - 2), False),),), N**2), Case(((((Quasi.constant(1) - N), False),),), N)))
    rows = ratio_cases(top, bottom, of_work=of_work)
    read = sympy.sympify(ratio_text(rows, otherwise="nan"), locals=LOCALS)
    assert sympy.simplify(read.subs(LOCALS["n"], 5)) == sympy.Rational(2, 5)
    for n in (1, 2):
        assert read.subs(LOCALS["n"], n) == (sympy.nan if of_work else 0)
    assert expressions.ratio(rows).subs(expressions.parameter("n"), 5) == sympy.Rational(2, 5)


def test_ratios_of_the_same_cases_are_simplified() -> None:
    top, bottom = Cases((Case(SMALL, N * 2),)), Cases((Case(SMALL, N**2 * 8),))
    assert ratio_text(ratio_cases(top, bottom), otherwise="nan") == "Piecewise((1/(4*n), n >= 3), (nan, True))"

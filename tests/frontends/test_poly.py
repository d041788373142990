"""Polynomials as text: what is written, read as the language reads it, has the polynomial's values."""

from __future__ import annotations

import random

import pytest

from roofdsl.frontends.poly import Poly, quotient, quotient_of
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import For

NAMES = ("i", "j", "n")


def random_poly(rng: random.Random, depth: int) -> Poly:
    """Sums of products of names, numbers, quotients and remainders, often with a negative first term."""
    total = Poly({})
    for _ in range(rng.randint(1, 3)):
        term = Poly.number(rng.choice([-3, -2, -1, -1, 1, 1, 2]))
        for _ in range(rng.randint(0, 2)):
            if depth and rng.random() < 0.6:
                factor = quotient(rng.choice(["//", "%"]), random_poly(rng, depth - 1), rng.randint(2, 5))
            else:
                factor = Poly.name(rng.choice(NAMES))
            term *= factor
        total += term
    return total


def value(poly: Poly, at: dict[str, int]) -> int:
    total = 0
    for monomial, coefficient in poly.terms.items():
        product = coefficient
        for atom in monomial:
            if isinstance(atom, str):
                product *= at[atom]
            else:
                of = value(atom.of, at)
                product *= of // atom.by if atom.op == "//" else of % atom.by
        total += product
    return total


@pytest.mark.parametrize("seed", range(20))
def test_a_written_polynomial_has_its_value(seed: int) -> None:
    """The text is parsed by the language's own grammar, and evaluated as the bound of a loop."""
    rng = random.Random(seed)
    for _ in range(15):
        poly, large = random_poly(rng, 2), 10**12
        text = f"for t in range({poly!r} + {large}):\n        A[t] = 1"
        checked = load_file(
            Source("t.roof", f"kernel k(const n, const i, const j):\n    out A: f64[{2 * large}]\n    {text}\n")
        )
        for _ in range(4):
            at = {name: rng.randint(1, 40) for name in NAMES}
            (loop,) = kernel(checked, "k", at).body
            assert isinstance(loop, For)
            assert loop.stop.evaluate({}) == value(poly, at) + large, repr(poly)


def test_a_negated_quotient_has_parentheses() -> None:
    third = quotient("//", Poly.name("n"), 3)
    assert repr(-third) == "-(n // 3)"
    assert repr(-third * Poly.name("j")) in {"-(n // 3) * j", "-j * (n // 3)"}
    assert repr(Poly.name("i") - third) == "i - n // 3"


def test_exact_quotients() -> None:
    n, m = Poly.name("n"), Poly.name("m")
    assert quotient_of(n * 6, Poly.number(3)) == n * 2
    assert quotient_of(n * m * 4 + n * 2, n * 2) == m * 2 + 1
    assert quotient_of(n + 1, n + 1) == Poly.number(1)
    assert quotient_of(n * n, m) is None
    assert quotient_of(n * 3, Poly.number(2)) is None
    assert quotient_of(n, Poly.number(0)) is None
    assert (n * 8 - 16).without_factor() == n - 2
    assert (n * -8 + 16).without_factor() == n * -1 + 2

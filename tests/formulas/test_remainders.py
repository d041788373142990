"""Conditions on remainders are recognized, and say of every size what the constraint says."""

from __future__ import annotations

import operator
from fractions import Fraction
from random import Random

import pytest

from roofdsl.cli.main import run
from roofdsl.counts.readable_forms import condition_text
from roofdsl.formulas.writing import remainder
from roofdsl.sets.quasi import Quasi, floor

N = Quasi.symbol("n")
COMPARED = {"=": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge}


def test_as_people_write_them() -> None:
    lines = floor((N + 7) * Fraction(1, 8)) * 8
    assert condition_text((((N + 6 - lines, False),),)) == "n % 8 != 1"
    assert condition_text((((lines - N - 7, True),),)) == "n % 8 = 1"
    assert condition_text((((N - 3 - floor((N - 1) * Fraction(1, 4)) * 4, False), (N - 5, False)),)) == (
        "n >= 5 and (n + 3) % 4 >= 2"
    )


def test_they_say_the_same_at_every_size() -> None:
    """Random y = a*n + b with the floor of y/m, in equations and inequalities; those that always or never hold stay."""
    draw, found = Random(11), 0
    for _ in range(2000):
        m, a, b = draw.randint(2, 9), draw.choice((-3, -1, 1, 2)), draw.randint(-9, 9)
        y = N * a + b
        value = (y - floor(y * Fraction(1, m)) * m - draw.randint(-2, 10)) * draw.choice((-1, 1, Fraction(3, 2)))
        zero = draw.random() < 0.3
        said = remainder(value, zero)
        values = [value.evaluate({"n": n}) for n in range(40)]
        holds = [v == 0 if zero else v >= 0 for v in values]
        if said is None:
            assert len(set(holds)) == 1
            continue
        left = [said.of.evaluate({"n": n}) % said.modulus for n in range(40)]
        assert holds == [COMPARED[said.relation](r, said.number) for r in left], value
        found += 1
    assert found > 500


def test_no_condition_says_only_what_a_ceiling_is(capsys: pytest.CaptureFixture[str]) -> None:
    """`8*ceiling(n/8) >= n` always holds."""
    assert run(["derive", "jacobi_1d", "--line", "64B"]) == 0
    text = capsys.readouterr().out
    assert "if n % 8 != 1" in text
    assert "ceiling(n/8) >= n" not in text

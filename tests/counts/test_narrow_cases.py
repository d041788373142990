"""Which cases of Q(Z) are shown: each is what brute-force LRU says, and the others hold at few cache sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from math import ceil, floor

import pytest

from roofdsl.counts.borders import without_borders
from roofdsl.counts.derive import derive
from roofdsl.counts.derived import Derivation
from roofdsl.counts.growth import growth_of
from roofdsl.counts.narrow_cases import MANY_TERMS, apart, leading_part
from roofdsl.sets.cases import Case
from roofdsl.sets.facts import CACHE, at_least
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.quasi import floor as floor_of
from roofdsl.tell.derive_html import to_html
from roofdsl.tell.derive_text import to_text
from tests.codegen.shipped import shipped
from tests.oracle import lru
from tests.oracle.loading import kernel_of

HEAD = "(h, w):\n    assume h >= 3, w >= 3\n    "
INNER = "    for i in range(1, h - 1), j in range(1, w - 1):\n        "
FIVE = "B[i, j] = A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1]\n"
KERNELS = {
    "stencil": f"kernel stencil{HEAD}in A: f64[h, w]\n    out B: f64[h, w]\n{INNER}{FIVE}",
    "upwind": "kernel upwind(h, w):\n    assume h >= 2, w >= 2\n    in A: f64[h, w]\n    out B: f64[h, w]\n"
    "    for i in range(1, h), j in range(1, w):\n        B[i, j] = A[i, j] + A[i - 1, j] + A[i, j - 1]\n",
    "seidel": f"kernel seidel{HEAD}inout B: f64[h, w]\n{INNER}{FIVE.replace('A', 'B')}",
    "relax": f"kernel relax{HEAD}inout A, B: f64[h, w]\n{INNER}{FIVE}{INNER}A[i, j] = B[i, j]\n",
    "blur": f"kernel blur{HEAD}in A: f32[h, w]\n    inout T: f32[h, w]\n    out B: f32[h, w]\n"
    "    for i in range(h), j in range(1, w - 1):\n        T[i, j] = A[i, j - 1] + A[i, j] + A[i, j + 1]\n"
    f"{INNER}B[i, j] = T[i - 1, j] + T[i, j] + T[i + 1, j]\n",
}
SIZES = {"h": 12, "w": 13}


def symbolic(name: str) -> Derivation:
    return derive(kernel_of(KERNELS[name]), any_cache=True, plateaus=False)


def parts(d: Derivation) -> tuple[list[Case], list[Case]]:
    assert d.any_cache is not None
    form = d.any_cache.bytes.form
    assert form is not None
    return apart(form.cases, form.assumes, growth_of(d.kernel))


def rows(text: str) -> Iterator[tuple[str, str]]:
    """(formula, condition) of each printed case, as Python expressions."""
    section = text[text.index("Q(Z) with Z a symbol") : text.index("\nIntensity")]
    for row in re.split(r"\n  (?=Q = |\d+ more cases)", section)[1:]:
        value, found, condition = row.partition(" B ")
        if found and row.startswith("Q"):
            condition = re.sub(r"(?<![<>])=", "==", condition.replace(" if ", " ").strip())
            yield value[4:], condition


@pytest.mark.spread(2)
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_printed_cases_are_what_brute_force_says(name: str) -> None:
    d = symbolic(name)
    printed = list(rows(to_text(d, width=10_000, all_cases=True)))
    shown = list(rows(to_text(d, width=10_000)))
    assert d.any_cache is not None and d.any_cache.bytes.form is not None
    assert len(printed) == len(d.any_cache.bytes.form.cases) and set(shown) <= set(printed)
    unit = min(a.type.bytes for a in d.kernel.arrays)
    most = sum(lru.footprint(d.kernel, SIZES).values()) + 2 * unit
    for cache in range(unit, most, unit * 3):
        want = lru.cost(d.kernel, lru.residencies(d.kernel, SIZES, cache, None), d.convention).bytes
        env = {**SIZES, CACHE: cache, "floor": floor, "ceiling": ceil}
        # The texts are of our own making; what they say in Python is what a reader takes them for.
        held = [value for value, where in printed if eval(where.replace("\n", " "), env)]
        assert len(held) == 1 and eval(held[0], env) == want, (name, cache)


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_narrow_cases_hold_at_few_cache_sizes(name: str) -> None:
    shown, narrow = parts(symbolic(name))
    for sizes in ({"h": 300, "w": 400}, {"h": 500, "w": 90}):
        unit, most = 4, 8 * 3 * sizes["h"] * sizes["w"]
        held = {True: 0, False: 0}
        for cache in range(8, most, 9 * unit):
            env = {**sizes, CACHE: cache}
            if cache % 8 == 0 or name == "blur":
                held[any(c.holds(env) for c in shown)] += 1
        assert held[False] < 0.1 * held[True]
    assert not narrow or len(narrow) > 3


@pytest.mark.parametrize(("name", "most"), [("stencil", 3), ("relax", 4), ("blur", 4)])
def test_few_cases_are_shown(name: str, most: int) -> None:
    d = symbolic(name)
    shown, narrow = parts(d)
    assert len(shown) == most
    told = f"{len(narrow)} more cases hold only on single lines or narrow strips between these"
    assert f"  {told}; `--all-cases` lists them" in to_text(d)
    assert "more cases" not in to_text(d, all_cases=True)
    assert told in to_html(d)


def test_a_case_of_plain_cache_sizes_is_a_plateau() -> None:
    z, n = Quasi.symbol(CACHE), Quasi.symbol("n")
    plateau = Case((((z - 24, False), (32 * Quasi.constant(1) - z, False)),), n)
    strips = [Case((((z - 16 * n - 24 * k, False), (16 * n + 24 * k + 16 - z, False)),), n * k) for k in range(1, 5)]
    shown, narrow = apart([plateau, *strips], (), growth_of(kernel_of(KERNELS["stencil"])))
    assert shown == [plateau, *strips] and not narrow  # 17 values of Z without a unit
    lines = [Case((((z - 16 * n - 24 * k, True),),), n * k) for k in range(1, 6)]
    shown, narrow = apart([plateau, *lines], (), growth_of(kernel_of(KERNELS["stencil"])))
    assert shown == [plateau] and narrow == lines


def test_a_condition_on_remainders_is_no_line() -> None:
    """n % 8 = k holds for one size in eight, however large."""
    z, n = Quasi.symbol(CACHE), Quasi.symbol("n")
    rest = [n - k - 8 * floor_of((n - k) * Fraction(1, 8)) for k in range(8)]
    cases = [Case((((value, True), (z - 16 * n, False)),), n + k) for k, value in enumerate(rest)]
    assert [c.holds({"n": 19, CACHE: 400}) for c in cases] == [k == 3 for k in range(8)]
    assert apart(cases, (), growth_of(kernel_of(KERNELS["stencil"]))) == (cases, [])
    lines = [Case((((z - 16 * n - 24 * k, True),),), n * k) for k in range(1, 6)]
    assert apart([*cases, *lines], (), growth_of(kernel_of(KERNELS["stencil"]))) == (cases, lines)


def test_a_long_sum_is_shown_by_its_highest_order() -> None:
    d = derive(shipped()["jacobi3d"], line_bytes=64, any_cache=True, plateaus=False)
    assert d.any_cache is not None and d.any_cache.bytes.terms is not None
    form = d.any_cache.bytes.terms
    few = leading_part(form, growth_of(d.kernel))
    assert len(form.terms) > MANY_TERMS and len(few.terms) == 5 and not few.definitions
    for cache in (2_000, 60_000, 1_000_000, 80_000_000):
        env = {"n": 1600, CACHE: cache}
        assert 0.99 < few.evaluate(env) / form.evaluate(env) <= 1
    told = f"and {len(form.terms) - len(few.terms)} terms of lower order in the sizes; `--all-cases` lists them"
    assert told in to_text(d) and told not in to_text(d, all_cases=True)


M, N, Z = (Quasi.symbol(name) for name in ("m", "n", CACHE))
FROM_TEN = (at_least("m", 10), at_least("n", 10), at_least(CACHE, 8))
HIGH, LOW = 32 * M * N - 48 * M - 80 * N + 88 - Z, Z - 48 * N + 40


@pytest.mark.parametrize(
    ("border", "joined"),
    [
        ((32 * M * M - 96 * M + 24 - Z, 32 * M * N - 128 * M + 88 - Z, Z - 48 * M + 40), True),
        ((HIGH, LOW), True),
        ((HIGH, LOW, 1200 - Z), False),  # holds for less than its neighbors at n = m
        ((HIGH,), False),  # holds for more
    ],
)
def test_borders(border: tuple[Quasi, ...], joined: bool) -> None:
    """Joined conditions hold at the same points, and conditions that differ on the border stay."""
    sides = [((side, False), (HIGH, False), (LOW, False)) for side in (N - M - 1, M - N - 1)]
    where = (*sides, ((M - N, True), *((value, False) for value in border)))
    found = without_borders(where, FROM_TEN)
    assert len(found) == (1 if joined else 3)
    for m in range(10, 16):
        for n in range(10, 16):
            for z in range(8, 5000, 8):
                env = {"m": m, "n": n, CACHE: z}
                assert Case(found, M).holds(env) == Case(where, M).holds(env), env


def test_a_border_that_is_all_there_is() -> None:
    where = (((N - M - 1, False),), ((M - N - 1, False),), ((M - N, True),))
    assert without_borders(where, FROM_TEN) == ()
    assert without_borders(where[:2], FROM_TEN) == where[:2]

"""Q(Z) as a sum of terms: equal to brute-force LRU at every size and cache tried; the proofs that it rests on."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from random import Random

import islpy as isl
import pytest

from roofdsl.counts.closed_forms import ClosedForms, NoClosedForm
from roofdsl.counts.traffic_form_records import TermBytes
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.sets.facts import CACHE
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.signs import nowhere_negative
from roofdsl.sets.terms import Root
from tests.counts.exact import OPERATIONS, meets
from tests.oracle import lru
from tests.oracle.loading import kernel_of
from tests.oracle.random_kernels import random_kernel

CONVENTIONS: tuple[Traffic, ...] = ("once", "load_store", "write_allocate")
POLYBENCH = Path(__file__).parents[2] / "models" / "polybench"


def polybench(name: str) -> Kernel:
    return kernel(load_file(POLYBENCH / f"{name}.roof"), name)


def stated(form: TermBytes, size: dict[str, int]) -> bool:
    return meets(form.total.assumes, size)


def caches(of: Kernel, size: dict[str, int], rng: Random, number: int) -> list[int]:
    largest = max(a.type.bytes for a in of.arrays if not a.is_scalar)
    touched = max(largest, sum(lru.footprint(of, size).values()))
    return [largest, *(rng.randint(largest, touched + 9) for _ in range(number))]


def compare(of: Kernel, form: TermBytes, size: dict[str, int], cache: int, convention: Traffic) -> None:
    want = lru.cost(of, lru.residencies(of, size, cache, None), convention)
    env = {**size, CACHE: cache}
    got: tuple[object, ...] = tuple(
        None if f is None else f.evaluate(env) for f in (form.loads, form.stores, form.total)
    )
    assert got == (want.loads, want.stores, want.bytes), f"{of.name} {size} Z={cache} {convention}"


FAST = ("cholesky", "doitgen", "mm2", "mvt", "symm")
"""Distances quadratic in a variable, of two arrays in one window, bent in two variables, products of five sizes."""


@pytest.mark.thorough
@pytest.mark.spread(1)
@pytest.mark.parametrize("name", FAST)
def test_polybench(name: str) -> None:
    of, rng = polybench(name), Random(name)
    forms = ClosedForms(of, {})
    with pytest.raises(NoClosedForm):
        forms.at_any_cache("load_store")
    found = {c: forms.terms_at_any_cache(c) for c in CONVENTIONS}
    for k in (0, 4):
        size = {p.name: 4 + (k + 2 * i * k) % 5 for i, p in enumerate(of.parameters)}
        assert stated(found["load_store"], size)
        for cache in caches(of, size, rng, 5):
            compare(of, found[convention := rng.choice(CONVENTIONS)], size, cache, convention)
        cache = rng.randint(8, 200)
        compare(of, forms.terms_at_any_cache("load_store", cache), size, cache, "load_store")


SCALARS = """\
kernel scalars(n):
    in x: f64[n]
    inout s: f64
    out t: f32
    for i in range(n):
        s += x[i]
    t = 1
"""


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_scalars_move_once_or_in_both_directions(convention: Traffic) -> None:
    """`once` counts a scalar that is loaded and stored as one transfer (rule 8)."""
    of = kernel_of(SCALARS)
    form = ClosedForms(of, {}).terms_at_any_cache(convention)
    compare(of, form, {"n": 9}, 64, convention)
    assert form.total.evaluate({"n": 9, CACHE: 64}) == 72 + (12 if convention == "once" else 20)


LONG = {"heat_3d": 1, "adi": 2, "fdtd_2d": 2}
"""Sizes at which kernels are compared whose brute force takes long."""


@pytest.mark.parametrize("name", sorted(p.stem for p in POLYBENCH.glob("*.roof")))
def test_all_of_polybench(name: str, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--kernels") <= 300:
        pytest.skip("with --kernels above 300")
    of, rng = polybench(name), Random(name)
    form = ClosedForms(of, {}).terms_at_any_cache("load_store")
    least = next(k for k in range(1, 40) if stated(form, {p.name: k for p in of.parameters}))
    for _ in range(LONG.get(name, 4)):
        size = {p.name: least + rng.randint(0, 4) for p in of.parameters}
        for cache in caches(of, size, rng, 5):
            compare(of, form, size, cache, "load_store")


WITHOUT_CASES = (12, 13, 23, 25, 34)
"""Seeds of random kernels whose Q(Z) has no closed form by cases, but one as a sum."""


@pytest.mark.spread(1)
@pytest.mark.parametrize("seed", WITHOUT_CASES)
def test_random_kernels(seed: int) -> None:
    case = random_kernel(seed)
    of, rng = kernel_of(case.text), Random(seed)
    with pytest.raises(NoClosedForm):  # 34 takes about ten times as many operations, a few more or less each time
        ClosedForms(of, {}, operations=OPERATIONS).at_any_cache("load_store")
    form = ClosedForms(of, {}, operations=10 * OPERATIONS).terms_at_any_cache("load_store")
    least = next(k for k in range(1, 40) if stated(form, dict.fromkeys(case.sizes[0], k)))
    sizes = [{n: least + (i * j) % 3 for i, n in enumerate(case.sizes[0])} for j in range(3)]
    legal = [s for s in sizes if all(c.holds(s) for c in of.assumptions)]
    for size in legal:
        for cache in caches(of, size, rng, 3):
            compare(of, form, size, cache, "load_store")
    assert legal


def test_roots_are_exact() -> None:
    """A root is the last integer at which a rising or falling polynomial is within the limit, by enumeration."""
    x, n, limit = Quasi.symbol("x"), Quasi.symbol("n"), Quasi.symbol("Z")
    rng = Random(3)
    for _ in range(300):
        a, b, c = rng.randint(0, 5), rng.randint(0, 9), rng.randint(-40, 40)
        rises = rng.random() < 0.5
        of = (x * x * a + x * b + n * x) * (1 if rises else -1) + c
        root = Root("x", of, limit, Quasi.constant(rng.randint(0, 3)), n, rises)
        env = {"n": rng.randint(0, 12), "Z": rng.randint(-200, 300)}
        low = int(root.low.constant_value())
        held = [v for v in range(low, env["n"] + 1) if of.evaluate({**env, "x": v}) <= env["Z"]]
        none = low - 1 if rises else env["n"] + 1
        assert root.value(env) == ((max if rises else min)(held, default=none))


def test_proofs_of_signs_hold() -> None:
    """What is proven to be nowhere negative is so at every point; and something is proven."""
    rng, proven = Random(5), 0
    triangle = isl.Set("[P_n, P_m] -> { T[a, b] : P_n >= 4 and P_m >= 5 and 0 <= a < P_n and 1 <= b <= a }")
    points = [(n, m, a, b) for n in range(4, 9) for m in (5, 6, 9) for a in range(n) for b in range(1, a + 1)]
    names = ("P_n", "P_m", "d0", "d1")
    for _ in range(120):
        value = Quasi.constant(rng.randint(-30, 30))
        for _ in range(3):
            value += Quasi.symbol(rng.choice(names)) * Quasi.symbol(rng.choice(names)) * rng.randint(-4, 6)
        if nowhere_negative(triangle, value):
            proven += 1
            assert all(value.evaluate(dict(zip(names, p, strict=True))) >= 0 for p in points), str(value)
    assert proven > 20


def test_parameters_may_have_any_name() -> None:
    """Also those that a sum gives to roots, or that these have while they are counted."""
    text = (POLYBENCH / "mvt.roof").read_text().replace("mvt(n)", "mvt(r1)").replace("[n]", "[r1]")
    of = kernel_of(text.replace("n, n", "r1, r1").replace("range(n)", "range(r1)"))
    form = ClosedForms(of, {}).terms_at_any_cache("once")
    plain = ClosedForms(polybench("mvt"), {}).terms_at_any_cache("once")
    assert "r1" not in {d.name for d in form.total.definitions}
    for n, cache in ((5, 130), (7, 300), (9, 700)):
        assert form.total.evaluate({"r1": n, CACHE: cache}) == plain.total.evaluate({"n": n, CACHE: cache})


def test_a_sum_of_nothing_is_zero() -> None:
    of = kernel_of("kernel k(n):\n    inout x: f64[n]\n    for i in range(n):\n        x[i] += 1\n")
    form = ClosedForms(of, {}).terms_at_any_cache("load_store")
    assert form.total.evaluate({"n": 7, CACHE: 8}) == Fraction(112)
    assert not form.total.definitions

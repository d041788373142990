"""W, footprint, loads and stores of random kernels equal brute force to the last unit, by every way to them."""

from __future__ import annotations

from random import Random

import pytest

from roofdsl.counts.closed_forms import ClosedForms, NoClosedForm
from roofdsl.counts.traffic_at import footprint_at
from tests.counts.exact import (
    CONVENTIONS,
    OPERATIONS,
    by_sets_alone,
    cache_choices,
    check_form,
    check_numbers,
    check_work,
    counted_once,
)
from tests.oracle import lru
from tests.oracle.families import Family, families
from tests.oracle.loading import kernel_of
from tests.oracle.random_kernels import random_kernel


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        kernels = metafunc.config.getoption("--kernels")
        metafunc.parametrize("seed", range(kernels))


def test_random_kernel(seed: int) -> None:
    case = random_kernel(seed)
    kernel = kernel_of(case.text)
    rng = Random(seed)
    size = rng.choice(case.sizes)
    check_work(kernel, size)
    touched = sum(lru.footprint(kernel, size).values())
    scalars = sum(a.type.bytes for a in kernel.arrays if a.is_scalar and a.intent in ("out", "inout"))
    with counted_once():
        assert footprint_at(kernel, size) == touched + scalars
        for cache, line in cache_choices(kernel, size, rng):
            check_numbers(kernel, size, cache, line)
    forms = ClosedForms(kernel, {}, operations=OPERATIONS)
    for convention in CONVENTIONS:
        try:
            form = forms.compulsory(convention)
        except NoClosedForm:
            return
        for at in case.sizes:
            check_form(form, kernel, at, lru.residencies(kernel, at, None, None), convention)


@pytest.mark.thorough
def test_integer_sets_answer_a_fifth() -> None:
    """The comparison above does not rest on simulation alone. Asks again, so that it holds in any process."""
    answers = []
    for seed in range(24):
        case = random_kernel(seed)
        kernel, rng = kernel_of(case.text), Random(seed)
        size = rng.choice(case.sizes)
        answers += [by_sets_alone(kernel, size, *choice) for choice in cache_choices(kernel, size, rng)]
    assert sum(found is not None for found in answers) > 0.2 * len(answers)


@pytest.mark.spread(1)
@pytest.mark.parametrize("family", families(), ids=lambda f: f.name)
def test_family(family: Family) -> None:
    kernel = kernel_of(family.text)
    for size in family.sizes:
        check_work(kernel, size)
        for cache, line in cache_choices(kernel, size, Random(1)):
            check_numbers(kernel, size, cache, line)

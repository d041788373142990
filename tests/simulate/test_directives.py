"""Kernels with `tile` and `order` lines: applied, they execute the same statements and are simulated like others."""

from __future__ import annotations

import pytest

from roofdsl.lang.diagnostics import InputError
from roofdsl.lang.record import replace
from roofdsl.loops.transform import apply
from tests.oracle.directives import DirectiveKernel, random_directive_kernel
from tests.oracle.enumerate import run
from tests.oracle.loading import kernel_of
from tests.oracle.values import same_result
from tests.simulate.test_lru import agree

CASES = [random_directive_kernel(seed) for seed in range(200)]


@pytest.mark.spread(6, 100)
@pytest.mark.parametrize("case", CASES, ids=lambda c: str(c.seed))
def test_applied_directives(case: DirectiveKernel) -> None:
    """The same iterations in another order, with the same result where every order is legal; the simulator agrees."""
    kernel = kernel_of(case.text)
    try:
        changed = apply(kernel)
    except InputError as refused:
        # a loop whose bounds depend on another cannot be put outside it
        assert "order" in case.text and [d.code for d in refused.diagnostics] == ["tile-bounds"]
        return
    plain = replace(kernel, directives=())
    for size in case.sizes:
        before = sorted(str(e.accesses) for e in run(plain, size))
        assert sorted(str(e.accesses) for e in run(changed, size)) == before, case.text
        assert not case.any_order or same_result(plain, changed, size), case.text
        agree(changed, size, 64, None)
        agree(changed, size, 128, 64)


def test_execution_tells_legal_from_illegal_directives() -> None:
    """Of the nests whose order matters, some survive their directive and some do not."""
    outcomes = set()
    for case in CASES:
        if not case.any_order:
            kernel = kernel_of(case.text)
            plain, changed = replace(kernel, directives=()), apply(kernel)
            outcomes.add(all(same_result(plain, changed, size) for size in case.sizes))
    assert outcomes == {True, False}

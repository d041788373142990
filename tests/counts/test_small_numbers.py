"""Plateaus with small defaults as numbers, where all parameters as symbols are too hard."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from roofdsl.counts.closed_forms import ClosedForms, NoClosedForm, PlateauBytes
from roofdsl.counts.derive import derive
from roofdsl.loops.model import Traffic
from tests.oracle.loading import kernel_of

FILTER = (
    "kernel filtered(n, r = 3):\n    in X: f64[n + r], G: f64[r]\n    out Y: f64[n]\n"
    "    for i in range(n):\n        Y[i] = 0\n        for p in range(r):\n            Y[i] += X[i + p] * G[p]\n"
)


@pytest.fixture
def too_hard_with_r(monkeypatch: pytest.MonkeyPatch) -> None:
    plateaus = ClosedForms.plateau_forms

    def refuse(
        self: ClosedForms, convention: Traffic, given: Mapping[str, int] | None = None
    ) -> tuple[PlateauBytes, ...]:
        if "r" not in self.given:
            raise NoClosedForm("too hard")
        return plateaus(self, convention, given)

    monkeypatch.setattr(ClosedForms, "plateau_forms", refuse)


@pytest.mark.usefixtures("too_hard_with_r")
@pytest.mark.parametrize("r", [None, 5])
def test_small_numbers_stand_in_and_are_named(r: int | None) -> None:
    found = derive(kernel_of(FILTER), {} if r is None else {"r": r}, traffic="once")
    value = r or 3
    assert found.notes == (f"plateaus at r = {value}, not in all parameters: too hard",)
    first = found.plateaus[0]
    n = 1000
    (lead,) = (c.value for c in first.intensity.numerator.form.cases)  # type: ignore[union-attr]
    assert lead.evaluate({"n": n}) == 2 * value * n
    assert found.work.total.form is not None
    assert found.work.total.form.evaluate({"n": n, "r": 7}) == 14 * n


@pytest.mark.usefixtures("too_hard_with_r")
def test_large_numbers_do_not() -> None:
    found = derive(kernel_of(FILTER.replace("r = 3", "r")), {})
    assert found.plateaus == ()
    assert found.plateaus_note == "too hard"

"""Totals of `count` statements: closed forms and values against enumeration."""

from __future__ import annotations

import pytest

from roofdsl.counts.closed_forms import ClosedForms
from roofdsl.counts.counters import counters_at
from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.find import load_machine
from roofdsl.predict.kernel import predict
from tests.oracle.enumerate import counters
from tests.oracle.loading import kernel_of

HEAD = "    inout y: f64[n + 3]\n"
NESTS = {
    "ones": "    for i in range(n), j in range(i):\n        y[i] += 1\n        count pairs 1\n",
    "affine": "    for i in range(n), j in range(i):\n        count pairs 2*i + j + 1\n        y[i] += 1\n",
    "signs": "    for i in range(n), j in range(i):\n        count left i - 2*j\n        y[i] += 1\n",
    "product": "    for i in range(n), j in range(i, n):\n        count p n*i*(j - i) + 3\n        y[i] += 1\n",
    "floors": "    for i in range(n):\n        count f i // 2\n        count m i % 3 - 1\n        y[i] += 1\n",
    "guards": "    for i in range(n):\n        y[i] += 1\n        if i % 2 == 0:\n            count even i\n"
    "        else:\n            count odd 1\n            count even 2\n",
    "outside": "    count all n\n    for i in range(n):\n        y[i] += 1\n        count all 1\n",
}


@pytest.mark.parametrize("name", NESTS)
def test_totals_equal_enumeration(name: str) -> None:
    kernel = kernel_of(f"kernel k(n):\n{HEAD}{NESTS[name]}")
    forms = ClosedForms(kernel, {}).counters()
    for n in (1, 2, 3, 7, 10):
        want = counters(kernel, {"n": n})
        totals = {k: want.get(k, 0) for k in forms}
        assert counters_at(kernel, {"n": n}) == totals
        assert {k: form.evaluate({"n": n}) for k, form in forms.items()} == totals


def test_tiles_of_symbolic_size() -> None:
    kernel = kernel_of(
        "kernel k(n, b):\n    assume n % b == 0\n    inout y: f64[n]\n"
        "    for ii in range(0, n, b), i in range(ii, ii + b):\n"
        "        count rest i - ii + 1\n        count starts ii\n        y[i] += 1\n"
    )
    forms = ClosedForms(kernel, {}).counters()
    for n, b in ((4, 2), (12, 3), (10, 10), (5, 1)):
        want = counters(kernel, {"n": n, "b": b})
        assert {k: form.evaluate({"n": n, "b": b}) for k, form in forms.items()} == want
        assert counters_at(kernel, {"n": n, "b": b}) == want


def test_directives_do_not_change_totals() -> None:
    text = "kernel k(n, b):\n    assume n % b == 0\n    tile i, j by b\n    inout y: f64[n, n]\n"
    kernel = kernel_of(
        text + "    for i in range(n), j in range(n):\n        y[i, j] += 1\n        count weights i + j*n\n"
    )
    assert counters_at(kernel, {"n": 6, "b": 3}) == {"weights": sum(i + 6 * j for i in range(6) for j in range(6))}


def test_what_is_no_polynomial_of_affine_values_is_refused() -> None:
    kernel = kernel_of(f"kernel k(n):\n{HEAD}    for i in range(n):\n        y[i] += 1\n        count odd i*i // 2\n")
    with pytest.raises(CommandError, match="counter of kernel k"):
        counters_at(kernel, {"n": 4})


def test_predictions_give_totals_and_rates() -> None:
    kernel = kernel_of(f"kernel k(n):\n{HEAD}{NESTS['affine']}")
    found = predict(kernel, {"n": 50}, load_machine("v100"))
    want = counters(kernel, {"n": 50})
    assert dict(found.counters) == want
    assert found.to_json()["counters"]["pairs"]["per_s"] == pytest.approx(want["pairs"] / float(found.bound_s))

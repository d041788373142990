"""Results that no comparison can confirm: said, counted as not verified, and rare."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from roofdsl.codegen.compare_results import compare
from roofdsl.codegen.inputs import poisoned, random_inputs
from roofdsl.codegen.reference import reference
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.source import Source
from roofdsl.loops.model import Kernel
from roofdsl.measure.cpu import CpuOptions, build, measure_cpu
from roofdsl.measure.measurement import load, parse, save
from roofdsl.measure.timing import Plan
from roofdsl.measure.verified import Verified
from roofdsl.measure.verify import WrongResult, verify
from tests.cli.conftest import Run, roofdsl
from tests.codegen.running import Interpreted
from tests.codegen.shipped import ragged, shipped
from tests.oracle.loading import kernel_of

__all__ = ["roofdsl"]
BRIEF = Plan(repeats=3, budget_s=0.2, sample_s=1e-4, warm_s=0)
HEAD = "kernel k(n):\n    in x: f64[n]\n    out y: f64[n]\n"
LARGE = HEAD + "    for i in range(n):\n        y[i] = x[i] + 1e300 - 1e300\n"


def verified(kernel: Kernel, sizes: dict[str, int]) -> Verified:
    """As `measure` verifies the code of numba; here the same text runs as Python."""
    from roofdsl.codegen.generate import generate

    code = generate(kernel, "python", "loops")

    def run(arrays: dict[str, Any], params: Any) -> None:
        Interpreted()(code, arrays, params)

    return verify(kernel, run, sizes, "the text")


def test_a_bound_larger_than_the_answer() -> None:
    """The addend swallows x; whatever stands in y is within the bound on rounding, 1e284."""
    found = verified(kernel_of(LARGE), {"n": 100})
    assert not found.holds
    assert found.unverified == 1
    (reason,) = found.unverifiable
    assert "`y` at n = " in reason and "rounding alone may change it by" in reason


def test_any_answer_passed_before() -> None:
    """What made it worth nothing: a wrong result is within the bound too."""
    kernel = kernel_of(LARGE)
    inputs = random_inputs(kernel, {"n": 9}, 1)
    want = reference(kernel, {"n": 9}, inputs)
    given = poisoned(kernel, inputs)
    result = compare({**given, "y": np.full(9, 1e280)}, want, kernel, given)
    assert not result.wrong
    assert not result.correct and set(result.unverifiable) == {"y"}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("y[i] = (x[i] - x[i]) / (x[i] - x[i])", "not a finite number"),
        ("y[i] = x[i] + 1e20 - 1e20", "rounding alone"),
        ("y[i] = x[i] / (x[i] * 1e17 + 1 - x[i] * 1e17)", "no bound"),
    ],
)
def test_the_reason_is_said(body: str, reason: str) -> None:
    found = verified(kernel_of(HEAD + f"    for i in range(n):\n        {body}\n"), {"n": 20})
    assert not found.holds
    assert reason in found.unverifiable[0]


def test_one_of_two_results() -> None:
    text = "kernel k(n):\n    in x: f64[n]\n    out y: f64[n], z: f64[n]\n    for i in range(n):\n"
    kernel = kernel_of(text + "        y[i] = 2 * x[i]\n        z[i] = x[i] + 1e300 - 1e300\n")
    found = verified(kernel, {"n": 20})
    assert not found.holds
    assert [reason.split("`")[1] for reason in found.unverifiable] == ["z"]
    assert found.unverified == 0.5


def test_what_can_be_verified_is_still_compared() -> None:
    text = "kernel k(n):\n    in x: f64[n]\n    out y: f64[n], z: f64[n]\n    for i in range(n):\n"
    kernel = kernel_of(text + "        y[i] = 2 * x[i]\n        z[i] = x[i] + 1e300 - 1e300\n")

    def run(arrays: dict[str, Any], params: Any) -> None:
        arrays["y"][:], arrays["z"][:] = 2.1 * arrays["x"], 0

    with pytest.raises(WrongResult, match=r"`?y\["):
        verify(kernel, run, {"n": 20}, "it")


@pytest.mark.parametrize(
    "text",
    [
        # sums that cancel by chance are of the size of the others
        HEAD.replace("out y: f64[n]", "in A: f64[n, n]\n    out y: f64[n]")
        + "    for i in range(n):\n        y[i] = 0\n        for j in range(n):\n            y[i] += A[i, j] * x[j]\n",
        # of positive numbers the root and the logarithm of a sum are well conditioned
        "kernel k(n):\n    in x: f64[n]\n    out y: f64\n    temp s: f64\n    s = 0\n"
        "    for i in range(n):\n        s += x[i]\n    y = sqrt(s) + log(s)\n",
        # 8 bits have little room
        "kernel k(n):\n    in x: i8[n], y: i8[n]\n    out s: i8\n    s = 0\n"
        "    for i in range(n):\n        s += x[i] * y[i]\n",
        "kernel k(n):\n    in x: f8[n], y: f8[n]\n    out s: f8\n    s = 0\n"
        "    for i in range(n):\n        s += x[i] * y[i]\n",
        # powers of a matrix with signs cancel ever more, those of a positive one do not
        "kernel k(n):\n    in A: f64[n, n]\n    inout x: f64[n]\n    temp y: f64[n]\n    for t in range(32):\n"
        "        for i in range(n):\n            y[i] = 0\n            for j in range(n):\n"
        "                y[i] += A[i, j] * x[j]\n        for i in range(n):\n            x[i] = y[i]\n",
        # differences of what is nearly the same: exact where the numbers have few bits
        HEAD + "    for i in range(n):\n        y[i] = (x[i] + 1) * (x[i] + 1) - x[i] * x[i] - 2 * x[i] - 1\n",
        # a one-pass variance
        "kernel k(n):\n    in x: f32[n]\n    out v: f32\n    temp s: f32, q: f32\n    s = 0\n    q = 0\n"
        "    for i in range(n):\n        s += x[i]\n        q += x[i] * x[i]\n    v = q / n - (s / n) * (s / n)\n",
    ],
)
def test_ordinary_kernels_are_verified(text: str) -> None:
    found = verified(kernel_of(text), {"n": 33})
    assert found.holds
    assert found.unverified == 0


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", sorted(shipped(), key=len))
def test_every_shipped_kernel_can_be_verified(name: str) -> None:
    kernel = shipped()[name]
    inputs = random_inputs(kernel, ragged(kernel), 1)
    want = reference(kernel, ragged(kernel), inputs)
    given = poisoned(kernel, inputs)
    assert compare(given, want, kernel, given).unverifiable == {}


def test_the_measurement_says_so(tmp_path: Path) -> None:
    found = measure_cpu(kernel_of(LARGE), {"n": 50}, CpuOptions(plan=BRIEF))
    assert any(w.startswith("cannot be verified: k, `y`") for w in found.warnings)
    document = found.to_json()["verified"]
    assert (document["status"], document["unverified"], len(document["unverifiable"])) == ("cannot be verified", 1, 1)
    save(tmp_path / "r.json", [found])
    (back,) = load(tmp_path / "r.json")
    assert back == found and not back.verified.holds
    fine = measure_cpu(shipped()["vector_add"], {"n": 50}, CpuOptions(plan=BRIEF)).to_json()["verified"]
    assert (fine["status"], fine["unverifiable"]) == ("verified", [])


def test_documents_that_contradict_themselves(tmp_path: Path) -> None:
    document = measure_cpu(kernel_of(LARGE), {"n": 50}, CpuOptions(plan=BRIEF)).to_json()
    for change in ({"status": "verified"}, {"unverifiable": []}, {"unverifiable": [3]}, {"of_allowed": 2.0}):
        damaged = {**document, "verified": {**document["verified"], **change}}
        with pytest.raises(InputError, match="result-damaged"):
            parse(Source("r.json", json.dumps(damaged)))
    older = {k: v for k, v in document["verified"].items() if k not in ("status", "unverifiable")}
    (found,) = parse(Source("r.json", json.dumps({**document, "verified": {**older, "unverified": 0.5}})))
    assert found.verified.holds


@pytest.mark.thorough
def test_the_commands(roofdsl: Run, tmp_path: Path) -> None:
    file, out = tmp_path / "u.roof", tmp_path / "r.json"
    file.write_text(LARGE, encoding="utf-8")
    done = roofdsl("measure", str(file), "--set", "n=50", "--budget", "0.05", "--repeats", "3", "-o", str(out))
    assert done.returncode == 1
    assert "cannot be verified" in done.stdout
    assert "warning: cannot be verified: k, `y`" in done.stderr
    compared = roofdsl(
        "validate", str(file), "--set", "n=50", "--machine", "v100", "--results", str(out), "--tolerance", "1",
        "--margin", "1",
    )  # fmt: skip
    assert compared.returncode == 1
    assert "cannot be verified" in compared.stdout
    assert "warning: cannot be verified" in compared.stderr


def test_the_compiled_code_is_what_is_verified() -> None:
    kernel = shipped()["matmul_i8"]
    runner = build(kernel, CpuOptions())
    found = verify(kernel, runner.run, ragged(kernel), "loops")
    assert found.holds
    assert found.unverified == 0


def test_sizes_at_which_nothing_ends_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    loops = "".join(f"{'    ' * (k + 1)}for i{k} in range(n):\n" for k in range(16))
    deep = kernel_of("kernel deep(n):\n    inout x: f64[n]\n" + loops + "    " * 17 + "x[0] += 1.5\n")

    def never(arrays: dict[str, NDArray[Any]], values: Mapping[str, int]) -> None:
        raise AssertionError("it would not end")

    with pytest.raises(CommandError, match=r"makes .*e\+29 array accesses at n = 64, which take at least .* years"):
        verify(deep, never, {"n": 64}, "code")
    monkeypatch.setattr("roofdsl.measure.verify.SMALLEST_BUDGET_S", 0.05)
    with pytest.raises(CommandError, match="verifying kernel deep takes too long even at n = 3"):
        verify(deep, never, {"n": 3}, "code")

"""`roofdsl derive`: JSON against brute force and the table of rule 11, the text against what a textbook prints."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sympy
from click.testing import CliRunner

from roofdsl.cli.derive import derive
from tests.cli.conftest import Run
from tests.oracle import lru
from tests.oracle.loading import kernel_of

ADD = "kernel add(n):\n    out A: f64[n]\n    in B, C: f64[n]\n    for i in range(n):\n        A[i] = B[i] + C[i]\n"
GEMV = (
    "kernel gemv(n):\n    in A: f64[n, n], x: f64[n]\n    inout y: f64[n]\n"
    "    for i in range(n), j in range(n):\n        y[i] += A[i, j] * x[j]\n"
)
MATMUL = (
    "kernel matmul(n):\n    in A, B: f64[n, n]\n    inout C: f64[n, n]\n"
    "    for i in range(n), j in range(n), k in range(n):\n        C[i, j] += A[i, k] * B[k, j]\n"
)
TRANSPOSE = (
    "kernel flip(n):\n    in A: f64[n, n]\n    out B: f64[n, n]\n"
    "    for i in range(n), j in range(n):\n        B[j, i] = A[i, j]\n"
)
TABLE = [
    (ADD, "24*n", "24*n", "32*n"),
    (GEMV, "8*n**2 + 16*n", "8*n**2 + 24*n", "8*n**2 + 24*n"),
    (MATMUL, "24*n**2", "32*n**2", "32*n**2"),
    (TRANSPOSE, "16*n**2", "16*n**2", "24*n**2"),
]
CONVENTIONS = ("once", "load_store", "write_allocate")
N = sympy.Symbol("n", integer=True, positive=True)


def run(text: str, *options: str) -> str:
    result = CliRunner().invoke(derive, ["-", *options], input=text)
    assert result.exit_code == 0, result.output
    return result.stdout


def document(text: str, *options: str) -> dict[str, Any]:
    found = json.loads(run(text, "--json", *options))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(("text", "forms"), [(row[0], row[1:]) for row in TABLE], ids=["add", "gemv", "matmul", "flip"])
def test_table_of_rule_11(text: str, forms: tuple[str, ...]) -> None:
    for convention, expected in zip(CONVENTIONS, forms, strict=True):
        got = document(text, "--traffic", convention)["bytes"]["expr"]
        assert sympy.sympify(got, locals={"n": N}) == sympy.sympify(expected, locals={"n": N})


@pytest.mark.spread(1)
@pytest.mark.parametrize("text", [ADD, GEMV, MATMUL, TRANSPOSE], ids=["add", "gemv", "matmul", "flip"])
@pytest.mark.parametrize("cache", [24, 80, 300])
def test_closed_forms_at_a_cache_equal_brute_force(text: str, cache: int) -> None:
    kernel = kernel_of(text)
    for convention in CONVENTIONS:
        found = document(text, "--cache", f"{cache}B", "--traffic", convention)
        for n in (4, 5, 9, 12):
            stays = lru.residencies(kernel, {"n": n}, cache, None)
            want = lru.cost(kernel, stays, convention)
            for key, value in (("loads", want.loads), ("stores", want.stores), ("bytes", want.bytes)):
                if value is None:
                    assert found[key] is None
                else:
                    assert sympy.sympify(found[key]["expr"], locals={"n": N}).subs(N, n) == value


def test_values_stand_beside_expressions() -> None:
    found = document(GEMV, "--set", "n=4096", "--traffic", "once")
    assert found["work"]["total"] == {"expr": "2*n**2", "value": 33554432}
    assert found["bytes"] == {"expr": "8*n**2 + 16*n", "value": 134283264}


@pytest.mark.thorough
def test_plateaus_of_the_blocked_product() -> None:
    found = document(
        "kernel blocked(n, b):\n    assume n % b == 0\n    in A, B: f64[n, n]\n    inout C: f64[n, n]\n"
        "    for kk in range(0, n, b), ii in range(0, n, b), jj in range(0, n, b):\n"
        "        for k in range(kk, kk + b), i in range(ii, ii + b), j in range(jj, jj + b):\n"
        "            C[i, j] += A[i, k] * B[k, j]\n",
        "--traffic",
        "once",
    )
    rows = [(r["from_bytes"]["expr"], r["intensity"]["expr"]) for r in found["regimes"]]
    assert rows == [
        ("8", "1/12"),
        ("24", "1/8"),
        ("16*b", "1/4"),
        ("8*b**2", "b/12"),
        ("32*b**2", "b/8"),
        ("16*b*n", "b/4"),
        ("8*n**2", "n/12"),
    ]


def test_numbers_in_plateaus_are_named_in_their_title() -> None:
    """A filter's size is a number in the plateaus of a convolution, so they do not say that it grows."""
    text = CliRunner().invoke(derive, ["conv2d"]).output
    assert "(leading terms, r = 3; batch, h, w, c, f of about the same size)" in text


def test_textbook_value_beside_another_convention() -> None:
    text = run(MATMUL)
    assert "I = W/Q = n/16" in text
    assert "(each datum once)" in text
    assert "n/12" in text


def test_no_intensity_without_work() -> None:
    assert document(TRANSPOSE)["intensity"]["expr"] is None


def test_a_cache_smaller_than_an_element_is_refused(roofdsl: Run) -> None:
    result = roofdsl("derive", "-", "--cache", "4B", stdin=GEMV, fresh=True)
    assert result.returncode == 2
    assert "cannot hold a line" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.spread(1)
@pytest.mark.parametrize("text", [ADD, GEMV, MATMUL, TRANSPOSE], ids=["add", "gemv", "matmul", "flip"])
def test_closed_forms_at_every_cache_equal_brute_force(text: str) -> None:
    kernel = kernel_of(text)
    found = document(text, "--cache", "Z", "--traffic", "load_store")["any_cache"]
    cache = sympy.Symbol("Z", integer=True, positive=True)
    names = {"n": N, "Z": cache}
    forms = {key: sympy.sympify(found[key]["expr"], locals=names) for key in ("loads", "stores", "bytes")}
    for size in (8, 24, 80, 160, 168, 176, 968, 5000):
        want = lru.cost(kernel, lru.residencies(kernel, {"n": 10}, size, None), "load_store")
        for key, value in (("loads", want.loads), ("stores", want.stores), ("bytes", want.bytes)):
            assert forms[key].subs({N: 10, cache: size}) == value, (key, size)


def test_every_cache_as_text(golden: Callable[[Path, str], None]) -> None:
    text = run(MATMUL, "--cache", "Z", "--traffic", "once")
    golden(Path(__file__).parent / "golden" / "derive" / "matmul_any_cache.txt", text)
    assert "if 24 <= Z <= 16*n" in text


def test_every_cache_refused_with_its_reason() -> None:
    text = GEMV.replace("(n)", "(Z)").replace("[n", "[Z").replace(", n]", ", Z]").replace("range(n)", "range(Z)")
    assert "also a parameter of the kernel" in run(text, "--cache", "Z")


@pytest.mark.spread(1, 8)
@pytest.mark.parametrize("options", [[], ["--steps"]], ids=["results", "steps"])
@pytest.mark.parametrize("line", [None, "64B"])
@pytest.mark.parametrize("n", [3, 6, 20, 40, 64])
def test_what_is_printed_as_equal_is(n: int, line: str | None, options: list[str]) -> None:
    """The case for large sizes, or for rows on line boundaries, is not set equal to the number of other sizes."""
    values = ["--set", f"n={n}", "--cache", "512B", *(["--line", line] if line else [])]
    text = run("traffic once\n" + GEMV, *values, *options)
    equations = re.findall(r"= ([^=\n]*n[^=\n]*?) += ([\d,]+) B", text)
    for form, number in equations:
        assert sympy.sympify(form, locals={"n": N}).subs(N, n) == int(number.replace(",", "")), (form, number)
    assert equations or line, text
    exact = document("traffic once\n" + GEMV, *values)["bytes"]["value"]
    assert re.search(rf"(= {exact:,} B|; here {exact:,}$|here {exact:,} B)", text, re.MULTILINE), text

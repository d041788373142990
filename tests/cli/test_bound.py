"""`roofdsl bound`: what it prints word for word, its JSON, the kernel that --apply writes, and its errors."""

from __future__ import annotations

import json

import pytest
import sympy

from tests.cli.conftest import Run, Said

PRINTED = {
    "bound_matmul": "bound matmul --set n=240 --cache 8KiB --steps",
    "bound_blocked": "bound matmul_blocked --set n=240,b=8 --cache 8KiB",
    "bound_syrk": "bound polybench/syrk --steps",
    "bound_jacobi": "bound polybench/jacobi_2d --steps",
    "bound_adi": "bound polybench/adi --steps",
    "bound_gemv": "bound gemv --set n=512 --machine v100",
    "bound_attention": "bound flash_attention",
    "bound_apply": "bound matmul --cache 32KiB --apply",
}


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", PRINTED)
def test_what_is_printed(name: str, prints: Said) -> None:
    prints(name, PRINTED[name])


@pytest.mark.thorough
def test_json_keeps_the_contract(roofdsl: Run) -> None:
    document = json.loads(roofdsl(*["bound", "matmul", "--set", "n=240", "--cache", "8KiB", "--json"]).stdout)
    assert document["schema"] == "roofdsl.bound/1"
    n, size = (sympy.Symbol(s, integer=True, positive=True) for s in ("n", "S"))
    names = {"n": n, "S": size}
    bound = sympy.sympify(document["lower_bound_loads"]["expr"], locals=names)
    value = document["lower_bound_loads"]["value"]
    assert value - 1 < float(bound.subs({n: 240, size: 1024})) <= value
    leading = sympy.sympify(document["leading"]["partition"], locals=names)
    assert sympy.simplify(leading - 2 * n**3 / sympy.sqrt(size)) == 0
    assert document["schedule_loads"]["value"] / value == document["ratio"]["value"] > 10
    assert value <= document["tiled_loads"]["value"] <= 1.15 * value
    assert [set(document["tile"]), document["order"]] == [{"i", "j"}, ["k", "i", "j"]]
    assert document["valid_when"]


def test_what_apply_writes_is_read_again(roofdsl: Run) -> None:
    text = roofdsl(*["bound", "matmul", "--cache", "8KiB", "--apply"]).stdout
    tiled = json.loads(roofdsl(*["bound", "-", "--set", "n=240", "--cache", "8KiB", "--json"], stdin=text).stdout)
    plain = json.loads(roofdsl(*["bound", "matmul", "--set", "n=240", "--cache", "8KiB", "--json"]).stdout)
    assert tiled["lower_bound_loads"] == plain["lower_bound_loads"]
    assert tiled["schedule_loads"]["value"] < plain["schedule_loads"]["value"] / 10


@pytest.mark.spread(1)
@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ("bound matmul --cache 8KiB --machine v100", 2, "choose one"),
        ("bound matmul --apply", 2, "--cache SIZE or --machine M"),
        ("bound matmul_tiled --cache 8KiB --apply", 2, "is already tiled"),
        ("bound polybench/lu --cache 8KiB --apply", 2, "no tile is known"),
        ("bound polybench/floyd_warshall --cache 8KiB --apply", 2, "a dependence would be reversed"),
        ("bound matmul --set m=3", 2, "no parameter `m`"),
        ("bound gemw", 2, "no file or shipped kernel"),
        ("bound lstm_forward", 2, "bounds are for kernels"),
    ],
)
def test_errors(arguments: str, status: int, message: str, roofdsl: Run) -> None:
    result = roofdsl(*arguments.split())
    assert (result.returncode, result.stdout) == (status, "")
    assert message in result.stderr
    assert "Traceback" not in result.stderr

"""The text of the best order: `predict` gives it the time that is said, and it computes the same."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from roofdsl.checks.deep import require_legal
from roofdsl.cli.main import cli
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel as pick
from roofdsl.loops.load import load_file
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine, shipped_models
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.sol.answer import speed_of_light
from roofdsl.sol.printed import Printed, printed
from roofdsl.tell.as_text import to_text
from roofdsl.tell.schemas.commands import schema_of
from roofdsl.tell.sol import blocks, document
from tests.oracle.loading import kernel_of
from tests.oracle.values import same_result

TRANSPOSED = """\
kernel transposed(m, n, k):
    in A: f32[m, k], B: f32[n, k]
    inout C: f32[n, m]
    for p in range(k), i in range(m), j in range(n):
        C[j, i] += A[i, p] * B[j, p]
"""
ODD = """\
kernel odd(n):
    in A, B: f64[n, n]
    inout C: f64[n, n]
    for i in range(n), j in range(n), k in range(n):
        C[i, j] += A[i, k] * B[k, j]
"""
TEXTS = {"transposed": TRANSPOSED, "odd": ODD}


def source_of(name: str) -> str:
    return TEXTS[name] if name in TEXTS else load_file(shipped_models()[name].path).kernels[name].source.text


def kernel(name: str) -> Kernel:
    return kernel_of(TEXTS[name]) if name in TEXTS else pick(load_file(shipped_models()[name].path), name)


def with_lines(name: str, lines: tuple[str, ...]) -> str:
    """The source of a kernel with lines before its first statement."""
    body = source_of(name).splitlines()
    begin = next(k for k, line in enumerate(body) if line.startswith(f"kernel {name}("))
    at = next(k for k, line in enumerate(body) if k > begin and line.startswith("    for "))
    return "\n".join([*body[:at], *(f"    {line}" for line in lines), *body[at:]]) + "\n"


def text_of(name: str, machine: str, sizes: dict[str, int]) -> tuple[Printed, Kernel]:
    """The printed text, and the kernel that a file with it holds."""
    own, on = kernel(name), load_machine(machine)
    found = printed(speed_of_light(own, sizes, on), own, sizes, on)
    assert found is not None and bool(found.lines) != bool(found.text)
    whole = found.text or with_lines(name, found.lines)
    return found, pick(load_file(Source("written.roof", whole)), name)


SAID = [
    ("matmul", "v100", {"n": 1024}, "registers"),
    ("matmul", "a100_80", {"n": 1000}, "registers"),
    ("gemm_f16", "v100", {"m": 256, "n": 128, "k": 192}, "registers"),
    ("transposed", "v100", {"m": 1200, "n": 640, "k": 1000}, "registers"),
    ("matmul_tiled", "v100", {"n": 1024, "b": 32}, "registers"),
    ("odd", "v100", {"n": 255}, "lines"),
    ("matmul", "haswell_e5_2695v3", {"n": 400}, "registers"),
    ("transposed", "skylake_gold_6148", {"m": 160, "n": 80, "k": 120}, "registers"),
    ("odd", "haswell_e5_2695v3", {"n": 151}, "lines"),
    ("jacobi2d_time", "haswell_e5_2695v3", {"n": 150, "steps": 12}, "sweeps"),
]  # fmt: skip


@pytest.mark.spread(1, 6)
@pytest.mark.parametrize(("name", "machine", "sizes", "kind"), SAID)
def test_predict_gives_a_file_with_the_text_the_time_that_is_said(
    name: str, machine: str, sizes: dict[str, int], kind: str
) -> None:
    found, own = text_of(name, machine, sizes)
    assert found.kind == kind and found.time_s is not None
    exact = predict(own, sizes, load_machine(machine), Options(traffic=found.traffic))
    assert exact.bound_s == found.time_s if not found.is_at_most else exact.bound_s <= found.time_s


@pytest.mark.parametrize(("name", "machine", "sizes", "small"), [
    ("matmul", "v100", {"n": 1024}, {"n": 8}),
    ("transposed", "v100", {"m": 1024, "n": 1024, "k": 1024}, {"m": 8, "n": 16, "k": 5}),
    ("transposed", "v100", {"m": 1022, "n": 1024, "k": 1024}, {"m": 6, "n": 8, "k": 5}),
    ("gemm_f16", "a100_80", {"m": 1024, "n": 1024, "k": 1024}, {"m": 8, "n": 8, "k": 3}),
    ("matmul_tiled", "v100", {"n": 1024, "b": 32}, {"n": 8, "b": 4}),
])  # fmt: skip
def test_the_text_for_threads_computes_the_same_and_is_legal(
    name: str, machine: str, sizes: dict[str, int], small: dict[str, int]
) -> None:
    """Both executed on numbers, statement by statement; the text holds for all sizes that its block divides."""
    found, own = text_of(name, machine, sizes)
    assert found.kind == "registers"
    require_legal(own)
    assert same_result(kernel(name), own, small)


@pytest.mark.parametrize(("name", "machine", "sizes"), [
    ("matmul", "v100", {"n": 4000}), ("matmul", "haswell_e5_2695v3", {"n": 4000}),
])  # fmt: skip
def test_a_block_in_registers_reaches_the_best_order(name: str, machine: str, sizes: dict[str, int]) -> None:
    """With tiles alone, updates of the result in the first cache take several times as long."""
    own, on = kernel(name), load_machine(machine)
    light = speed_of_light(own, sizes, on)
    found = printed(light, own, sizes, on)
    assert found is not None and light.best is not None and found.time_s == light.best.time_s and not found.is_at_most


def test_the_report_says_why_a_text_takes_longer() -> None:
    own, on = kernel("odd"), load_machine("v100")
    light = speed_of_light(own, {"n": 2001}, on)
    text = printed(light, own, {"n": 2001}, on)
    told = "\n".join(to_text(blocks(light, text)))
    assert text is not None and text.time_s is not None and light.best is not None
    assert "as printed below" in told and "`predict`" in told and "`tile` keeps no sums in registers" in told
    fields = document(light, text)
    Draft202012Validator(schema_of("sol")).validate(fields)
    said = [fields["best_found_predicted_s"], fields["best_found_predicted_at_most_s"]]
    assert said[text.is_at_most] == float(text.time_s) > fields["best_found_s"] and said[not text.is_at_most] is None


def test_the_command_prints_the_time_of_its_text() -> None:
    run = CliRunner().invoke(cli, ["sol", "matmul", "--machine", "v100", "--set", "n=1024", "--json"])
    assert run.exit_code == 0, run.output
    found = json.loads(run.output)
    assert found["best_found"] == [] and "acc00" in found["best_found_text"]
    assert found["best_found_predicted_s"] == pytest.approx(found["best_found_s"], rel=0.01)


def test_a_text_without_a_time_says_how_many_accesses_predict_would_simulate() -> None:
    own, on, sizes = kernel("jacobi2d_time"), load_machine("haswell_e5_2695v3"), {"n": 4000, "steps": 100}
    light = speed_of_light(own, sizes, on)
    text = Printed("sweeps", "in tiles", (), light.best.text if light.best else "", None, accesses=19_180_804_800)
    told = "\n".join(to_text(blocks(light, text)))
    assert "19,180,804,800 accesses, more than its limit of 3,000,000,000" in told and "as printed" not in told

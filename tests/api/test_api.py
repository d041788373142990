"""The Python interface gives what the commands give, of names, files and texts alike."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from roofdsl.api import (
    CommandError,
    InputError,
    compare,
    derive,
    explore,
    kernel,
    launches,
    machine,
    measure,
    predict,
    program,
    roofline,
    simulate,
    traffic_at,
    traffic_figure,
)
from roofdsl.cli.main import run
from roofdsl.predict.kernel import predict as predicted
from roofdsl.predict.options import Options
from roofdsl.validate.compare import DEFAULTS

AXPY = """
kernel axpy(n):
    in a: f64, x: f64[n]
    inout y: f64[n]
    for i in range(n):
        y[i] += a * x[i]
"""
LAPTOP = """
machine laptop "My laptop":
    peak f64 fma 200 GFLOP/s
    memory RAM 16 GiB, 50 GB/s
"""


LIKE_OPTIONS = """
kernel copied(on, cache):
    in A: f64[on, cache]
    out B: f64[on, cache]
    for i in range(on), j in range(cache):
        B[i, j] = A[i, j]
"""
TWICE = (
    AXPY
    + """
program twice(n):
    repeat 2:
        run axpy(n)
"""
)


def test_kernels_by_name_file_and_text(tmp_path: Path) -> None:
    assert (
        kernel("gemv").name == kernel("models/kernels/gemv.roof").name == kernel(Path("models/kernels/gemv.roof")).name
    )
    assert kernel("polybench/lu").name == "lu"
    assert kernel(AXPY).name == "axpy"
    file = tmp_path / "mine.roof"
    file.write_text(AXPY + AXPY.replace("axpy", "again"))
    assert kernel(f"{file}:again").name == kernel(file, "again").name == "again"
    with pytest.raises(CommandError, match="several kernels"):
        kernel(file)
    with pytest.raises(CommandError, match="no file or shipped kernel named `gmv`") as error:
        kernel("gmv")
    assert "gemv" in error.value.help
    with pytest.raises(InputError, match=r"<text>:6:21: error\[name-unknown\]: `z` is not defined"):
        kernel(AXPY.replace("a * x[i]", "a * z[i]"))


def printed_by(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert run([*words, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_derive_is_the_command_s(capsys: pytest.CaptureFixture[str]) -> None:
    printed = printed_by(capsys, "derive", "gemv", "--set", "n=512", "--cache", "32KiB")
    d = derive("gemv", cache="32 KiB", n=512)
    assert d.work.total.value == printed["work"]["total"]["value"] == 2 * 512**2
    assert d.at_cache.bytes.value == printed["bytes"]["value"]
    assert derive(AXPY, n=10).intensity.value == Fraction(20, 240)
    assert derive("matmul", steps=True).steps is not None
    assert derive("gemv", cache="Z").any_cache is not None
    with pytest.raises(CommandError, match="KB"):
        derive("gemv", cache="32 KB")
    with pytest.raises(CommandError, match="m"):
        derive("gemv", m=3)


@pytest.mark.thorough
def test_predict_is_the_command_s(capsys: pytest.CaptureFixture[str]) -> None:
    printed = printed_by(capsys, "predict", "gemv", "--machine", "v100_deck", "--set", "n=4096")
    assert predict("gemv", "v100_deck", n=4096).to_json() == printed
    assert predict(AXPY, LAPTOP, n=10**6).bound_s == Fraction(24 * 10**6, 50 * 10**9)
    assert predict(kernel(AXPY), machine(LAPTOP), n=10**6).bound == "RAM"
    assert predict("gemm_f16", "v100", Options(unit="tensor"), m=512, n=512, k=512).unit == "tensor"
    program = predict("lstm_forward", "v100")
    assert program.launches == 36
    with pytest.raises(CommandError, match="needs a number for n"):
        predict(AXPY, LAPTOP)


def test_measured_and_compared() -> None:
    found = measure("vector_add", n=20_000)
    assert found.verified.max_error == 0
    both = compare("vector_add", found, LAPTOP)
    assert both.measured_s == found.median_s
    assert both.bound_s == pytest.approx(24 * 20_000 / 50e9)


def test_programs_are_measured_and_compared() -> None:
    text = "kernel copy(n):\n    in a: f64[n]\n    out b: f64[n]\n    for i in range(n):\n        b[i] = a[i]\n"
    twice = program(text + "program twice(n):\n    repeat 2:\n        run copy(n)\n")
    found = measure(twice, n=2_000)
    assert [(part.of.kernel, part.launches) for part in found.by_launch] == [("copy", 2)]
    both = compare(twice, found, LAPTOP)
    assert both.bound_s == pytest.approx(2 * 16 * 2_000 / 50e9)
    for part in (both, *both.by_launch):
        verdict = DEFAULTS.verdict(part.ratio)
        disturbed = both.disturbed and verdict == "slower than predicted"  # by other programs, on this machine, now
        assert part.verdict == ("inconclusive" if disturbed else verdict)


@pytest.mark.thorough
def test_figures(tmp_path: Path) -> None:
    p = predict("gemv", "v100_deck", n=4096)
    figure = roofline(p, predict("matmul", "v100_deck", n=4096), path=tmp_path / "r.svg", title="Two kernels")
    assert figure.axes and (tmp_path / "r.svg").read_bytes().startswith(b"<?xm")
    mine = predict(AXPY, LAPTOP, n=10**6)
    assert roofline(mine, on=[LAPTOP]).axes
    assert roofline(on="v100_deck").axes and roofline(mine, on=machine(LAPTOP)).axes
    for points, on, message in (
        ((mine,), (), "laptop"),  # its machine is not a shipped one, and was not given
        ((mine,), "v100_deck", "a prediction is for laptop"),
        ((), (), "nothing to draw"),
        (("gemv",), "v100_deck", "a str is not a prediction"),
    ):
        with pytest.raises(CommandError, match=message):
            roofline(*points, on=on)  # type: ignore[arg-type]
    assert traffic_figure("gemv", n=32, path=tmp_path / "q.png").axes and (tmp_path / "q.png").stat().st_size > 5000


def test_what_is_derived_prints_itself(capsys: pytest.CaptureFixture[str]) -> None:
    d = derive("gemv", traffic="once")
    assert str(d.work.total) == d.work.total.expr == "2*n**2"
    assert str(d.intensity) == str(d.intensity.sympy()) == "n/(4*n + 8)"
    assert derive("copy").intensity.expr is None and "nothing" in str(derive("copy").intensity)
    assert run(["derive", "gemv", "--traffic", "once"]) == 0
    assert str(d) == capsys.readouterr().out.rstrip("\n")


@pytest.mark.thorough
def test_traffic_at_sizes_is_derive_s_value() -> None:
    found = traffic_at("matmul", "2 KiB", line=64, traffic="load_store", n=24)
    d = derive("matmul", cache="2 KiB", line=64, traffic="load_store", n=24).at_cache
    assert d.loads is not None and (found.bytes, found.loads_bytes) == (d.bytes.value, d.loads.value)
    assert traffic_at("copy", n=8, traffic="once").bytes == 128


def test_sizes_by_mapping_and_parameters_called_like_options() -> None:
    sizes = {"on": 10, "cache": 20}
    assert predict(LIKE_OPTIONS, "v100_deck", sizes=sizes).memory.bytes == 3200
    assert derive(LIKE_OPTIONS, cache="1 KiB", sizes=sizes).at_cache.bytes.value == 3200
    assert traffic_at(LIKE_OPTIONS, "1 KiB", sizes=sizes).bytes == 3200
    assert simulate(LIKE_OPTIONS, cache=1024, sizes=sizes).accesses == 400
    assert predict("gemv", "v100_deck", sizes={"n": 64}) == predict("gemv", "v100_deck", sizes={"n": 1}, n=64)
    assert kernel("conv2d", sizes={"s": 3}).constants == kernel("conv2d", s=3).constants == (("s", 3),)
    assert measure("vector_add", sizes={"n": 10_000}).work == 10_000


STRIDED = """
kernel strided(n, const s = 2):
    in x: f64[n * s]
    out y: f64[n]
    for i in range(n):
        y[i] = x[s * i]
"""


def test_a_kernel_object_takes_no_other_constants() -> None:
    two = kernel(STRIDED, s=2)
    assert traffic_at(two, 1024, line=64, n=1000, s=2).bytes == traffic_at(two, 1024, line=64, n=1000).bytes == 24000
    assert traffic_at(STRIDED, 1024, line=64, n=1000, s=4).bytes == 40000
    for asked in (
        lambda: derive(two, n=1000, s=4),
        lambda: traffic_at(two, 1024, sizes={"n": 1000, "s": 4}),
        lambda: simulate(two, n=1000, s=4),
        lambda: predict(two, LAPTOP, n=1000, s=4),
        lambda: measure(two, n=1000, s=4),
        lambda: traffic_figure(two, n=1000, s=4),
        lambda: explore(two, on=LAPTOP, n=1000, s=4),
        lambda: predicted(two, {"n": 1000, "s": 4}, machine(LAPTOP), Options()),
    ):
        with pytest.raises(CommandError, match="made with s = 2, but s = 4 is given"):
            asked()


def test_simulate_is_the_command_s(capsys: pytest.CaptureFixture[str]) -> None:
    (level,) = printed_by(capsys, "simulate", "gemv", "--set", "n=32", "--cache", "1KiB")["levels"]
    found = simulate("gemv", cache="1 KiB", n=32)
    assert found.bytes("load_store") == level["bytes"]


@pytest.mark.thorough
def test_programs_launch_by_launch(capsys: pytest.CaptureFixture[str]) -> None:
    printed = printed_by(capsys, "predict", "lstm_forward", "--machine", "v100")
    found = launches("lstm_forward", "v100")
    assert found.total == predict("lstm_forward", "v100") and found.total.launches == printed["launches"] == 36
    twice = program(TWICE)
    assert twice.name == "twice" and program(TWICE, "twice") == twice
    one = predict(TWICE, LAPTOP, n=10**6)  # the kernel, as where a text has one and nothing else
    assert predict(twice, LAPTOP, n=10**6).bound_s == 2 * one.bound_s == launches(twice, LAPTOP, n=10**6).total.bound_s
    for wrong, message in ((AXPY, "no program"), ("gemv", "no program `gemv`")):
        with pytest.raises(CommandError, match=message):
            program(wrong)


def test_options_of_predictions_by_name_or_together() -> None:
    sizes = {"m": 512, "n": 512, "k": 512}
    by_name = predict("gemm_f16", "v100", unit="tensor", traffic="once", sizes=sizes)
    assert by_name == predict("gemm_f16", "v100", Options(unit="tensor", traffic="once"), sizes=sizes)
    assert by_name == predict(
        "gemm_f16", "v100", Options(traffic="load_store"), unit="tensor", traffic="once", sizes=sizes
    )
    assert predict("gemv", "v100", warm=True, n=64) != predict("gemv", "v100", n=64)


def test_a_page(tmp_path: Path) -> None:
    page = explore(AXPY, on=[LAPTOP], n=1000, path=tmp_path / "page.html")
    assert page.startswith("<!doctype html>") and page == (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "axpy" in page and "My laptop" in page
    for sources, message in (((AXPY,), "parameter `m`"), ((), "no kernel to show")):
        with pytest.raises(CommandError, match=message):
            explore(*sources, on=LAPTOP, m=3)

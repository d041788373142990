"""Programs as commands print them, word for word; `pytest --update-golden` writes it anew."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from roofdsl.machine.quantities import show_time
from tests.cli.conftest import Run, Said

PRINTED = {
    "program_lstm": "predict lstm_forward --machine v100_time_paper",
    "threshold_lstm": "threshold lstm_forward --machine v100_time_paper --over batch",
    "threshold_matmul": "threshold matmul_bf16 --machine h100_guide --unit tensor_sparse --over n",
    "threshold_search": "threshold gemv --machine v100_deck --over n --up-to 1024",
    "program_units": "predict conv2d_housekept --machine v100_time_paper --unit tensor",
}
FAILS = {
    "program_unknown_parameter": ("predict lstm_forward --machine v100_time_paper --set bach=3", 2),
    "program_zero_argument": ("predict conv2d_im2col --machine v100_time_paper --set h=2", 2),
    "threshold_const": ("threshold conv2d --machine v100_time_paper --over s", 2),
    "threshold_no_term": ("threshold conv2d --machine v100_time_paper --over f --between L2,launch", 2),
    "threshold_one_term": ("threshold conv2d --machine v100_time_paper --over f --between launch", 2),
    "program_link": ("predict tests/lang/good/collectives.roof:shared --machine summit", 1),
    "program_wrong": ("predict tests/lang/bad/program_circle.roof:alone --machine v100_time_paper", 1),
}


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", PRINTED)
def test_what_is_printed(name: str, prints: Said) -> None:
    prints(name, PRINTED[name])


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", FAILS)
def test_what_goes_wrong(name: str, fails: Said) -> None:
    fails(name, *FAILS[name])


def test_launches_that_take_no_time_have_no_share(roofdsl: Run) -> None:
    printed = roofdsl(*["predict", "layer_parallel", "--set", "p=1", "--machine", "h100_sxm"]).stdout
    shares = printed.partition("time by the bound of each launch: ")[2]
    assert "compute" in shares and "nothing" not in shares


def test_an_error_about_a_program_lists_the_kernels_that_it_runs(roofdsl: Run) -> None:
    error = roofdsl(*["explore", "vocabulary", "--machine", "v100", "-o", "page.html"]).stderr
    assert "pick one of its kernels: rms_norm, linear\n" in error


def test_kernels_of_a_program_in_json(roofdsl: Run) -> None:
    document = json.loads(roofdsl("predict", "lstm_forward", "--machine", "v100_time_paper", "--json").stdout)
    assert {row["kernel"]: row["launches"] for row in document["by_kernel"]} == {
        "lstm_recurrent_product": 16, "lstm_elementwise": 16, "lstm_move": 2, "lstm_input_product": 2,
    }  # fmt: skip
    assert document["launches"] == 36
    assert document["time_by_bound_s"] == {"launch": document["time_s"]}


def test_expected_times_of_kernels_on_a_gpu(roofdsl: Run) -> None:
    program = ("predict", "lstm_forward", "--machine", "a100_80")
    document = json.loads(roofdsl(*program, "--json").stdout)
    table = roofdsl(*program).stdout.partition("kernels, by time:\n")[2].splitlines()
    assert "expected" in table[0] and sum(row["expected_s"] for row in document["by_kernel"]) == pytest.approx(
        document["expected_s"]
    )
    for row, line in zip(document["by_kernel"], table[1:], strict=False):
        assert line.split()[0] == row["kernel"] and show_time(Fraction(row["expected_s"])) in line
    without = roofdsl("predict", "lstm_forward", "--machine", "v100_time_paper").stdout
    assert "expected" not in without.partition("kernels, by time:\n")[2].splitlines()[0]


def test_thresholds_in_json(roofdsl: Run) -> None:
    line = "threshold lstm_forward --machine v100_time_paper --over batch --json"
    document = json.loads(roofdsl(*line.split()).stdout)
    assert document["schema"] == "roofdsl.threshold/1"
    assert document["bounds"] == [
        {"from": 1, "to": 4615, "names": ["launch"]}, {"from": 4616, "to": None, "names": ["HBM"]},
    ]  # fmt: skip
    assert document["work"]["expr"] == "102656*batch"
    assert [row["kernel"] for row in document["by_launch"]][:2] == ["lstm_move", "lstm_input_product"]
    assert document["exact"] is True

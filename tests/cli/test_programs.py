"""Programs as commands print them, word for word; `pytest --update-golden` writes it anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Run

GOLDEN = Path(__file__).parent / "golden"
PRINTED = {
    "program_lstm": "predict lstm_forward --machine v100_time_paper",
    "program_units": "predict conv2d_housekept --machine v100_time_paper --unit tensor",
}
FAILS = {
    "program_no_units": ("predict conv2d_winograd --machine v100_time_paper --unit tensor", 2),
    "program_unknown_parameter": ("predict lstm_forward --machine v100_time_paper --set bach=3", 2),
    "program_zero_argument": ("predict conv2d_im2col --machine v100_time_paper --set h=2", 2),
    "program_wrong": ("predict tests/lang/bad/program_circle.roof:alone --machine v100_time_paper", 1),
}


@pytest.mark.parametrize("name", PRINTED)
def test_what_is_printed(name: str, roofdsl: Run, golden: Callable[[Path, str], None]) -> None:
    result = roofdsl(*PRINTED[name].split())
    assert (result.returncode, result.stderr) == (0, "")
    golden(GOLDEN / f"{name}.txt", result.stdout)


@pytest.mark.parametrize("name", FAILS)
def test_what_goes_wrong(name: str, roofdsl: Run, golden: Callable[[Path, str], None]) -> None:
    line, status = FAILS[name]
    result = roofdsl(*line.split())
    assert (result.returncode, result.stdout) == (status, "")
    assert "Traceback" not in result.stderr
    golden(GOLDEN / f"error_{name}.txt", result.stderr)


def test_kernels_of_a_program_in_json(roofdsl: Run) -> None:
    document = json.loads(roofdsl("predict", "lstm_forward", "--machine", "v100_time_paper", "--json").stdout)
    assert {row["kernel"]: row["launches"] for row in document["by_kernel"]} == {
        "lstm_recurrent_product": 16, "lstm_elementwise": 16, "lstm_move": 2, "lstm_input_product": 2,
    }  # fmt: skip
    assert document["launches"] == 36
    assert document["time_by_bound_s"] == {"launch": document["time_s"]}

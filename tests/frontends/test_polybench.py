"""PolyBench's own C against the models written by hand: the same W, compulsory Q and Q(Z), as formulas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from roofdsl.cli.main import run
from roofdsl.machine.find import models_folder
from tests.frontends import external

MODELS = {"2mm": "mm2", "3mm": "mm3"}
ARRAYS = {"_fict_": "fict", "y_1": "y1", "y_2": "y2", "sum": "sums"}
"""Names of PolyBench's arrays, and what the models call them."""
NAMES = [name for name in external.files("polybench_c") if name != "polybench"]


def converted(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The `.roof` text of a kernel of PolyBench."""
    path = external.required("polybench_c") / f"{name}.c"
    assert run(["convert", str(path), "-D", "POLYBENCH_USE_C99_PROTO"]) == 0
    return capsys.readouterr().out


def test_all_are_there() -> None:
    external.required("polybench_c")
    assert len(NAMES) >= 16


@pytest.mark.spread(8)
@pytest.mark.parametrize("name", NAMES)
def test_is_read(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = converted(name, capsys)
    assert text.startswith(f"kernel kernel_{name.replace('-', '_')}(")


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", NAMES)
def test_formulas_are_the_models(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    model = models_folder() / "polybench" / f"{MODELS.get(name, name.replace('-', '_'))}.roof"
    assumed = [line for line in model.read_text().splitlines() if line.startswith("    assume ")]
    own = next(line for line in model.read_text().splitlines() if line.startswith("kernel "))
    head, *rest = converted(name, capsys).splitlines()
    assert sorted(_parameters(head)) == sorted(_parameters(own))
    path = tmp_path / "read.roof"
    # the models leave sizes out at which nothing runs; of equal formulas, the order of parameters picks one
    path.write_text("\n".join([f"kernel read({', '.join(_parameters(own))}):", *assumed, *rest]) + "\n")
    assert derived(path, capsys) == derived(model, capsys)


def _parameters(head: str) -> list[str]:
    return head[head.index("(") + 1 : head.index(")")].split(", ")


def derived(path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """What `derive` says of a kernel, but for its name, the order of its parameters and the names of arrays."""
    assert run(["derive", str(path), "--json", "--budget", "none"]) == 0
    found = json.loads(capsys.readouterr().out)
    del found["kernel"]
    by_array = found["compulsory"]["by_array"]
    found["compulsory"]["by_array"] = {ARRAYS.get(a, a): by_array[a] for a in by_array}
    return found

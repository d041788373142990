"""What numba keeps on disk is compiled again when any file of the simulator has changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from roofdsl.simulate.lru_engines import BySegments
from roofdsl.simulate.lru_traffic import simulate_lru
from tests.models.shipped import model

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
from roofdsl.simulate.walk import stays
print(stays(0, 1, 8, 3), len(stays.stats.cache_hits))
"""


@pytest.mark.thorough
def test_a_change_elsewhere_is_seen(tmp_path: Path) -> None:
    """`stays` is in walk.py, which does not change; a second process takes it from disk, a third compiles it anew."""
    shutil.copytree(ROOT / "roofdsl", tmp_path / "roofdsl", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "compiled")}

    def hits() -> str:
        made = subprocess.run(
            [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, env=environment, timeout=120,
            cwd=tmp_path,
        )  # fmt: skip
        return made.stdout.strip()

    assert hits() == "8 0"
    assert hits() == "8 1"
    stack = tmp_path / "roofdsl" / "simulate" / "stack.py"
    stack.write_text(stack.read_text() + "\n# changed\n")
    assert hits() == "8 0"


TOGETHER = """
from roofdsl.simulate.walk import first_call, stays
with first_call(stays):
    stays(0, 1, 8, 3)
print(len(stays.stats.cache_hits))
"""


def test_processes_that_need_the_same_code_compile_it_once(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path)}
    started = [
        subprocess.Popen([sys.executable, "-c", TOGETHER], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    assert sorted(process.communicate(timeout=120)[0].strip() for process in started) == ["0", "1"]


def test_what_is_compiled_waits_until_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product that the simulation line by line answers quickly starts no segments that would have to be compiled."""
    started = []
    for ready in (True, False):
        monkeypatch.setattr(BySegments, "are_compiled", lambda ready=ready: ready)
        monkeypatch.setattr(BySegments, "__init__", lambda *_, ready=ready: started.append(ready) or _unused())
        try:
            simulate_lru(model("matmul"), {"n": 500}, 1 << 20, 64)
        except NotImplementedError:
            assert ready
    assert started == [True]


def _unused() -> None:
    raise NotImplementedError


SAYS = """
from roofdsl import budget
from roofdsl.simulate.walk import COMPILING, first_call, stays
with budget.beginning(60, 1 << 40, whole=True) as own, first_call(stays):
    print(own.once == COMPILING)
    stays(0, 1, 8, 3)
"""


def test_people_who_wait_are_told_what_is_compiled(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path)}
    said = [
        subprocess.run(
            [sys.executable, "-c", SAYS], check=True, capture_output=True, text=True, env=environment, timeout=120
        ).stdout
        for _ in range(2)
    ]
    assert said == ["True\n", "False\n"], "only the first process compiles"

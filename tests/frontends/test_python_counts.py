"""W of functions on numpy's arrays, as counted while numpy executes them."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from roofdsl.api import from_python
from roofdsl.counts.work_at import work_at
from tests.frontends.counting import Counted

PATH = Path(__file__).with_name("counted_programs.py")
TEXT = PATH.read_text(encoding="utf-8")
NAMES = [f.name for f in ast.parse(TEXT).body if isinstance(f, ast.FunctionDef)]
SIZES = {"n": 6, "m": 5, "k": 3, "d": 4}


@pytest.mark.parametrize("name", NAMES)
def test_counts_what_numpy_executes(name: str) -> None:
    operations: Counter[str] = Counter()
    names: dict[str, Any] = {}
    exec(compile(TEXT, str(PATH), "exec", dont_inherit=True), names)
    # no operand tells numpy that zeros are to count
    names["np"] = SimpleNamespace(**{**vars(np), "zeros": lambda shape: Counted(np.zeros(shape), operations)})
    rng = np.random.default_rng(1)
    given: dict[str, Any] = {}
    for argument, note in names[name].__annotations__.items():
        if note is int:
            given[argument] = SIZES[argument]
        else:
            dims = [] if note is float else note[4:-1].split(",")
            given[argument] = Counted(rng.uniform(1, 2, [eval(d, {}, SIZES) for d in dims]), operations)
    names[name](**given)
    kernel = from_python(str(PATH), name)
    found = work_at(kernel, {p.name: SIZES[p.name] for p in kernel.parameters})
    work = {c: n for (_, c), n in found.operations.items()}
    assert {**work, "cmp": found.cmp} == {"cmp": 0, **operations}

"""C with structures, and known codes as their authors write them: what is read does what the user's function does.

The results are compared bit for bit with those of the compiled function, and operations and accesses, by the byte, with
those of an interpreter that knows nothing of kernels.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from roofdsl.frontends.c import verify as c_verify
from roofdsl.frontends.verify import sizes_of
from tests.frontends.interpreted import counted, executed
from tests.frontends.running import kernel_of

HERE = Path(__file__).parent
FILES = ("structures.c", "other_loops.c", "known_codes.c")
CASES = [
    (file, name)
    for file in FILES
    for name in re.findall(r"^void (\w+)\(", (HERE / file).read_text(encoding="utf-8"), re.MULTILINE)
]
CHOOSES_ON_DATA = {"srad_gradient"}
"""Functions that compute less than both branches of a choice on data: the kernel computes both."""

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@needs_compiler
@pytest.mark.parametrize(("file", "name"), CASES)
def test_counts_what_is_executed(file: str, name: str) -> None:
    kernel = kernel_of(HERE / file, name)
    for sizes in sizes_of(kernel)[:2]:
        work, accesses = executed(HERE / file, name, kernel, sizes)
        own_work, own_accesses = counted(kernel, sizes)
        if name in CHOOSES_ON_DATA:
            assert all(own_work[k] >= n for k, n in work.items()) and set(own_accesses) >= set(accesses)
            continue
        assert own_work == work
        assert own_accesses == accesses


@needs_compiler
@pytest.mark.parametrize(("file", "name"), CASES)
def test_computes_the_same(file: str, name: str) -> None:
    (found,) = c_verify.verify_file(str(HERE / file), name)
    assert found.exact and found.compared

"""C with structures, and known codes as their authors write them: what is read does what the user's function does.

The results are compared bit for bit with those of the compiled function, and operations and accesses, by the byte, with
those of an interpreter that knows nothing of kernels.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from roofdsl.cli.main import run
from roofdsl.frontends.c import verify as c_verify
from roofdsl.frontends.c.harness import harness
from roofdsl.frontends.c.kernel import Reading
from roofdsl.frontends.c.read import _Reader, readings
from roofdsl.frontends.c.read import read as kernel_file
from roofdsl.frontends.verify import sizes_of
from roofdsl.lang.checked import CheckedFile, CheckedKernel
from roofdsl.lang.format import format_source
from roofdsl.lang.source import Source
from roofdsl.lang.write import written
from roofdsl.loops.indirect import index_arrays
from roofdsl.loops.load import kernel as lowered
from roofdsl.loops.load import read_source
from tests.frontends.c_memory import Access
from tests.frontends.interpreted import counted, executed

HERE = Path(__file__).parent
FILES = ("structures.c", "other_loops.c", "known_codes.c", "sparse.c", "memory.c", "idioms.c")
CASES = [
    (file, name)
    for file in FILES
    for name in re.findall(r"^void (\w+)\(", (HERE / file).read_text(encoding="utf-8"), re.MULTILINE)
]
CHOOSES_ON_DATA = {"srad_gradient", "jacobi_off_diagonal", "ring_chosen_on_data"}
"""Functions that compute less than both branches of a choice on data: the kernel computes both."""


@lru_cache
def readings_of(file: str) -> dict[str, tuple[Reading, CheckedKernel]]:
    """All functions of a file, which is parsed once."""
    reader = _Reader(read_source(str(HERE / file)))
    own = [name for other, name in CASES if other == file]
    return {name: reader.kernel(reader.regions(name)[0])[:2] for name in own}


needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@needs_compiler
@pytest.mark.parametrize(("file", "name"), CASES)
def test_counts_what_is_executed(file: str, name: str) -> None:
    checked = readings_of(file)[name][1]
    own = checked.tree.name.text
    kernel = lowered(CheckedFile(checked.source, None, {own: checked}, {}, {}, (own,), ()), own)  # type: ignore[arg-type]
    for sizes in sizes_of(kernel)[:2]:
        work, accesses = executed(HERE / file, name, kernel, sizes)
        own_work, own_accesses = counted(kernel, sizes)
        again = index_arrays(kernel)
        own, users = times(own_accesses, again), times(accesses, again)
        if name in CHOOSES_ON_DATA:
            assert all(own_work[k] >= n for k, n in work.items()) and set(own) >= set(users)
            continue
        assert own_work == work
        # C reads the end of a loop before each iteration, and the kernel once; C reads an index in a variable once, and
        # the kernel at each use. Both read the same elements.
        assert {a for a in own_accesses if a.array in again} <= {a for a in accesses if a.array in again}
        assert own == users


def times(accesses: Mapping[Access, int], but: Collection[str]) -> dict[Access, int]:
    """How often each place of an array is read and written, without some arrays."""
    return {access: n for access, n in accesses.items() if access.array not in but}


@needs_compiler
@pytest.mark.parametrize(("file", "name"), CASES)
def test_computes_the_same(file: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c_verify, "readings", lambda _, name: [readings_of(file)[name]])
    (found,) = c_verify.verify_file(str(HERE / file), name)
    assert found.exact and found.compared


BODIES = """struct body { double x, y, m; };
void push(int n, struct body *b) { for (int i = 0; i < n; i++) b[i].x += b[i].y; }
"""


@needs_compiler
@pytest.mark.parametrize(("old", "new"), [("double x;", "double y;"), (".y", ".m"), ("double m;", "double m, w;")])
def test_other_members_are_found(
    old: str, new: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's function is compiled with members that lie elsewhere: `--verify` has to find it."""
    path = tmp_path / "bodies.c"
    path.write_text(BODIES)
    original = c_verify.harness

    def changed(reading: Any) -> Any:
        found = original(reading)
        assert old in found.text
        text = found.text.replace(old, "@").replace(new, old).replace("@", new)
        return type(found)(text, found.names, found.given, found.fused)

    monkeypatch.setattr(c_verify, "harness", changed)
    assert run(["convert", str(path), "--verify"]) == 2
    err = capsys.readouterr().err
    assert "in your function by" in err or "writes outside `b`" in err


@needs_compiler
def test_loops_run_as_they_were_written(tmp_path: Path) -> None:
    """`--verify` compiles the user's own loop, not the `for` that it is read as."""
    path = tmp_path / "down.c"
    path.write_text("void f(int n, double *a) { int i = n; while (i--) a[i] += i; }\n")
    ((reading, _),) = readings(str(path))
    assert "while (i--)" in harness(reading).text


@needs_compiler
def test_a_name_of_the_c_library(tmp_path: Path) -> None:
    """`step` and `advance` are functions of glibc, too: they are not what is called."""
    for name in ("step", "advance"):
        path = tmp_path / f"{name}.c"
        path.write_text(f"void {name}(int n, double *a) {{ for (int i = 0; i < n; i++) a[i] *= 2; }}\n")
        (found,) = c_verify.verify_file(str(path))
        assert found.exact


def test_members_are_named_in_the_text() -> None:
    own = kernel_file(str(HERE / "structures.c"), "nested").kernels["nested"]
    text = written(own)
    assert text.startswith("# members of p: 0-2 pos, 3-5 vel, 6 mass\nkernel nested(n):\n")
    assert format_source(Source("nested.roof", text)) == text


@needs_compiler
@pytest.mark.parametrize("compiler", ["cc", "none"])
def test_attributes_of_other_things_change_no_structure(
    compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "aligned.c"
    path.write_text("""
typedef struct { double x, y; } pair;
double buffer[64] __attribute__((aligned(64)));
static inline __attribute__((always_inline)) double twice(double x) { return x * 2; }
struct node { int n; };
struct node *root __attribute__((aligned(16)));
void f(int n, pair *p) { _Alignas(32) double t[2]; for (int i = 0; i < n; i++) p[i].x = twice(p[i].y); }
""")
    if compiler == "none":
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.delenv("CC", raising=False)
    (own,) = kernel_file(str(path)).kernels.values()
    assert "p: f64[n, 2]" in written(own)


@needs_compiler
@pytest.mark.parametrize(
    ("name", "options"), [("bodies.c", []), ("spmv.c", []), ("gemv.c", ["--value", "beta=1.0"])], ids=str
)
def test_the_page(
    name: str, options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The examples of docs/c.md."""
    page = (HERE.parents[1] / "docs/c.md").read_text(encoding="utf-8")
    command = " ".join(["roofdsl convert", name, *options])
    pattern = rf"\$ cat {name}\n([^$]*)\$ {re.escape(command)}\n([^$`]*)[$`]"
    example = re.search(pattern, page)
    assert example is not None
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(example[1])
    assert run(["convert", name, *options, "--verify"]) == 0
    assert capsys.readouterr().out == example[2]

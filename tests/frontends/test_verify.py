"""`convert --verify`: the user's function beside the kernel's code, on every suite that lies here, and what it says."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from roofdsl import reading_options
from roofdsl.cli.main import run
from roofdsl.frontends.c import verify as c_verify
from roofdsl.frontends.verify import Case, Outcome, data, sizes_of, verify
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from tests.frontends import external
from tests.frontends.test_tsvc import REFUSED

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
POLYBENCH = [n for n in external.files("polybench_c") if n != "polybench"]
TSVC = [n for n in external.files("tsvc") if n not in REFUSED]


@pytest.mark.thorough
@pytest.mark.spread(1)
@needs_compiler
@pytest.mark.parametrize("name", POLYBENCH)
def test_polybench(name: str) -> None:
    reading_options.use(reading_options.Options(("POLYBENCH_USE_C99_PROTO",)))
    try:
        (found,) = c_verify.verify_file(str(external.required("polybench_c") / f"{name}.c"))
    finally:
        reading_options.use(reading_options.Options())
    assert found.exact and len(found.sizes) == 3 and found.compared and len(found.ways) == 2


@pytest.mark.spread(1, 12)
@needs_compiler
@pytest.mark.parametrize("name", TSVC)
def test_tsvc(name: str) -> None:
    """Regions: variables of the file and locals from before are handed over, and back."""
    (found,) = c_verify.verify_file(str(external.required("tsvc") / f"{name}.c"))
    assert found.exact and found.compared


GEMV = "void gemv(int n, int m, double *A, double *x, double *y)\n"
GEMV += "{ for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) y[i] += A[i * m + j] * x[j]; }\n"


@pytest.fixture
def gemv(tmp_path: Path) -> Path:
    path = tmp_path / "gemv.c"
    path.write_text(GEMV)
    return path


@needs_compiler
def test_says_what_was_compared(gemv: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["convert", str(gemv), "--verify"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("kernel gemv(n, m):\n") and "verified" not in out
    assert err.startswith("gemv: verified: y bitwise identical to your function's (")
    assert "-O0 and " in err and "n = 6, m = 4; n = 1, m = 1; n = 9, m = 13" in err


@needs_compiler
def test_any_name_of_a_function_will_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`a` was the name of the wrapper's own argument, too."""
    path = tmp_path / "a.py"
    path.write_text("def a(x: 'f64[n]'):\n    x *= 2\n")
    assert run(["convert", str(path), "--verify"]) == 0
    assert "a: verified: x bitwise identical" in capsys.readouterr().err


@pytest.mark.spread(2)
@needs_compiler
@pytest.mark.parametrize(
    ("old", "new"), [("<n", "< n - 1"), ("+=", "-="), ("* x", "+ x"), ("[i*m+j]", "[j*n+i]"), ("y[i]", "y[0]")]
)
def test_finds_another_kernel(
    old: str, new: str, gemv: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's function is compiled with a change that the kernel does not have: it has to be found."""
    original = c_verify.harness
    olds = {"<n": "i < n", "+=": "y[i] +=", "* x": "* x[j]", "[i*m+j]": "A[(i * m) + j]", "y[i]": "y[i] +="}
    news = {"<n": "i < (n - 1)", "+=": "y[i] -=", "* x": "+ x[j]", "[i*m+j]": "A[(j * n) + i]", "y[i]": "y[0] +="}

    def changed(reading: object) -> object:
        found = original(reading)  # type: ignore[arg-type]
        assert olds[old] in found.text
        text = found.text.replace(olds[old], news[old])
        return type(found)(text, found.names, found.given, found.fused)

    monkeypatch.setattr(c_verify, "harness", changed)
    assert run(["convert", str(gemv), "--verify"]) == 2
    err = capsys.readouterr().err
    assert "in your function by" in err and "in the kernel" in err and "`y[" in err, new


@needs_compiler
def test_overlapping_writes_and_crashes_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wild.c"
    path.write_text(
        "void far(double a[10]) { for (int i = 0; i < 4; i++) a[i + 8] = 1; }\n"
        "void wild(double a[10]) { for (int i = 0; i < 4; i++) a[i + 900000000] = 1; }\n"
        "void big(double a[1000000][1000000]) { for (int i = 0; i < 4; i++) a[i][i] = 1; }\n"
    )
    for name, said in {"far": "no small sizes", "wild": "no small sizes", "big": "GiB of arrays"}.items():
        assert run(["convert", f"{path}:{name}", "--verify"]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.thorough
@needs_compiler
def test_a_function_that_crashes(
    gemv: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = c_verify.harness

    def wild(reading: object) -> object:
        found = original(reading)  # type: ignore[arg-type]
        text = found.text.replace("y[i] +=", "y[i + 400000000L] +=")
        return type(found)(text, found.names, found.given, found.fused)

    def outside(reading: object) -> object:
        found = original(reading)  # type: ignore[arg-type]
        text = found.text.replace("y[i] +=", "y[i + 3] +=")
        return type(found)(text, found.names, found.given, found.fused)

    for change, said in (
        (wild, "was ended by SIGSEGV at n = 6, m = 4"),
        (outside, "writes outside `y` at n = 6, m = 4"),
    ):
        monkeypatch.setattr(c_verify, "harness", change)
        assert run(["convert", str(gemv), "--verify"]) == 2
        assert f"your function of kernel gemv {said}" in capsys.readouterr().err


def test_without_a_compiler(gemv: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(gemv.parent))
    monkeypatch.delenv("CC", raising=False)
    assert run(["convert", str(gemv), "--verify"]) == 2
    err = capsys.readouterr().err
    assert "no C compiler was found" in err and "`--verify` compiles your function" in err


@pytest.mark.filterwarnings("error")
def test_results_that_are_all_nan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With one element, the spread is 0 and every result NaN: nothing is said about numpy's reductions."""
    path = tmp_path / "scaled.py"
    path.write_text("""\
import numpy as np

from roofdsl import f32


def scaled(x: f32["n"], y: f32["n"]):
    y[:] = (x - np.max(x)) / (np.max(x) - np.min(x))
""")
    assert run(["convert", str(path), "--verify"]) == 0
    assert "n = 1" in capsys.readouterr().err


def test_of_a_roof_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["convert", "matmul", "--verify"]) == 2
    assert "this is a .roof file" in capsys.readouterr().err


@needs_compiler
def test_constants_of_the_file_and_fma(tmp_path: Path) -> None:
    path = tmp_path / "constants.c"
    path.write_text(
        "#include <math.h>\nstatic const double w[3] = {0.25, 0.5, 0.25};\n"
        "void smooth(int n, const double *a, double *b)\n"
        "{ for (int i = 1; i < n - 1; i++) b[i] = w[0] * a[i - 1] + w[1] * a[i] + w[2] * a[i + 1]; }\n"
        "void fused(int n, double *a, double *b) { for (int i = 0; i < n; i++) a[i] = fma(a[i], b[i], a[i]); }\n"
        "void shifted(int n, float *a, int *k)\n"
        "{ for (int i = 0; i < n; i++) a[i] = fmaf(a[i], (float) k[i], (float) k[n - 1 - i]); }\n"
    )
    smooth, *fused = c_verify.verify_file(str(path))
    assert smooth.exact and len(fused) == 2
    assert not any(one.exact for one in fused) and all("up to rounding" in str(one) for one in fused)


def test_sizes_hold_assumptions_and_subscripts() -> None:
    text = "kernel f(n, m):\n    assume n >= 2 * m\n    in a: f64[n]\n    out b: f64[m]\n"
    text += "    for i in range(m):\n        b[i] = a[i + m]\n"
    own = kernel(load_file(Source("f.roof", text)), None)
    found = sizes_of(own)
    assert found and all(s["n"] >= 2 * s["m"] for s in found)


def test_any_front_end_can_join() -> None:
    """The general part takes a way to run the user's function, here numpy's."""
    text = "kernel f(n):\n    in a: f64[n]\n    out b: f64[n]\n    for i in range(n):\n        b[i] = 2 * a[i]\n"
    own = kernel(load_file(Source("f.roof", text)), None)

    def execute(cases: Sequence[Case], factor: int = 2) -> list[Outcome]:
        ours = [dict(c.arrays) | {"b": 2 * c.arrays["a"]} for c in cases]
        theirs = [dict(c.arrays) | {"b": factor * c.arrays["a"]} for c in cases]
        return [Outcome(o, {"numpy": t}) for o, t in zip(ours, theirs, strict=True)]

    assert str(verify(own, execute)).startswith("f: verified: b bitwise identical to your function's (numpy")
    with pytest.raises(CommandError, match="in your function by numpy"):
        verify(own, lambda cases: execute(cases, 3))
    assert {a: v.dtype for a, v in data(own, {"n": 3}, 0).items()} == {"a": np.float64, "b": np.float64}

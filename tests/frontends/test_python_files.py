"""Python files in commands: names, shapes, places of messages, and what documents say of them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from roofdsl import reading_options
from roofdsl.api import derive, einsum, from_python, predict
from roofdsl.cli.main import run
from roofdsl.frontends.python.read import readings
from roofdsl.frontends.python.signature import size_of
from roofdsl.lang.codes import PYTHON_CODES
from roofdsl.lang.diagnostics import CommandError, InputError

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/python.md").read_text(encoding="utf-8")
PLAIN = """import numpy as np
FACTOR = 3

def twice(x):
    return FACTOR * x

def kernel(alpha, A, x, steps=4):
    for t in range(steps):
        x += alpha * twice(A @ x)

def other(B):
    B[:] = 0.0
"""


@pytest.fixture
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "plain.py").write_text(PLAIN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "shapes",
    [["--shape", "A=n,n; x=n"], ["--shape=A=n,n", "--shape", "x=n:f64"], ["--shape", "A=:,:", "--shape", "x=:"]],
)
def test_shapes(shapes: list[str], plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sizes that have to be equal are the same parameter, named or not; a reserved name can be asked for."""
    assert run(["convert", *shapes, "plain.py:kernel"]) == 0, capsys.readouterr().err
    out = capsys.readouterr().out
    assert out.startswith("kernel kernel_(n, steps):\n    in alpha: f64, A: f64[n, n]\n    inout x: f64[n]\n")
    assert "x[i] += alpha * (3 * t_[i])" in out


def test_a_file_stands_for_the_functions_with_shapes(plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "plain.py", "--shape", "B=n:f32"]) == 0
    assert "plain.py: ok (1 kernel)" in capsys.readouterr().out
    assert run(["check", "plain.py"]) == 1  # the option has held for one command
    out = capsys.readouterr().out
    assert "error[py-shape]: the shape of `A` is not known" in out
    assert 'write `A: f64["n", "m"]`, or give `--shape A=n,m`' in out


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["convert", "plain.py", "--shape", "A"], 2, "is not of the form `--shape NAME=SIZES:TYPE`"),
        (["convert", "plain.py", "--shape", "A=n^2"], 2, "`n^2` is not a size of `A`"),
        (["convert", "plain.py", "--shape", "A=n:f65"], 2, "there is no type `f65` for `A`"),
        (["convert", "plain.py", "--shape", "C=n"], 2, "has an argument `C`"),
        (["convert", "plain.py:kernal", "--shape", "A=n"], 2, "did you mean `kernel`?"),
        (["convert", "none.py"], 2, "there is no file or shipped kernel named `none.py`"),
        (["convert"], 2, "give a FILE, or --einsum TEXT"),
        (["convert", "plain.py", "--einsum", "ij->i"], 2, "give a FILE or --einsum TEXT, not both"),
        (["convert", "--einsum", "ij->i", "--torch"], 2, "--torch is for a Python FILE"),
        (["convert", "gemv", "--torch"], 2, "`gemv` does not end in .py"),
        (["convert", "plain.py", "-o", "plain.py"], 2, "-o writes a .roof file"),
        (["convert", "plain.py", "--type", "f32"], 2, "--type is for --einsum"),
        (
            ["convert", "--einsum", "ij->k"],
            1,
            "error[name-unknown]: the result has the dimension `k`, which no operand",
        ),
        (
            ["convert", "--einsum", "ij->k"],
            1,
            "help: every letter after `->` must occur in an operand, as in `ik,kj->ij`",
        ),
        (["convert", "--einsum", "ij->ii"], 1, "error[name-twice]: the result has the dimension `i` twice"),
        (["convert", "--einsum", "i.j"], 1, "error[syntax]: `i.j` is not an einsum"),
        (["convert", "--einsum", "ij", "--type", "f65"], 2, "there is no type `f65`"),
    ],
)
def test_wrong_arguments(
    arguments: list[str], status: int, said: str, plain: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == status
    assert said in capsys.readouterr().err


def test_a_file_without_functions_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.py").write_text("x = 3\n")
    assert run(["convert", str(tmp_path / "empty.py")]) == 2
    assert "has no function\n" in capsys.readouterr().err


def test_a_main_that_calls_the_kernel_does_not_hide_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`main` and `initialize` prepare data; what they call is still what the file stands for."""
    scale = "def scale(x):\n    x *= 2.0\n\n"
    (tmp_path / "s.py").write_text(f"import numpy as np\n\n{scale}def main():\n    scale(np.zeros(4))\n")
    assert run(["convert", str(tmp_path / "s.py"), "--shape", "x=n"]) == 0, capsys.readouterr().err
    assert capsys.readouterr().out.startswith("kernel scale(n):\n")
    (tmp_path / "m.py").write_text("def main():\n    pass\n")
    assert run(["convert", str(tmp_path / "m.py")]) == 2
    assert "has no function that is read as a kernel" in capsys.readouterr().err


def test_a_file_for_pytorch_leads_to_its_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mlp.py").write_text("import torch\n\ndef get_inputs():\n    return [torch.rand(4, 4)]\n")
    assert run(["convert", str(tmp_path / "mlp.py")]) == 1
    assert "roofdsl convert FILE.py --torch" in capsys.readouterr().err


def test_steps_quote_the_users_lines(plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["derive", "plain.py:kernel", "--steps", "--shape", "A=n,n; x=n"]) == 0
    assert "x += alpha * twice(A @ x)" in capsys.readouterr().out


def test_columns_count_characters(tmp_path: Path) -> None:
    path = tmp_path / "wide.py"
    path.write_text('def f(a: f64["n"]):\n    "ä"; größe = 1.0; a[0] = größe + unbekannt\n', encoding="utf-8")
    with pytest.raises(InputError) as caught:
        from_python(path)
    line = path.read_text(encoding="utf-8").splitlines()[1]
    at = line.index("unbekannt") + 1
    assert caught.value.diagnostics[0].span == (2, at, 2, at + len("unbekannt"))


def test_nothing_of_the_front_end_is_imported_for_roof_files() -> None:
    program = (
        "import sys; from roofdsl.cli.main import run; run(['check', 'models/kernels/gemv.roof']);"
        "assert not [m for m in sys.modules if m.startswith(('numpy', 'roofdsl.frontends.python'))]"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_file_is_not_executed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "loud.py"
    path.write_text('open("made", "w")\nraise SystemExit\ndef f(a: f64["n"]):\n    a[:] = 0.0\n')
    assert run(["predict", str(path), "--machine", "v100", "--set", "n=9"]) == 0
    assert not (tmp_path / "made").exists()
    capsys.readouterr()


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_verify_runs_the_users_function(plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shapes = ["--shape", "A=n,n; x=n"]
    assert run(["convert", "plain.py:kernel", "--verify", *shapes]) == 0
    assert (
        "kernel_: verified: x the same up to rounding as your function's (Python), at n = 6" in capsys.readouterr().err
    )
    Path("wrong.py").write_text('def f(a: f64["n"]):\n    a[:] = 2.0\n')
    assert run(["convert", "wrong.py", "--verify"]) == 2
    said = capsys.readouterr().err
    assert "name 'f64' is not defined" in said and "write `from roofdsl import f64`" in said


UNUSED = """from roofdsl import bf16, f16, f32, f64, i32

def shapes(x: f64["n", "2 * m"], h: f16["n"], s: f32, k: int, y: f64["n"]):
    for i in range(len(h)):
        y[i] = x.shape[1] * y[i]

def halves(x: f16["n"], y: f16["n"]):
    y[:] = x + 2 * y

def brains(x: bf16["n"]):
    x[:] = 2 * x
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_verify_gives_every_argument_its_type_and_shape(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also those of which nothing but the shape is used, and f16, whose bits are stored as whole numbers."""
    path = tmp_path / "unused.py"
    path.write_text(UNUSED)
    assert run(["convert", f"{path}:shapes", "--verify"]) == 0
    assert "shapes: verified: y bitwise identical" in capsys.readouterr().err
    assert run(["convert", f"{path}:halves", "--verify"]) == 0
    assert "halves: verified: y the same up to rounding" in capsys.readouterr().err
    assert run(["convert", f"{path}:brains", "--verify"]) == 2
    assert "numpy has no bf16, the type of `x`\nhelp: leave `--verify` out" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_verify_finds_a_difference(plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A function that does something else when it is executed than its text says."""
    changed = "if True:\n    own = f\n    globals()['f'] = lambda a, b: own(a, b + 1.0)\n"
    Path("lying.py").write_text(f"def f(a, b):\n    a[:] = b * 2.0\n\n\n{changed}")
    assert run(["convert", "lying.py", "--verify", "--shape", "a=n; b=n"]) == 2
    said = capsys.readouterr().err
    assert "in your function by Python" in said and "`a[0]` is" in said


@pytest.mark.thorough  # numba compiles the user's function
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_verify_says_how_numba_takes_numbers(plain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """numba computes with a literal in f64; numpy and the kernel take it as f32."""
    head, loop = "import numpy as np\nfrom numba import njit\n\n\n", "    for i in range(x.shape[0]):\n"
    text = f'{head}@njit\ndef f(x: "f32[n]", y: "f32[n]"):\n{loop}        y[i] = 2.5 * x[i] + 0.1\n'
    Path("narrow.py").write_text(text)
    assert run(["convert", "narrow.py", "--verify"]) == 2
    assert "write `np.float32(0.1)`" in capsys.readouterr().err
    Path("narrow.py").write_text(text.replace("2.5", "np.float32(2.5)").replace("0.1", "np.float32(0.1)"))
    assert run(["convert", "narrow.py", "--verify"]) == 0
    assert "y bitwise identical" in capsys.readouterr().err


def test_the_python_interface() -> None:
    own = from_python(PLAIN, "kernel", {"A": "n,n", "x": "n", "alpha": ":f64"})
    assert predict(own, "v100", n=100, steps=2).bound_s > 0
    product = einsum("ik,kj->ij", type="f32")
    assert [(p.name) for p in product.parameters] == ["n_i", "n_j", "n_k"]
    assert {a.type.name for a in product.arrays} == {"f32"}
    with pytest.raises(CommandError, match="did you mean `other`"):
        from_python(PLAIN, "othr")


# ---- documents ----


def test_every_code_is_documented() -> None:
    section = PAGE[PAGE.index("\n### Diagnostics\n") : PAGE.index("\n## einsum\n")]
    assert re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", section, re.MULTILINE) == list(PYTHON_CODES.items())


def test_the_examples_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = re.search(
        r"\$ cat jacobi\.py\n(.*?)\$ roofdsl convert jacobi\.py\n(.*?)\$ roofdsl (predict .*?)\n```", PAGE, re.S
    )
    assert found is not None
    monkeypatch.chdir(tmp_path)
    Path("jacobi.py").write_text(found[1])
    assert run(["convert", "jacobi.py"]) == 0
    assert capsys.readouterr().out == found[2]
    assert run(found[3].split()) == 0
    capsys.readouterr()
    residual = re.search(r"\$ cat residual\.py\n(.*?)\$ (.*?)\n(.*?)\$ (.*?)\n(.*?)```", PAGE, re.S)
    assert residual is not None
    Path("residual.py").write_text(residual[1])
    for line, printed in (residual[2], residual[3]), (residual[4], residual[5]):
        assert run(line.split()[1:]) == 0
        assert capsys.readouterr().out == printed
    einsums = re.search(r"\$ roofdsl convert --einsum \"(.*?)\" --type f32\n(.*?)```", PAGE, re.S)
    assert einsums is not None
    assert run(["convert", "--einsum", einsums[1], "--type", "f32"]) == 0
    assert capsys.readouterr().out == einsums[2]
    masked = re.search(r"(filter\.py:6:9: error.*?)```", PAGE, re.S)
    assert masked is not None
    lines = ["import numpy as np", "", 'def clip(x: f64["n"], limit: float):', "    for t in range(2):", "        pass"]
    Path("filter.py").write_text("\n".join([*lines, "        x[x > limit] = limit", ""]))
    assert run(["check", "filter.py"]) == 1
    assert masked[1].strip() in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    [f'def f(A: "f64[{"-" * 50_000}n]"):\n    A[0] = 1\n', f'def f(A: "f64[n]"):\n    A[0] = {"-" * 50_000}1\n'],
    ids=["annotation", "statement"],
)
def test_what_is_nested_too_deeply_is_an_error_of_the_file(text: str, tmp_path: Path) -> None:
    path = tmp_path / "deep.py"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        from_python(str(path))
    assert refused.value.diagnostics[0].code == "py-syntax"


def test_a_size_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(CommandError, match="is not a size of `A`"):
        size_of("-" * 50_000 + "n", "A")


def test_a_function_that_would_be_read_too_often_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That `s` is no `let` is known after the first reading, which a second one uses."""
    path = tmp_path / "sums.py"
    path.write_text('def f(A: "f64[n]", s: float):\n    for i in range(len(A)):\n        s += A[i]\n    return s\n')
    assert from_python(str(path)).name == "f"
    monkeypatch.setattr("roofdsl.frontends.python.kernel._MOST_RUNS", 1)
    with pytest.raises(InputError) as refused:
        from_python(str(path))
    (found,) = refused.value.diagnostics
    assert found.message == "the types and sizes in this function are not all known after reading it 1 times"
    assert found.help == "split it into smaller functions"


@pytest.mark.parametrize(("body", "exact"), [("s += a[i]", False), ("a[i] *= 2", True)])
def test_sums_of_parallel_loops_are_compared_up_to_rounding(body: str, exact: bool, tmp_path: Path) -> None:
    """numba adds them up in an order of its own."""
    path = tmp_path / "f.py"
    lines = [
        "def f(a: f64['n']):",
        "    s = 0.0",
        "    for i in numba.prange(len(a)):",
        f"        {body}",
        "    return s",
    ]
    path.write_text("\n".join(["import numba", *lines]))
    ((found, _),) = readings(str(path))
    assert found.exact == exact


@pytest.mark.parametrize("body", ["x *= y", "x[0] /= y[0]", "x[:] = x * y"])
def test_products_of_complex_values_are_compared_up_to_rounding(body: str, tmp_path: Path) -> None:
    """numpy fuses their multiplications with additions on some processors."""
    path = tmp_path / "f.py"
    path.write_text(f"def f(x: c128['n'], y: c128['n']):\n    {body}\n")
    ((found, _),) = readings(str(path))
    assert not found.exact


# ---- plain numbers ----


def test_functions_of_plain_numbers_cost_nothing() -> None:
    """Rule 2 of the language: numbers and loop variables are free. numpy's functions give f64, beside which f32 is
    cast.
    """
    gauss = (
        'import math\n\n\ndef gauss(a: "f64[n]", y: "f64[n]"):\n    for i in range(a.shape[0]):\n'
        "        y[i] = a[i] / math.sqrt(2 * math.pi) * max(abs(i), 0.5) + math.exp(i)\n"
    )
    narrow = 'import numpy as np\n\n\ndef narrow(a: "f32[n]", y: "f32[n]"):\n    y[:] = a / np.sqrt(2.0)\n'
    size = "import numpy as np\n\n\ndef size(a: 'f64[n]'):\n    a *= np.sqrt(float(len(a)))\n"
    assert derive(from_python(gauss), n=10).work.total.value == 30  # a division, a product, a sum
    assert derive(from_python(size), n=10).work.total.value == 10
    cosines = "import math\n\n\ndef cosines(a: 'f64[n]', n: int):\n    for i in range(n):\n"
    cosines += "        a[i] *= math.cos(math.pi * (2 * i + 1) / (2 * n))\n"
    assert derive(from_python(cosines), n=10).work.total.value == 10
    found = derive(from_python(narrow), n=10).work
    assert found.total.value == 10 and list(found.by_type) == ["f64"]


def test_options_for_reading_code_hold_for_one_command(tmp_path: Path) -> None:
    """Functions that a program read after a command had its `--shape`."""
    file = tmp_path / "f.py"
    file.write_text("def f(x, y):\n    y[:] = 2 * x\n", encoding="utf-8")
    assert run(["derive", str(file), "--shape", "x=n:f32", "--shape", "y=n:f32"]) == 0
    assert reading_options.current() == reading_options.Options()

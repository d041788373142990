"""Python that is wrong or outside: each a diagnostic at the user's own text, none read wrongly."""

from __future__ import annotations

from pathlib import Path

import pytest

from roofdsl.frontends.python.read import read
from roofdsl.lang.codes import PYTHON_CODES
from roofdsl.lang.diagnostics import CommandError, InputError

TABLE = Path(__file__).with_name("refused_python.txt").read_text(encoding="utf-8")
CASES = {}
"""By name: the Python, the code of the diagnostic, and the text that is underlined."""
for block in f"\n{TABLE}".split("\n== ")[1:]:
    head, text = block.split("\n", 1)
    name, code, marked = head.split(" | ", 2)
    assert name not in CASES, name
    CASES[name] = (text, code, marked)


@pytest.mark.parametrize("name", CASES)
def test_refused(name: str, tmp_path: Path) -> None:
    text, code, marked = CASES[name]
    path = tmp_path / "wrong.py"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        print(read(str(path), None if "def f(" not in text or code == "py-syntax" else "f").kernels)
    found = caught.value.diagnostics[0]
    span = found.span
    line = text.splitlines()[span.line - 1]
    shown = line[span.column - 1 : span.end_column - 1] if span.end_line == span.line else line[span.column - 1 :]
    assert (found.code, shown[: len(marked)]) == (code, marked), f"{found.message} at `{shown}`"
    assert found.message and "\n" not in found.message


def test_equal_names_are_advised_only_where_they_help(tmp_path: Path) -> None:
    """`n - 1` and `n - 2` never become equal, whatever their names."""
    told = {}
    for name, text in (("apart", "x[1:] - x[:-2]"), ("named", "x - y")):
        path = tmp_path / f"{name}.py"
        path.write_text(f"def f(x: 'f64[n]', y: 'f64[m]'):\n    return {text}\n")
        with pytest.raises(InputError) as caught:
            read(str(path), "f")
        told[name] = caught.value.diagnostics[0].help
    assert told == {"apart": "", "named": "say that sizes are equal by giving them the same name"}


def test_every_code_is_shown_and_there_are_enough() -> None:
    assert {code for _, code, _ in CASES.values()} >= set(PYTHON_CODES)
    assert len(CASES) >= 130


@pytest.mark.parametrize(
    ("body", "help"),
    [
        ("for i in range(n):\n        x[i] = 0.0", "write `n = A.shape[0]` first"),
        ("return np.sqr(x)", "the nearest function that is read is `np.sqrt`"),
        ("return np.hypot(x, x)", "write `np.sqrt(x * x + y * y)`"),
        ("return np.linalg.inv(A)", "write the loops of the factorization, or take its result as an argument"),
        ("return x.cumsum()", "write a loop: `s += x[i]` and `y[i] = s`"),
        ("return jnp.dot(A, x)", "`from_jax` of `roofdsl.api` reads a function of JAX"),
        ("return A * x", "numpy lines up the last axes; `x[:, None]` lines up `x` with the first one"),
        ("for i in range(len(B)):\n        x[i] = 0.0", 'write `B: f64["n", "m"]`, or give `--shape B=n,m`'),
        ("y = []\n    y.append(x)", "make an array before the loop, as in `y = np.empty(n)`, and store its elements"),
        ("for i in range(len(x)):\n        x[i] = x[(i + 1) % len(x)]", "write the iterations at the ends apart"),
        ("y = x.copy()\n    for i in range(3):\n        x, y = y, x", "copy the elements by `x[:] = ...`"),
        ("for row in A:\n        row = row + 1", "write `row[:] = ...` to change the array"),
        ("return np.linalg.norm(A, 1)", "leave `ord` out, or write the sum"),
        ("return np.where(x > 0)", "write `np.where(mask, a, b)`"),
    ],
)
def test_help_says_what_to_write_instead(body: str, help: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    head = "import numpy as np\nimport jax.numpy as jnp\n\n\ndef f(A: 'f64[n, m]', x: 'f64[n]', B):\n    "
    path.write_text(f"{head}{body}\n")
    with pytest.raises(InputError) as caught:
        read(str(path), "f")
    assert caught.value.diagnostics[0].help.startswith(help)


def test_methods_are_told(tmp_path: Path) -> None:
    path = tmp_path / "solver.py"
    path.write_text("class Solver:\n    def step(self, x):\n        x += 1\n")
    with pytest.raises(CommandError) as caught:
        read(str(path))
    assert caught.value.help.startswith("methods of classes are not read")

"""`--value alpha=1.0`: a C function is read as if called with this argument, checked by calling it so."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from roofdsl import reading_options
from roofdsl.cli.main import run
from roofdsl.frontends.c.verify import verify_file
from roofdsl.frontends.verify import sizes_of
from roofdsl.reading_options import Options
from tests.frontends.interpreted import counted, executed
from tests.frontends.running import kernel_of

FILE = Path(__file__).with_name("blas.c")
CASES = [
    ("dgemm", {"alpha": "1.0", "beta": "0"}), ("dgemm", {"alpha": "-2.5", "beta": "1"}),
    ("dgemm", {"alpha": "0", "beta": "0.5"}), ("dgemm", {"alpha": "0", "beta": "0"}),
    ("dgemm", {"alpha": "1", "beta": "3"}), ("daxpy", {"a": "2", "incx": "1", "incy": "1"}),
    ("daxpy", {"a": "2", "incx": "2", "incy": "3"}), ("waxpby", {"alpha": "1"}),
    ("waxpby", {"alpha": "2", "beta": "1"}), ("waxpby", {"alpha": "2", "beta": "0.5"}), ("dgemv", {"beta": "1"}),
    ("dgemv", {"beta": "0", "trans": "N"}), ("dgemv", {"beta": "0", "trans": "T"}), ("residual", {}),
]  # fmt: skip
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@needs_compiler
@pytest.mark.parametrize(("name", "given"), CASES)
def test_the_function_with_these_arguments(name: str, given: dict[str, str]) -> None:
    numbers = {k: float(ord(v) if v.isalpha() else v) for k, v in given.items()}
    with reading_options.for_one_command():
        reading_options.use(Options(values=tuple(given.items())))
        kernel = kernel_of(FILE, name)
        assert (
            not {a.name for a in kernel.arrays} & given.keys()
            and not {p.name for p in kernel.parameters} & given.keys()
        )
        (found,) = verify_file(str(FILE), name)
        assert found.exact and found.compared
        for sizes in sizes_of(kernel)[:2]:
            work, accesses = executed(FILE, name, kernel, sizes, numbers)
            own_work, own_accesses = counted(kernel, sizes)
            assert own_work == work
            assert own_accesses == accesses


@needs_compiler
@pytest.mark.parametrize("alpha", ["0.1", "1e39", "-1e-50"])
def test_a_float_is_rounded(alpha: str) -> None:
    """0.1f is not 0.1, so C takes the second branch."""
    with reading_options.for_one_command():
        reading_options.use(Options(values=(("alpha", alpha),)))
        (found,) = verify_file(str(FILE), "single")
    assert found.exact


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("dgemm", [], "`--value alpha=1.0,beta=1.0`"),
        ("waxpby", [], "`--value alpha=1.0`"),
        ("daxpy", [], "`--value a=1.0`"),
        ("waxpby", ["--value", "alpah=1"], "did you mean `alpha`?"),
        ("waxpby", ["--value=alpha"], "is not of the form `--value NAME=NUMBER`"),
        ("waxpby", ["--value", "x=1"], "`x` is not"),
        ("waxpby", ["--value", "n=0.5"], "is no integer"),
    ],
)
def test_messages(name: str, options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["convert", f"{FILE}:{name}", *options]) != 0
    assert said in capsys.readouterr().err


def test_the_kernel_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["convert", f"{FILE}:dgemv", "--value", "beta=0,trans=T"]) == 0
    assert capsys.readouterr().out.startswith("# with trans = 'T', beta = 0\nkernel dgemv(n):\n")

"""Compilers that CC may name: with options, with none of the right size, that say or write nothing, or rubbish."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.measure.cpu import CpuOptions, build, measure_cpu
from roofdsl.measure.timing import Plan
from roofdsl.measure.verify import verify
from tests.cli.conftest import Run, roofdsl
from tests.codegen.shipped import shipped
from tests.oracle.loading import kernel_of

__all__ = ["roofdsl"]
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
CC = CpuOptions("loops", "cc", Plan(repeats=3, budget_s=0.1, sample_s=1e-4, warm_s=0))
LAST = 'for a in "$@"; do [ "$p" = -o ] && out="$a"; p="$a"; done\n'
"""Finds what the compiler is told to write."""


def compiler(folder: Path, text: str) -> str:
    """A compiler that is a shell script."""
    path = folder / "compiler"
    path.write_text("#!/bin/sh\n" + LAST + text, encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exit 0\n", "wrote no library"),
        (': > "$out"\n', "wrote no library"),
        ('echo rubbish > "$out"\n', "cannot be loaded: file too short"),
        ('head -c 100000 /dev/zero > "$out"\n', "cannot be loaded: invalid ELF header"),
        ('printf "\\177ELF\\001\\001\\001" > "$out"; head -c 9000 /dev/zero >> "$out"\n', "cannot be loaded: "),
        ('gcc -x c -shared -fPIC -o "$out" - < /dev/null\n', "lacks the function `vector_add`"),
        ("echo 'k.c:3: error: no such thing' >&2; exit 1\n", "does not compile the generated C: k.c:3: error: no"),
        ("exit 3\n", "exit status 3"),
        ("kill -9 $$\n", "exit status -9"),
        ("printf '\\377\\376 \\033[31mbad\\a' >&2; exit 1\n", "does not compile the generated C"),
    ],
)
@needs_gcc
def test_compilers_that_fail(script: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", compiler(tmp_path, script))
    with pytest.raises(CommandError) as caught:
        build(shipped()["vector_add"], CC)
    assert message in str(caught.value)
    assert "numba needs no C compiler" in str(caught.value)
    assert caught.value.message.isprintable()


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("no-such-compiler -O2", "the compiler `no-such-compiler` of the variable CC was not found"),
        ("gcc 'x", "unclosed quote"),
        ("/", "was not found"),
        ("gcc\0x", "cannot be run"),
    ],
)
def test_no_compilers(named: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if "\0" in named:
        monkeypatch.setattr("os.environ", {"CC": named, "PATH": "/usr/bin:/bin"})
    else:
        monkeypatch.setenv("CC", named)
    with pytest.raises(CommandError) as caught:
        build(shipped()["vector_add"], CC)
    assert "\0" in named or message in str(caught.value)


@needs_gcc
@pytest.mark.parametrize("named", ["gcc -O1", "  gcc  ", "", "   ", "gcc -DX='a b'"])
def test_options_of_the_compiler(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", named)
    kernel = shipped()["vector_add"]
    runner = build(kernel, CC)
    assert verify(kernel, runner.run, {"n": 33}, "loops").holds
    assert "gcc" in runner.compiler


@needs_gcc
def test_a_path_with_a_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my tools").mkdir()
    path = compiler(tmp_path / "my tools", 'exec gcc "$@"\n')
    monkeypatch.setenv("CC", path)
    assert build(shipped()["vector_add"], CC).threads == 1


@needs_gcc
def test_another_word_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its libraries gcc says so; with them, what it writes cannot be loaded by a Python of 64 bits."""
    monkeypatch.setenv("CC", "gcc -m32")
    with pytest.raises(CommandError, match=r"`\S*gcc -m32` (does not compile the generated C|cannot be loaded)"):
        build(shipped()["vector_add"], CC)


@needs_gcc
def test_a_compiler_that_says_nothing_of_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = '[ "$1" = --version ] && { printf "\\033[2J\\n\\n"; exit 1; }\nexec gcc "$@"\n'
    monkeypatch.setenv("CC", compiler(tmp_path, script))
    found = build(shipped()["vector_add"], CC).compiler
    assert found.isprintable()


@pytest.mark.spread(2)
@needs_gcc
@pytest.mark.parametrize(
    "name", ["int64_t", "_Bool", "size_t", "double", "threadIdx", "I", "main", "_init", "restrict"]
)
def test_names_of_c_are_measured(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    text = f"kernel k(n):\n    in A: f64[n]\n    out {name}: f64[n]\n    for i in range(n):\n        {name}[i] = A[i]\n"
    found = measure_cpu(kernel_of(text), {"n": 20}, CC)
    assert found.verified.holds
    as_kernel = kernel_of(text.replace(name, "out_of_it").replace("kernel k", f"kernel {name}"))
    assert measure_cpu(as_kernel, {"n": 20}, CC).kernel == name


def test_the_command(roofdsl: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", compiler(tmp_path, "exit 0\n"))
    done = roofdsl("measure", "vector_add", "--set", "n=9", "--compiler", "cc")
    assert (done.returncode, done.stdout) == (2, "")
    assert "wrote no library" in done.stderr
    assert "Traceback" not in done.stderr

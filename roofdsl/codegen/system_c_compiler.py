"""Finds and runs the system's C compiler, and reports its errors in one line."""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from roofdsl.lang.diagnostics import CommandError


def find_compiler(without: str) -> tuple[str, ...]:
    """The compiler and its own options: `CC` from the environment (for example `gcc -m64`), else gcc, clang or cc.

    without: what to do without one. Raises CommandError if there is none.
    """
    named = os.environ.get("CC", "").strip()
    for name in (named,) if named else ("gcc", "clang", "cc"):
        path = shutil.which(name)
        if path is not None:
            return (path,)
    if not named:
        raise CommandError("no C compiler was found", without)
    try:
        first, *options = shlex.split(named)
    except ValueError:
        raise CommandError(f"CC is `{named[:80]}`, which has an unclosed quote", without) from None
    path = shutil.which(first)
    if path is None:
        raise CommandError(f"the compiler `{first[:80]}` of the variable CC was not found", without)
    return (path, *options)


def compile_library(
    compiler: Sequence[str], flags: Sequence[str], text: str, library: Path, *, what: str, without: str
) -> None:
    """Compiles a C text into a shared library. `what` names the text in errors.

    Raises CommandError if the compiler fails, with its first error.
    """
    shown = " ".join(compiler)
    help = f"name another compiler by CC, or {without}"
    source = library.with_suffix(".c")
    source.write_text(text, encoding="utf-8")
    command = [*compiler, *flags, "-shared", "-fPIC", "-o", str(library), str(source), "-lm"]
    done = run_compiler(command, shown, 300, help)
    if done.returncode != 0:
        raise CommandError(f"`{shown}` does not compile {what}: {fault(done)}", help)
    if not library.is_file() or library.stat().st_size == 0:
        raise CommandError(f"`{shown}` exited without an error but wrote no library", help)


def load_functions(
    compiler: Sequence[str], flags: Sequence[str], text: str, functions: Sequence[str], without: str
) -> list[Any]:
    """Functions of a generated text and of the libraries that its compiler links to it.

    Raises CommandError if the text cannot be compiled or loaded, or a function is missing.
    """
    shown = " ".join(compiler)
    help = f"name another compiler by CC, or {without}"
    with tempfile.TemporaryDirectory(prefix="roofdsl") as folder:
        library = Path(folder) / "kernel.so"
        compile_library(compiler, flags, text, library, what="the generated C", without=without)
        try:
            loaded = ctypes.CDLL(str(library))
        except OSError as error:
            why = printable(str(error).removeprefix(f"{library}: "))
            raise CommandError(f"the library from `{shown}` cannot be loaded: {why}", help) from None
        for function in functions:
            if not hasattr(loaded, function):
                raise CommandError(f"the library from `{shown}` lacks the function `{function}`", help)
        return [loaded[function] for function in functions]


def run_compiler(command: Sequence[str], shown: str, timeout_s: float, help: str) -> subprocess.CompletedProcess[str]:
    """Run the compiler; its output may be in any encoding. Raises CommandError if it does not run or takes too long."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False, timeout=timeout_s,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise CommandError(f"the compiler `{shown}` did not finish within {timeout_s:g} s", help) from None
    except (OSError, ValueError) as error:
        raise CommandError(f"the compiler `{shown}` cannot be run: {error}", help) from None


def compiler_version(compiler: Sequence[str]) -> str:
    """The first line of the compiler's version text; its name if that is of no use."""
    shown = " ".join(compiler)
    try:
        done = run_compiler([*compiler, "--version"], shown, 60, "")
    except CommandError:
        return shown
    return printable(next((line for line in done.stdout.splitlines() if line.strip()), "")) or shown


def fault(done: subprocess.CompletedProcess[str]) -> str:
    """The first error that a compiler reports."""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    first = next((line for line in lines if "error" in line or "cannot" in line), *lines[:1] or [""])
    return printable(first) or f"exit status {done.returncode}"


def printable(text: str) -> str:
    """At most 200 characters of another program's output, without control characters for a terminal."""
    return "".join(c if c.isprintable() else " " for c in text.strip()[:200]).strip()

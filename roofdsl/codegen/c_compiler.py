"""The system's C compiler: which one, with which flags, and what it makes of a generated text."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from roofdsl.codegen.math_mode import Math
from roofdsl.lang.diagnostics import CommandError

# The same freedom that numba gets: sums may be regrouped, products fused, and zeros have no sign; nothing else is
# relaxed.
FLAGS = (
    "-std=c11", "-O3", "-march=native", "-ffp-contract=fast", "-fassociative-math", "-fno-signed-zeros",
    "-fno-trapping-math", "-fno-math-errno",
)  # fmt: skip
STRICT_FLAGS = ("-std=c11", "-O3", "-march=native", "-ffp-contract=off", "-fno-trapping-math", "-fno-math-errno")


def flags_for(math: Math) -> tuple[str, ...]:
    """The compiler's flags for relaxed or strict math."""
    return FLAGS if math == "relaxed" else STRICT_FLAGS


def find_compiler() -> tuple[str, ...]:
    """The compiler and its own options: `CC` from the environment (for example `gcc -m64`), else gcc, clang or cc.

    Raises CommandError if there is none.
    """
    named = os.environ.get("CC", "").strip()
    for name in (named,) if named else ("gcc", "clang", "cc"):
        path = shutil.which(name)
        if path is not None:
            return (path,)
    if not named:
        raise CommandError("no C compiler was found", _WITHOUT)
    try:
        first, *options = shlex.split(named)
    except ValueError:
        raise CommandError(f"CC is `{named[:80]}`, which has an unclosed quote", _WITHOUT) from None
    path = shutil.which(first)
    if path is None:
        raise CommandError(f"the compiler `{first[:80]}` of the variable CC was not found", _WITHOUT)
    return (path, *options)


_WITHOUT = "omit `--compiler cc`: numba needs no C compiler"
OTHER = f"name another compiler by CC, or {_WITHOUT}"


def run(command: Sequence[str], shown: str, timeout_s: float) -> subprocess.CompletedProcess[str]:
    """Run the compiler; its output may be in any encoding. Raises CommandError if it cannot be run."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False, timeout=timeout_s,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise CommandError(f"the compiler `{shown}` did not finish within {timeout_s:g} s", OTHER) from None
    except (OSError, ValueError) as error:
        raise CommandError(f"the compiler `{shown}` cannot be run: {error}", OTHER) from None


def fault(done: subprocess.CompletedProcess[str]) -> str:
    """The first error that a compiler reports."""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    first = next((line for line in lines if "error" in line or "cannot" in line), *lines[:1] or [""])
    return printable(first) or f"exit status {done.returncode}"


def compiler_version(compiler: Sequence[str]) -> str:
    """The first line of the compiler's version text; its name if that is of no use."""
    shown = " ".join(compiler)
    try:
        done = run([*compiler, "--version"], shown, 60)
    except CommandError:
        return shown
    return printable(next((line for line in done.stdout.splitlines() if line.strip()), "")) or shown


def printable(text: str) -> str:
    """At most 200 characters of another program's output, without control characters for a terminal."""
    return "".join(c if c.isprintable() else " " for c in text.strip()[:200]).strip()


def assembly(compiler: Sequence[str], flags: Sequence[str], text: str) -> str:
    """The assembly of a C text. Raises CommandError if the compiler fails."""
    shown = " ".join(compiler)
    with tempfile.TemporaryDirectory(prefix="roofdsl") as folder:
        source, made = Path(folder) / "kernel.c", Path(folder) / "kernel.s"
        source.write_text(text, encoding="utf-8")
        done = run([*compiler, *flags, "-fPIC", "-S", "-o", str(made), str(source)], shown, 300)
        if done.returncode != 0 or not made.is_file():
            raise CommandError(f"`{shown}` does not compile the generated C: {fault(done)}", OTHER)
        return made.read_text(encoding="utf-8", errors="replace")

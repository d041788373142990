"""How generated C is compiled: the flags for relaxed and strict math, and the assembly that comes out."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from roofdsl.codegen.math_mode import Math
from roofdsl.codegen.system_c_compiler import fault, run_compiler
from roofdsl.lang.diagnostics import CommandError

# The same freedom as for numba: sums may be regrouped, products fused, and zeros have no sign; nothing else is relaxed.
FLAGS = (
    "-std=c11", "-O3", "-march=native", "-ffp-contract=fast", "-fassociative-math", "-fno-signed-zeros",
    "-fno-trapping-math", "-fno-math-errno",
)  # fmt: skip
STRICT_FLAGS = ("-std=c11", "-O3", "-march=native", "-ffp-contract=off", "-fno-trapping-math", "-fno-math-errno")
WITHOUT = "omit `--compiler cc`: numba needs no C compiler"


def flags_for(math: Math) -> tuple[str, ...]:
    """The compiler's flags for relaxed or strict math."""
    return FLAGS if math == "relaxed" else STRICT_FLAGS


def assembly(compiler: Sequence[str], flags: Sequence[str], text: str) -> str:
    """The assembly of a C text. Raises CommandError if the compiler fails."""
    shown, help = " ".join(compiler), f"name another compiler by CC, or {WITHOUT}"
    with tempfile.TemporaryDirectory(prefix="roofdsl") as folder:
        source, made = Path(folder) / "kernel.c", Path(folder) / "kernel.s"
        source.write_text(text, encoding="utf-8")
        done = run_compiler([*compiler, *flags, "-fPIC", "-S", "-o", str(made), str(source)], shown, 300, help)
        if done.returncode != 0 or not made.is_file():
            raise CommandError(f"`{shown}` does not compile the generated C: {fault(done)}", help)
        return made.read_text(encoding="utf-8", errors="replace")

"""Calls of the code that is generated from a kernel, beside those of a user's function, in a child process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from roofdsl.codegen.generate import generate
from roofdsl.codegen.generated import Argument
from roofdsl.codegen.registry import target_of
from roofdsl.codegen.storage import decode
from roofdsl.codegen.system_c_compiler import compile_library
from roofdsl.frontends import call_libraries
from roofdsl.frontends.verify import Case
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel

FLAGS = ("-std=gnu11", "-ffp-contract=off", "-w")
"""What keeps every operation as it is written: no fused products, no sums in another order."""

WITHOUT = "leave `--verify` out"
REDUCED = ("f16", "bf16", "tf32", "f8")
"""Types that generated code takes and computes in f32."""

_OURS, _GIVEN = "roofdsl_ours", "roofdsl_arguments"
"""Names of the wrapper and its parameter; a function of the user may well be called `a`."""

_TIMEOUT_S = 120


class GeneratedCalls:
    """The generated C of a kernel, compiled once and called on many cases."""

    def __init__(self, kernel: Kernel, compiler: tuple[str, ...]) -> None:
        self.kernel, self.compiler = kernel, compiler
        self.generated = generate(kernel, "c", "loops")

    def build(self, folder: Path) -> None:
        """Compiles it. Raises CommandError if the compiler fails."""
        # The C library may have a function of that name, such as `step`, which the wrapper would call instead.
        renamed = f"#define {self.generated.function} roofdsl_kernel_{self.generated.function}\n"
        text = renamed + self.generated.source + _entry(self.generated.function, self.generated.arguments)
        flags = (*FLAGS, "-O2")
        compile_library(self.compiler, flags, text, folder / "ours.so", what="the generated C", without=WITHOUT)

    def call(self, folder: Path, k: int, case: Case, given: Sequence[str] = (), before: str = "") -> dict[str, Any]:
        """The call of case k, for `execute`. given: arrays to be read from the file `before`."""
        import numpy as np

        arguments = self.generated.arguments
        reduced = {a.name for a in arguments if a.role == "scalar_in" and a.type is not None and a.type.name in REDUCED}
        types = {a.name: a.type.name for a in self.kernel.arrays}
        ours: dict[str, Any] = {
            n: decode(v, types[n]).astype(np.float32) if n in reduced else v for n, v in case.arrays.items()
        }
        sizes = {name: np.array([value], np.int64) for name, value in case.sizes.items()}
        np.savez(folder / f"ours{k}.npz", **{**ours, **sizes})
        return {
            "library": "ours.so", "function": _OURS, "arrays": f"ours{k}.npz", "given": list(given),
            "before": before, "names": [a.name for a in arguments], "result": f"ours{k}.npz",
            "what": "the generated code", "case": k,
        }  # fmt: skip

    def execute(self, folder: Path, calls: Sequence[dict[str, Any]], cases: Sequence[Case]) -> None:
        """Makes the calls in a child process. Raises CommandError if one does not return or writes out of bounds."""
        (folder / "calls.json").write_text(json.dumps(calls))
        script = str(Path(call_libraries.__file__))
        try:
            done = subprocess.run(
                [sys.executable, script, str(folder)], capture_output=True, text=True, errors="replace", check=False,
                timeout=_TIMEOUT_S, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            status: int | None = done.returncode
        except subprocess.TimeoutExpired:
            status = None
        reached = folder / "reached"
        call = calls[int(reached.read_text()) if reached.is_file() else 0]
        at = at_sizes(cases[call["case"]])
        if status is None:
            message = f"{call['what']} of kernel {self.kernel.name} did not end within {_TIMEOUT_S} s{at}"
            raise CommandError(message, "define smaller sizes, such as -D N=40")
        if status < 0:
            message = f"{call['what']} of kernel {self.kernel.name} was ended by {signal.Signals(-status).name}{at}"
            raise CommandError(message, "it reads or writes outside its arrays, or the sizes do not fit")
        if status:
            lines = done.stderr.strip().splitlines()
            raise CommandError(f"the compiled code cannot be called: {lines[-1][:200] if lines else status}", WITHOUT)
        for outside in json.loads((folder / "outside.json").read_text()):
            call = calls[outside["call"]]
            what, name = call["what"], outside["name"]
            message = f"{what} of kernel {self.kernel.name} writes outside `{name}`{at_sizes(cases[call['case']])}"
            raise CommandError(message, "check the subscripts and the sizes")


def at_sizes(case: Case) -> str:
    """The sizes of a case, as the end of a sentence."""
    at = ", ".join(f"{n} = {v}" for n, v in case.sizes.items())
    return f" at {at}" if at else ""


def _entry(function: str, arguments: Sequence[Argument]) -> str:
    """A wrapper of generated code with the interface of the user's harness: every argument by its address."""
    names = target_of("c").names  # type: ignore[attr-defined]
    given = []
    for k, a in enumerate(arguments):
        if a.role == "parameter":
            given.append(f"*(int64_t *) {_GIVEN}[{k}]")
        elif a.role == "scalar_in":
            assert a.type is not None
            stored = {"i8": "int8_t", "i16": "int16_t"}
            type_ = "float" if a.type.name in REDUCED else stored.get(a.type.name) or names[a.type.name]
            given.append(f"*({type_} *) {_GIVEN}[{k}]")
        else:
            given.append(f"{_GIVEN}[{k}]")
    return f"\nvoid {_OURS}(void **{_GIVEN})\n{{\n    {function}({', '.join(given)});\n}}\n"

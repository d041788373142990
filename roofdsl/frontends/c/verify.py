"""`convert --verify` of C: the user's function, compiled as it is, beside the code that is generated of the kernel."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from roofdsl.codegen.compiler import compile_library, find_compiler
from roofdsl.codegen.generate import generate
from roofdsl.codegen.generated import Argument
from roofdsl.codegen.registry import target_of
from roofdsl.codegen.storage import decode
from roofdsl.frontends import call_libraries
from roofdsl.frontends.c.harness import ENTRY, Harness, harness
from roofdsl.frontends.c.read import readings
from roofdsl.frontends.verify import Case, Outcome, Verified, verify
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.load import kernel as lowered
from roofdsl.loops.model import Kernel

FLAGS = ("-std=gnu11", "-ffp-contract=off", "-w")
"""What keeps every operation as it is written: no fused products, no sums in another order."""

LEVELS = ("-O0", "-O2")
_OURS = "roofdsl_ours"
_WITHOUT = "leave `--verify` out"
_TIMEOUT_S = 120
_REDUCED = ("f16", "bf16", "tf32", "f8")


def verify_file(path: str, name: str | None = None) -> list[Verified]:
    """Executes each function that `FILE:NAME` stands for beside its kernel, on random data at small sizes.

    Raises CommandError where there is no compiler, where the function does not compile, run or end, and where a result
    differs; InputError for what is not read.
    """
    compiler = find_compiler("`--verify` compiles your function: install gcc or clang, or leave it out")
    found = []
    for reading, checked in readings(path, name):
        from roofdsl.lang.checked import CheckedFile

        own = checked.tree.name.text
        file = CheckedFile(checked.source, None, {own: checked}, {}, {}, (own,), ())  # type: ignore[arg-type]
        kernel = lowered(file, own)
        users = harness(reading)
        run = _Run(kernel, users, compiler)
        exact = not users.fused and not any(a.type.name in _REDUCED for a in kernel.arrays)
        found.append(verify(kernel, run, exact=exact))
    return found


class _Run:
    """Compiles both and calls them in a process of their own."""

    def __init__(self, kernel: Kernel, users: Harness, compiler: tuple[str, ...]) -> None:
        self.kernel, self.users, self.compiler = kernel, users, compiler

    def __call__(self, cases: Sequence[Case]) -> list[Outcome]:
        import numpy as np

        with tempfile.TemporaryDirectory(prefix="roofdsl-verify-") as name:
            folder = Path(name)
            arguments = self._compile(folder)
            calls: list[dict[str, Any]] = []
            for k, case in enumerate(cases):
                calls += self._calls(folder, k, case, arguments)
            (folder / "calls.json").write_text(json.dumps(calls))
            self._execute(folder, cases)
            outcomes = []
            for k in range(len(cases)):
                ours = dict(np.load(folder / f"ours{k}.npz"))
                theirs = {self._way(o): dict(np.load(folder / f"theirs{k}{o}.npz")) for o in LEVELS}
                outcomes.append(Outcome(ours, theirs))
            return outcomes

    def _way(self, level: str) -> str:
        return f"{Path(self.compiler[0]).name} {level}"

    def _compile(self, folder: Path) -> tuple[Argument, ...]:
        """Libraries of the user's function, one for each level of optimization, and of ours; our arguments."""
        for level in LEVELS:
            library = folder / f"theirs{level}.so"
            flags = (*FLAGS, level)
            compile_library(self.compiler, flags, self.users.text, library, what="your function", without=_WITHOUT)
        generated = generate(self.kernel, "c", "loops")
        text = generated.source + _entry(generated.function, generated.arguments)
        library = folder / "ours.so"
        flags = (*FLAGS, LEVELS[-1])
        compile_library(self.compiler, flags, text, library, what="the generated C", without=_WITHOUT)
        return generated.arguments

    def _calls(self, folder: Path, k: int, case: Case, arguments: tuple[Argument, ...]) -> list[dict[str, Any]]:
        """The calls of one case, the user's first: it may give constants of the file to ours."""
        import numpy as np

        sizes = {name: np.array([value], np.int64) for name, value in case.sizes.items()}
        theirs: dict[str, Any] = {**case.arrays, **sizes}
        np.savez(folder / f"theirs{k}.npz", **theirs)
        reduced = {
            a.name for a in arguments if a.role == "scalar_in" and a.type is not None and a.type.name in _REDUCED
        }
        types = {a.name: a.type.name for a in self.kernel.arrays}
        ours: dict[str, Any] = {
            n: decode(v, types[n]).astype(np.float32) if n in reduced else v for n, v in case.arrays.items()
        }
        np.savez(folder / f"ours{k}.npz", **{**ours, **sizes})
        calls: list[dict[str, Any]] = [
            {
                "library": f"theirs{level}.so", "function": ENTRY, "arrays": f"theirs{k}.npz", "given": [],
                "names": self.users.names, "result": f"theirs{k}{level}.npz", "what": "your function", "case": k,
            }
            for level in LEVELS
        ]  # fmt: skip
        calls.append({
            "library": "ours.so", "function": _OURS, "arrays": f"ours{k}.npz", "given": self.users.given,
            "before": f"theirs{k}{LEVELS[0]}.npz", "names": [a.name for a in arguments], "result": f"ours{k}.npz",
            "what": "the generated code", "case": k,
        })  # fmt: skip
        return calls

    def _execute(self, folder: Path, cases: Sequence[Case]) -> None:
        """Makes the calls in a child process. Raises CommandError where one does not return, or writes outside."""
        script = str(Path(call_libraries.__file__))
        try:
            done = subprocess.run(
                [sys.executable, script, str(folder)], capture_output=True, text=True, errors="replace", check=False,
                timeout=_TIMEOUT_S, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            status: int | None = done.returncode
        except subprocess.TimeoutExpired:
            status = None
        calls = json.loads((folder / "calls.json").read_text())
        reached = folder / "reached"
        call = calls[int(reached.read_text()) if reached.is_file() else 0]
        at = _at(cases[call["case"]])
        if status is None:
            message = f"{call['what']} of kernel {self.kernel.name} did not end within {_TIMEOUT_S} s{at}"
            raise CommandError(message, "define smaller sizes, such as -D N=40")
        if status < 0:
            message = f"{call['what']} of kernel {self.kernel.name} was ended by {signal.Signals(-status).name}{at}"
            raise CommandError(message, "it reads or writes outside its arrays, or the sizes do not fit")
        if status:
            lines = done.stderr.strip().splitlines()
            raise CommandError(f"the compiled code cannot be called: {lines[-1][:200] if lines else status}", _WITHOUT)
        for outside in json.loads((folder / "outside.json").read_text()):
            call = calls[outside["call"]]
            what, name = call["what"], outside["name"]
            message = f"{what} of kernel {self.kernel.name} writes outside `{name}`{_at(cases[call['case']])}"
            raise CommandError(message, "check the subscripts and the sizes")


def _at(case: Case) -> str:
    at = ", ".join(f"{n} = {v}" for n, v in case.sizes.items())
    return f" at {at}" if at else ""


def _entry(function: str, arguments: Sequence[Argument]) -> str:
    """A function like the user's harness around generated code: every argument by its address."""
    names = target_of("c").names  # type: ignore[attr-defined]
    given = []
    for k, a in enumerate(arguments):
        if a.role == "parameter":
            given.append(f"*(int64_t *) a[{k}]")
        elif a.role == "scalar_in":
            assert a.type is not None
            stored = {"i8": "int8_t", "i16": "int16_t"}
            type_ = "float" if a.type.name in _REDUCED else stored.get(a.type.name) or names[a.type.name]
            given.append(f"*({type_} *) a[{k}]")
        else:
            given.append(f"a[{k}]")
    return f"\nvoid {_OURS}(void **a)\n{{\n    {function}({', '.join(given)});\n}}\n"

"""`convert --verify` of C: the user's function, compiled as it is, beside the code generated from the kernel."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from roofdsl.codegen.system_c_compiler import compile_library, find_compiler
from roofdsl.frontends.c.harness import ENTRY, Harness, harness
from roofdsl.frontends.c.read import readings
from roofdsl.frontends.generated_calls import FLAGS, REDUCED, WITHOUT, GeneratedCalls
from roofdsl.frontends.verify import Case, Outcome, Verified, verify
from roofdsl.loops.load import kernel as lowered
from roofdsl.loops.model import Kernel

LEVELS = ("-O0", "-O2")


def verify_file(path: str, name: str | None = None) -> list[Verified]:
    """Executes each function that `FILE:NAME` stands for beside its kernel, on random data at small sizes.

    Raises CommandError if there is no compiler, if the function does not compile, run or end, and if a result differs;
    InputError for unsupported code.
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
        exact = not users.fused and not any(a.type.name in REDUCED for a in kernel.arrays)
        found.append(verify(kernel, run, exact=exact))
    return found


class _Run:
    """Compiles both functions and calls them in a separate process."""

    def __init__(self, kernel: Kernel, users: Harness, compiler: tuple[str, ...]) -> None:
        self.kernel, self.users, self.compiler = kernel, users, compiler
        self.ours = GeneratedCalls(kernel, compiler)

    def __call__(self, cases: Sequence[Case]) -> list[Outcome]:
        import numpy as np

        with tempfile.TemporaryDirectory(prefix="roofdsl-verify-") as name:
            folder = Path(name)
            self._compile(folder)
            calls: list[dict[str, Any]] = []
            for k, case in enumerate(cases):
                calls += self._calls(folder, k, case)
            self.ours.execute(folder, calls, cases)
            outcomes = []
            for k in range(len(cases)):
                ours = dict(np.load(folder / f"ours{k}.npz"))
                theirs = {self._way(o): dict(np.load(folder / f"theirs{k}{o}.npz")) for o in LEVELS}
                outcomes.append(Outcome(ours, theirs))
            return outcomes

    def _way(self, level: str) -> str:
        return f"{Path(self.compiler[0]).name} {level}"

    def _compile(self, folder: Path) -> None:
        """Libraries of the user's function, one for each level of optimization, and of ours."""
        for level in LEVELS:
            library = folder / f"theirs{level}.so"
            flags = (*FLAGS, level)
            compile_library(self.compiler, flags, self.users.text, library, what="your function", without=WITHOUT)
        self.ours.build(folder)

    def _calls(self, folder: Path, k: int, case: Case) -> list[dict[str, Any]]:
        """The calls of one case, the user's first: it may give constants of the file to ours."""
        import numpy as np

        sizes = {name: np.array([value], np.int64) for name, value in case.sizes.items()}
        theirs: dict[str, Any] = {**case.arrays, **sizes}
        np.savez(folder / f"theirs{k}.npz", **theirs)
        calls: list[dict[str, Any]] = [
            {
                "library": f"theirs{level}.so", "function": ENTRY, "arrays": f"theirs{k}.npz", "given": [],
                "names": self.users.names, "result": f"theirs{k}{level}.npz", "what": "your function", "case": k,
            }
            for level in LEVELS
        ]  # fmt: skip
        before = f"theirs{k}{LEVELS[0]}.npz"
        calls.append(self.ours.call(folder, k, case, self.users.given, before))
        return calls

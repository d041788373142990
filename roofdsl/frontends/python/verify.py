"""`convert --verify` of Python: the user's function, executed, beside the code that is generated from the kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import roofdsl
from roofdsl.codegen.storage import STORAGE, encode
from roofdsl.codegen.system_c_compiler import find_compiler
from roofdsl.frontends.generated_calls import REDUCED, GeneratedCalls, at_sizes
from roofdsl.frontends.poly import Poly
from roofdsl.frontends.python.read import readings
from roofdsl.frontends.python.user_functions import Reading
from roofdsl.frontends.verify import Case, Outcome, Verified, verify
from roofdsl.lang.checked import CheckedKernel
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.lower import lower
from roofdsl.loops.model import Kernel

_TIMEOUT_S = 120
_START = "from roofdsl.frontends.python.call_user import main; import pathlib, sys; main(pathlib.Path(sys.argv[1]))"


def verify_file(path: str, name: str | None = None) -> list[Verified]:
    """Executes each function that `FILE:NAME` stands for beside its kernel, on random data at small sizes.

    For this, the whole file is executed in a separate process. Raises CommandError if there is no compiler, if the
    function fails or does not end, and if a result differs; InputError for unsupported code.
    """
    compiler = find_compiler("`--verify` compiles generated code: install gcc or clang, or leave it out")
    found = []
    for reading, source in readings(path, name):
        kernel = lower(CheckedKernel(reading.tree, source, None, ()), {})
        for array in (a for a in kernel.arrays if a.type.name in ("bf16", "f8")):
            raise CommandError(f"numpy has no {array.type.name}, the type of `{array.name}`", "leave `--verify` out")
        run = _Run(path, reading, kernel, GeneratedCalls(kernel, compiler))
        exact = reading.exact and not any(a.type.name in REDUCED for a in kernel.arrays)
        found.append(verify(kernel, run, exact=exact))
    return found


class _Run:
    def __init__(self, path: str, reading: Reading, kernel: Kernel, ours: GeneratedCalls) -> None:
        self.path, self.reading, self.kernel, self.ours = path, reading, kernel, ours
        self.types = {a.name: a.type.name for a in kernel.arrays}

    def __call__(self, cases: Sequence[Case]) -> list[Outcome]:
        import numpy as np

        with tempfile.TemporaryDirectory(prefix="roofdsl-verify-") as name:
            folder = Path(name)
            given = [Case(c.sizes, self._in_numpy(c.arrays)) for c in cases]
            given += [Case(c.sizes, _moved(c.arrays)) for c in given]
            for k, case in enumerate(given):
                np.savez(folder / f"theirs{k}.npz", **case.arrays, **self._unused(case))
            self._user(folder, given)
            self.ours.build(folder)
            (folder / "reached").unlink(missing_ok=True)
            self.ours.execute(folder, [self.ours.call(folder, k, case) for k, case in enumerate(cases)], cases)
            outcomes = []
            for k in range(len(cases)):
                ours = dict(np.load(folder / f"ours{k}.npz"))
                theirs, other = (
                    self._stored(dict(np.load(folder / f"theirs{n}.npz")), ours) for n in (k, k + len(cases))
                )
                if not self.reading.exact:
                    theirs = {n: self._certain(n, ours[n], v, other[n]) for n, v in theirs.items()}
                outcomes.append(Outcome(ours, {"Python": theirs}))
            return outcomes

    def _unused(self, case: Case) -> dict[str, Any]:
        """Arguments of which the kernel reads and writes nothing: the function may still ask for their shapes."""
        import numpy as np

        found = {}
        for argument in self.reading.arguments:
            if argument.array and argument.array not in case.arrays:
                numbers = {n: Poly.number(case.sizes.get(n, 1)) for d in argument.dims for n in d.names}
                shape = [max(0, d.put(numbers).value or 0) for d in argument.dims] or [1]
                found[argument.array] = np.ones(shape, _dtype(argument.type))
        return found

    def _in_numpy(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """The data in numpy's types, which f16 is not stored in."""
        return {n: v.view(_dtype(self.types[n])) for n, v in arrays.items()}

    def _stored(self, theirs: dict[str, Any], ours: dict[str, Any]) -> dict[str, Any]:
        """Results in the form in which the kernel stores them: a number has one element, a truth value is 1 or 0."""
        return {n: encode(v, self.types[n]).reshape(ours[n].shape) for n, v in theirs.items() if n in ours}

    def _certain(self, name: str, ours: Any, theirs: Any, moved: Any) -> Any:
        """As the function of this name; f16 is compared by its numbers, not by the bits in which it is stored."""
        if self.types[name] != "f16":
            return _certain(ours, theirs, moved)
        return _certain(*(array.view("float16") for array in (ours, theirs, moved))).view(theirs.dtype)

    def _user(self, folder: Path, cases: Sequence[Case]) -> None:
        """Runs the user's function in a child process. Raises CommandError if it fails or does not end."""
        reading = self.reading
        asked = {
            "path": str(Path(self.path).resolve()),
            "function": reading.function,
            "sizes": [dict(case.sizes) for case in cases],
            "arguments": [(a.name, a.kind, a.array, a.value) for a in reading.arguments],
            "returned": [(r.array, r.axes) for r in reading.returned],
        }
        (folder / "user.json").write_text(json.dumps(asked))
        package = str(Path(roofdsl.__file__).parent.parent)
        paths = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH", "")]))
        try:
            done = subprocess.run(
                [sys.executable, "-c", _START, str(folder)], capture_output=True, text=True, errors="replace",
                check=False, timeout=_TIMEOUT_S, stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": paths},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            message = f"your function `{reading.function}` did not end within {_TIMEOUT_S} s"
            raise CommandError(message, "leave `--verify` out") from None
        if done.returncode:
            reached = folder / "reached"
            at = at_sizes(cases[int(reached.read_text())]) if reached.is_file() else ""
            lines = done.stderr.strip().splitlines()
            what = lines[-1][:200] if lines else f"status {done.returncode}"
            help = "write `from roofdsl import f64` for annotations" if "is not defined" in what else ""
            raise CommandError(f"your function `{reading.function}` cannot be executed{at}: {what}", help)


def _dtype(type_: str) -> str:
    """numpy's type for the elements of an array."""
    return "float16" if type_ == "f16" else STORAGE[type_]


def _moved(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The same data, with every floating-point number changed in its last place."""
    import numpy as np

    return {n: np.nextafter(v, v.dtype.type(9)) if v.dtype.kind == "f" else v for n, v in arrays.items()}


def _certain(ours: Any, theirs: Any, moved: Any) -> Any:
    """The results of the user's function, where data that differ in the last place give nearly the same.

    Elsewhere rounding decides, as in a division by nearly 0; there, our own number is used.
    """
    import numpy as np

    if theirs.dtype.kind not in "fc":
        return theirs
    unit = np.finfo(theirs.dtype).eps
    with np.errstate(all="ignore"):
        largest = np.nanmax(np.abs(theirs), initial=0) + 1
        shaky = ~(np.abs(theirs - moved) <= 16 * unit * largest) & ~(np.isnan(theirs) & np.isnan(moved))
    return np.where(shaky, ours, theirs)

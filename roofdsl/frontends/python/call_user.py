"""Runs a user's Python function on data in files, in a separate process: whatever it does, the caller goes on.

`user.json` in the folder names the file, the function and the cases; what is known of arguments and results is a
`Reading` without its tree. The results of case k are put into `theirs{k}.npz`, in the place of its data.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from roofdsl.frontends.python.user_functions import Argument, Returned, function_of, run_user
from roofdsl.lang.diagnostics import CommandError


def main(folder: Path) -> None:
    """Runs the function on every case. Ends with status 3 and a line on standard error if it fails."""
    asked = json.loads((folder / "user.json").read_text())
    arguments = [Argument(name, kind, array, value) for name, kind, array, value in asked["arguments"]]
    returned = [Returned(array, tuple(axes)) for array, axes in asked["returned"]]
    sys.path.insert(0, str(Path(asked["path"]).resolve().parent))
    try:
        function = function_of(asked["path"], asked["function"])
        for k, sizes in enumerate(asked["sizes"]):
            (folder / "reached").write_text(str(k))
            arrays = dict(np.load(folder / f"theirs{k}.npz"))
            with np.errstate(all="ignore"):
                found = run_user(function, arguments, returned, arrays, sizes)
            results: dict[str, Any] = {n: np.asarray(v) for n, v in found.items()}
            np.savez(folder / f"theirs{k}.npz", **results)
    except CommandError as error:
        sys.stderr.write(f"{error.message}\n")
        sys.exit(3)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

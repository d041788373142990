"""loopy's operation counts, access counts and footprints as JSON; runs in loopy's own environment.

The last line of the output is one object: name -> seconds, operations, accesses, footprint_bytes (each a text in n and
a value at n = AT), or error; footprint_note says what `gather_access_footprint_bytes` raised, if anything.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import loopy as lp
import numpy as np

AT = 1000

KERNELS: dict[str, tuple[str, str, dict[str, str]]] = {
    "gemv": ("{[i, j]: 0 <= i, j < n}", "y[i] = y[i] + A[i, j] * x[j]", {"A": "n, n", "x": "n", "y": "n"}),
    "matmul": (
        "{[k, i, j]: 0 <= k, i, j < n}",
        "C[i, j] = C[i, j] + A[i, k] * B[k, j]",
        {"A": "n, n", "B": "n, n", "C": "n, n"},
    ),
    "jacobi2d": (
        "{[i, j]: 1 <= i, j < n - 1}",
        "B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j])",
        {"A": "n, n", "B": "n, n"},
    ),
    "jacobi3d": (
        "{[i, j, k]: 1 <= i, j, k < n - 1}",
        "B[i, j, k] = 2.0 * A[i, j, k] + 3.0 * (A[i - 1, j, k] + A[i + 1, j, k] + A[i, j - 1, k] + A[i, j + 1, k]"
        " + A[i, j, k - 1] + A[i, j, k + 1])",
        {"A": "n, n, n", "B": "n, n, n"},
    ),
    "triad": ("{[i]: 0 <= i < n}", "a[i] = b[i] + q * c[i]", {"a": "n", "b": "n", "c": "n"}),
}


def counted(polynomial: Any) -> dict[str, Any]:
    return {"text": str(polynomial), "value": int(polynomial.eval_with_dict({"n": AT}))}


def analyse(name: str) -> dict[str, Any]:
    """Counts of one kernel."""
    domain, statement, arrays = KERNELS[name]
    arguments: list[Any] = [lp.GlobalArg(a, np.float64, shape=shape) for a, shape in arrays.items()]
    arguments += [lp.ValueArg("n", np.int64), *([lp.ValueArg("q", np.float64)] if name == "triad" else [])]
    start = time.perf_counter()
    kernel = lp.make_kernel(domain, statement, arguments, name=name, lang_version=(2018, 2), target=lp.CTarget())
    operations = lp.get_op_map(kernel, subgroup_size=1, count_redundant_work=True, count_within_subscripts=False)
    accesses = lp.get_mem_access_map(kernel, subgroup_size=1)
    footprints = lp.gather_access_footprints(kernel)
    touched: dict[str, Any] = {}
    for (array, _), cells in footprints.items():
        touched[array] = touched[array] | cells if array in touched else cells
    total: Any = None
    for cells in touched.values():
        part = cells.card().scale_val(8)
        total = part if total is None else total.add(part)
    seconds = time.perf_counter() - start
    note = ""
    try:
        lp.gather_access_footprint_bytes(kernel)
    except Exception as error:
        note = f"{type(error).__name__}: {error}"
    work = operations.filter_by(dtype=[np.float64]).sum()
    return {
        "seconds": seconds,
        "operations": counted(work),
        "accesses": counted(accesses.sum()),
        "footprint_bytes": counted(total),
        "footprint_note": note,
    }


def main() -> None:
    warnings.simplefilter("ignore")
    lp.set_caching_enabled(False)
    found: dict[str, Any] = {}
    for name in ("triad", *KERNELS):  # the first to load what is loaded late
        try:
            found[name] = analyse(name)
        except Exception as error:
            found[name] = {"error": f"{type(error).__name__}: {error}"}
    sys.stdout.write("\n" + json.dumps(found) + "\n")


if __name__ == "__main__":
    main()

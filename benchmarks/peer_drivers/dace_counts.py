"""What DaCe's memlets say of data moved as JSON; runs in DaCe's own environment.

The last line of the output is one object: name -> seconds, accesses (memlet volume) and footprint_bytes (elements of
the memlets' boxes, 8 bytes each), as texts in n and values at n = AT; or error. `operations` holds what importing
DaCe's work analysis says. Maps are parallel, sums over j or k are conflict-resolving writes; DaCe does not count what
such a write reads. DaCe reads annotations as they are, so they must not become texts (no `from __future__` import).
"""

# ruff: noqa: F821, F841 - in DaCe, tasklets bind names by << and >>

import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import dace
import sympy

AT = 1000
WORK_ANALYSES = ("dace.sdfg.work_depth_analysis.work_depth", "dace.sdfg.performance_evaluation.work_depth")
n = dace.symbol("n", dtype=dace.int64)


@dace.program
def gemv(A: dace.float64[n, n], x: dace.float64[n], y: dace.float64[n]):
    for i, j in dace.map[0:n, 0:n]:
        with dace.tasklet:
            a << A[i, j]
            b << x[j]
            o >> y(1, lambda p, q: p + q)[i]
            o = a * b


@dace.program
def matmul(A: dace.float64[n, n], B: dace.float64[n, n], C: dace.float64[n, n]):
    for k, i, j in dace.map[0:n, 0:n, 0:n]:
        with dace.tasklet:
            a << A[i, k]
            b << B[k, j]
            o >> C(1, lambda p, q: p + q)[i, j]
            o = a * b


@dace.program
def jacobi2d(A: dace.float64[n, n], B: dace.float64[n, n]):
    for i, j in dace.map[1 : n - 1, 1 : n - 1]:
        B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j])


@dace.program
def jacobi3d(A: dace.float64[n, n, n], B: dace.float64[n, n, n]):
    for i, j, k in dace.map[1 : n - 1, 1 : n - 1, 1 : n - 1]:
        B[i, j, k] = 2.0 * A[i, j, k] + 3.0 * (
            A[i - 1, j, k] + A[i + 1, j, k] + A[i, j - 1, k] + A[i, j + 1, k] + A[i, j, k - 1] + A[i, j, k + 1]
        )


@dace.program
def triad(a: dace.float64[n], b: dace.float64[n], c: dace.float64[n]):
    for i in dace.map[0:n]:
        a[i] = b[i] + 3.0 * c[i]


@dace.program
def gemv_for(A: dace.float64[n, n], x: dace.float64[n], y: dace.float64[n]):
    for i in range(n):
        for j in range(n):
            y[i] += A[i, j] * x[j]


def counted(expression: Any) -> dict[str, Any]:
    value = sympy.sympify(expression)
    return {"text": str(expression), "value": int(value.subs(dict.fromkeys(value.free_symbols, AT)))}


def analyse(program: Any) -> dict[str, Any]:
    """Volumes and boxes of the memlets between arrays and the outermost scopes."""
    start = time.perf_counter()
    graph = program.to_sdfg()
    dace.sdfg.propagation.propagate_memlets_sdfg(graph)
    volume: Any = 0
    boxes: dict[str, Any] = {}
    for state in graph.states():
        for edge in state.edges():
            for node in (edge.src, edge.dst):
                outer = isinstance(node, dace.nodes.AccessNode) and state.entry_node(node) is None
                if outer and not edge.data.is_empty() and not node.desc(graph).transient:
                    volume += edge.data.volume
                    boxes.setdefault(node.data, edge.data.subset)
                    boxes[node.data] = dace.subsets.union(boxes[node.data], edge.data.subset)
    seconds = time.perf_counter() - start
    footprint = sum(8 * box.num_elements() for box in boxes.values())
    return {"seconds": seconds, "accesses": counted(volume), "footprint_bytes": counted(footprint)}


def told(compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return compute()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def work_analysis() -> str:
    """Empty where DaCe's own work analysis can be imported, else why not."""
    failures = []
    for name in WORK_ANALYSES:
        try:
            importlib.import_module(name)
            return ""
        except ImportError as error:
            failures.append(str(error))
    return "; ".join(failures)


def main() -> None:
    programs = (triad, gemv, matmul, jacobi2d, jacobi3d, triad, gemv_for)  # the first to load what is loaded late
    found = {p.name: told(lambda p=p: analyse(p)) for p in programs}
    sys.stdout.write("\n" + json.dumps({"operations": work_analysis(), "kernels": found}) + "\n")


if __name__ == "__main__":
    main()

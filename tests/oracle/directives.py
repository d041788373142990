"""Random perfect nests with a `tile` or `order` line, rectangular and triangular."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class DirectiveKernel:
    """A kernel's text, sizes at which its assumptions hold, and whether every order of its iterations is legal."""

    seed: int
    text: str
    sizes: tuple[dict[str, int], ...]
    any_order: bool


_BODIES = (
    ("ijk", "    in A, B: f64[n, n]\n    inout C: f64[n, n]\n", "C[i, j] += A[i, k] * B[k, j]", True),
    ("ij", "    in A: f64[n, n], x: f32[n]\n    inout y: f64[n]\n", "y[i] += A[i, j] * x[j]", True),
    ("ij", "    in A: f64[n, n]\n    out B: f32[n, n]\n", "B[j, i] = A[i, j]", True),
    ("ij", "    in A: f64[n + 2, n + 2]\n    out B: f64[n, n]\n", "B[i, j] = A[i, j] + A[i + 1, j + 2]", True),
    ("ijk", "    in A: f32[n, n, n]\n    out B: f32[n, n, n]\n", "B[k, i, j] = A[i, j, k]", True),
    ("ijk", "    inout s: f64\n    in A: f64[n, n]\n", "s += A[i, j] * A[j, k]", True),
    ("ij", "    inout A: f64[n + 1, n + 1]\n", "A[i + 1, j] = A[i, j] + 0.5", True),
    ("ij", "    inout A: f64[n + 1, n + 1]\n", "A[i + 1, j] = A[i, j + 1] + 0.5", False),
    ("i", "    inout A: f64[n + 1]\n", "A[i + 1] = A[i] + 0.5", False),
)


def random_directive_kernel(seed: int) -> DirectiveKernel:
    """The kernel of this seed. It may be illegal: compare `values.final_state` with and without the directive.

    Bounds may depend on the variable one loop further out; tile sizes are numbers, or b with or without
    `assume n % b == 0`.
    """
    r = Random(seed)
    loops, declarations, statement, any_order = r.choice(_BODIES)
    rectangular = r.random() < 0.5
    clauses = []
    for outer, v in zip(["", *loops], loops, strict=False):
        forms = ["range(n)"] * 3 + ["range(1, n)", "range(n - 1)"]
        if outer and not rectangular:
            forms = [f"range({outer} + 1)", f"range({outer}, n)", f"range({outer})", "range(n)"]
            forms += [f"range(max(0, {outer} - 1), min(n, {outer} + 2))"]
        clauses.append(f"{v} in {r.choice(forms)}")
    chosen = r.sample(loops, r.randint(1, len(loops)))
    symbolic = r.random() < 0.4
    if r.random() < 0.3:
        directive, symbolic = "order " + ", ".join(r.sample(loops, len(loops))), False
    elif symbolic:
        directive = f"tile {', '.join(chosen)} by b"
    else:
        directive = f"tile {', '.join(chosen)} by {', '.join(str(r.choice((2, 3, 4))) for _ in chosen)}"
    divides = symbolic and r.random() < 0.7
    head = f"kernel directive_{seed}(n{', b' if symbolic else ''}):\n"
    assume = "    assume n % b == 0\n" if divides else ""
    text = f"{head}{assume}{declarations}    {directive}\n    for {', '.join(clauses)}:\n        {statement}\n"
    sizes = [{"n": 4, "b": 2}, {"n": 6, "b": 3}, {"n": 6 if divides else 7, "b": 2}]
    return DirectiveKernel(seed, text, tuple(s if symbolic else {"n": s["n"]} for s in sizes), any_order)

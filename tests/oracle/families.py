"""Kernels made by hand: the ones every course uses, in every loop order and blocking, and awkward relatives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations


@dataclass(frozen=True)
class Family:
    """One named kernel and sizes at which enumeration takes milliseconds."""

    name: str
    text: str
    sizes: tuple[dict[str, int], ...]


def _n(*values: int) -> tuple[dict[str, int], ...]:
    return tuple({"n": v} for v in values)


def _family(text: str, *sizes: dict[str, int]) -> Family:
    text = text.strip("\n") + "\n"
    return Family(text.split("kernel ")[1].split("(")[0], text, sizes)


VECTORS = (
    _family(
        """
kernel vector_add(n):
    out A: f64[n]
    in B, C: f64[n]
    for i in range(n):
        A[i] = B[i] + C[i]
""",
        *_n(1, 5, 9),
    ),
    _family(
        """
kernel dot(n):
    in x, y: f16[n]
    out s: f16
    s = 0.0
    for i in range(n):
        s += x[i] * y[i]
""",
        *_n(1, 5, 9),
    ),
    _family(
        """
kernel fft_strides(n, h):
    assume n % h == 0
    inout A: c64[n + h]
    in W: c64[h]
    for g in range(0, n, h), i in range(h):
        let t = W[i] * A[g + i + h]
        A[g + i + h] = A[g + i] - t
        A[g + i] += t
""",
        {"n": 8, "h": 1},
        {"n": 8, "h": 2},
        {"n": 8, "h": 4},
    ),
    _family(
        """
kernel fft4(n):
    inout A: c64[4*n]
    in W: c64[4*n]
    for g in range(n), i in range(2):
        A[4*g + i + 2] = A[4*g + i] - W[i] * A[4*g + i + 2]
    for g in range(2*n):
        A[2*g + 1] = A[2*g] - W[2*g % 4] * A[2*g + 1]
""",
        *_n(1, 2, 4),
    ),
    _family(
        """
kernel decimate(n):
    in A: f32[3*n + 4]
    out B: f64[n]
    for i in range(n):
        B[i] = A[3*i] + A[3*i + 1] + A[3*i + 4]
""",
        *_n(1, 4, 7),
    ),
    _family(
        """
kernel softmax_row(n):
    inout x: f32[n, n]
    temp e: f32[n]
    temp top: f32
    temp total: f32
    for i in range(n):
        top = x[i, 0]
        for j in range(1, n):
            top max= x[i, j]
        total = 0.0
        for j in range(n):
            e[j] = exp(x[i, j] - top)
            total += e[j]
        for j in range(n):
            x[i, j] = e[j] / total
""",
        *_n(1, 4, 6),
    ),
)

MATRICES = (
    _family(
        """
kernel gemv(n):
    in A: f64[n, n], x: f64[n]
    inout y: f64[n]
    for i in range(n), j in range(n):
        y[i] += A[i, j] * x[j]
""",
        *_n(1, 4, 7),
    ),
    _family(
        """
kernel gemv_column(n):
    in A: f64[n, n] col
    in x: f64[n]
    inout y: f64[n]
    for j in range(n), i in range(n):
        y[i] += A[i, j] * x[j]
""",
        *_n(1, 4, 7),
    ),
    _family(
        """
kernel transpose(n):
    in A: f64[n, n]
    out B: f64[n, n]
    for i in range(n), j in range(n):
        B[j, i] = A[i, j]
""",
        *_n(1, 4, 7),
    ),
    _family(
        """
kernel transpose_in_place(n):
    inout A: f32[n, n]
    for i in range(n), j in range(i):
        let t = A[i, j]
        A[i, j] = A[j, i]
        A[j, i] = t
""",
        *_n(1, 4, 7),
    ),
    _family(
        """
kernel transpose_blocked(n, b):
    assume n % b == 0
    in A: f64[n, n]
    out B: f64[n, n]
    for ii in range(0, n, b), jj in range(0, n, b):
        for i in range(ii, ii + b), j in range(jj, jj + b):
            B[j, i] = A[i, j]
""",
        {"n": 6, "b": 2},
        {"n": 6, "b": 3},
        {"n": 8, "b": 4},
    ),
    _family(
        """
kernel triangular_solve(n):
    in L: f64[n, n], b: f64[n]
    out x: f64[n]
    for i in range(n):
        x[i] = b[i]
        for j in range(i):
            x[i] -= L[i, j] * x[j]
        x[i] /= L[i, i]
""",
        *_n(1, 4, 7),
    ),
    _family(
        """
kernel cholesky(n):
    inout A: f64[n, n]
    for k in range(n):
        A[k, k] = sqrt(A[k, k])
        for i in range(k + 1, n):
            A[i, k] /= A[k, k]
        for j in range(k + 1, n), i in range(j, n):
            A[i, j] -= A[i, k] * A[j, k]
""",
        *_n(1, 4, 6),
    ),
    _family(
        """
kernel matmul_blocked(n, b):
    assume n % b == 0
    in A, B: f64[n, n]
    inout C: f64[n, n]
    for kk in range(0, n, b), ii in range(0, n, b), jj in range(0, n, b):
        for k in range(kk, kk + b), i in range(ii, ii + b), j in range(jj, jj + b):
            C[i, j] += A[i, k] * B[k, j]
""",
        {"n": 4, "b": 2},
        {"n": 6, "b": 2},
        {"n": 6, "b": 3},
    ),
    _family(
        """
kernel minplus(n):
    in A, B: f32[n, n]
    inout C: f32[n, n]
    for k in range(n), i in range(n), j in range(n):
        C[i, j] min= A[i, k] + B[k, j]
""",
        *_n(2, 4, 6),
    ),
)

STENCILS = (
    _family(
        """
kernel stencil1d(n, t):
    inout A, B: f64[n + 2]
    for s in range(t):
        for i in range(1, n + 1):
            B[i] = 0.33 * (A[i - 1] + A[i] + A[i + 1])
        for i in range(1, n + 1):
            A[i] = B[i]
""",
        {"n": 4, "t": 2},
        {"n": 9, "t": 3},
    ),
    _family(
        """
kernel stencil2d(n, t):
    inout A: f64[n, n]
    temp B: f64[n, n]
    for s in range(t):
        for i in range(1, n - 1), j in range(1, n - 1):
            B[i, j] = 0.25 * (A[i - 1, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j])
        for i in range(1, n - 1), j in range(1, n - 1):
            A[i, j] = B[i, j]
""",
        {"n": 4, "t": 2},
        {"n": 7, "t": 2},
    ),
    _family(
        """
kernel seidel(n, t):
    inout A: f32[n, n]
    for s in range(t), i in range(1, n - 1), j in range(1, n - 1):
        A[i, j] = 0.25 * (A[i - 1, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j])
""",
        {"n": 4, "t": 2},
        {"n": 7, "t": 2},
    ),
    _family(
        """
kernel stencil3d(n):
    in A: f64[n, n, n]
    out B: f64[n, n, n]
    for i in range(1, n - 1), j in range(1, n - 1), k in range(1, n - 1):
        B[i, j, k] = A[i - 1, j, k] + A[i, j - 1, k] + A[i, j, k - 1] + A[i, j, k] + A[i, j, k + 1] + A[i + 1, j, k]
""",
        *_n(3, 5, 6),
    ),
    _family(
        """
kernel conv_strided(n, r):
    in x: f32[2*n + r], w: f32[r]
    inout y: f32[n]
    for i in range(n), k in range(r):
        y[i] += x[2*i + k] * w[k]
""",
        {"n": 4, "r": 3},
        {"n": 7, "r": 5},
    ),
    _family(
        """
kernel conv2d(n, c, r):
    in x: f32[c, n + r, n + r], w: f32[c, r, r]
    inout y: f32[n, n]
    for i in range(n), j in range(n), k in range(c), p in range(r), q in range(r):
        y[i, j] += x[k, i + p, j + q] * w[k, p, q]
""",
        {"n": 4, "c": 2, "r": 2},
        {"n": 3, "c": 1, "r": 3},
    ),
    _family(
        """
kernel red_black(n):
    inout A: f64[n, n]
    for colour in range(2), i in range(1, n - 1), j in range(1, n - 1):
        if (i + j) % 2 == colour:
            A[i, j] = 0.25 * (A[i - 1, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j])
""",
        *_n(4, 7),
    ),
    _family(
        """
kernel periodic(n):
    in A: f64[n]
    out B: f64[n]
    for i in range(n):
        if i == n - 1:
            B[i] = A[i] - A[0]
        else:
            B[i] = A[i] - A[i + 1]
""",
        *_n(2, 5, 8),
    ),
    _family(
        """
kernel upsample(n):
    in A: f32[n, n]
    out B: f32[2*n, 2*n]
    for i in range(2*n), j in range(2*n):
        B[i, j] = A[i // 2, j // 2]
""",
        *_n(2, 4),
    ),
)


def matmul_orders() -> Iterator[Family]:
    """Matrix multiplication in its six loop orders."""
    for order in permutations("ijk"):
        loops = ", ".join(f"{v} in range(n)" for v in order)
        yield _family(
            f"""
kernel matmul_{"".join(order)}(n):
    in A, B: f64[n, n]
    inout C: f64[n, n]
    for {loops}:
        C[i, j] += A[i, k] * B[k, j]
""",
            *_n(1, 4, 6),
        )


def families() -> tuple[Family, ...]:
    """All of them."""
    return (*VECTORS, *MATRICES, *matmul_orders(), *STENCILS)

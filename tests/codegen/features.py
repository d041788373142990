"""Small kernels that between them use all of the language; sizes at which they are ragged."""

from __future__ import annotations

from roofdsl.lang.operation_classes import SPECIAL_FUNCTIONS


def _special_functions() -> str:
    """A kernel that calls every special function of the language, at values that all of them are defined at."""
    columns = len(SPECIAL_FUNCTIONS)
    head = f"\nkernel special(n):\n    in x: f64[n], z: f32[n]\n    out u: f64[n, {columns}], v: f32[n, {columns}]\n"
    lines = [
        f"        {out}[i, {k}] = {f}(1.5 + {given}[i])\n"
        for k, f in enumerate(SPECIAL_FUNCTIONS)
        for out, given in ("ux", "vz")
    ]
    return head + "    for i in range(n):\n" + "".join(lines)


FEATURES: dict[str, tuple[str, dict[str, int]]] = {
    "bounds": (
        """
kernel bounds(n, m):
    inout A: f64[n, n], B: f64[n]
    out C: f64[n, m]
    for i in range(n), j in range(max(0, i - 2), min(n, i + 3)):
        A[i, j] += 0.5 * B[j]
    for i in range(0, n, 3), j in range(1, m, 2):
        C[i, j] = A[i, n - 1 - i] - j
    for i in range(n), j in range(i):
        if (i - 2 * j) % 3 == 1 and not (j // 2 == 1 or i != n - 1):
            B[i] -= A[i, j]
        elif (j - i) // 2 < -1:
            B[i] *= 1.25
        else:
            B[(j - i) % 7] max= A[j, i]
""",
        {"n": 11, "m": 8},
    ),
    "negative": (
        """
kernel negative(n):
    in x: f64[n]
    out A: f64[2 * n], B: f64[n + 3]
    inout C: f64[2 * n, n]
    for i in range(n):
        A[n + (-i) // 2] = n * ((-i) % 3) - n * (i // 2) + (1 - i) // 2
        B[n + (-i) % 3] = x[i] * -((-i) // 2 * i)
    for i in range(n), j in range((-i) % 4, n - (-i) // 2, 2):
        if j + (-i) // 3 > 1:
            C[j, (-j) % 3] += x[i]
""",
        {"n": 7},
    ),
    "functions": (
        """
kernel functions(n):
    in x, y: f64[n], z: f32[n]
    out u: f64[n, 12], v: f32[n, 12]
    for i in range(n):
        let t = 2 + x[i]
        u[i, 0] = sqrt(t) + rsqrt(t) + rcp(t)
        u[i, 1] = exp(x[i]) * log(t) - tanh(y[i])
        u[i, 2] = sigmoid(x[i]) + sin(y[i]) * cos(x[i])
        u[i, 3] = min(x[i], y[i], 0.25) + max(x[i], -y[i]) + abs(x[i])
        u[i, 4] = select(x[i] < y[i], x[i] + 1, y[i] / 3) + select(i >= 3, 1, 2)
        u[i, 5] = x[i]**2 + y[i]**3 - x[i]**5 + t**0 + t**1
        u[i, 6] = -x[i] - -y[i] - (x[i] - (y[i] - 1)) / (t * 2)
        u[i, 7] = (n - i) * x[i] / (n * 0.5) + i / n
        v[i, 0] = sqrt(2 + z[i]) + rsqrt(2 + z[i]) + rcp(2 + z[i])
        v[i, 1] = exp(z[i]) * log(2 + z[i]) - tanh(z[i])
        v[i, 2] = sigmoid(z[i]) + sin(z[i]) * cos(z[i])
        v[i, 3] = min(z[i], 0.1) + max(z[i], -0.1, 0.1 * i) + abs(z[i])
        v[i, 4] = z[i]**7 + 0.1 * x[i]
        v[i, 5] = (i + 1) * z[i] + n - 0.3
        v[i, 6] = select(z[i] != 0, z[i], 1) + select(i < 2, z[i], x[i])
""",
        {"n": 7},
    ),
    "special": (_special_functions(), {"n": 7}),
    "whole": (
        """
kernel whole(n):
    in a, b: i32[n], c: i8[n], d: i64[n], e: f32[n]
    inout f: i32[n], g: i64[n], h: f64[n], k: i16[n]
    out s: i64, t: i8
    s = 0
    t = 1
    for i in range(n):
        let half = 0.5 * b[i]
        let root = sqrt(abs(a[i]))
        f[i] += a[i] * b[i] - i
        g[i] -= d[i] / (a[i] + 1) + c[i]
        h[i] += a[i] * e[i] + 0.5 * b[i] + half * root
        k[i] min= c[i] + a[i]
        f[i] /= 3
        f[i] max= -a[i]
        s += d[i] * (i - 2)
        t = abs(c[i] - 5)
    for i in range(n):
        g[i] = 2.75 * a[i]
        k[i] = min(a[i], b[i], i)
""",
        {"n": 9},
    ),
    "complex": (
        """
kernel complex(n):
    in a: c128, b: f64, x: c128[n], y: c64[n], r: f32[n]
    inout z: c128[n, n] col, w: c64[n]
    out p: f64[n], q: f32[n], s: c128
    s = 0
    for i in range(n):
        w[i] += y[i] * r[i] - conj(y[i])
        q[i] = abs(w[i]) + real(y[i]) * imag(y[i])
        p[i] = real(x[i]) + imag(conj(x[i])) + abs(x[i])
        s += x[i] * y[i]
    for i in range(n), j in range(n):
        z[i, j] *= x[i] * b + (0.5 - y[j])
        z[i, j] = z[i, j] / (x[j] + 3) - x[i]**3 + a / 2
        z[i, j] += select(i < j, x[i], -y[j]) + i
        z[i, j] -= r[i]
        w[i] /= (2 + y[j])
""",
        {"n": 6},
    ),
    "reduced": (
        """
kernel reduced(n):
    in a: f16[n, n], b: bf16[n, n], c: f8[n, n], t: tf32[n], alpha: f16
    inout d: f16[n], e: bf16[n], f: f8[n], g: f32[n, n]
    out s: bf16, u: tf32[n]
    s = 1
    for i in range(n):
        for j in range(n):
            d[i] += a[i, j] * b[j, i]
        for j in range(n):
            e[i] min= b[i, j] - c[j, i]
        f[i] = select(c[i, 0] < 0, c[i, 1], c[i, 2]) * alpha
        u[i] = t[i] + 0.5
        s += a[i, i]
    for i in range(n), j in range(n):
        g[i, j] += a[i, j] * a[j, i] + c[i, j]
""",
        {"n": 5},
    ),
    "scalars": (
        """
kernel scalars(n):
    in alpha: f64, x: f64[n]
    inout total: f64, top: f32
    out last: f64, y: f64[n]
    temp work: f64[n + 1], carry: f64
    carry = 0
    last = alpha
    for i in range(n):
        work[i] = alpha * x[i] + carry
        carry = work[i]
        total += x[i] * last
        top max= x[i]
    work[n] = carry
    for i in range(n):
        y[i] = work[i + 1] - work[i] + carry
        count updates i + 1
""",
        {"n": 10},
    ),
    "names": (
        """
kernel double(int, lambda):
    in float: f64[int, lambda], restrict: f64[int], threadIdx_x: f64
    inout def: f64[int], def_sum: f64[int]
    for for_ in range(int):
        let while_ = restrict[for_]
        for long in range(lambda):
            def[for_] += float[for_, long] * while_
        def_sum[for_] = def[for_] + threadIdx_x
""",
        {"int": 5, "lambda": 4},
    ),
    "shapes": (
        """
kernel shapes(n, m):
    in A: f64[n // 2 + 1, 2 * m, 3] col, D: f32[n, m]
    inout B: f64[n, m + 1, 3]
    temp T: f64[m, n] col
    for i in range(n), j in range(m):
        T[j, i] = D[i, j]
    for i in range(n), j in range(m), k in range(3):
        B[i, j + 1, k] = A[i // 2, 2 * j + i % 2, 2 - k] + T[j, i]
    parallel for j in range(m):
        for i in range(1, n):
            B[i, j, 0] += B[i - 1, j, 0]
""",
        {"n": 7, "m": 5},
    ),
    "triangle": (
        """
kernel triangle(n, b):
    tile i, j by b
    in A: f64[n, n]
    inout C: f64[n, n]
    for i in range(n), j in range(i + 1):
        C[i, j] += A[j, i]
""",
        {"n": 11, "b": 4},
    ),
    "ordered": (
        """
kernel ordered(n):
    order j, k, i
    in A, B: f32[n, n] col
    inout C: f32[n, n] col
    for i in range(n), j in range(n), k in range(i, n):
        C[i, j] += A[i, k] * B[k, j]
""".replace("k in range(i, n)", "k in range(n)"),
        {"n": 9},
    ),
    "inside": (
        """
kernel inside(steps, n):
    inout A: f64[steps + 1, n]
    inout s: f64
    for t in range(steps):
        if t % 2 == 0:
            for i in range(1, n - 1):
                A[t + 1, i] = A[t, i - 1] + A[t, i + 1]
        else:
            for i in range(1, n - 1):
                A[t + 1, i] = A[t, i] * 0.5 + s
        s += A[t + 1, 1]
""",
        {"steps": 5, "n": 9},
    ),
    "moved": (
        """
kernel moved(n):
    in A: f64[n, n]
    inout B: f64[n, n]
    for k in range(n), i in range(k, n), j in range(n - k):
        B[i, j] += A[k, j]
""",
        {"n": 9},
    ),
}
"""Name -> text and sizes."""

TILED: dict[str, tuple[str, dict[str, int]]] = {
    "half": (
        """
kernel half(n, b):
    tile i, j, k by b
    in A, B: f16[n, n]
    inout C: f32[n, n]
    for i in range(n), j in range(n), k in range(n):
        C[i, j] += A[i, k] * B[k, j]
""",
        {"n": 13, "b": 6},
    ),
    "rectangular": (
        """
kernel rectangular(m, n, l, b):
    tile i, j, k by 20, b, 3
    in A: f64[m, l] col, B: f64[n, l], x: f64[m], d: f64[m, n]
    inout C: f64[m, n] col
    for i in range(m), j in range(n), k in range(l):
        C[i, j] max= A[i, k] + x[i] * B[j, k] - d[i, j]
""",
        {"m": 23, "n": 19, "l": 7, "b": 18},
    ),
    "pairs": (
        """
kernel pairs(n, b):
    tile k, i, j by b
    in A, B: c64[n, n]
    inout C: c64[n, n]
    for k in range(n), i in range(n), j in range(n):
        C[i, j] -= A[i, k] * conj(B[j, k])
""",
        {"n": 7, "b": 4},
    ),
    "halo": (
        """
kernel halo(n, b):
    tile i, j by b
    in A: f64[n + 2, n + 2]
    out B: f64[n, n]
    for i in range(n), j in range(n):
        B[i, j] = A[i + 1, j + 1] + 0.25 * (A[i, j + 1] + A[i + 2, j + 1] + A[i + 1, j] + A[i + 1, j + 2])
""",
        {"n": 14, "b": 5},
    ),
    "flip": (
        """
kernel flip(n, m, b):
    tile i, j by b
    in A: i32[n, m]
    out B: i32[m, n]
    inout s: i32[n]
    for i in range(n), j in range(m):
        B[j, i] = A[n - 1 - i, j] + A[n - 1 - i, 0]
""",
        {"n": 11, "m": 6, "b": 4},
    ),
    "convolved": (
        """
kernel convolved(n, r, b):
    tile i, k by b, 2
    in x: f32[2 * n + r], w: f32[r]
    inout y: f32[n]
    for i in range(n), k in range(r):
        y[i] += x[2 * i + k] * w[k]
""",
        {"n": 37, "r": 5, "b": 16},
    ),
    "large": (
        """
kernel large(n, b):
    tile i, j, k by b
    in A, B: f64[n, n]
    inout C: f64[n, n]
    for i in range(n), j in range(n), k in range(n):
        C[i, j] += A[i, k] * B[k, j]
""",
        {"n": 70, "b": 64},
    ),
    "batch": (
        """
kernel batch(l, n, b):
    tile p, i, j, k by 2, b, b, b
    in A, B: f32[l, n, n]
    inout C: f32[l, n, n]
    for p in range(l), i in range(n), j in range(n), k in range(n):
        C[p, i, j] min= A[p, i, k] + B[p, k, j]
""",
        {"l": 3, "n": 9, "b": 4},
    ),
}
"""Kernels that have the variant `tiled`."""

# ruff: noqa
from __future__ import annotations

import math

import numpy as np
from numpy import exp, float32
from numpy import linalg as la

WIDTH = 3
WEIGHT = 0.25


# ---- loops ----


def up(n: int, a: f64["n"]):
    for i in range(2, n, 3):
        a[i] = i


def down(a: f64["n"]):
    for i in range(len(a) - 1, 0, -2):
        a[i] = a[i - 1] + i


def by_size(n: int, s: int, a: f64["n"]):
    for i in range(0, n, s):
        a[i] *= 2


def tiles(A: f64["n, n"], B: f64["n, n"], C: f64["n, n"]):
    n = A.shape[0]
    for ii in range(0, n, 4):
        for jj in range(0, n, 4):
            for i in range(ii, min(ii + 4, n)):
                for j in range(jj, min(n, jj + 4)):
                    for k in range(n):
                        C[i, j] += A[i, k] * B[k, j]


def triangle(A: f64["n, n"]):
    for i in range(A.shape[0]):
        for j in range(i):
            if j > 2 and i % 2 == 0:
                A[i, j] = A[j, i]
            elif j == 0:
                A[i, j] = 1
            else:
                A[i, j] += 0.5


def after_a_loop(n: int, a: f64["n + 1"]):
    for i in range(n):
        a[i] = 0
    a[i + 1] = 1


def rows(A: f64["n, m"], s: f64["n"]):
    for i, row in enumerate(A):
        for x in row:
            s[i] += x


def over_rows(A: f64["n, m"]):
    for row in A:
        row[:] = row / 3.0


def no_counter(a: f64["n"]):
    for _ in range(3):
        a += 1.0


def else_ways(n: int, a: f64["n"], b: f64["n"]):
    for i in range(n):
        if i < 3:
            a[i] = b[i]
        else:
            a[i] = -b[i]


# ---- integers that go along ----


def two_ends(a: f64["n"]):
    left, right = 0, a.shape[0] - 1
    for i in range(a.shape[0] // 2):
        t = a[left]
        a[left] = a[right]
        a[right] = t
        left += 1
        right -= 1


def shifted(n: int, a: f64["n + 5"]):
    j = 5
    for i in range(n):
        k = i + j
        a[k] = 2 * k + 1


def counted(a: f64["n"]):
    c = 0
    for i in range(a.shape[0]):
        if a[i] > 0.5:
            c += 1
    return c


# ---- scalars ----


def lets(a: f64["n"], c: float):
    d = c * 2.0
    e = d / (1.0 + c)
    for i in range(a.shape[0]):
        t = a[i] * d
        u = t + e
        a[i] = u * t


def read_after(a: f64["n"]):
    t = 0.0
    for i in range(a.shape[0]):
        t = a[i] + t * 0.5
        a[i] = t
    return t


def old_value(a: f64["n"]):
    s = a[0]
    t = s
    s += 1.0
    a[1] = s
    a[2] = t


def swapped(a: f64["n"], x: float, y: float):
    x, y = y, x
    a[0], a[1] = a[1], a[0]
    a[2] = x - 2 * y


def changed_argument(a: f64["n"], alpha: float):
    alpha = alpha * 2
    alpha += 1.0
    a *= alpha


def changed_keyword_argument(a: f64["n"], *, alpha: float):
    for i in range(a.shape[0]):
        a[i] *= alpha
        alpha = alpha * 0.5


def changed_positional_argument(alpha: float, /, a: f64["n"]):
    for i in range(a.shape[0]):
        alpha = alpha * 0.5
        a[i] *= alpha


def chained(a: f64["n"]):
    x = y = a[0] * 2.0
    x += 1
    a[1] = a[2] = x + y


def from_file(a: f64["n"]):
    for i in range(WIDTH):
        a[i] = a[i] * WEIGHT + math.pi


def scalar_result(a: f64["n"], b: f64["n"]):
    s = 0
    for i in range(a.shape[0]):
        s += a[i] * b[i]
    return s


def several_results(a: f64["n"]):
    return a + 1.0, a[0] * 2.0, a


# ---- choices on data ----


def clipped(a: f64["n"]):
    for i in range(a.shape[0]):
        a[i] = 1.0 if a[i] > 1.0 else a[i]


def nested_choice(a: f64["n"], b: f64["n"]):
    for i in range(a.shape[0]):
        if a[i] > 0 and (b[i] < 1 or a[i] > b[i]):
            t = a[i] * 2
            b[i] = t
        else:
            b[i] = 3 * b[i]


def running_best(a: f64["n"]):
    best = a[0]
    where = 0
    for i in range(1, a.shape[0]):
        if a[i] > best:
            best = a[i]
            where = i
    return best, where


def not_both(a: f64["n"], b: f64["n"]):
    for i in range(a.shape[0]):
        b[i] = 1.0 if not (a[i] > 0 and b[i] > 0) else -1.0


def between(a: f64["n"]):
    for i in range(a.shape[0]):
        a[i] = 0.0 if -1 < a[i] < 1 else a[i]


# ---- whole arrays ----


def axpy(alpha: float, x: f64["n"], y: f64["n"]):
    y += alpha * x


def smooth(a: f64["n"], b: f64["n"]):
    b[1:-1] = (a[:-2] + a[1:-1] + a[2:]) / 3


def in_place(a: f64["n"]):
    a[1:-1] = a[:-2] + a[2:]


def shifted_in_place(a: f64["n"]):
    a[1:] = a[:-1]


def backwards_in_place(a: f64["n"]):
    a[:] = a[::-1]


def halves(a: f64["2 * n"]):
    n = a.shape[0] // 2
    a[:n] = a[n:] * 2


def every_other(a: f64["n"], b: f64["n"]):
    b[::2] = a[::2] + 1
    b[1::2] -= a[1::2]


def steps_back(a: f64["n"], b: f64["n"]):
    b[: a.shape[0] - 2] = a[:1:-1]


def columns(A: f64["n, m"], x: f64["m"], y: f64["n"]):
    A *= x
    A += y[:, None]
    A[:, 0] = y
    A[-1] = x
    A[..., -2] -= 1


def made(A: f64["n, m"]):
    B = np.zeros_like(A)
    B[1:, :] = A[1:, :] - A[:-1, :]
    C = B * B
    return C


def outer(x: f64["n"], y: f64["m"]):
    return np.outer(x, y) + np.add.outer(x, y)


def views(A: f64["n, m"]):
    B = A.T
    c = B[1]
    c += 1.0
    d = A[2:, :]
    d[:] = 0.5
    A[0] = A[:, 1][:1]


def copies(a: f64["n"]):
    b = a.copy()
    b[0] = 5.0
    c = np.copy(b)
    c *= 2
    a[1:] = c[1:] - b[1:]


def fills(n: int):
    a = np.ones(n)
    b = np.full((n, 2), 1.5)
    c = np.empty(n)
    c.fill(2.0)
    d = np.arange(n) * 0.5
    e = np.eye(n)
    return a, b, c, d, e


def conditions(a: f64["n"], b: f64["n"]):
    mask = a > b
    c = np.where(mask & (a > 0), a, b)
    d = np.where(~mask, 1.0, c)
    return d


def clip_and_max(a: f64["n"], b: f64["n"]):
    return np.clip(a, -1, 1) + np.maximum(a, b) * np.minimum(b, 0)


def outs(a: f64["n"], b: f64["n"], c: f64["n"]):
    np.add(a, b, out=c)
    np.multiply(c, 2.0, c)
    np.subtract(c, a, out=c[:])


def constant_powers(a: f64["n"]):
    return a**2 + a**3 - 2 * a**1 + np.square(a) + np.reciprocal(a)


def together(a: f64["n"], b: f64["m"]):
    return np.concatenate((a, b)), np.vstack([a, a * 2]), np.hstack((a, a))


def triangles(A: f64["n, n"]):
    return np.triu(A, k=1), np.tril(A), np.triu(A) * 2


def corners(A: f64["n, m"]):
    A[0, 0] = A[-1, -1]
    A[-2, 1:-1] = A[1, 1:-1] * 2
    A[1:-1, :] += A[0, :]


def new_each_time(a: f64["n"], steps: int):
    x = np.copy(a)
    for t in range(steps):
        x = x * 0.5 + a
    return x


def temporary_in_loop(A: f64["n, m"], s: f64["n"]):
    for i in range(A.shape[0]):
        t = A[i, :] * 2
        u = t[: i % 3 + 1] + 1
        s[i] = t[0] + u[0]


# ---- several types ----


def single(x: f32["n"], y: f32["n"], alpha: float):
    y += alpha * x + 0.1


def single_scalars(x: f32["n"], alpha: float, beta: float):
    c = alpha * beta
    return c * x + alpha


def single_sum(x: f32["n"]):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
    return s


def mixed_widths(x: f32["n"], y: f64["n"]):
    y += x
    return x * y


def integers(a: i64["n"], b: i64["n"]):
    a += 2 * b - 1
    return a * a, np.where(a > b, a, 0)


def integers_and_floats(a: i64["n"], x: f64["n"]):
    return a * x + a


def complex_numbers(z: c128["n"], w: c128["n"]):
    z *= w
    return z.real + z.imag, np.conj(w)


def converted(x: f32["n"]):
    y = x.astype(np.float64)
    return y * y, np.float32(2.0) * x, np.zeros(x.shape, dtype=float32)


# ---- functions ----


def half(x):
    return x / 2


def sums(a, b):
    t = a + b
    return t * t


def change(a, k):
    a[k:] = 0.0


def called(a: f64["n"], b: f64["n"]):
    c = sums(half(a), b)
    change(a, 2)
    b[:] = sums(a, b) + sums(c, half(c))


def scalars_called(a: f64["n"]):
    for i in range(a.shape[0]):
        a[i] = half(a[i]) + sums(a[i], 1.0)


def with_default(a, factor=2.0, offset=0):
    return a * factor + offset


def defaults(a: f64["n"]):
    return with_default(a) + with_default(a, offset=1)


# ---- what changes from iteration to iteration ----


def argument_in_a_loop(a: f64["n"], alpha: float):
    for i in range(a.shape[0]):
        a[i] = alpha
        alpha = alpha * 0.5


def argument_in_a_branch(a: f64["n"], alpha: float, beta: f64):
    if a[0] > 0:
        alpha = alpha + 1.0
    for i in range(a.shape[0]):
        if i > 2:
            beta = beta * 2.0
        a[i] = alpha * beta


def unannotated(a: f64["n"], alpha, k):
    if alpha > 0:
        t = alpha
    else:
        t = -alpha
    for i in range(k):
        a[0] += t


def branches_on_sizes(n: int, a: f64["n + 3"]):
    if n > 5:
        a[n - 6] = 1.0
    else:
        a[n] = 2.0


def tuples(A: f64["n, m"]):
    rows, columns = A.shape
    (first, last), k = (A[0], A[-1]), 2
    for i in range(1, rows - 1):
        A[i, :] = first * k + last * columns


def rebound(a: f64["n"], b: f64["n"]):
    x = a
    for i in range(2):
        x[i] += 1
        x[0] = 2 * x[0]
    x = b
    x += 1.0
    b = a
    b -= 0.5


def arrays_through_nested_loops(a: f64["n"], b: f64["n"], k: int):
    x = np.zeros(a.shape[0])
    for i in range(1, k + 2):
        for j in range(5, 1, -2):
            b[j - 1] += 2.5
        x = x * 0.5 + b[i]
    for i in range(2):
        for j in range(2):
            x = x + a
    return x


def counted_behind_a_loop(n: int, a: f64["n"]):
    q = 0
    for i in range(n - 4):
        a[q] += 1.0
        q += 1
    a[q] = 2.0
    a[n // 2] = a[i]


def pairs(x, y):
    if x + y == 3:
        return 1
    else:
        return 0


def sign(x):
    """Of a number."""
    if x > 0:
        return 1.0
    elif x < 0:
        return -1.0
    else:
        return 0.0


def both_ways(a: i64["n"], t: i64["n, n"], b: f64["n"]):
    n = a.shape[0]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            if i < j - 1:
                t[i, j] = max(t[i, j], t[i + 1, j - 1] + pairs(a[i], a[j]))
            else:
                t[i, j] = max(t[i, j], t[i + 1, j - 1])
            for k in range(i + 1, j):
                t[i, j] = max(t[i, j], t[i, k] + t[k + 1, j])
        b[i] = sign(b[i]) * 2


def numbers_chosen_by_elements(a: f64["n"], b: f64["n"], k: int):
    for i in range(k):
        b += np.where(np.where(a > b, i, 2.0) > 1.0, a, 0.5)
    return np.sqrt(np.where(a > 0, 4.0, 9.0))


def in_double_precision(x: f64["n"]):
    return np.float_power(x, 3) + np.mean(x, dtype=np.float64)


def numbers_of_math_yield_to_arrays(a: f32["n"], b: f32["n"], d: int, x: float):
    a[:] = b / math.sqrt(d) + math.sqrt(2) * b
    for i in range(len(a)):
        a[i] = a[i] * math.sqrt(2.0) - math.sqrt(x * x) / b[i]


def float_makes_a_number_of_python(a: f32["n"], b: f32["n"], c: f64["n"]):
    for i in range(len(a)):
        s = float(b[i])
        a[i] = s * s + b[i] * s - a[i] * float(c[i])


def sizes_as_floats(x: f64["n"], y: f32["n"], n: int):
    x *= np.sqrt(float(x.shape[0]))
    for i in range(n):
        x[i] += float(i) / len(x) * x[0]
        y[i] += float(i) * 0.1
    return float(n) / 3


def plain_numbers_beside_f32(x: f32["n"], y: f32["n"], n: int):
    x *= 0.5 / n
    for i in range(n):
        y[i] += 0.1 * i
        x[i] = np.maximum(x[i], 0.1 * i)


def even_and_odd(x: f64["2*n"], y: f64["2*n"], z: f64["2*n - 1"]):
    n = x.shape[0] // 2
    y[:n] = x[::2] + x[1::2]
    y[n:] = x[::2] - x[1::2]
    z[::2] = x[:n]
    z[1::2] = 0.5 * (x[: n - 1] + x[1:n])


def rows_in_place(A: f64["n, m"], w: f64["n"]):
    for i, row in enumerate(A):
        row *= w[i]
        row[0] = 1.0
    for column in A.T:
        column += 0.5 * column[::-1]


def largest_of_a_part(A: f64["n, n"]):
    A[-2, :] *= np.max(A[-2, 2:])


def functions_of_sizes(x: f32["n"], y: f64["n"], z: i64["n"], n: int):
    h = abs(0.5 - n)
    x *= math.sqrt(2.0 / n)
    for i in range(n):
        x[i] = x[i] * math.sqrt(0.1 * i + 0.7) + h * x[i]
        y[i] = y[i] * np.sqrt(0.1 * i + 0.7) + abs(i - 1.5)
        y[i] += z[i] * math.sqrt(i + 0.5)
        y[i] = math.sqrt(i / n) if x[i] > abs(i - 1.5) else y[i]


def complex_numbers_of_python(z: c64["n"], a: complex, n: int):
    for i in range(n):
        z[i] *= 0.1 * i
    z += a
    z *= a


# ---- what is a copy, and what is the array itself ----


def new_arrays(x: f64["n"], z: f64["n"], w: f64["n"]):
    y = +x
    y[0] = 5.0
    c = np.conj(x)
    c[1] = 6.0
    d = np.clip(x, None, None)
    x[2] = 7.0
    z[:] = x + y
    w[:] = c - d


def the_array_itself(x: f64["n"], z: f64["n"]):
    y = x.astype(np.float64, copy=False)
    y[0] = 5.0
    c = x.conj()
    c[1] = 6.0
    d = np.array(x, copy=False)
    d[2] = 7.0
    z[:] = x + y


def parts_of_complex_numbers(z: c128["n"], y: f64["n"]):
    r = np.real(z)
    s = z.imag[0]
    z[:] = z + z
    y[:] = r + s


def turned_around(x: f64["n"], y: f64["n"], a: float):
    y[:] = np.where(~((x > a) & (x < 3.0)), x, 0.0)
    for i in range(len(x)):
        x[i] = 1.0 if ~(x[i] > y[i]) else 2.0
        y[i] += 1.0 if ~(x[i] > 1.0 and y[i] > a) else 0.5
        y[i] += 1.0 if not (a > 0.5) else 0.25


def reshaped_twice(x: f64[3, 4], z: f64[2, 3, 4], p: f64[6], q: f64[12], r: f64[6], s: f64[12], t: f64[12]):
    a = x[:, :2].reshape(3, 2, 1).reshape(6)  # a copy, although the first reshape is none
    b = x.reshape(12).reshape(3, 2, 2)
    c = x.reshape(2, 6)[:, ::2].reshape(2, 3, 1).reshape(6)
    d = x.reshape(2, 2, 3).transpose(2, 0, 1).reshape(3, 4).reshape(12)
    e = z[:, :, ::2].reshape(6, 2).reshape(12)
    x[:, :] = 7.0
    z[0, 0, 0] = 9.0
    p[:] = a
    q[:] = b.reshape(12)
    r[:] = c
    s[:] = d
    t[:] = e


def reshaped_parts(x: f64[2, 3, 4], z: f64[6, 4], w: f64[2, 6], u: f64[24], v: f64[12]):
    a = x.reshape(6, 4)
    b = x[:, :, :2].reshape(2, 6)
    c = x.T.ravel()
    d = x[:, 1:, :].reshape(2, 8)
    e = a[0]
    s = a[0, 0]
    x[:] = x * 2
    z[:] = a
    w[:] = b + d[:, 1:7]
    u[:] = c
    v[:4] = e + s
    v[4:] = 0.0


def strided_parts(x: f64[8], z: f64[4]):
    y = x[::2].ravel()
    w = x[::2].reshape(2, 2)
    x[0] = 7.0
    z[:] = y
    z[0] += w[0, 0]


def root_of_a_float(x: f32["n"], y: f32["n"]):
    for i in range(len(x)):
        y[i] = math.sqrt(abs(x[i])) / 3.0

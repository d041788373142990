# ruff: noqa
import math

import numpy as np


def conjugate_gradients(A: "f64[n,n]", b: "f64[n]", x: "f64[n]", k: int):
    r = b - A @ x
    p = r.copy()
    rs = r @ r
    for _ in range(k):
        q = A @ p
        alpha = rs / (p @ q)
        x += alpha * p
        r -= alpha * q
        new = r @ r
        p[:] = r + (new / rs) * p
        rs = new


def jacobi(A: "f64[n,n]", b: "f64[n]", x: "f64[n]", k: int):
    D = np.diag(A)
    for _ in range(k):
        x[:] = (b - A @ x + D * x) / D


def gauss_seidel(A: "f64[n,n]", b: "f64[n]", x: "f64[n]", k: int):
    for _ in range(k):
        for i in range(A.shape[0]):
            s = 0.0
            for j in range(A.shape[0]):
                if j != i:
                    s = s + A[i, j] * x[j]
            x[i] = (b[i] - s) / A[i, i]


def lu(A: "f64[n,n]"):
    for k in range(A.shape[0] - 1):
        A[k + 1 :, k] /= A[k, k]
        A[k + 1 :, k + 1 :] -= np.outer(A[k + 1 :, k], A[k, k + 1 :])


def triangular_solve(L: "f64[n,n]", b: "f64[n]"):
    x = np.zeros_like(b)
    for i in range(len(b)):
        x[i] = (b[i] - np.sum(L[i, :i] * x[:i])) / L[i, i]
    return x


def thomas(a: "f64[n]", b: "f64[n]", c: "f64[n]", d: "f64[n]"):
    for i in range(1, len(d)):
        w = a[i] / b[i - 1]
        b[i] -= w * c[i - 1]
        d[i] -= w * d[i - 1]
    x = np.zeros(len(d))
    x[-1] = d[-1] / b[-1]
    for i in range(len(d) - 2, -1, -1):
        x[i] = (d[i] - c[i] * x[i + 1]) / b[i]
    return x


def bodies(x: "f64[n,3]", v: "f64[n,3]", w: "f64[n]"):
    d = x[None, :, :] - x[:, None, :]
    r2 = np.sum(d**2, axis=2) + 1e-9
    f = w[None, :] / (r2 * np.sqrt(r2))
    v += 0.1 * np.sum(f[:, :, None] * d, axis=1)
    x += 0.1 * v


def distances(X: "f64[n,m]", C: "f64[k,m]"):
    return np.min(np.sum((X[:, None, :] - C[None, :, :]) ** 2, axis=-1), axis=1)


def attention(Q: "f64[n,d]", K: "f64[m,d]", V: "f64[m,k]"):
    S = Q @ K.T / np.sqrt(Q.shape[1])
    P = np.exp(S - np.max(S, axis=1, keepdims=True))
    P /= np.sum(P, axis=1, keepdims=True)
    return P @ V


def lstm(x: "f64[n,d]", h: "f64[n,m]", c: "f64[n,m]", W: "f64[d,4*m]", U: "f64[m,4*m]", b: "f64[4*m]"):
    m = h.shape[1]
    z = x @ W + h @ U + b
    i = 1 / (1 + np.exp(-z[:, :m]))
    f = 1 / (1 + np.exp(-z[:, m : 2 * m]))
    o = 1 / (1 + np.exp(-z[:, 2 * m : 3 * m]))
    c[:] = f * c + i * np.tanh(z[:, 3 * m :])
    h[:] = o * np.tanh(c)


def convolution(X: "f64[n,m]", W: "f64[3,3]"):
    Y = np.zeros((X.shape[0] - 2, X.shape[1] - 2))
    for p in range(3):
        for q in range(3):
            Y += W[p, q] * X[p : p + X.shape[0] - 2, q : q + X.shape[1] - 2]
    return Y


def heat(u: "f64[n,m]", v: "f64[n,m]", k: int):
    for _ in range(k):
        v[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
        u[:] = v


def red_black(u: "f64[2*n,m]", k: int):
    for _ in range(k):
        u[1:-1:2, 1:-1] = 0.5 * (u[:-2:2, 1:-1] + u[2::2, 1:-1])


def haar(x: "f64[2*n]", y: "f64[2*n]"):
    n = x.shape[0] // 2
    y[:n] = (x[::2] + x[1::2]) / np.sqrt(2.0)
    y[n:] = (x[::2] - x[1::2]) / np.sqrt(2.0)


def cosines(x: "f64[n]", y: "f64[n]"):
    n = len(x)
    for k in range(n):
        for i in range(n):
            y[k] += x[i] * math.cos(math.pi * (2 * i + 1) * k / (2 * n))


def normalized(x: "f64[n,m]", g: "f64[m]", b: "f64[m]"):
    d = x - x.mean(axis=-1, keepdims=True)
    return g * d / np.sqrt(np.mean(d**2, axis=-1, keepdims=True) + 1e-5) + b


def huber(r: "f64[n]", d: float):
    a = np.abs(r)
    return np.sum(np.where(a <= d, 0.5 * r**2, d * (a - 0.5 * d)))


def steps(x: "f64[n]", y: "f64[n]"):
    y[:] = 2.0 * np.where(x > 1.5, 3.0, 4.0) + np.sqrt(float(len(x)))


def shortest_paths(D: "f64[n,n]"):
    for k in range(D.shape[0]):
        D[:] = np.minimum(D, D[:, k][:, None] + D[k, :][None, :])


def covariance(X: "f64[n,m]"):
    d = X - X.mean(axis=0)
    return d.T @ d / (X.shape[0] - 1)


def largest_of_rows(A: "f64[n,n]"):
    A[-2, :] *= np.max(A[-2, 2:])
    return A.max(axis=0) - A.min(axis=1)

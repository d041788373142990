# ruff: noqa
from __future__ import annotations

import numpy as np
from numpy import linalg as la


def totals(A: f64["n, m"]):
    return np.sum(A), np.sum(A, axis=0), A.sum(axis=1), np.sum(A, axis=-1, keepdims=True)


def extrema(A: f64["n, m"]):
    return A.max(), np.min(A, axis=0), np.max(A, axis=1), np.max(A, axis=(0, 1))


def moments(A: f64["n, m"]):
    return np.mean(A), np.mean(A, axis=0), np.std(A, axis=1), np.var(A, axis=0, ddof=1)


def normalized(A: f64["n, m"]):
    return (A - A.mean(axis=1, keepdims=True)) / (1.0 + np.std(A, axis=1, keepdims=True))


def products(A: f64["n, k"], B: f64["k, m"], x: f64["k"], y: f64["n"]):
    return A @ B, A @ x, y @ A, x @ x, np.dot(A, B), np.dot(x, x), np.inner(x, x), y @ A @ B


def transposed(A: f64["n, k"], B: f64["n, m"], x: f64["n"]):
    return A.T @ B, A.T @ x, np.transpose(A) @ B * 2.0, (2 * A).T @ x


def batched(A: f64["b, n, k"], B: f64["b, k, m"], C: f64["k, m"]):
    return A @ B, A @ C, np.matmul(A, B)


def einsums(A: f64["n, k"], B: f64["k, m"], x: f64["n"]):
    a = np.einsum("ik,kj->ij", A, B)
    b = np.einsum("ij->j", A)
    c = np.einsum("ik,kj,i", A, B, x)
    d = np.einsum("i,i->", x, x)
    e = np.einsum("ij,ij->i", A, A)
    return a, b, c, d, e


def einsum_diagonal(A: f64["n, n"]):
    return np.einsum("ii->i", A), np.einsum("ii", A)


def norms(x: f64["n"], A: f64["n, n"]):
    return la.norm(x), np.linalg.norm(A), np.trace(A), np.prod(x), np.diag(A) * 2


def shapes(A: f64["n, 4"], B: f64["2, 3, 4"]):
    c = A.reshape(A.shape[0], 2, 2)
    d = B.reshape(-1)
    e = np.reshape(B, (6, 4))
    return c * 1.0, d + 0.0, e @ B[0, 0], B.ravel() * 2, A[:, np.newaxis, :] + 1, np.expand_dims(A, 0) * 2


def permuted(B: f64["n, m, k"]):
    return np.transpose(B, (2, 0, 1)) + 0.0, B.swapaxes(0, 1) * 1.0, np.flip(B, axis=1) * 1.0, np.sum(B, axis=(0, 2))


def softmax(x: f64["n, m"]):
    top = np.max(x, axis=-1, keepdims=True)
    e = np.exp(x - top)
    return e / np.sum(e, axis=-1, keepdims=True)


def convolution(image: f32["h, w, c"], weights: f32["3, 3, c, d"]):
    out = np.empty((image.shape[0] - 2, image.shape[1] - 2, weights.shape[3]), dtype=image.dtype)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j, :] = np.sum(image[i : i + 3, j : j + 3, :, np.newaxis] * weights, axis=(0, 1, 2))
    return out


def power_iteration(A: f64["n, n"], x: f64["n"], steps: int):
    for t in range(steps):
        y = A @ x
        x[:] = y / np.sqrt(np.dot(y, y))
    return x


def functions(a: f64["n"]):
    b = np.abs(a) + 1.0
    return np.sqrt(b), np.exp(-b), np.log(b), np.tanh(a), np.sin(a) * np.cos(a), b**0.5, b**-2, 2.0**a


def masked_count(a: f64["n"]):
    return np.sum(a > 0), np.sum(np.where(a > 0, a, 0.0))


def means_of_products(A: f64["n, m"], B: f64["n, m"]):
    return np.mean(A * B, axis=1), np.sum((A - B) ** 2)


def out_products(A: f64["n, k"], B: f64["k, m"], C: f64["n, m"]):
    np.matmul(A, B, out=C)
    C += A @ B
    np.dot(A, B, C)


def norms_of_vectors(A: f64["n, m"]):
    return la.norm(A), la.norm(A, axis=0), A / la.norm(A, axis=1, keepdims=True), la.norm(A[0], 2)

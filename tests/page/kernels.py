"""Small kernels and machines that the tests of the page share."""

from __future__ import annotations

from functools import cache

from roofdsl.lang.source import Source
from roofdsl.loops.load import kernels, load_file
from roofdsl.loops.model import Kernel
from roofdsl.machine.lower import lower
from roofdsl.machine.model import Machine

TEXT = """
kernel dot(n):
    in a, b: T[n]
    out s: T
    s = 0
    for i in range(n):
        s += a[i] * b[i]

kernel gemv(n):
    in A: T[n, n], x: T[n]
    inout y: T[n]
    for i in range(n), j in range(n):
        y[i] += A[i, j] * x[j]

kernel matmul(n):
    in A, B: T[n, n]
    inout C: T[n, n]
    for i in range(n), j in range(n), k in range(n):
        C[i, j] += A[i, k] * B[k, j]

kernel triangle(n):
    in L: T[n, n]
    inout x: T[n]
    for i in range(n):
        for j in range(i):
            x[i] -= L[i, j] * x[j]
        x[i] = x[i] / L[i, i]

kernel blocked(n, b):
    assume n % b == 0
    in A: T[n, n]
    inout x: T[n]
    for jj in range(0, n, b), i in range(n), j in range(jj, jj + b):
        x[i] += A[i, j]

kernel halves(n):
    in A: T[n]
    out B: T[n]
    for i in range(n // 2):
        B[i] = sqrt(A[2 * i]) + min(A[2 * i + 1], 2)

kernel copy(n):
    in A: T[n]
    out B: T[n]
    for i in range(n):
        B[i] = A[i]
"""
KERNELS = ("dot", "gemv", "matmul", "triangle", "blocked", "halves", "copy")

MACHINE_TEXT = """
machine plain "no caches":
    peak f64 fma 7 TFLOP/s
    peak f32 fma 14 TFLOP/s
    memory HBM 16 GiB, 900 GB/s
    launch 4.2 us

machine cached "one cache, lines of an element":
    peak f64 fma 100 GFLOP/s
    peak f32 fma 200 GFLOP/s
    peak f32 60 GFLOP/s
    peak f64 div 5 GFLOP/s
    cache L1 1 KiB, 400 GB/s
    memory DRAM 16 GiB, 20 GB/s

machine lined "lines of 64 B, write-allocate":
    peak f64 fma 100 GFLOP/s
    peak f32 fma 200 GFLOP/s
    cache L2 64 KiB, 400 GB/s, line 64 B, write_allocate
    memory DRAM 16 GiB, 20 GB/s

machine pipes "two pipes":
    peak f64 73.6 GFLOP/s
    peak f32 147.2 GFLOP/s
    pipes separate add mul
    memory DRAM 16 GiB, 21 GB/s

machine duplex "both directions at once":
    peak f64 fma 100 GFLOP/s
    peak f32 fma 200 GFLOP/s
    cache L1 1 KiB, 400 GB/s
    memory DRAM 16 GiB, 20 GB/s, duplex

machine matrix "matrix units":
    peak f64 fma 10 TFLOP/s
    peak f64 tensor 20 TFLOP/s
    peak f32 fma 20 TFLOP/s
    peak f32 tensor 160 TFLOP/s
    memory HBM 80 GB, 2 TB/s
"""
MACHINES = ("plain", "cached", "lined", "pipes", "duplex", "matrix")


@cache
def kernel_of(name: str, type_name: str = "f64") -> Kernel:
    return kernels(
        load_file(Source("kernels.roof", TEXT.replace("T[", f"{type_name}[").replace(": T\n", f": {type_name}\n")))
    )[name]


@cache
def machine_of(name: str) -> Machine:
    return lower(load_file(Source("machines.roof", MACHINE_TEXT)).machines[name])

"""What is measured on a GPU: kernels, variants and sizes, from the committed plan that sizing.py makes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PLAN = Path(__file__).parent / "plan.json"

_STREAM = tuple({"n": 1 << k} for k in (27, 24, 20, 16))
_PRODUCTS = tuple({"n": n} for n in (4096, 2048, 1024, 512))
_LARGE = tuple({"n": n} for n in (8192, 4096, 2048, 1024))

SIZES: Mapping[str, tuple[dict[str, int], ...]] = {
    "copy": _STREAM,
    "vector_add": _STREAM,
    "triad": _STREAM,
    "daxpy": _STREAM,
    "dot_f64": ({"n": 1 << 27}, {"n": 1 << 20}),
    "dot": ({"n": 1 << 27}, {"n": 1 << 20}),
    "gemv": ({"n": 32768}, {"n": 16384}, {"n": 4096}, {"n": 1024}),
    "jacobi2d": ({"n": 16384}, {"n": 2048}),
    "stencil27": ({"n": 512}, {"n": 128}),
    "matmul": ({"n": 8192}, *_PRODUCTS),
    "minplus": _PRODUCTS,
    "matmul_tiled": tuple({"n": n, "b": b} for n, b in ((2048, 16), (2048, 32), (2048, 8), (2064, 24), (1024, 16))),
    "minplus_blocked": tuple({"n": 2048, "b": b} for b in (16, 32, 24)),
    "gemm_f16": tuple({"m": n, "n": n, "k": n} for n in (8192, 4096, 2048, 1024)),
    "matmul_bf16": _LARGE,
    "gemm_tf32": _LARGE,
    "linear": tuple({"rows": rows, "inputs": 4096, "outputs": 4096} for rows in (4096, 256, 16)),
    "conv2d": ({"batch": 16, "h": 112, "w": 112, "c": 64, "f": 64, "r": 3},),
    "gpp": ({"bands": 256, "ngpown": 410, "ncouls": 8192},),
}
"""The deck's questions, streams, tiles, and products on matrix units: what is wanted most."""

VARIANTS = ("naive", "tiled", "library")


@dataclass(frozen=True)
class PlannedRun:
    """One kernel in one variant at one size; `seconds` of one execution are a rough estimate."""

    kernel: str
    variant: str
    sizes: Mapping[str, int]
    math_mode: str = "default"
    seconds: float = 0.0

    @property
    def label(self) -> str:
        return f"{self.variant} {', '.join(f'{n}={v}' for n, v in self.sizes.items())}".strip()


@dataclass(frozen=True)
class Refused:
    """A kernel that has no run in a variant, and why."""

    kernel: str
    variant: str
    reason: str


@dataclass(frozen=True)
class Plan:
    """runs: what is timed, in this order. ragged: one execution of every generated code at small sizes that are
    multiples of nothing, for checks of its accesses. refused: what has no run.
    """

    runs: tuple[PlannedRun, ...]
    ragged: tuple[PlannedRun, ...]
    refused: tuple[Refused, ...]


def planned() -> Plan:
    """The committed plan."""
    found = json.loads(PLAN.read_text(encoding="utf-8"))
    runs, ragged = (tuple(PlannedRun(**run) for run in found[part]) for part in ("runs", "ragged"))
    return Plan(runs, ragged, tuple(Refused(**one) for one in found["refused"]))


def plan_text(plan: Plan) -> str:
    """The document that `planned` reads, one run a line."""

    def line(r: PlannedRun | Refused) -> str:
        values = {k: v for k, v in vars(r).items() if (k, v) not in (("math_mode", "default"), ("seconds", 0.0))}
        return json.dumps(values)

    parts = {name: ",\n  ".join(line(r) for r in getattr(plan, name)) for name in ("runs", "ragged", "refused")}
    body = ",\n ".join(f'"{name}": [\n  {lines}\n ]' for name, lines in parts.items())
    return f'{{"made_by": "python -m benchmarks.gpu.sizing",\n {body}\n}}\n'

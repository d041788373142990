"""Makes the plan of what is measured on a GPU: `python -m benchmarks.gpu.sizing` writes plan.json, which is committed.

Sizes come from the operations, not from the bytes alone: an estimate of the seconds on a large GPU, from the work, the
accesses, the bytes and the launches of the generated code. It only has to tell milliseconds from minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from math import prod
from random import Random

from benchmarks.gpu.plan import PLAN, SIZES, VARIANTS, Plan, PlannedRun, Refused, plan_text
from benchmarks.kernels import fresh, shipped
from benchmarks.sizes import FIXED, STEP, accesses_at, is_legal
from roofdsl.checks.parallel_loops import parallel_loops
from roofdsl.codegen.generate import generate
from roofdsl.codegen.generated import Generated
from roofdsl.counts.work_at import work_at
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.integers import Compare, Const, Mod, Sym
from roofdsl.loops.model import Kernel
from roofdsl.loops.parameter_values import numbers
from roofdsl.measure.gpu_blas import GPU_TYPES
from roofdsl.measure.library_kernels import recognize
from roofdsl.store.atomic import write_whole

TARGETS_S = (0.02, 0.001)
"""Estimated seconds of one execution, at most: large and small sizes."""

MOST_BYTES = 4 << 30
"""Of all arrays together."""

MOST_LAUNCHES = 5_000
"""Of one execution."""

_FLOPS, _ACCESSES, _BYTES = 5e12, 2e12, 3e12
"""Operations, array accesses and bytes per second."""

_LAUNCH_S, _STEP_S = 4e-6, 3e-8
"""Seconds of a launch, and of an access in a thread that waits for it."""

_RESIDENT = 270_000
"""Threads that run at once."""

NATURAL = {
    **FIXED, "dh": 64, "kv": 8, "group": 4, "heads": 16, "half": 64, "stages": 7, "c": 64, "f": 64, "sums": 576,
    "th": 28, "tw": 28, "h": 56, "w": 56, "oh": 28, "ow": 28,
}  # fmt: skip
"""Sizes that do not grow: heads, channels, images."""


@dataclass(frozen=True)
class Estimate:
    """Seconds of one execution as far as they can be told beforehand, and what keeps it from being run."""

    seconds: float
    too_large: str = ""


def estimated(kernel: Kernel, code: Generated, sizes: Mapping[str, int]) -> Estimate:
    """Raises CommandError for sizes that the kernel does not allow."""
    values = numbers(kernel, sizes)
    held = sum(prod(d.evaluate(values) for d in a.dims) * a.type.bytes for a in kernel.arrays)
    if held > MOST_BYTES:
        return Estimate(0, f"{held >> 20} MiB of data")
    launches = list(islice(code.launches(values), MOST_LAUNCHES + 1))
    if len(launches) > MOST_LAUNCHES:
        return Estimate(0, f"more than {MOST_LAUNCHES} launches")
    threads = sum(min(_RESIDENT, prod(x.grid) * prod(x.block)) for x in launches) / max(1, len(launches))
    accesses, work = accesses_at(kernel, values), work_at(kernel, values).total
    alone = accesses * _STEP_S / max(1, threads) + len(launches) * _LAUNCH_S
    return Estimate(max(work / _FLOPS, accesses / _ACCESSES, held / _BYTES, alone))


def rungs(kernel: Kernel) -> Iterator[dict[str, int]]:
    """Sizes of a kernel in ascending order; its defaults first halved, then whole."""
    free = [p for p in kernel.parameters if p.default is None and p.name not in NATURAL]
    own = {p.name: NATURAL.get(p.name, STEP) if p.default is None else p.default for p in kernel.parameters}
    if not free:
        free = [p for p in kernel.parameters if p.default is None and p.name not in FIXED]
    if not free:
        yield from _halved(own)
        return
    for k in (4, 3, 2, 1):  # smaller than natural, for what is long even so
        yield {n: v if n in FIXED else max(2, v >> k) for n, v in own.items()}
    factor = 1.0
    while factor < 2**24:
        yield own | {p.name: max(STEP, round(factor) * STEP) for p in free}
        factor *= 2 ** (1 / max(1, len(free)))


def _halved(own: dict[str, int]) -> Iterator[dict[str, int]]:
    """The defaults, with those above 100 (else the largest) halved up to seven times; the smallest sizes first."""
    large = [n for n, v in own.items() if v > 100] or [max(own, key=lambda n: own[n])]
    for k in range(7, -1, -1):
        yield own | {n: max(8, own[n] >> k) // 8 * 8 or own[n] for n in large}


def chosen(kernel: Kernel, code: Generated) -> tuple[list[dict[str, int]], str]:
    """The largest sizes within each of TARGETS_S, the large ones first; why there are none, or none larger."""
    found: dict[float, dict[str, int]] = {}
    first: dict[str, int] | None = None
    why = "its assumptions allow no such sizes"
    for sizes in rungs(kernel):
        if not is_legal(kernel, sizes):
            continue
        at = estimated(kernel, code, sizes)
        if first is None and not at.too_large and at.seconds < _LONGEST_S:
            first = sizes
        within = [t for t in TARGETS_S if not at.too_large and at.seconds <= t]
        found |= dict.fromkeys(within, sizes)
        if not within:
            why = at.too_large or f"about {at.seconds:.2g} s"
            break
    kept = [found[t] for t in TARGETS_S if t in found]
    if not kept and first is not None:
        kept = [first]
    return [s for k, s in enumerate(kept) if s not in kept[:k]], why


def runs_of(kernel: Kernel) -> tuple[list[PlannedRun], list[Refused]]:
    """All runs of a kernel in every variant that it has, and why it has no others."""
    free = parallel_loops(kernel)
    code = generate(kernel, "cuda", "naive", free=free)
    refused: list[Refused] = []
    named = SIZES.get(kernel.name)
    sizes, why = (list(named), "") if named else chosen(kernel, code)
    if not sizes:
        refused.append(Refused(kernel.name, "naive", why))
    found = []
    for variant in VARIANTS:
        mode = "tf32" if variant == "library" and kernel.compute_type is not None else "default"
        try:
            if variant == "library":
                product = recognize(kernel, GPU_TYPES)
                if product.kind == "axpy" or (product.kind == "dot" and kernel.arrays[0].type.bytes < 4):
                    raise CommandError(f"cuBLAS has no such {product.kind} through cupy")
            for at in sizes:
                if variant == "tiled":
                    generate(kernel, "cuda", variant, free=free, sizes=numbers(kernel, at))
                seconds = float(f"{estimated(kernel, code, at).seconds:.2g}")
                if variant == "naive" and seconds > _LONGEST_S:
                    continue  # a size for the library
                found.append(PlannedRun(kernel.name, variant, at, mode, seconds))
        except CommandError as error:
            refused.append(Refused(kernel.name, variant, error.message))
    return found, refused


_LONGEST_S = 0.3
"""Of an execution of a kernel of SIZES in the variant naive."""


def ragged_of(kernel: Kernel) -> list[PlannedRun]:
    """The generated code at sizes of 50 to 130 that are multiples of nothing (smaller for many loops), in every variant
    that it has there; tiles of several sizes, most of them no multiple of 16.
    """
    free = parallel_loops(kernel)
    tiles = [n for n in ("b", "bi", "bj", "bk", "bq") if any(p.name == n for p in kernel.parameters)]
    found: list[PlannedRun] = []
    for at, tile in enumerate((24, 20, 11) if tiles else (16,)):
        sizes = _ragged(kernel, dict.fromkeys(tiles, tile), Random(at))
        if sizes is None:
            continue
        for variant in ("naive", "tiled"):
            try:
                generate(kernel, "cuda", variant, free=free, sizes=numbers(kernel, sizes))
            except CommandError:
                continue
            if sizes not in [r.sizes for r in found if r.variant == variant]:
                found.append(PlannedRun(kernel.name, variant, sizes))
    return found


def _ragged(kernel: Kernel, tiles: Mapping[str, int], rng: Random) -> dict[str, int] | None:
    """Sizes at which one execution makes at most MOST_RAGGED accesses."""
    small = {"r": 3, "s": 2, "steps": 3, "stages": 3, "kv": 3, "group": 3}
    for low, high in ((50, 130), (50, 70), (33, 49), (17, 31), (9, 15), (5, 9), (3, 6)):
        for _ in range(200):
            sizes = {p.name: tiles.get(p.name, small.get(p.name, rng.randint(low, high))) for p in kernel.parameters}
            for condition in kernel.assumptions:
                match condition:  # n % b == 0: a multiple
                    case Compare("==", Mod(Sym(name), step), Const(0)):
                        by = step.evaluate(sizes)
                        sizes[name] = max(by, sizes[name] // by * by)
            if is_legal(kernel, sizes):
                if accesses_at(kernel, sizes) <= MOST_RAGGED:
                    return sizes
                break
    return None


MOST_RAGGED = 6_000_000
"""Accesses of an execution under a checker, which makes every one of them take some hundred times as long."""


def made() -> Plan:
    """The plan: the kernels of SIZES, then all others at their large sizes, then at their small ones."""
    every = shipped()
    runs: dict[str, list[PlannedRun]] = {}
    refused: list[Refused] = []
    ragged: list[PlannedRun] = []
    for name, checked in every.items():
        kernel = fresh(checked, name)
        runs[name], more = runs_of(kernel)
        refused += more
        ragged += ragged_of(kernel)
        print(f"{name}: {len(runs[name])} runs", file=sys.stderr, flush=True)
    first = [run for name in SIZES for run in runs[name]]
    others = [name for name in every if name not in SIZES]
    large = [run for name in others for run in runs[name] if run.sizes == runs[name][0].sizes]
    small = [run for name in others for run in runs[name] if run.sizes != runs[name][0].sizes]
    return Plan((*first, *large, *small), tuple(ragged), tuple(refused))


if __name__ == "__main__":
    write_whole(PLAN, plan_text(made()))

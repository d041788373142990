"""The answers of exercises as one finds them with pencil and paper, for every version that a student may get.

Nothing here asks the engine: operations and bytes are counted by hand, misses by lists of lines, and rates are those of
the data sheets that the exercises quote.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from math import ceil, sqrt
from typing import Any

import pytest

from roofdsl.classroom.exercise_file import course
from roofdsl.classroom.student_version import StudentVersion
from tests.classroom.spellings import one, versions

EXERCISES = course()
Answers = Mapping[str, Any]
"""Part -> a number in bytes, seconds and operations; a formula as text; or how the right option begins."""

BYTES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "f8": 1}
V100 = {"P": 7e12, "H": 900e9, "L": 4.2e-6}
BANDWIDTH = {
    "v100": 900e9, "v100_deck": 900e9, "a100_40": 1555e9, "a100_80": 2039e9, "h100_sxm": 3350e9,
    "skylake_gold_6148": 6 * 2666e6 * 8, "zen2_epyc_7452": 8 * 3200e6 * 8,
}  # fmt: skip


def lru_misses(lines: Iterable[Any], size: int) -> int:
    held: list[Any] = []
    misses = 0
    for line in lines:
        if line in held:
            held.remove(line)
        else:
            misses += 1
            del held[: max(0, len(held) - size + 1)]
        held.append(line)
    return misses


def two_rows(v: Mapping[str, Any]) -> Answers:
    beta, peak = v["rate"] * 1e9, 8e9
    time = max(6 / peak, 2 / beta)
    bound = "The sweep is memory-bound with both" if 6 / peak < 2 / beta else "The sweep becomes compute-bound"
    return {"lru": 3 + 1, "best": 1 + 1, "time": time, "bound": bound}


def cyclic_sweep(v: Mapping[str, Any]) -> Answers:
    n, t = v["n"], v["t"]
    reads = t * (n + 1)
    assert lru_misses([i for _ in range(t) for i in range(n + 1)], n) == reads
    return {
        "lru": reads,
        "best": n + ceil((reads - n) / n),  # the first n, and then each n-th
        "past": n + t,
        "room": "All reads would hit",
    }


def far_from_the_bound(v: Mapping[str, Any]) -> Answers:
    n, size, b = v["n"], v["size"]["S"], v["size"]["b"]
    tiled = 2 * n**3 / b + n**2
    return {
        "plain": n**3 + 2 * n**2,
        "tiled": tiled,
        "least": tiled / (2 * n**3 / sqrt(size)),
        "lesson": "A better order might save that factor at most",
    }


def which_change(v: Mapping[str, Any]) -> Answers:
    now = 6 * 8 * v["n"] / BANDWIDTH[v["machine"]["name"]]
    return {"now": now, "fused": 6 / 4, "half": 2, "best": "Numbers of f32"}


def launch_plane(v: Mapping[str, Any]) -> Answers:
    memory, launches = v["k"] * 24 * v["n"] / V100["H"], v["k"] * V100["L"]
    return {
        "memory": memory,
        "launches": launches,
        "bound": "The memory" if memory > launches else "The launches",
        "n": V100["L"] * V100["H"] / 24,
    }


def tiles_in_the_plane(v: Mapping[str, Any]) -> Answers:
    n, b = v["n"], v["b"]
    plain, tiled = 8 * (n**3 + 2 * n**2), 8 * (2 * n**3 / b + n**2)
    return {"way": "To the left", "factor": plain / tiled, "diagonal": 2 * n**3 / tiled}


def bound_expected_measured(v: Mapping[str, Any]) -> Answers:
    return {"why": "Nowhere in this loop" if v["percent"] < 110 else "At the measurement and the code"}


def gib_and_gb(v: Mapping[str, Any]) -> Answers:
    size = v["g"] * 1024**3
    return {"bytes": size, "time": size / BANDWIDTH[v["machine"]["name"]], "numbers": size / 8}


def words_and_bytes(v: Mapping[str, Any]) -> Answers:
    return {"words": v["p"] / v["w"], "bytes": v["p"] / v["w"] / BYTES[v["type"]], "rate": v["w"] * 1e9 * 2 / 3}


def first_touch(v: Mapping[str, Any]) -> Answers:
    streams, on_the_bus, saved = {
        "a[i] = 0.0": (1, 2, "Half"),
        "a[i] = b[i]": (2, 3, "A third"),
        "a[i] = b[i] + c[i]": (3, 4, "A quarter"),
        "a[i] += b[i]": (3, 3, "Nothing"),
    }[v["op"]["line"]]
    return {"program": 8 * v["n"] * streams, "bus": 8 * v["n"] * on_the_bus, "nt": saved}


def tile_shape(v: Mapping[str, Any]) -> Answers:
    n, h, w = v["n"], v["tile"]["h"], v["tile"]["w"]
    loads = n * n // (h * w) * (n * (h + w) + h * w)
    return {"loads": loads, "per": 2 * n**3 / loads, "shape": "A square one"}


def cube_planes(v: Mapping[str, Any]) -> Answers:
    return {"planes": 16, "rows": 32, "none": 48, "gain": 2}


def amdahl_roof(v: Mapping[str, Any]) -> Answers:
    n = v["n"]
    product, moved, triad = 2 * n**3 / V100["P"], 24 * n**2 / V100["H"], 24 * v["m"] / V100["H"]
    faster = max(product / v["f"], moved)
    return {
        "share": 100 * product / (product + triad),
        "speedup": (product + triad) / (faster + triad),
        "limit": (product + triad) / (moved + triad),
    }


def coalescing(v: Mapping[str, Any]) -> Answers:
    size = BYTES[v["type"]]
    sectors = len({thread * v["s"] * size // 32 for thread in range(32)})
    return {"sectors": sectors, "share": 100 * size / sectors, "worst": 32 // size}


def gpu_transpose(v: Mapping[str, Any]) -> Answers:
    read, written = BYTES[v["type"]] * v["n"] ** 2, 32 * v["n"] ** 2
    return {"loads": read, "stores": written, "gain": (read + written) / (2 * read)}


def read_stencil(v: Mapping[str, Any]) -> Answers:
    n = v["n"]
    return {"small": 8 * n**2 * 4, "step": 4 * 8 * n, "gain": 2}


def littles_law(v: Mapping[str, Any]) -> Answers:
    beta, latency = BANDWIDTH[v["machine"]["name"]], v["latency"] * 1e-9
    core = v["lines"] * 64 / latency
    return {"flight": beta * latency / 64, "core": core, "cores": ceil(beta / core - 1e-9)}


def five_diagonals(v: Mapping[str, Any]) -> Answers:
    size = BYTES[v["type"]]
    return {
        "W": "5*n + 4*n",
        "Q": f"{size}*(5*n + (n + 4) + n)",
        "csr": (7 * size + 5 * 4) / (7 * size),
        "limit": 9 / (7 * size),
    }


def mixed_precision(v: Mapping[str, Any]) -> Answers:
    size = BYTES[v["small"]]
    each = 2 * size + 2 * 4
    return {"Q": f"{each}*n**2", "I": f"2*n/{each}", "gain": 16 / each}


def decode(v: Mapping[str, Any]) -> Answers:
    peak = {"a100_80": 312e12, "h100_sxm": 989.4e12}[v["machine"]["name"]]
    beta, size = BANDWIDTH[v["machine"]["name"]], BYTES[v["type"]]
    time = v["p"] * 1e9 * size / beta
    return {"time": time, "tokens": 1 / time, "batch": peak / beta * size / 2}


BY_HAND: Mapping[str, Callable[[Mapping[str, Any]], Answers]] = {
    f.__name__.replace("_", "-"): f
    for f in (
        two_rows, cyclic_sweep, far_from_the_bound, which_change, launch_plane, tiles_in_the_plane,
        bound_expected_measured, gib_and_gb, words_and_bytes, first_touch, tile_shape, cube_planes, amdahl_roof,
        coalescing, gpu_transpose, read_stencil, littles_law, five_diagonals, mixed_precision, decode,
    )
}  # fmt: skip


def in_words(value: Any, unit: str) -> str:
    scale = {
        "": 1, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "GB": 1e9, "MB": 1e6, "kB": 1e3, "KiB": 1024, "FLOP/B": 1,
        "GFLOP/s": 1e9, "GB/s": 1e9,
    }[unit]  # fmt: skip
    return f"{value / scale:.10g} {unit}".strip()


@pytest.mark.spread(3)
@pytest.mark.parametrize("name", BY_HAND)
def test_answers_found_by_hand_are_right(name: str) -> None:
    for version in versions(EXERCISES[name]):
        by_hand = BY_HAND[name](version.values)
        for part in version.parts:
            if part.part.id not in by_hand:
                assert name == "bound-expected-measured"
                continue
            answer = by_hand[part.part.id]
            if part.part.kind == "choice":
                (right,) = [o for o in part.options if o.right]
                assert right.text.startswith(answer), (version.values, part.part.id, right.text)
                continue
            text = answer if isinstance(answer, str) else in_words(answer, part.part.unit)
            found = one(version, part, text)
            assert found.correct, (version.values, part.part.id, text, found.message)


@pytest.mark.spread(4)
@pytest.mark.parametrize("name", BY_HAND)
def test_each_exercise_has_versions_and_says_what_was_wrong(name: str) -> None:
    exercise = EXERCISES[name]
    texts = set()
    for version in versions(exercise):
        texts.add(version.text + "".join(str(p.answer) for p in version.parts))
        for part in version.parts:
            assert part.mistakes or part.options, part.part.id
    assert len(texts) == len(list(itertools.product(*exercise.vary.values()))) >= 3


def test_the_expected_time_of_an_update_on_haswell() -> None:
    """The bound is 24 B an element from memory at 32.35 GB/s. The expected time adds the other levels, as in the
    exercise on transfers that take turns.
    """
    exercise = EXERCISES["bound-expected-measured"]
    version = StudentVersion(exercise, {n: c[0] for n, c in exercise.vary.items()})
    measured, roof = (float(p.value) for p in version.parts[:2])
    bound = measured / roof
    assert bound == pytest.approx(24 * version.values["n"] / 32.35e9, rel=0.01)
    assert 1 < roof / (version.values["percent"] / 100) < 3

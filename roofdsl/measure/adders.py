"""Fused multiply-adds that keep the units of additions busy.

On Zen 1 and Zen 2, a fused multiply-add reads its third operand where an addition would read its own: the two run on
different units, and yet take 1.5 cycles side by side instead of 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from roofdsl.lang.record import replace
from roofdsl.machine.instruction import Instruction
from roofdsl.measure.instruction_bench import REPEATS, ROTATED, Bench, best_fit, rounded
from roofdsl.measure.instruction_texts import Template, filled

_WITH_ADDS = ((1, 1), (1, 2), (2, 2))
"""Fused multiply-adds and additions in a loop that has both."""


def adder_loops(bench: Bench, known: Sequence[Template]) -> None:
    """Fused multiply-adds and additions that do not wait for each other, in each mixture of _WITH_ADDS."""
    own = {t.key: t for t in known}
    for bits in (128, 256, 512):
        fma, add = own.get(f"fma_f64_{bits}"), own.get(f"add_f64_{bits}")
        if fma is None or add is None:
            continue
        for fused, adds in _WITH_ADDS:
            round_ = [fma] * fused + [add] * adds
            text = [
                filled(t.text, bits, 2 + (k * len(round_) + j) % ROTATED)
                for k in range(REPEATS // len(round_))
                for j, t in enumerate(round_)
            ]
            bench.add(f"with_adds_{bits}_{fused}_{adds}", text, len(text))


def adder_share(fma: float, add: float, apart: bool, times: dict[tuple[int, int], float]) -> float:
    """The cycles z for which a fused multiply-add keeps the units of additions busy, if it runs on other units
    (`apart`; otherwise 0).

    fma, add: cycles of one alone; times: of m fused multiply-adds and n additions. This z best explains the times as
    max(m fma, n add, n add + m z). It is 0 if the first two terms explain them.
    """
    if not apart or all(t < 1.1 * max(m * fma, n * add) for (m, n), t in times.items()):
        return 0.0
    tried = (fma * k / 50 for k in range(76))
    return best_fit(tried, lambda mixed, z: max(mixed[0] * fma, mixed[1] * add + mixed[0] * z), times)


def with_adders(found: Sequence[Instruction], cycles: dict[str, float]) -> list[Instruction]:
    """The instructions, with `adder` for fused multiply-adds; scalars as vectors of 128 bits, f32 as f64."""
    own = {(i.cls, i.type, i.bits): i for i in found}
    shares: dict[int, float] = {}
    for bits in (128, 256, 512):
        fma, add = own.get(("fma", "f64", bits)), own.get(("add", "f64", bits))
        if fma is None or add is None:
            continue
        rounds = {(m, n): REPEATS // (m + n) for m, n in _WITH_ADDS}
        times = {(m, n): cycles[f"with_adds_{bits}_{m}_{n}"] / rounds[m, n] for m, n in _WITH_ADDS}
        apart = not set(fma.units) & set(add.units)
        shares[bits] = adder_share(float(fma.throughput or 1), float(add.throughput or 1), apart, times)
    made = []
    for i in found:
        share = shares.get(max(i.bits, 128), 0.0) if i.cls == "fma" else 0.0
        made.append(replace(i, adder=rounded(share)) if share else i)
    return made

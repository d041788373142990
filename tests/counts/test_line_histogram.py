"""The histogram of stack distances of uniform nests equals brute force: every access, every distance."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from roofdsl.counts.lines.distance_records import Histogram
from roofdsl.counts.lines.uniform import NotUniform, uniform
from roofdsl.counts.lines.uniform_histogram import histogram
from roofdsl.counts.sector_traffic import Transfers
from roofdsl.counts.traffic_at import convention_totals, lines_by_distances
from roofdsl.loops.model import Kernel
from roofdsl.loops.sized import Sized, sized
from roofdsl.simulate.lru_traffic import simulate_lru
from tests.codegen.shipped import shipped
from tests.counts.test_sectors import CONVENTIONS, brute_of_each, totals
from tests.oracle.enumerate import run
from tests.oracle.loading import kernel_of
from tests.oracle.lru import address
from tests.oracle.uniform_kernels import uniform_case


class Walked:
    """Stack distances in bytes by a list of lines, last used first. None: the first access to a line."""

    def __init__(self, at: Sized, line_bytes: int | None) -> None:
        arrays = {a.name: a for a in at.kernel.arrays}
        stack: list[tuple[str, int]] = []
        worst: dict[tuple[str, int], int | None] = {}  # since the last write
        self.begun: Counter[tuple[str, bool, int | None]] = Counter()
        self.stored: Counter[tuple[str, int | None]] = Counter()
        for execution in run(at.kernel, at.values):
            for access in execution.accesses:
                array = arrays[access.array]
                size = line_bytes or array.type.bytes
                line = access.array, address(array, access.index, at.values) // size
                distance: int | None = None
                if line in worst:
                    place = stack.index(line)
                    distance = sum(line_bytes or arrays[name].type.bytes for name, _ in stack[: place + 1])
                    del stack[place]
                    before = worst[line]
                    worst[line] = None if before is None else max(before, distance)
                else:
                    worst[line] = None
                stack.insert(0, line)
                self.begun[access.array, access.is_write, distance] += 1
                if access.is_write:
                    self.stored[access.array, worst[line]] += 1
                    worst[line] = 0

    def at(self, array: str, cache_bytes: int) -> tuple[int, int, int]:
        """Residencies begun by a read, by a write, and those stored, in a cache of this size."""

        def beyond(distance: int | None) -> bool:
            return distance is None or distance > cache_bytes

        begun = [
            sum(n for (name, writes, d), n in self.begun.items() if name == array and writes == kind and beyond(d))
            for kind in (False, True)
        ]
        return begun[0], begun[1], sum(n for (name, d), n in self.stored.items() if name == array and beyond(d))

    def distances(self) -> set[int]:
        return {d for _, _, d in self.begun if d is not None}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--uniform-kernels")))


def found(kernel: Kernel, line_bytes: int | None) -> tuple[Sized, Histogram | None]:
    at = sized(kernel, {})
    try:
        return at, histogram(uniform(at, line_bytes))
    except NotUniform:
        return at, None


@pytest.mark.parametrize("parts", [False, True])
def test_random_uniform_kernel(seed: int, parts: bool) -> None:
    case = uniform_case(seed, parts=parts)
    at, got = found(kernel_of(case.text), case.line_bytes)
    if got is None:
        return
    want = Walked(at, case.line_bytes)
    firsts = histogram(uniform(at, case.line_bytes), first=True)
    assert (
        [a.cold[:3] for a in firsts.arrays]
        == [a.cold[:3] for a in got.arrays]
        == [want.at(a.name, 1 << 60) for a in got.arrays]
    )
    sizes = {d + e for d in want.distances() for e in (-1, 0) if d + e >= got.least_bytes} | {1 << 40}
    for cache in (*Random(seed).sample(sorted(sizes), min(len(sizes), 60)), got.least_bytes):
        for array in got.arrays:
            told = array.beyond(0, cache), array.beyond(1, cache), array.beyond(2, cache)
            assert told == want.at(array.name, cache), f"{case.text}line {case.line_bytes}, cache {cache}, {array.name}"


@pytest.mark.spread(3)
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("jacobi2d", {"n": 300}),
        ("jacobi2d", {"n": 301}),
        ("jacobi3d", {"n": 48}),
        ("jacobi3d", {"n": 51}),
        ("stencil27", {"n": 45}),
        ("jacobi2d_time", {"steps": 3, "n": 130}),
        ("heat3d_time", {"steps": 2, "n": 32}),
    ],
)
def test_shipped_stencils_are_as_simulated(name: str, sizes: dict[str, int]) -> None:
    at = sized(shipped()[name], sizes)
    for cache in (8 << 10, 32 << 10, 300_000):
        lines = lines_by_distances(at, cache, 64)
        run_through = simulate_lru(at.kernel, at.values, cache, 64)
        for convention in CONVENTIONS:
            want = run_through.loads(convention), run_through.stores(convention), run_through.bytes(convention)
            assert convention_totals(at, lines, convention) == want, (cache, convention)


def test_what_is_not_taken() -> None:
    loops = "    for i in range(n), j in range(n):\n        B[i, j] = "
    for body, why in (
        (
            "    in A: f64[n, n]\n    out B: f64[n, n]\n" + loops + "A[j, i]\n",
            "is not i and a number",
        ),
        ("    in A: f64[n]\n    out B: f64[n, n]\n" + loops + "A[j]\n", "as many dimensions"),
        ("    in A: f64[n]\n    out B: f64[n]\n    for i in range(0, n, 2):\n        B[i] = A[i]\n", "a step"),
        ("    in A: f64[n, n, n]\n    out B: f64[n, n]\n" + loops + "A[i, i, j]\n", "more dimensions"),
        ("    in A: f64[2, n]\n    out B: f64[n]\n    for i in range(n):\n        B[i] = A[0, i] + A[1, i]\n", "share"),
    ):
        with pytest.raises(NotUniform, match=why):
            uniform(sized(kernel_of(f"kernel k(n):\n{body}"), {"n": 20}), 64)


@pytest.mark.spread(5)
@pytest.mark.parametrize("number", range(250))
def test_random_uniform_kernel_in_sectors(number: int) -> None:
    case, rng = uniform_case(number, parts=number % 3 == 0), Random(number)
    if case.line_bytes is None or case.line_bytes < 32:
        return
    kernel = kernel_of(case.text)
    least = max(a.type.bytes for a in kernel.arrays)
    sector = rng.choice([b for b in (8, 16, 32, 64) if least <= b < case.line_bytes])
    try:
        got = histogram(uniform(sized(kernel, {}), case.line_bytes), sector_bytes=sector)
    except NotUniform:
        return
    for cache in (got.least_bytes + case.line_bytes * rng.randint(0, 60) for _ in range(3)):
        lines = lines_by_distances(sized(kernel, {}), cache, case.line_bytes, sector)
        for convention, want in brute_of_each(kernel, {}, Transfers(cache, case.line_bytes, sector)).items():
            found = convention_totals(sized(kernel, {}), lines, convention)
            assert found == totals(want), f"{case.text}line {case.line_bytes} in {sector}, cache {cache}, {convention}"


def test_most_are_answered() -> None:
    """The comparison above does not rest on refusals. Asks again, so that it holds in any process."""
    for parts in (False, True):
        cases = [uniform_case(k, parts=parts) for k in range(30)]
        answers = [found(kernel_of(case.text), case.line_bytes)[1] for case in cases]
        assert sum(answer is not None for answer in answers) > 0.6 * len(answers), parts

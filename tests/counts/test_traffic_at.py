"""Which way leads to a number, and that all ways lead to the same."""

from __future__ import annotations

import pytest

from roofdsl import budget
from roofdsl.counts import traffic_at as module
from roofdsl.counts.histogram_at import NoAnswer
from roofdsl.counts.traffic_at import OutOfReach, TrafficAt, Ways, traffic_at
from roofdsl.sets.library import MAX_OPERATIONS, OverBudget
from tests.codegen.shipped import shipped

KIB = 1024


def tried(sets: int, walked: int, whole: bool) -> tuple[Ways[str], list[object]]:
    """Ways that answer from `sets` operations or `walked` accesses on, or by a whole simulation; and what was tried."""
    asked: list[object] = []

    def by_sets(operations: int) -> str:
        asked.append(operations)
        if operations < sets:
            raise NoAnswer("too many operations")
        return "sets"

    def by_simulation(most: int | None) -> str:
        asked.append(most)
        if not whole if most is None else most < walked:
            raise NoAnswer("too many accesses")
        return "simulation"

    return Ways(by_sets, by_simulation, object()), asked


LONG = module.LONGEST_SIMULATION
BRIEF, WALKED, QUICK = module.BRIEF_OPERATIONS, module.BRIEFLY_WALKED, module.QUICK_OPERATIONS


@pytest.mark.parametrize(
    ("sets", "walked", "executed", "found", "asked"),
    [
        (0, 0, 10, "simulation", [None]),  # a short execution
        (0, 0, 10**12, "sets", [BRIEF]),  # what is quick with sets
        (QUICK, WALKED, 10**12, "simulation", [BRIEF, WALKED]),  # what repeats itself soon
        (QUICK, WALKED + 1, 10**12, "sets", [BRIEF, WALKED, QUICK]),
        (QUICK + 1, WALKED + 1, 10**8, "simulation", [BRIEF, WALKED, QUICK, None]),
    ],
)
def test_the_cheaper_way_is_tried_first(sets: int, walked: int, executed: int, found: str, asked: list[object]) -> None:
    ways, seen = tried(sets, walked, whole=True)
    assert ways.answer("k", executed, LONG, prefer_simulation=True)[0] == found
    assert seen == asked


def test_an_unbounded_cache_is_simulated_where_that_is_brief() -> None:
    for executed, expected in ((WALKED, [BRIEF, WALKED]), (WALKED + 1, [BRIEF, QUICK])):
        ways, seen = tried(QUICK, WALKED, whole=True)
        ways.answer("k", executed, LONG, prefer_simulation=False)
        assert seen == expected


def test_no_way_is_said_so() -> None:
    ways, seen = tried(10**12, 10**12, whole=False)
    with pytest.raises(OutOfReach, match="too long to compute: too many operations"):
        ways.answer("k", 10**10, LONG - 1, prefer_simulation=True)
    assert seen == [BRIEF, WALKED, QUICK]  # neither from end to end, nor with all operations that there are


@pytest.mark.parametrize(
    ("seconds", "executed", "remedy"),
    [
        (20, 10**9, "use smaller sizes, or more time: `--budget 2min`"),  # a simulation takes 50 s
        (20, 29 * 10**8, "use smaller sizes, or more time: `--budget 10min`"),  # 145 s are more than 2 min
        (20, 10**7, "use smaller sizes"),  # it was tried
        (20, LONG + 1, f"{LONG + 1:,} accesses are too many to simulate (limit {LONG:,}); use smaller sizes"),
        (3600, 10**9, "use smaller sizes"),
    ],
)
def test_a_longer_budget_is_proposed_where_only_time_is_lacking(seconds: float, executed: int, remedy: str) -> None:
    ways, _ = tried(10**12, 10**12, whole=False)
    with budget.beginning(seconds, 1 << 40, whole=True), pytest.raises(OutOfReach) as caught:
        ways.answer("k", executed, LONG, prefer_simulation=True)
    assert caught.value.help == remedy


def test_what_was_hard_for_sets_is_simulated_at_once_at_other_sizes() -> None:
    ways, seen = tried(QUICK + 1, WALKED + 1, whole=True)
    for _ in range(2):
        assert ways.answer("k", 10**8, LONG, prefer_simulation=True)[0] == "simulation"
    assert seen == [BRIEF, WALKED, QUICK, None, WALKED, None]


def in_time(seconds: float) -> tuple[Ways[str], list[object]]:
    """Ways of which integer sets answer if they have that much time, and simulation never; and what was tried."""
    asked: list[object] = []

    def by_sets(operations: int) -> str:
        asked.append(operations)
        if budget.left_s() < seconds:
            raise OverBudget("the sets")
        return "sets"

    def by_simulation(most: int | None) -> str:
        raise NoAnswer("too many accesses")

    return Ways(by_sets, by_simulation, object()), asked


def test_what_lacked_time_is_tried_again_with_more() -> None:
    """A call with a short budget says nothing about a later one of the same process that has more time."""
    ways, seen = in_time(10)
    for _ in range(2):
        with budget.beginning(8, 1 << 40, whole=True), pytest.raises(OutOfReach):
            ways.answer("k", 10**12, LONG, prefer_simulation=False)
    assert seen == [BRIEF, QUICK, MAX_OPERATIONS, MAX_OPERATIONS]
    with budget.beginning(100, 1 << 40, whole=True):
        assert ways.answer("k", 10**12, LONG, prefer_simulation=False) == ("sets", "integer sets")
    assert seen[4:] == [BRIEF]


def test_nothing_is_left_out_where_another_way_has_the_number() -> None:
    ways, seen = in_time(10)
    with budget.beginning(20, 1 << 40, whole=True) as own:
        assert ways.answer("k", 10**12, LONG, prefer_simulation=False)[0] == "sets"
        assert not own.left_out
    assert seen == [BRIEF, QUICK, MAX_OPERATIONS]
    with budget.beginning(5, 1 << 40, whole=True) as own:
        with pytest.raises(OutOfReach):
            in_time(10)[0].answer("k", 10**12, LONG, prefer_simulation=False)
        assert list(own.left_out) == ["the sets"]


def totals(found: TrafficAt) -> tuple[int | None, int | None, int]:
    return found.loads_bytes, found.stores_bytes, found.bytes


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", ["matmul", "matmul_blocked", "jacobi2d"])
@pytest.mark.parametrize("cache", [2 * KIB, 32 * KIB])
def test_a_brief_simulation_says_what_integer_sets_say(name: str, cache: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = shipped()[name]
    sizes = {p.name: 8 if p.name == "b" else 120 for p in kernel.parameters}
    first = traffic_at(kernel, sizes, cache, 64, "load_store")

    def none(*asked: object) -> None:
        raise NoAnswer("not this way")

    monkeypatch.setattr(module, "lines_by_distances", none)
    monkeypatch.setattr(module, "SHORT", 0)
    monkeypatch.setattr(module, "BRIEF_OPERATIONS", 1)
    simulated = traffic_at(kernel, sizes, cache, 64, "load_store")
    assert totals(simulated) == totals(first)
    assert (first.method == "stack distances") == (name in ("jacobi2d", "matmul"))
    monkeypatch.setattr(module, "BRIEFLY_WALKED", 0)
    monkeypatch.setattr(module, "SIMULATED_PER_SECOND", 0)
    counted = traffic_at(kernel, sizes, cache, 64, "load_store")
    assert (simulated.method, counted.method) == ("simulation", "integer sets")
    assert totals(simulated) == totals(counted)

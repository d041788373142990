"""Numbers held against each other, and what is left out: rates as a disturbed machine would give them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import roofdsl.cli.characterize as command
from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.find import load_machine
from roofdsl.measure.bandwidth_curve import LOAD, Point, Sweep
from roofdsl.measure.characterize_cpu import Characterization
from roofdsl.measure.characterize_gpu import calmest, characterize_gpu
from roofdsl.measure.machine_file import machine_text, to_machine
from roofdsl.measure.multicore_timing import Rate
from roofdsl.measure.noisy_peaks import trusted, trusted_gpu
from roofdsl.measure.peaks import AGAIN, Key, Peak, confirmed, doubts, settled, truer
from tests.measure.fake_gpu import FakeGpu
from tests.measure.made_up import characterized

CALM, NOISY = 0.02, 0.6


def with_peak(found: Characterization, key: Key, change: Callable[[Peak], Peak]) -> Characterization:
    return replace(found, peaks=tuple(change(p) if p.key == key else p for p in found.peaks))


def scaled(all_cores: float = 1.0, one_core: float = 1.0, spread: float = CALM) -> Callable[[Peak], Peak]:
    def change(p: Peak) -> Peak:
        rates = (Rate(p.all_cores.per_s * all_cores, spread), Rate(p.one_core.per_s * one_core, spread))
        return replace(p, all_cores=rates[0], one_core=rates[1])

    return change


@pytest.mark.parametrize("cores", [1, 2])
def test_a_calm_machine_is_not_doubted(cores: int) -> None:
    assert doubts(characterized(cores=cores).peaks, cores) == ()


@pytest.mark.parametrize(
    ("key", "change", "why"),
    [
        (("f64", "exp"), scaled(spread=NOISY), "f64 exp: samples of one core spread by 60%"),
        (("f64", "exp"), scaled(spread=NOISY), "f64 exp: samples of 2 cores spread by 60%"),
        (("f64", "fma"), scaled(0.5, 0.5), "f32 fma is 4 times as fast as f64 fma; about 2 is usual"),
        (("f32", "add"), scaled(0.5, 0.5), "f32 add is 1 times as fast as f64 add; about 2 is usual"),
        (("f64", "fma"), scaled(0.5, 0.5), "f64 fma does 0.83 times the operations of mul; 1 to 2 is usual"),
        (("f32", "fma"), scaled(1.5, 1.5), "f32 fma does 2.5 times the operations of mul; 1 to 2 is usual"),
        (("f64", "log"), scaled(0.4, 1.0), "f64 log: 2 cores together are 0.8 times as fast as one"),
        (("f64", "log"), scaled(1.0, 0.5), "f64 log: 2 cores together are 4 times as fast as one"),
    ],
)
def test_what_is_in_doubt(key: Key, change: Callable[[Peak], Peak], why: str) -> None:
    found = doubts(with_peak(characterized(), key, change).peaks, 2)
    assert why in [doubt.why for doubt in found]
    assert all(key in doubt.keys for doubt in found)


def test_two_hyperthreads_of_a_core_are_not_doubted() -> None:
    peaks = [scaled(all_cores=0.5)(p) for p in characterized().peaks]
    assert doubts(peaks, 2) == ()


class Machinery:
    """A machine whose next measurements are `spreads` for every peak; a time is a second."""

    def __init__(self, *spreads: float) -> None:
        self.spreads, self.made, self.waits, self.now = iter(spreads), [], 0, 0.0
        self.true = {p.key: p for p in characterized().peaks}

    def again(self, key: Key) -> Peak:
        self.made.append(key)
        self.now += 1.0
        spread = next(self.spreads)
        factor = 1 - spread / 2
        return scaled(factor, factor, spread)(self.true[key])

    def wait(self) -> None:
        self.waits += 1

    def settled(self, *noisy: Key, most_s: float = 100.0) -> dict[Key, Peak]:
        found = characterized()
        for key in noisy:
            found = with_peak(found, key, scaled(0.5, 0.5, NOISY))
        peaks = settled(found.peaks, 2, self.again, most_s, wait=self.wait, clock=lambda: self.now)
        return {p.key: p for p in peaks}


def test_doubtful_numbers_are_measured_again_and_the_calm_ones_count() -> None:
    machine = Machinery(CALM, CALM)
    found = machine.settled(("f64", "exp"), ("f32", "sin"))
    assert sorted(machine.made) == [("f32", "sin"), ("f64", "exp")] and machine.waits == 1
    assert found["f64", "exp"].one_core.spread == CALM and doubts(tuple(found.values()), 2) == ()
    assert Machinery().settled() == {p.key: p for p in characterized().peaks}


def test_it_ends_on_a_machine_that_is_never_calm() -> None:
    machine = Machinery(*[NOISY] * 10)
    found = machine.settled(("f64", "exp"))
    assert len(machine.made) == AGAIN and found["f64", "exp"].one_core.spread == NOISY
    hurried = Machinery(*[NOISY] * 10)
    hurried.settled(("f64", "exp"), ("f64", "log"), ("f64", "fma"), ("f64", "sin"), most_s=1.5)
    assert len(hurried.made) == 2 and hurried.made[0][1] == "fma"


@pytest.mark.parametrize(
    ("a", "b", "which"),
    [
        ((10, CALM), (9, CALM), 0),
        ((10, NOISY), (9, CALM), 1),  # nearly as fast, and calm
        ((10, NOISY), (5, CALM), 0),  # calmly slow: something else ran all the time
        ((10, NOISY), (11, NOISY), 1),
        ((9, NOISY), (10, CALM), 1),
    ],
)
def test_of_two_numbers_the_faster_but_rather_a_calm_one(
    a: tuple[float, float], b: tuple[float, float], which: int
) -> None:
    both = (Rate(*a), Rate(*b))
    assert truer(*both) == truer(*both[::-1]) == both[which]


def test_a_noisy_peak_is_left_out_and_said() -> None:
    found = trusted(with_peak(characterized(), ("f64", "exp"), scaled(spread=NOISY)))
    text, machine = machine_text(found), to_machine(found)
    note = "f64 exp is left out, since its samples spread by 60% (limit 25%)"
    assert note in found.notes and f"# Note: {note}." in text
    assert machine.stated("f64", "exp") is None and machine.stated("f64", "log") is not None
    assert "f64: special at 1/8 of the unfused rate (the default cost)" in machine.rate("f64", "exp").assumptions
    assert trusted(characterized()) == characterized()


def test_additions_left_out_leave_multiplications() -> None:
    found = trusted(with_peak(characterized(), ("f64", "add"), scaled(spread=NOISY)))
    assert float(to_machine(found).rate("f64", "add").per_s) == 60e9
    both = with_peak(found, ("f64", "mul"), scaled(spread=NOISY))
    assert "half the fused rate" in to_machine(trusted(both)).rate("f64", "add").assumptions[0]


def test_a_file_that_would_mislead_is_refused() -> None:
    found = replace(
        with_peak(characterized(), ("f64", "fma"), scaled(spread=NOISY)), disturbed="other programs took 1.0 of 2 cores"
    )
    with pytest.raises(CommandError) as error:
        trusted(found)
    assert error.value.message == (
        "this machine is too busy to be characterized (other programs took 1.0 of 2 cores): the samples vary too much, "
        "f64 fma by 60%; numbers that spread by more than 25% are misleading"
    )
    memory = found.levels[-1]
    noisy = replace(memory, all_cores=replace(memory.all_cores, spread=0.31))
    with pytest.raises(CommandError, match="DRAM by 31%"):
        trusted(replace(characterized(), levels=(*found.levels[:-1], noisy)))


def test_one_core_is_judged_by_its_own_samples() -> None:
    def shared(p: Peak) -> Peak:
        return replace(p, all_cores=replace(p.all_cores, spread=NOISY))

    found = with_peak(characterized(), ("f64", "fma"), shared)
    with pytest.raises(CommandError):
        trusted(found)
    assert to_machine(trusted(found.alone())).stated("f64", "fma") is not None


def test_points_that_agree_confirm_each_other() -> None:
    def best(*points: tuple[int, float, float]) -> float:
        found = Sweep(1, tuple(Point(LOAD, *p) for p in points)).best(LOAD, 0, 1e9)
        assert found is not None
        return found.spread

    assert best((1024, 100.0, NOISY)) == NOISY
    assert best((1024, 100.0, NOISY), (2048, 95.0, NOISY)) == pytest.approx(0.05)
    assert best((1024, 100.0, NOISY), (2048, 30.0, CALM)) == NOISY
    assert best((1024, 100.0, CALM), (2048, 80.0, CALM)) == CALM


def test_sweeps_merge_point_by_point() -> None:
    first = Sweep(1, (Point(LOAD, 1024, 50.0, NOISY), Point(LOAD, 2048, 70.0, CALM)))
    found = first.merged(Sweep(1, (Point(LOAD, 1024, 90.0, CALM), Point(LOAD, 2048, 60.0, CALM))))
    assert [p.bytes_per_s for p in found.of(LOAD)] == [90.0, 70.0]


# ---- the command ----


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    """`characterize` of the processor given, with these options."""

    def characterize(found: Characterization, *options: str) -> tuple[int, str]:
        monkeypatch.setattr(command, "characterize_cpu", lambda quick, cores, tell, **_: found)
        done = CliRunner().invoke(command.characterize, options, standalone_mode=False)
        if isinstance(done.exception, CommandError):
            return 2, done.exception.message
        assert done.exception is None
        return done.exit_code, done.output

    return characterize


def test_the_command_refuses_and_keeps_noisy_numbers_where_asked(
    run: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    path = tmp_path / "m.roof"
    noisy = with_peak(characterized(), ("f64", "fma"), scaled(spread=NOISY))
    status, message = run(noisy, "-o", str(path))
    assert status == 2 and "too busy to be characterized" in message and not path.exists()
    assert run(noisy, "-o", str(path), "--keep-noisy")[0] == 0
    assert load_machine(str(path)).stated("f64", "fma") is not None
    left = with_peak(characterized(), ("f64", "exp"), scaled(spread=NOISY))
    status, output = run(left, "-o", str(path), "--one-core", str(tmp_path / "one.roof"))
    assert status == 0 and "f64 exp is left out" in output
    assert "f64 exp" not in path.read_text().replace("# Note: f64 exp", "")
    assert load_machine(str(tmp_path / "one.roof")).stated("f64", "exp") is None


# ---- GPUs ----


@pytest.mark.thorough
def test_a_gpus_numbers_are_measured_again_too() -> None:
    rates = iter((Rate(1.0, NOISY), Rate(2.0, NOISY), Rate(3.0, CALM), Rate(9.0, CALM)))
    assert calmest(lambda: next(rates)) == Rate(3.0, CALM) and next(rates).per_s == 9.0
    found = characterize_gpu(True, None, FakeGpu())
    assert trusted_gpu(found) == found
    exp = next(p for p in found.peaks if (p.type, p.cls) == ("f32", "exp"))
    noisy = replace(exp, rate=replace(exp.rate, spread=NOISY))
    kept = trusted_gpu(replace(found, peaks=tuple(noisy if p == exp else p for p in found.peaks)))
    assert len(kept.peaks) == len(found.peaks) - 1 and "f32 exp is left out" in kept.notes[-1]


def test_a_peak_that_was_slow_throughout_is_found_out_by_measuring_it_later() -> None:
    """A neighbour halved the rate of exp in the first pass, evenly; it leaves during the second one."""
    first = [Peak("f64", cls, Rate(rate, 0.01), Rate(rate, 0.01)) for cls, rate in (("fma", 50e9), ("exp", 100e6))]
    rates = {"fma": iter([49e9]), "exp": iter([150e6, 200e6, 1e12])}
    made: list[str] = []

    def again(key: tuple[str, str]) -> Peak:
        made.append(key[1])
        rate = Rate(next(rates[key[1]]), 0.01)
        return Peak(*key, rate, rate)

    found = {p.cls: p.one_core.per_s for p in confirmed(first, again, 10.0)}
    assert found == {"fma": 50e9, "exp": 200e6} and made == ["fma", "exp", "exp"]
    assert confirmed(first, again, -1.0) == tuple(first)

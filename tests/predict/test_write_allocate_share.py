"""`write_allocate 0.25`: ordinary stores load a part of their lines first, in the expected time alone."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from roofdsl.cli.main import run
from roofdsl.incore.result import InCore, Step
from roofdsl.lang.diagnostics import InputError
from roofdsl.lang.format import format_source
from roofdsl.lang.record import replace
from roofdsl.lang.source import Source
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.machine.model import Machine
from roofdsl.predict.in_core_time import composed
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import LevelTime, Prediction
from roofdsl.simulate.lru_traffic import simulate_lru
from tests.predict.machines import kernel_of, machine

COPY = kernel_of("kernel copy(n):\n    in x: f64[n]\n    out y: f64[n]\n    for i in range(n):\n        y[i] = x[i]\n")
FLIP = kernel_of(
    "kernel flip(n):\n    in A: f64[n, n]\n    out B: f64[n, n]\n    for i in range(n), j in range(n):\n"
    "        B[j, i] = A[i, j]\n"
)
UPDATE = kernel_of(
    "kernel update(n):\n    in x: f64[n]\n    inout y: f64[n]\n    out z: f64[n]\n    for i in range(n):\n"
    "        y[i] += x[i]\n        z[i] = y[i]\n"
)
KERNELS = {"copy": (COPY, 1000), "flip": (FLIP, 50), "update": (UPDATE, 999)}
CACHE, LINE = 4096, 64
BANDWIDTH = 10**10
NOTHING = InCore("nothing", (Step("", "", 0.0, 0.0),), 0.0)


def made(allocates: str, *more: str) -> Machine:
    return machine(
        "peak f64 fma 10 GFLOP/s", "transfers overlap",
        f"cache L1 {CACHE} B, 200 GB/s, line {LINE} B, {allocates}",
        *(more or ("memory DRAM 16 GiB, 10 GB/s",)),
    )  # fmt: skip


def of(kernel: Kernel, n: int, given: Machine, options: Options | None = None) -> Prediction:
    found = composed(predict(kernel, {"n": n}, given, options or Options()), NOTHING, given)
    assert found.expected is not None
    assert sum(c.share_s for c in found.expected.causes) == found.expected.expected_s - found.bound_s
    return found


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("share", ["0.25", "0.6"])
def test_the_share_of_the_lines_that_a_simulation_begins_with_a_store(name: str, share: str) -> None:
    kernel, n = KERNELS[name]
    found = of(kernel, n, made(f"write_allocate {share}"))
    simulated = simulate_lru(kernel, {"n": n}, CACHE, LINE)
    begun = sum(a.begun_with_write for a in simulated.arrays) * LINE
    assert begun > 0
    assert found.memory.allocated_bytes == round(Fraction(share) * begun)
    assert found.memory.bytes == simulated.bytes("load_store"), "the bound has none of them"
    assert found.expected is not None
    expected_bytes = simulated.bytes("load_store") + round(Fraction(share) * begun)
    assert found.expected.expected_s == Fraction(expected_bytes, BANDWIDTH)
    assert found.bound_s == Fraction(simulated.bytes("load_store"), BANDWIDTH)


def test_a_warm_launch_has_its_share_too() -> None:
    found = of(COPY, 1000, made("write_allocate 0.5"), Options(warm=True))
    assert found.memory.allocated_bytes == 4000, "the arrays do not fit: as cold"
    assert of(COPY, 100, made("write_allocate 0.5"), Options(warm=True)).memory.allocated_bytes == 0, "they fit"


def test_on_a_duplex_level_only_the_loads_count() -> None:
    found = of(COPY, 1000, made("write_allocate 0.25", "memory DRAM 16 GiB, 10 GB/s, duplex"))
    assert found.expected is not None
    assert found.bound_s == Fraction(8000, BANDWIDTH)
    assert found.expected.expected_s == Fraction(10_000, BANDWIDTH)


def test_slower_stores_come_on_top() -> None:
    found = of(COPY, 1000, made("write_allocate 0.25", "memory DRAM 16 GiB, 10 GB/s, stores 5 GB/s"))
    assert found.expected is not None
    assert found.expected.expected_s == Fraction(10_000, BANDWIDTH) + Fraction(8000, BANDWIDTH // 2)
    assert [c.cause for c in found.expected.causes] == [
        "stores to DRAM are slower than loads", "stores load part of their lines from DRAM first",
    ]  # fmt: skip


@pytest.mark.parametrize("traffic", ["load_store", "write_allocate", "once"])
def test_a_stated_convention_overrides_the_share(traffic: Traffic) -> None:
    found = of(COPY, 1000, made("write_allocate 0.25"), Options(traffic=traffic))
    assert found.memory.allocated_bytes == 0 and found.traffic == traffic
    assert found.memory.bytes == (24_000 if traffic == "write_allocate" else 16_000)


def test_all_and_none_are_the_two_words() -> None:
    assert made("write_allocate 1") == made("write_allocate")
    assert of(COPY, 1000, made("write_allocate")).memory.bytes == 24_000
    assert of(COPY, 1000, made("no_write_allocate")).memory.bytes == 16_000
    halves = [of(COPY, 1000, made(f"write_allocate {share}")).expected for share in ("0.001", "0.999")]
    ends = [of(COPY, 1000, made(words)).expected for words in ("no_write_allocate", "write_allocate")]
    for near, end in zip(halves, ends, strict=True):
        assert near is not None and end is not None
        assert float(near.expected_s) == pytest.approx(float(end.expected_s), rel=2e-3)


def test_the_assumption_is_told() -> None:
    text = (
        "L1: 25 % of the lines whose first access is a store are loaded first in the expected time, and none in the "
        "bound"
    )
    assert text in of(COPY, 1000, made("write_allocate 0.25")).assumptions
    assert replace(made("write_allocate 0.25").caches[0], write_allocate=True) == made("write_allocate").caches[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [("write_allocate 1.5", "takes a share"), ("write_allocate 0", "positive"), ("no_write_allocate 0.5", "no number")],
)
def test_what_is_no_share(words: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        made(words)


FILE = """\
kernel copy(n):
    in x: f64[n]
    out y: f64[n]
    for i in range(n):
        y[i] = x[i]

machine m:
    peak f64 1 GFLOP/s
    cache L1 4 KiB, 9 GB/s, line 64 B, write_allocate 0.25
    memory DRAM 1 GiB, 1 GB/s
"""


def test_it_is_shown_and_formatted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.roof"
    path.write_text(FILE.replace("e 0.25", "e   0.25"), encoding="utf-8")
    assert run(["machines", "show", str(path)]) == 0
    assert "line 64 B, write_allocate 0.25\n" in capsys.readouterr().out
    assert run(["machines", "show", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["caches"][0]["write_allocate"] == 0.25
    assert format_source(Source("x.roof", path.read_text(encoding="utf-8"))) == FILE


def test_a_simulation_has_to_know_which_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.roof"
    path.write_text(FILE, encoding="utf-8")
    asked = ["simulate", str(path), "--machine", str(path), "--set", "n=100"]
    assert run(asked) == 2
    assert "m's L1 loads 25 % of the lines whose first access is a store" in capsys.readouterr().err
    assert run([*asked, "--traffic", "write_allocate"]) == 0


def test_several_launches_that_load_their_lines_first_are_no_faster_for_that() -> None:
    """On a duplex level, the longer direction of each launch counts: 300 B loaded by one, and 300 B stored by the
    other.
    """
    one = LevelTime("M", 400, Fraction(1), loads_bytes=300, stores_bytes=100, duplex_bytes=300, allocated_bytes=20)
    two = LevelTime("M", 400, Fraction(1), loads_bytes=100, stores_bytes=300, duplex_bytes=300, allocated_bytes=20)
    both = one + two
    assert (both.time_s, both.through_bytes) == (600, 600)  # not 400, the bytes of one direction of both
    assert (both.with_allocated().time_s, both.with_allocated().bytes) == (600, 840)
    counted_once = LevelTime("M", 500, Fraction(1))  # of which the directions are not known
    assert (both + counted_once).time_s == (both + counted_once).with_allocated().time_s == 600 + 500
    past = replace(two, duplex_bytes=None, streamed_bytes=50, streamed_bytes_per_s=Fraction(2))
    plain = replace(one, duplex_bytes=None)
    assert (plain + past).with_allocated().time_s == plain.with_allocated().time_s + past.with_allocated().time_s

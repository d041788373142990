"""Cores: one core's part of a machine, speed up to saturation, and published numbers of cores."""

from __future__ import annotations

import json
import math
import re
import shlex
from fractions import Fraction
from pathlib import Path

import pytest

from roofdsl.cli.main import run
from roofdsl.incore.result import InCore, Step
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine, shipped_machines
from roofdsl.machine.model import Machine
from roofdsl.predict import in_core_time
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.kernel import predict
from roofdsl.predict.on_cores import by_one_core, on_cores, scaling
from roofdsl.predict.options import Options
from roofdsl.predict.some_cores import shared_levels, some_cores
from tests.predict.machines import kernel_of, machine
from tests.predict.test_ecm import CLOCK, FIVE_POINTS, SNB

CODE = Options(code=Code("stated"), accesses="compiled")


@pytest.mark.parametrize(("serial", "cycles", "cores"), [(SNB, 36.7, 3)])
def test_the_stencil_saturates_where_published(
    serial: str, cycles: float, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stengel et al., ICS 2015: {9.5 || 8 | 10 | 6 | 12.7} gives n_s = ceil(36.7 / 12.7) = 3 cores."""
    lines = 5998**2 / 8

    def published(*given: object) -> InCore:
        core, loads = (c * lines / CLOCK[serial] for c in (9.5, 8))
        return InCore("IACA, as published", (Step("", "", core, loads),), 0.0)

    monkeypatch.setattr(in_core_time, "_core", published)
    found = scaling(FIVE_POINTS, {"m": 6000, "n": 6000}, load_machine(serial), range(1, 9), CODE)
    assert found.saturation == cores and found.shared[0] == "DRAM"
    per_line = [float(t) * CLOCK[serial] / lines for t in found.times_s]
    assert per_line[0] == pytest.approx(cycles, rel=0.02)
    assert per_line[1] == pytest.approx(cycles / 2, rel=0.02)
    assert per_line[cores - 1 :] == pytest.approx([12.7] * (9 - cores), abs=0.05)


def eight(*more: str) -> Machine:
    return machine(
        "peak f64 fma 80 GFLOP/s",
        "cache L1 32 KiB, 800 GB/s, line 64 B, copies 8, write_allocate",
        "cache L2 1 MiB, 400 GB/s, line 64 B, copies 4, write_allocate",
        "cache L3 16 MiB, 300 GB/s, line 64 B, write_allocate",
        "memory DRAM 16 GiB, 100 GB/s",
        'ceiling "one core, DRAM" DRAM 20 GB/s',
        "units 8",
        *more,
    )


def test_one_core_of_eight() -> None:
    one = some_cores(eight(), 1)
    assert shared_levels(eight()) == ("L2", "L3", "DRAM")
    assert [p.rate_per_s for p in one.peaks] == [10 * 10**9]
    assert [c.bandwidth_bytes_per_s for c in one.caches] == [
        100 * 10**9, 50 * 10**9, Fraction(300, 8) * 10**9,
    ]  # fmt: skip
    assert (one.units, one.main_memory.bandwidth_bytes_per_s) == (1, 20 * 10**9)
    assert some_cores(load_machine(SNB), 1) == load_machine(SNB)


def test_one_core_gets_more_than_its_share_of_a_shared_cache() -> None:
    """If the machine states it: one of eight cores gets 60 of 300 GB/s from L3, and six of them all of it. The other
    rates of L3 follow, but those of lines one by one are shared evenly.
    """
    made = eight('ceiling "one core, L3" L3 60 GB/s')
    l3 = replace(made.caches[2], typical_bytes_per_s=Fraction(150 * 10**9), strided_bytes_per_s=Fraction(80 * 10**9))
    made = replace(made, caches=(*made.caches[:2], l3))
    for cores, rate in ((1, 60), (2, 120), (6, 300), (8, 300)):
        found = some_cores(made, cores).caches[2]
        assert found.bandwidth_bytes_per_s == rate * 10**9
        assert found.typical_bytes_per_s == rate * 10**9 / 2
        assert found.strided_bytes_per_s == cores * 10 * 10**9


def test_stores_past_the_caches_have_a_rate_of_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """One core stores 30 GB/s although it loads only 20; all eight together get the memory's 100."""
    fill = kernel_of("kernel fill(n):\n    out A: f64[n]\n    for i in range(n):\n        stream A[i] = 1.5\n")
    made = eight('ceiling "one core, stores past the caches" DRAM 30 GB/s')
    memory = replace(made.main_memory, streamed_bytes_per_s=Fraction(100 * 10**9))
    made, n = replace(made, memories=(memory,)), 10**7
    for cores, rate in ((1, 30), (2, 60), (3, 90), (4, 100), (8, 100)):
        assert on_cores(fill, {"n": n}, made, cores, Options()).bound_s == Fraction(8 * n, rate * 10**9)
    monkeypatch.setattr(in_core_time, "_core", lambda *given: InCore("none", (Step("", "", 0.0, 0.0),), 0.0))
    times = scaling(fill, {"n": n}, made, range(1, 9), CODE).times_s
    assert [times[cores - 1] for cores in (1, 2, 3, 4, 8)] == [
        Fraction(8 * n, rate * 10**9) for rate in (30, 60, 90, 100, 100)
    ]
    unstated = replace(made, ceilings=eight().ceilings)
    assert on_cores(fill, {"n": n}, unstated, 1, Options()).bound_s == Fraction(8 * n, 20 * 10**9)


def test_launches_do_not_scale(kernel: Kernel = FIVE_POINTS) -> None:
    given = load_machine("haswell_e5_2695v3")
    alone = scaling(kernel, {"m": 40, "n": 40}, given, [1, 2, 4], CODE)
    expected = alone.single.expected
    assert expected is not None
    work = expected.expected_s - expected.launch_s
    assert alone.times_s[0] == work + expected.launch_s
    assert alone.times_s[1] == max(Fraction(work, 2), alone.shared[1]) + expected.launch_s


def test_a_shared_memory_is_five_times_as_fast_as_one_core_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """All data from memory, at 20 GB/s for one core and 100 GB/s for all: five cores, and then no more."""
    monkeypatch.setattr(in_core_time, "_core", lambda *_: InCore("nothing", (Step("", "", 0.0, 0.0),), 0.0))
    found = scaling(FIVE_POINTS, {"m": 1982, "n": 2000}, eight("transfers overlap"), range(1, 9), CODE)  # 1980 rows
    assert found.saturation == 5
    assert [found.times_s[0] / t for t in found.times_s] == [1, 2, 3, 4, 5, 5, 5, 5]


def test_a_machine_of_many_cores_states_what_one_of_them_gets() -> None:
    with pytest.raises(CommandError, match="does not state what a single core gets from DRAM"):
        scaling(FIVE_POINTS, {"m": 40, "n": 40}, load_machine("zen1_epyc_7451"), [1, 2], CODE)


def test_a_gpu_has_no_cores_to_scale_over() -> None:
    with pytest.raises(CommandError, match="v100 is a GPU"):
        scaling(FIVE_POINTS, {"m": 40, "n": 40}, load_machine("v100"), [1, 2], CODE)


def test_without_an_expected_time_there_is_a_reason() -> None:
    with pytest.raises(CommandError, match="of a GPU; m has neither"):
        scaling(FIVE_POINTS, {"m": 40, "n": 40}, eight(), [1, 2], CODE)


def of_one_line(value: str) -> Kernel:
    return kernel_of(
        f"kernel k(n):\n    in x: f64[n]\n    out y: f64[n]\n    for i in range(n):\n        y[i] = {value}\n"
    )


@pytest.mark.parametrize(
    ("name", "value", "told", "help"),
    [
        (
            "haswell_e5_2695v3",
            "1.0 / x[i]",
            "states nothing like `instruction div f64`",
            "skylake_gold_6148 states all",
        ),
        ("h200", "1.0 / x[i]", "h200 is a GPU", "skylake_gold_6148 states all"),
        ("opteron_2356", "1.0 / x[i]", "opteron_2356 has neither", "skylake_gold_6148 states all"),
        (
            "skylake_gold_6148",
            "sqrt(x[i])",
            "states nothing like `instruction sqrt f64`",
            "no shipped machine states all",
        ),
    ],
)
def test_without_instructions_the_help_says_which_machine_has_them(name: str, value: str, told: str, help: str) -> None:
    k, at = of_one_line(value), {"n": 1000}
    with pytest.raises(CommandError, match=re.escape(told)) as refused:
        scaling(k, at, load_machine(name), [1, 2], CODE)
    assert help in refused.value.help
    for named in shipped_machines():
        has_times = True
        try:
            scaling(k, at, shipped_machines()[named], [1], CODE)
        except CommandError:
            has_times = False
        assert (named in refused.value.help) == has_times


def test_the_line_of_the_help_is_what_was_missing() -> None:
    given, k = load_machine("haswell_e5_2695v3"), of_one_line("1.0 / x[i]")
    with pytest.raises(CommandError) as refused:
        scaling(k, {"n": 1000}, given, [1], CODE)
    line = refused.value.help.split("`")[1]
    added = machine("peak f64 fma 1 GFLOP/s", line).instructions
    assert scaling(k, {"n": 1000}, replace(given, instructions=(*given.instructions, *added)), [1], CODE).times_s


def test_what_is_modeled_nowhere_names_no_machine() -> None:
    text = "kernel c(n):\n    in x: c64[n]\n    out y: c64[n]\n    for i in range(n):\n        y[i] = x[i] * x[i]\n"
    for name, help in (("haswell_e5_2695v3", ""), ("h200", "no other CPU helps: how a compiler arranges complex")):
        with pytest.raises(CommandError) as refused:
            scaling(kernel_of(text), {"n": 1000}, load_machine(name), [1], CODE)
        assert refused.value.help.startswith(help) and bool(refused.value.help) == bool(help)


FREE = InCore("nothing", (Step("", "", 0.0, 0.0),), 0.0)
"""A core that takes no time: only transfers count."""

COPY = """
kernel copy(n):
    traffic write_allocate
    in a: f64[n]
    out b: f64[n]
    for i in range(n):
        b[i] = a[i] + 1.0
"""


def copy() -> Kernel:
    return kernel_of(COPY)


def slow_stores(units: int = 8) -> Machine:
    """Memory that loads 100 GB/s and stores 50, of which one core gets a fifth; its L1 gives each core 100 GB/s."""
    return machine(
        "peak f64 80 GFLOP/s",
        "transfers overlap",
        "cache L1 32 KiB, 800 GB/s, line 64 B, copies 8, write_allocate",
        "memory DRAM 16 GiB, 100 GB/s, stores 50 GB/s",
        'ceiling "one core, DRAM" DRAM 20 GB/s',
        f"units {units}",
    )


@pytest.mark.parametrize(("cores", "bound_ms", "expected_ms"), [
    (1, 24 / 20, 16 / 20 + 8 / 10), (2, 24 / 40, 0.8), (4, 24 / 80, 0.4), (5, 24 / 100, 0.32), (8, 24 / 100, 0.32),
])  # fmt: skip
def test_copy_by_hand(cores: int, bound_ms: float, expected_ms: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million elements: 16 MB come and 8 MB go. Memory takes 16/100 + 8/50 ms for all cores, five times that for one.

    So n_s = 5. The bound has all 24 MB at the rate of loads, and 16 MB of accesses to L1 and the adds are shorter.
    """
    monkeypatch.setattr(in_core_time, "_core", lambda *_: FREE)
    found = on_cores(copy(), {"n": 10**6}, slow_stores(), cores, CODE)
    assert found.expected is not None and found.cores is not None
    assert float(found.bound_s) == pytest.approx(bound_ms * 1e-3, rel=1e-12)
    assert float(found.expected.expected_s) == pytest.approx(expected_ms * 1e-3, rel=1e-12)
    assert sum(c.share_s for c in found.expected.causes) == found.expected.expected_s - found.bound_s
    assert (found.cores.saturation, found.cores.shared) == (5, ("DRAM", Fraction(32, 10**5)))


def test_all_cores_have_the_bound_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_core_time, "_core", lambda *_: FREE)
    beside = replace(eight(), caches=tuple(replace(c, beside_bytes_per_s=Fraction(10**11)) for c in eight().caches))
    for each in (eight("transfers serial"), slow_stores(), beside):
        all_of_them = predict(copy(), {"n": 5000}, each, CODE)
        assert on_cores(copy(), {"n": 5000}, each, 8, CODE).bound_s == all_of_them.bound_s


def test_all_cores_have_the_rates_of_the_machine_whatever_one_core_gets() -> None:
    """One core was measured to get less than an eighth of DRAM, of L3, and of stores past the caches."""
    stated = eight('ceiling "one core, L3" L3 30 GB/s', 'ceiling "one core, stores past the caches" DRAM 6 GB/s')
    memory = replace(
        stated.main_memory, bandwidth_bytes_per_s=Fraction(200 * 10**9), streamed_bytes_per_s=Fraction(10**11)
    )
    them = replace(stated, memories=(memory,))
    every, seven = some_cores(them, 8), some_cores(them, 7)
    assert every.main_memory == memory and every.caches[2].bandwidth_bytes_per_s == 300 * 10**9
    assert seven.main_memory.bandwidth_bytes_per_s == 140 * 10**9
    assert seven.main_memory.streamed_bytes_per_s == 42 * 10**9
    assert seven.caches[2].bandwidth_bytes_per_s == 210 * 10**9


def test_figure_and_prediction_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    core = InCore("stated", (Step("chain", "", 3e-4, 1e-4), Step("more", "", 9e-4, 2e-4)), 1e-5)
    monkeypatch.setattr(in_core_time, "_core", lambda *_: core)
    beside = replace(eight(), caches=tuple(replace(c, beside_bytes_per_s=Fraction(10**11)) for c in eight().caches))
    for given in (eight("transfers overlap"), eight("transfers serial"), beside):
        drawn = scaling(FIVE_POINTS, {"m": 600, "n": 600}, given, range(1, 9), CODE)
        for n, time in zip(drawn.cores, drawn.times_s, strict=True):
            found = on_cores(FIVE_POINTS, {"m": 600, "n": 600}, given, n, CODE)
            assert found.expected is not None and found.cores is not None
            assert found.expected.expected_s == time >= found.bound_s
            assert found.cores.saturation == drawn.saturation
            assert sum(c.share_s for c in found.expected.causes) == time - found.bound_s


@pytest.mark.parametrize(("name", "cores", "says"), [
    ("v100", 2, "v100 is a GPU"),
    ("h100_sxm", 2, "h100_sxm is a GPU"),
    ("skylake_gold_6148", 21, "skylake_gold_6148 has 20 cores, not 21"),
    ("zen1_epyc_7451", 4, "does not state what a single core gets from DRAM"),
    ("haswell_e5_2695v3", 2, "haswell_e5_2695v3 has a single core, not 2"),
])  # fmt: skip
def test_what_cannot_be_asked(name: str, cores: int, says: str) -> None:
    with pytest.raises(CommandError, match=says):
        on_cores(copy(), {"n": 1000}, load_machine(name), cores, CODE)


def test_without_instructions_the_bound_comes() -> None:
    found = on_cores(copy(), {"n": 10**6}, slow_stores(), 4, CODE)
    assert found.expected is None and "m has neither" in found.no_expected
    assert float(found.bound_s) == pytest.approx(24e6 / 80e9, rel=1e-12)
    assert found.to_json()["cores"] == {
        "count": 4, "n_s": None, "most_cores": None, "shared": None, "shared_s": None,
    }  # fmt: skip


PAGE = (Path(__file__).parents[2] / "docs/several_cores.md").read_text(encoding="utf-8").partition("`eight.roof`")[2]


def test_the_example_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Eight cores of 2.3 GHz: of 320 MB per level, one core gets 15 GB/s from memory, 73.6 from L3 and 147.2 from L2.

    A vector of four elements takes a cycle for its two loads, beside its store. The parts take turns.
    """
    found = re.search(r"```roof\n(.*?)```\n\n```sh\nroofdsl (.*?)\n```\n\n```text\n(.*?)\n```", PAGE, re.S)
    assert found is not None
    (tmp_path / "eight.roof").write_text(found[1], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    line = shlex.split(found[2])
    assert run(line) == 0
    out = capsys.readouterr().out
    assert out.rstrip() == found[3]
    one_core_s = 320e6 / 15e9 + 320e6 / 73.6e9 + 320e6 / 147.2e9 + 10**7 / 4 / 2.3e9
    memory_s = 320e6 / 32.35e9
    assert f"One core takes {one_core_s * 1e3:.1f} ms" in PAGE
    assert f"would need {memory_s * 1e3:.1f} ms" in PAGE
    assert run([*line, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["expected_s"] == pytest.approx(one_core_s / 2)
    assert document["time_s"] == pytest.approx(320e6 / 30e9)
    assert document["cores"] == {
        "count": 2, "n_s": math.ceil(one_core_s / memory_s), "most_cores": 10**7,
        "shared": "DRAM", "shared_s": pytest.approx(memory_s),
    }  # fmt: skip
    assert sum(c["share_s"] for c in document["causes"]) == pytest.approx(one_core_s / 2 - 320e6 / 30e9)


def test_what_the_command_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "eight.roof").write_text(PAGE.split("```roof\n")[1].split("```")[0], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for line, says in [
        (["triad", "--cores", "9"], "eight has 8 cores, not 9"),
        (["triad", "--cores", "2", "--ceiling", "one core, DRAM"], "leave out `--ceiling`"),
        (["lstm_forward", "--cores", "2"], "--cores predicts kernels"),
        (["triad", "--cores", "0"], "--cores"),
    ]:
        assert run(["predict", *line, "--machine", "eight.roof", "--set", "n=1000"]) == 2, line
        assert says in capsys.readouterr().err


def test_the_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "s.svg"
    line = ["plot", "scaling", "jacobi2d", "triad", "--set", "n=2000", "--machine", "haswell_e5_2695v3", "-o", str(out)]
    assert run([*line, "--cores", "6"]) == 0, capsys.readouterr().err
    assert out.stat().st_size > 5000
    assert run([*line, "--cores", "5000"]) == 2
    assert "too many" in capsys.readouterr().err


def test_compiled_code_is_shared_by_all_cores_as_stated_code_is() -> None:
    """The code of one core, whose work eight share evenly; work that no loop divides is not shared."""
    skylake = replace(load_machine("skylake_gold_6148"), launch_s=None)
    triad = kernel_of(
        "kernel triad(n):\n    in x: f64[n]\n    out y: f64[n]\n    for i in range(n):\n        y[i] = 2 * x[i]\n"
    )
    cores = skylake.units or 0
    for model in ("compiled", "stated"):
        asked = replace(CODE, code=Code(model), warm=True)
        every = predict(triad, {"n": 2000 * cores}, skylake, asked).expected
        one = predict(triad, {"n": 2000 * cores}, some_cores(skylake, 1), asked).expected
        assert every is not None and one is not None
        assert float(cores * every.core_s / one.core_s) == pytest.approx(1, rel=0.02), model
        found = predict(chain_of(), {"n": 10**4}, skylake, asked)
        assert found.expected is None and "`--cores 1` predicts that" in found.no_expected


def test_code_on_one_core_beside_the_bound_of_all() -> None:
    skylake = load_machine("skylake_gold_6148")
    whole, one = predict(chain_of(), {"n": 10**5}, skylake, CODE), on_cores(chain_of(), {"n": 10**5}, skylake, 1, CODE)
    found = by_one_core(chain_of(), {"n": 10**5}, skylake, CODE)
    assert found.bound_s == whole.bound_s < one.bound_s
    assert found.expected is not None and one.expected is not None
    assert found.expected.expected_s == one.expected.expected_s
    causes = found.expected.causes
    assert sum(c.share_s for c in causes) == found.expected.expected_s - found.bound_s
    alone = next(c for c in causes if c.cause == f"one core of {skylake.units} runs the code")
    assert alone.share_s == one.bound_s - whole.bound_s and alone.remedy == f"`--cores {skylake.units}`"
    silent = by_one_core(chain_of(), {"n": 10**5}, replace(skylake, ceilings=()), CODE)
    assert silent.expected is None and "does not state what a single core gets" in silent.no_expected


def chain_of() -> Kernel:
    return kernel_of(
        "kernel chain(n):\n    inout x: f64[n]\n    for i in range(1, n):\n        x[i] = 0.5 * x[i - 1]\n"
    )


def test_work_that_no_loop_divides_has_no_expected_time_on_several_cores() -> None:
    """The generated code runs on one core, as `measure --cores 2` says, too; the bound stays that of all cores."""
    chain = chain_of()
    skylake = load_machine("skylake_gold_6148")
    assert on_cores(chain, {"n": 10**5}, skylake, 1, CODE).expected is not None
    several = on_cores(chain, {"n": 10**5}, skylake, 8, CODE)
    assert several.expected is None and "no loop of chain is known to have independent" in several.no_expected
    with pytest.raises(CommandError, match="runs on one core"):
        scaling(chain, {"n": 10**5}, skylake, range(1, 9), CODE)

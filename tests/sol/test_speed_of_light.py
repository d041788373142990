"""The floor holds for every order: against predictions, simulated orders, and published times, true and doctored."""

from __future__ import annotations

import json
import random
import re
from fractions import Fraction
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from roofdsl import budget
from roofdsl.cli.main import cli
from roofdsl.counts.traffic_at import OutOfReach
from roofdsl.lang.check import check
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.record import replace
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel as pick
from roofdsl.loops.load import load_file
from roofdsl.machine.find import load_machine, machine_of, shipped_models
from roofdsl.machine.model import Machine
from roofdsl.predict.crossings import Case, crossing
from roofdsl.predict.fast_memories import Front, fronts
from roofdsl.predict.kernel import predict
from roofdsl.sets.library import TooHard
from roofdsl.sol.answer import speed_of_light
from roofdsl.sol.claim import judge
from roofdsl.sol.floor import floor
from roofdsl.sol.printed import printed
from roofdsl.store import cut_short
from roofdsl.tell.as_text import to_text
from roofdsl.tell.schemas.commands import schema_of
from roofdsl.tell.sol import blocks, document
from tests.bounds.belady import loads, random_order, tasks, tiled_order
from tests.bounds.test_held_reads import HELD
from tests.oracle.enumerate import admissible
from tests.oracle.loading import kernel_of

ADD = """\
kernel add(n):
    in a: f32[n]
    in b: f32[n]
    out c: f32[n]
    for i in range(n):
        c[i] = a[i] + b[i]
"""
SCALE = """\
kernel scale(n):
    in a: f32[n]
    out c: f32[n]
    for i in range(n):
        c[i] = 2 * a[i]
"""
PRODUCT = """\
kernel product(m, n, k):
    in A: f32[m, k]
    in B: f32[k, n]
    inout C: f32[m, n]
    for i in range(m):
        for j in range(n):
            for p in range(k):
                C[i, j] += A[i, p] * B[p, j]
"""
MACHINES = ("v100", "zen2_epyc_7452", "h100_sxm", "tpu_v5e")


def tiny(cache_bytes: int) -> Machine:
    """A cache of that size in front of a slow memory."""
    text = f"""\
machine tiny:
    peak f64 fma 1 TFLOP/s
    cache L1 {cache_bytes} B, 1000 GB/s, line 8 B
    memory DRAM 1 GiB, 1 GB/s
"""
    return machine_of(check(Source("<test>", text)), None)


OFTEN = ("gesummv", "trisolv")  # they take a second, most others several
SOME = [OFTEN[0], *(n for n in sorted(shipped_models())[::4] if n not in OFTEN), OFTEN[1]]


@pytest.mark.spread(2, 16)
@pytest.mark.parametrize("name", SOME)
def test_the_floor_is_below_the_kernel_as_written(name: str) -> None:
    """On several machines, at sizes of no special form."""
    target = shipped_models()[name]
    checked = load_file(target.path)
    if target.name not in checked.kernels:
        pytest.skip("a program")
    kernel = pick(checked, target.name)
    draw = random.Random(name)
    tried = 0
    for machine in map(load_machine, MACHINES):
        for _ in range(20):
            sizes = {p.name: draw.randint(2, 60) for p in kernel.parameters}
            if admissible(kernel, sizes):
                break
        else:
            continue
        try:
            found = speed_of_light(kernel, sizes, machine)
        except (CommandError, InputError):
            continue  # the machine lacks the type, or the sizes fit no tile
        assert found.best is None or found.best.time_s >= found.floor.time_s, (machine.name, sizes)
        if found.written is None:
            continue
        assert found.floor.time_s <= found.written.bound_s, (machine.name, sizes)
        tried += 1
    if not tried:
        pytest.skip("no size or machine fits")


def test_what_is_written_counts_as_in_the_floor_where_the_kernel_counts_each_datum_once() -> None:
    """relu_backward states `traffic once`, and changes an array in place: it is loaded and stored."""
    target = shipped_models()["relu_backward"]
    found = speed_of_light(pick(load_file(target.path), target.name), {"n": 256}, load_machine("zen2_epyc_7452"))
    assert found.written is not None and found.best is not None
    assert found.floor.time_s <= found.written.bound_s and found.floor.time_s <= found.best.time_s


def test_separate_pipes_are_shown_at_the_rates_that_give_the_time() -> None:
    """Half of 21.6 GFLOP/s for each pipe: four additions of a point take longer than its multiplication."""
    target = shipped_models()["jacobi2d"]
    found = floor(pick(load_file(target.path), target.name), {"n": 6000}, load_machine("sandy_bridge_e5_2680"))
    (term,) = [t for t in found.terms if t.name == "compute"]
    assert term.time_s == Fraction(4 * 5998**2) / Fraction("10.8e9")
    adds, products = term.formula.split(" beside ")
    assert adds.endswith("(add) at 10.8 GFLOP/s") and products.endswith("(mul) at 10.8 GFLOP/s")


MIX = """
kernel mix(n):
    in x, z: f64[n], h: f32[n]
    out y: f64[n], g: f32[n]
    for i in range(n):
        y[i] = exp(x[i]) / (sqrt(z[i]) + 1.0) + x[i] * z[i]
        g[i] = tanh(h[i]) / (h[i] + 3.0) + h[i] * h[i]
"""


@pytest.mark.parametrize("machine", ["skylake_gold_6148", "h100_80", "mi300x", "zen2_epyc_7452"])
def test_a_mix_of_operations_is_listed_below_the_table(machine: str) -> None:
    """It made all rows of the table 500 columns wide."""
    found = speed_of_light(kernel_of(MIX), {"n": 10**6}, load_machine(machine), None)
    told = list(to_text(blocks(found)))
    assert max(len(row) for row in told if row.startswith(" ")) <= 120
    (term,) = (t for t in found.floor.terms if t.name == "compute")
    counts = [int(word.replace(",", "")) for row in told for word in re.findall(r"([\d,]+) operations in f", row)]
    assert len(counts) == len(term.parts) > 3 and sum(counts) == term.amount
    assert any("operations, listed below" in row for row in told)
    (entry,) = (t for t in document(found)["terms"] if t["name"] == "compute")
    assert entry["formula"].count(" operations in f") == len(counts)
    assert " ".join(term.parts) == entry["formula"]  # no matrix units here


def test_what_is_in_front_of_each_boundary() -> None:
    """Counted by hand. The result of a product can stay in registers, and 80 multiprocessors share what L2 gives them;
    each core has its L2 for itself, and all caches together are in front of the memory.
    """
    kib = 1024
    registers, together = 256 * kib, 80 * (256 + 128) * kib
    assert fronts(load_machine("v100")) == (Front(registers, 80), Front(together), Front(together + 6 * kib**2))
    assert fronts(tiny(64)) == (Front(2048, 1), Front(2048 + 64))
    core = 2 + 32 + 1024
    assert fronts(load_machine("skylake_gold_6148")) == (
        Front(2 * kib, 20), Front((2 + 32) * kib, 20), Front(core * kib, 20), Front((20 * core + 28160) * kib),
    )  # fmt: skip
    shared = 104 * (512 + 64 + 16) * kib  # registers, memory to share and L1 are three on AMD's compute units
    assert fronts(load_machine("mi210")) == (Front((512 + 64) * kib, 104), Front(shared), Front(shared + 8 * kib**2))
    assert fronts(load_machine("p4")) == (None, None)  # what is between its registers and its L2 is not known
    own = load_machine("v100")
    assert own.multiprocessor is not None
    unknown = replace(own, multiprocessor=replace(own.multiprocessor, registers=None))
    assert fronts(unknown) == (None, None, None)  # 20 MiB on the chip, more than its L2
    assert fronts(load_machine("v100_textbook")) == (None,)


JACOBI = """\
kernel jacobi(n, steps):
    inout a: f64[n]
    temp b: f64[n]
    for t in range(steps):
        for i in range(1, n - 1):
            b[i] = a[i - 1] + a[i] + a[i + 1]
        for i in range(1, n - 1):
            a[i] = b[i]
"""


@pytest.mark.parametrize(
    ("options", "memory_ms"),
    [("line 64 B", Fraction(16, 20)), ("streamed 5 GB/s", Fraction(16, 20)),
     ("streamed 100 GB/s", Fraction(8, 20) + Fraction(8, 100)), ("streamed 100 GB/s, duplex", Fraction(8, 20))],
)  # fmt: skip
def test_stores_past_the_caches_are_not_below_the_floor(options: str, memory_ms: Fraction) -> None:
    """Code may store faster than it loads, and then no store crosses the caches: no bound of `predict` is lower."""
    text = f"""\
machine storing:
    peak f64 fma 1 TFLOP/s
    cache L1 32 KiB, 12 GB/s, line 64 B, write_allocate
    memory DRAM 8 GiB, 20 GB/s, {options}
"""
    own = machine_of(check(Source("storing.roof", text)), "storing")
    fill = "kernel copy(n):\n    in a: f64[n]\n    out b: f64[n]\n    for i in range(n):\n        stream b[i] = a[i]\n"
    sizes = {"n": 1_000_000}
    written = predict(kernel_of(fill), sizes, own)
    found = floor(kernel_of(fill), sizes, own)
    times = {t.name: t.time_s for t in found.terms}
    assert times["L1"] == Fraction(8, 12_000), "loads alone"
    assert times["DRAM"] == memory_ms / 1000
    assert found.time_s <= written.bound_s


@pytest.mark.spread(4)
@pytest.mark.parametrize("text", [PRODUCT.replace("f32", "f64"), JACOBI])
@pytest.mark.parametrize("elements", [4, 9, 20, 50])
def test_no_simulated_order_loads_less_than_the_floor(text: str, elements: int) -> None:
    """Written, random and tiled orders under optimal replacement; all bytes go through a cache of `elements`."""
    kernel = kernel_of(text)
    sizes = {p.name: 7 + 3 * k for k, p in enumerate(kernel.parameters)}
    (term,) = [t for t in floor(kernel, sizes, tiny(8 * elements)).terms if t.name == "DRAM"]
    written = tasks(kernel, sizes)
    draw = random.Random(elements)
    orders = [written, *(random_order(written, draw, k) for k in (1, 4, 32)), tiled_order(written, draw)]
    least = min(loads(order, elements) for order in orders)
    assert term.time_s <= Fraction(8 * (least + _stores(kernel.name, sizes)), 10**9)


def _stores(name: str, sizes: dict[str, int]) -> int:
    """Elements that the kernels above leave behind."""
    return sizes["m"] * sizes["n"] if name == "product" else sizes["n"] - 2


def test_the_terms_of_a_product_are_those_of_the_paper() -> None:
    """2 m n k / sqrt(S) loads to leading order (Smith et al. 2019), and each array once."""
    kernel, n, machine = kernel_of(PRODUCT), 16384, load_machine("v100_pcie")
    found = floor(kernel, {"m": n, "n": n, "k": n}, machine)
    terms = {t.name: t for t in found.terms}
    assert terms["compute"].time_s == Fraction(2 * n**3) / Fraction("14.03e12")
    elements = (80 * (256 + 128) + 6 * 1024) * 1024 // 4  # registers, L1 and L2
    leading = 4 * 2 * n**3 / elements**0.5
    loaded = terms["HBM"].amount - 4 * n * n
    assert terms["HBM"].argument == "partition" and 0.7 * leading < loaded < 1.01 * leading + 4 * 3 * n * n
    assert terms["L1"].argument == "partition"  # the registers of each multiprocessor are 64 Ki elements
    loaded = terms["L1"].amount - 4 * n * n
    assert 0.9 * 4 * 2 * n**3 / 65536**0.5 < loaded < 1.01 * 4 * 2 * n**3 / 65536**0.5 + 4 * 3 * n * n


CLAIMS = [
    # Published times of PyTorch's operators (Lee, Phanishayee, Mahajan: NeuSight, ASPLOS 2025).
    (ADD, {"n": 8192 * 32768}, "v100_pcie", "3.88527", True),
    (ADD, {"n": 3221225472 // 3 // 4}, "t4", "13.2", True),
    (ADD, {"n": 805306368 // 12}, "a100_40_pcie", "0.60623", True),
    (SCALE, {"n": 2147483648 // 8}, "v100_pcie", "2.63259", True),
    (SCALE, {"n": 4294967296 // 8}, "p100_pcie", "7.95508", True),
    (SCALE, {"n": 12884901888 // 8}, "a100_40_pcie", "9.30226", True),
    (PRODUCT, {"m": 4096, "n": 4096, "k": 4096}, "v100_pcie", "10.1594", True),
    (PRODUCT, {"m": 32768, "n": 4096, "k": 16384}, "v100_pcie", "313.9275", True),
    (PRODUCT, {"m": 8192, "n": 2048, "k": 8192}, "a100_40_pcie", "15.878", True),
    (PRODUCT, {"m": 16384, "n": 2048, "k": 2048}, "p100_pcie", "18.5", True),
    # Doctored: faster than the memory, the units, or both allow.
    (ADD, {"n": 8192 * 32768}, "v100_pcie", "3.3", False),
    (ADD, {"n": 3221225472 // 3 // 4}, "t4", "9.9", False),
    (ADD, {"n": 805306368 // 12}, "a100_40_pcie", "0.5", False),
    (SCALE, {"n": 2147483648 // 8}, "v100_pcie", "2.3", False),
    (SCALE, {"n": 4294967296 // 8}, "p100_pcie", "5.8", False),
    (SCALE, {"n": 12884901888 // 8}, "a100_40_pcie", "8.2", False),
    (PRODUCT, {"m": 4096, "n": 4096, "k": 4096}, "v100_pcie", "9.7", False),
    (PRODUCT, {"m": 32768, "n": 4096, "k": 16384}, "v100_pcie", "300", False),
    (PRODUCT, {"m": 8192, "n": 2048, "k": 8192}, "a100_40_pcie", "14", False),
    (PRODUCT, {"m": 16384, "n": 2048, "k": 2048}, "p100_pcie", "14", False),
]


@pytest.mark.parametrize(("text", "sizes", "machine", "milliseconds", "possible"), CLAIMS)
def test_claims_are_judged(text: str, sizes: dict[str, int], machine: str, milliseconds: str, possible: bool) -> None:
    found = floor(kernel_of(text), sizes, load_machine(machine))
    verdict = judge(Fraction(milliseconds) / 1000, found)
    assert (verdict.verdict != "impossible") == possible
    assert bool(verdict.violated) != possible


@pytest.mark.thorough
def test_half_precision_products_are_found_near_the_floor() -> None:
    """cuBLAS takes 3.96 ms; as written it is two orders of magnitude slower."""
    run = CliRunner().invoke(
        cli,
        ["sol", "gemm_f16", "--machine", "v100", "--set", "m=8192,n=8192,k=8192", "--measured", "12ms", "--json"],
    )
    assert run.exit_code == 0, run.output
    found = json.loads(run.output)
    assert found["schema"] == "roofdsl.sol/1" and found["unit"] == "tensor"
    assert found["floor_by"] == "compute" and found["floor_s"] == pytest.approx(2 * 8192**3 / 125e12)
    assert found["best_found_s"] < 1.3 * found["floor_s"] < found["as_written_s"]
    assert "unit tensor" in (found["best_found_text"] or "\n".join(found["best_found"]))
    assert found["claim"]["verdict"] == "possible"
    assert {t["name"] for t in found["terms"]} == {"compute", "L1", "L2", "HBM", "launch"}


@pytest.mark.parametrize(("name", "machine"), [("gemm_tf32", "h100_sxm"), ("matmul_bf16", "h100_guide")])
def test_types_that_run_on_matrix_units_only_are_tried_there_as_written(name: str, machine: str) -> None:
    """There is no time as written, on the ordinary pipes. On the units it is compute, as without caches every datum
    moves once.
    """
    kernel = pick(load_file(shipped_models()[name].path), name)
    sizes = dict.fromkeys((p.name for p in kernel.parameters), 16384)
    found = speed_of_light(kernel, sizes, load_machine(machine))
    assert found.written is None and "matrix units, but none for others" in found.why_not
    assert found.best is not None and found.best.time_s == found.floor.time_s
    assert found.best.what == "as written, on tensor units" and found.best.lines == ("unit tensor",)


def test_bytes_are_counted_once_for_both_kinds_of_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """A type without a rate on the ordinary pipes is refused before its bytes are counted, and bytes that are out of
    reach are not counted again for the matrix units.
    """
    kernel = pick(load_file(shipped_models()["matmul_bf16"].path), "matmul_bf16")
    counted: list[str | None] = []

    def counting(case: Case, *rest: Any) -> Any:
        counted.append(case.options.unit)
        return crossing(case, *rest)

    monkeypatch.setattr("roofdsl.predict.kernel.crossing", counting)
    found = speed_of_light(kernel, {"n": 26}, load_machine("a100_40_pcie"))
    assert "matrix units, but none for others" in found.why_not and counted == ["tensor"]

    for error in (OutOfReach(kernel.name, "it takes too long", 10, 10), TooHard("its accesses", 10)):

        def failing(case: Case, *rest: Any, error: CommandError = error) -> Any:
            counted.append(case.options.unit)
            raise error

        counted.clear()
        cut_short._cut.clear()
        monkeypatch.setattr("roofdsl.predict.kernel.crossing", failing)
        half = pick(load_file(shipped_models()["gemm_f16"].path), "gemm_f16")
        found = speed_of_light(half, {"m": 64, "n": 64, "k": 64}, load_machine("v100"))
        assert found.floor.unit == "tensor" and found.why_not == error.message and counted == [None]


@pytest.mark.parametrize(("n", "is_exact"), [(2000, True), (500_000_000, False)])
def test_what_takes_too_long_to_count_has_an_upper_bound(
    n: int, is_exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the launch takes longest anyway, the time is exact without the bytes."""
    kernel, machine = kernel_of(ADD), load_machine("v100")
    exact = predict(kernel, {"n": n}, machine).bound_s

    def failing(*of: Any) -> Any:
        raise OutOfReach("add", "it takes too long", 10, 10)

    monkeypatch.setattr("roofdsl.predict.kernel.crossing", failing)
    found = speed_of_light(kernel, {"n": n}, machine)
    assert found.written is None and found.as_written is not None and found.is_at_most is not is_exact
    most = found.as_written.bound_s
    assert most == exact if is_exact else exact <= most < 1.01 * exact
    assert found.best is not None and found.best.time_s == most
    told, fields = "\n".join(to_text(blocks(found))), document(found)
    assert ("at most" in told, fields["as_written_s"] is None) == (not is_exact, not is_exact)
    assert fields["as_written_at_most_s"] == (None if is_exact else float(most))
    assert "it takes too long" in told and fields["why_not"]
    Draft202012Validator(schema_of("sol")).validate(fields)


def test_the_lines_of_the_best_order_make_a_legal_kernel() -> None:
    kernel = kernel_of(PRODUCT)
    found = speed_of_light(kernel, {"m": 512, "n": 512, "k": 512}, load_machine("v100_pcie"))
    assert found.best is not None and found.best.lines
    body = PRODUCT.splitlines()
    head = 1 + sum(line.strip().startswith(("in ", "inout ", "out ")) for line in body)
    changed = [*body[:head], *(f"    {line}" for line in found.best.lines), *body[head:]]
    text = "\n".join(changed) + "\n"
    assert kernel_of(text).name == "product"


def test_an_impossible_time_is_exit_status_one_and_says_which_argument() -> None:
    run = CliRunner().invoke(cli, ["sol", "gemv", "--machine", "v100", "--set", "n=4000", "--measured", "100us"])
    assert run.exit_code == 1
    assert "100 us is impossible on v100: HBM alone takes 142.3 us" in run.output


@pytest.mark.parametrize(("time", "says"), [
    ("4.2us", "4.2 us is possible: the floor is 4.2 us."),
    ("4.201us", "4.201 us is possible, and within 1 % of the floor."),
    ("4.4us", "4.4 us is possible, and within 5 % of the floor."),
    ("5.25us", "5.25 us is possible, and within 25 % of the floor."),
    ("5.3us", "5.3 us is possible: 26 % above the floor."),
    ("4.1999996us", "4.1999996 us is impossible on v100: launch alone takes 4.2 us"),
])  # fmt: skip
def test_what_is_said_about_times_near_the_floor_is_true(time: str, says: str) -> None:
    run = CliRunner().invoke(cli, ["sol", "gemv", "--machine", "v100", "--set", "n=40", "--measured", time])
    assert says in run.output


@pytest.mark.parametrize("time", ["fast", "3", "-1ms", "0s", "3 GB"])
def test_a_time_that_is_none_is_refused(time: str) -> None:
    run = CliRunner().invoke(cli, ["sol", "gemv", "--machine", "v100", "--set", "n=40", f"--measured={time}"])
    assert run.exit_code == 2 and "--measured" in run.output


def test_a_level_that_takes_too_long_to_count_has_an_upper_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A prediction leaves such a level out, and its time would be too short."""
    kernel, machine = kernel_of(ADD), load_machine("v100")
    slow = replace(
        machine, caches=(machine.caches[0], replace(machine.caches[1], bandwidth_bytes_per_s=Fraction(10**9)))
    )
    exact = predict(kernel, {"n": 1 << 20}, slow)
    assert exact.bound == "L2"

    def without(*of: Any, **options: Any) -> Any:
        found = predict(*of, **options)
        return replace(
            found,
            levels=tuple(level for level in found.levels if level.name != "L2"),
            bound_s=max(level.time_s for level in found.levels if level.name != "L2"),
            warnings=("L2 is left out: it takes too long",),
        )

    monkeypatch.setattr("roofdsl.sol.answer.predict", without)
    found = speed_of_light(kernel, {"n": 1 << 20}, slow)
    assert found.written is None and found.is_at_most and found.why_not == "L2 is left out: it takes too long"
    assert found.as_written is not None and exact.bound_s <= found.as_written.bound_s < 1.01 * exact.bound_s


def test_a_call_of_a_server_counts_for_less_time_than_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    def spent(*of: Any, **options: Any) -> Any:
        given.append(budget.left_s())
        raise budget.Spent

    monkeypatch.setattr("roofdsl.sol.answer.predict", spent)
    monkeypatch.setattr("roofdsl.sol.answer.estimate_at_most", spent)
    for served in (False, True):
        monkeypatch.setattr(budget, "_served", [served])
        with budget.beginning(600.0, budget.DEFAULT_BYTES, whole=False):
            found = speed_of_light(kernel_of(SCALE), {"n": 4096 + served}, load_machine("v100"))
        assert found.as_written is None
    counting, estimate, in_call, estimate_in_call = given
    assert 95 < counting <= 100 and 25 < estimate <= 30 and 12 < in_call <= 15 and 4 < estimate_in_call <= 6


PRODUCT_OF_SQUARES = """
kernel product(n):
    in A, B: f64[n, n]
    inout C: f64[n, n]
    for i in range(n), k in range(n), j in range(n):
        C[i, j] += A[i, k] * B[k, j]
"""


def test_a_product_in_tiles_is_still_one_product() -> None:
    """Its own tiles looked like 512 products of 64 x 64, for which the best order found took three times the floor."""
    machine = load_machine("skylake_gold_6148")
    tiled = speed_of_light(kernel_of(HELD), {"n": 512, "b": 64}, machine)
    plain = speed_of_light(kernel_of(PRODUCT_OF_SQUARES), {"n": 512}, machine)
    assert tiled.best is not None and plain.best is not None
    assert tiled.best.time_s == plain.best.time_s == tiled.floor.time_s
    assert tiled.best.lines == plain.best.lines
    text = printed(tiled, kernel_of(HELD), {"n": 512, "b": 64}, machine)
    assert text is not None and (text.in_place or text.kind == "registers") and text.estimate is not None

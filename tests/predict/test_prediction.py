"""Times and bounds: docs/rules.md, rules 15, 16 and 18."""

from fractions import Fraction

import pytest

from roofdsl.counts.work_record import WorkAt
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace
from roofdsl.machine.find import load_machine
from roofdsl.predict.given_counts import predict_counts
from roofdsl.predict.prediction import Prediction
from roofdsl.tell.as_text import to_text
from roofdsl.tell.prediction import blocks
from tests.predict.machines import machine, work

M = machine(
    "peak f64 fma 2 TFLOP/s",
    "launch 4 us",
    "memory HBM 16 GiB, 1 TB/s",
    'ceiling "far" HBM 500 GB/s',
    'ceiling "lazy" f64 1 TFLOP/s',
)


def at(pairs: int, bytes_moved: int, **options: object) -> Prediction:
    return predict_counts("k", {"n": 1}, work(pairs=pairs), bytes_moved, M, **options)  # type: ignore[arg-type]


def test_expected_is_the_largest_term_and_without_overlap_their_sum() -> None:
    p = at(10**7, 20 * 10**6)
    assert p.terms == (("compute", Fraction(1, 10**5)), ("HBM", Fraction(2, 10**5)), ("launch", Fraction(4, 10**6)))
    assert p.bound_s == Fraction(2, 10**5)
    assert p.no_overlap_s == Fraction(34, 10**6)
    assert p.rate_per_s == 10**12
    assert p.bytes_per_s == 10**12
    assert p.intensity == 1
    assert (p.ridge, p.machine_balance) == (2, 2)


@pytest.mark.parametrize(
    ("pairs", "bytes_moved", "bound"),
    [
        (10**7, 20 * 10**6, "HBM"),
        (10**8, 20 * 10**6, "compute"),
        (10**5, 10**5, "launch"),
        (10**7, 10**7, "compute and HBM"),
        (10**7, 9 * 10**6, "compute and HBM"),
        (9 * 10**6, 10**7, "HBM and compute"),
        (10**7, 9 * 10**6 - 1, "compute"),
    ],
)
def test_the_bound_and_what_is_within_ten_percent_of_it(pairs: int, bytes_moved: int, bound: str) -> None:
    assert at(pairs, bytes_moved).bound == bound


def test_launches_are_a_ceiling() -> None:
    p = at(10**5, 10**5, launches=36)
    assert p.launch_s == Fraction(144, 10**6)
    assert p.rate_per_s == Fraction(2 * 10**5) / p.launch_s


def test_ceilings_asked_for() -> None:
    assert at(10**7, 20 * 10**6, ceilings=("far",)).bound_s == Fraction(4, 10**5)
    lazy = at(10**8, 20 * 10**6, ceilings=("lazy",))
    assert (lazy.peak_per_s, lazy.machine_peak_per_s) == (10**12, 2 * 10**12)
    with pytest.raises(CommandError, match='no ceiling named "lzy"') as error:
        at(1, 1, ceilings=("lzy",))
    assert error.value.help == 'did you mean "lazy"?'
    other = predict_counts("k", {}, WorkAt({}, {}), 8, M, ceilings=("lazy",))
    assert "limits neither" in other.warnings[0]


def test_no_work_is_legal_and_judged_by_its_bytes() -> None:
    p = predict_counts("copy", {}, WorkAt({}, {}), 8 * 10**6, M)
    assert p.bound_s == Fraction(8, 10**6)
    assert p.bytes_per_s == 10**12
    assert (p.rate_per_s, p.intensity, p.peak_per_s, p.ridge) == (0, None, None, None)
    assert (p.bound, p.operation) == ("HBM", "FLOP")


def test_nothing_at_all() -> None:
    p = predict_counts("k", {}, WorkAt({}, {}), 0, load_machine("v100_textbook"))
    assert (p.bound, p.bound_s, p.bytes_per_s) == ("nothing", 0, 0)
    shown = "\n".join(to_text(blocks(p)))
    assert "nothing is computed, and nothing moves" in shown and "bound by" not in shown


def test_integers_count_operations() -> None:
    p = predict_counts("k", {}, work("i32", add=8), 8, machine("peak i32 1 TOP/s"))
    assert p.operation == "OP"


def test_launches_add_up_term_by_term() -> None:
    memory_bound, compute_bound = at(10**7, 20 * 10**6), at(10**8, 20 * 10**6)
    both = memory_bound + compute_bound
    assert both.bound_s == memory_bound.bound_s + compute_bound.bound_s
    assert both.compute_s == Fraction(11, 10**5)
    assert both.memory.bytes == 40 * 10**6
    assert both.launches == 2
    assert both.bound_s > max(t for _, t in both.terms)
    assert both.bound == "compute"


def test_repetition_is_addition() -> None:
    p = replace(at(10**7, 20 * 10**6), counters=(("edges", 5),))
    tripled, added = p * 3, p + p + p
    assert tripled == added
    assert (3 * p).bound_s == 3 * p.bound_s
    assert tripled.counters == (("edges", 15),)
    with pytest.raises(ValueError, match="at least once"):
        _ = p * 0


def test_different_machines_do_not_add() -> None:
    with pytest.raises(ValueError, match="cannot be added"):
        _ = at(1, 1) + predict_counts("k", {}, work(pairs=1), 1, load_machine("v100_textbook"))


def test_json_has_what_the_contract_names() -> None:
    document = at(10**7, 20 * 10**6).to_json()
    assert document["schema"] == "roofdsl.predict/1"
    assert (document["kernel"], document["machine"], document["parameters"]) == ("k", "m", {"n": 1})
    assert document["work_flops"] == 2 * 10**7
    assert document["peak_flops"] == 2e12
    assert document["time_s"] == 2e-5
    assert document["time_no_overlap_s"] == 3.4e-5
    assert document["flops_per_s"] == 1e12
    assert document["bound"] == "HBM"
    assert document["balance"] == 2.0
    level = {"name": "HBM", "bytes": 2 * 10**7, "bandwidth_bytes_per_s": 1e12, "intensity": 1.0, "time_s": 2e-5}
    assert document["levels"] == [level]
    assert (document["launches"], document["launch_s"]) == (1, 4e-6)

"""What is too hard to count is found out soon, and what can be counted comes out as before."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path

import islpy as isl
import pytest

from roofdsl import budget, reproducibility
from roofdsl.counts.closed_forms import ClosedForms, NoClosedForm
from roofdsl.machine.find import load_machine
from roofdsl.sets import cardinality, previous, reuse
from roofdsl.sets.cardinality import MAX_FLOORS, added, by_domain, require_few_floors, total_of
from roofdsl.sets.child_process import CAN_FORK, in_children
from roofdsl.sets.library import OverBudget, TooHard, limited
from roofdsl.sets.native_calls import LONG, _in_limited_child
from roofdsl.sol.answer import speed_of_light
from tests.models.shipped import model

forks = pytest.mark.skipif(not CAN_FORK, reason="children are forked")


def spin(seconds: float) -> str:
    """A text after some processor time."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    return "late"


def test_tasks_after_one_that_ends_all_are_not_begun(tmp_path: Path) -> None:
    def begun(k: int) -> str:
        (tmp_path / str(k)).touch()
        time.sleep(0.02)
        return str(k)

    tasks: list[Callable[[], str]] = [lambda: "stop", *(partial(begun, k) for k in range(60))]
    texts = in_children(tasks, 20, ends_all="stop")
    assert len(texts) == len(tasks) and texts[0] == texts[-1] == "stop"
    made = sorted(int(path.name) for path in tmp_path.iterdir())
    assert len(made) < 30
    assert [texts[k + 1] for k in made] == [str(k) for k in made]


def test_tasks_are_all_done_where_none_ends_all() -> None:
    assert in_children([partial(str, k) for k in range(40)], 20, ends_all="stop") == [str(k) for k in range(40)]


@pytest.mark.thorough
@forks
def test_a_share_of_the_limit_ends_one_count_and_leaves_the_others_theirs() -> None:
    with limited("a test"):
        before = time.perf_counter()
        with pytest.raises(TooHard):
            _in_limited_child("a set", lambda: [spin(60)], str, 0.02)
        assert time.perf_counter() - before < 30  # of processor time it had 0.3 s
        assert _in_limited_child("a set", lambda: [spin(0.6)], str) == ["late"]


def test_a_limit_that_the_budget_lowers_is_the_budgets() -> None:
    """There is time for a million operations of 20: more time may help, and nothing keeps that none was found."""
    before = reproducibility.seen()
    with budget.beginning(2.0, 1 << 40, whole=True) as own:
        with pytest.raises(OverBudget, match="left out to stay within 2 s"), limited("the proof", 20_000_000):
            count_for_ever()
        assert list(own.left_out) == ["the proof"]
    assert reproducibility.since(before).chance
    few = pytest.raises(TooHard, match="needs more than 20,000 integer-set operations")
    with few as caught, limited("the proof", 20_000):
        count_for_ever()
    assert not isinstance(caught.value, OverBudget)


def count_for_ever() -> None:
    box, part = (
        isl.Set(f"{{ [i, j, k] : 0 <= i, j, k < 100{more} }}") for more in ("", " and (i + j) mod 3 = k mod 2")
    )
    while True:
        box.is_subset(part)


@forks
def test_a_result_that_takes_too_long_to_read_is_not_read_here() -> None:
    """In this process, nothing would stop the library while it reads a text with nested floors."""
    parent = os.getpid()

    def slow(text: str) -> str:
        assert os.getpid() != parent
        return spin(60)

    with limited("a test"), pytest.raises(TooHard):
        _in_limited_child("a set", lambda: ["a" * (LONG + 1)], slow, 0.02)


def test_a_sum_of_too_many_pieces_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each interval lies within the one before, whose ends become a piece of their own."""
    counts = [by_domain(isl.PwQPolynomial(f"[n] -> {{ n + {k} : {k} <= n < {20 - k} }}")) for k in range(5)]
    assert total_of(counts).n_piece() == 5
    monkeypatch.setattr(cardinality, "MOST_PIECES", 4)
    with pytest.raises(TooHard, match="too many parts"):
        total_of(counts)


@pytest.mark.thorough
@forks
def test_one_long_call_of_the_library_ends_with_the_share_that_it_is_in() -> None:
    """A kernel as written has a sixth of the budget. Its last earlier accesses, with five floors, took 13 s more."""
    sizes, machine = {"batch": 224, "c": 72, "f": 176}, load_machine("a100_80")
    with budget.beginning(20.0, budget.DEFAULT_BYTES, whole=False) as own, budget.region("a test"):
        found = speed_of_light(model("conv2d_implicit_gemm"), sizes, machine)
    assert "left out" in found.why_not and own.spent() < 10


@pytest.mark.thorough
@forks
def test_a_program_in_python_hears_nothing_of_options() -> None:
    sizes, machine = {"batch": 224, "c": 72, "f": 176}, load_machine("a100_80")
    found = speed_of_light(model("conv2d_implicit_gemm"), sizes, machine)
    # a fast machine reaches the limit of the sets before that of the time
    assert found.why_not.endswith(("left out after 3.33 s of processor time", "counting takes too long"))
    assert "--budget" not in found.why_not


def test_a_map_of_no_use_is_refused_before_its_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    def certified(*_: object) -> None:
        raise AssertionError("the certificate was asked for")

    monkeypatch.setattr(previous, "certify_previous", certified)
    floors = " and ".join(f"exists (e{k} : i{k} + i{k + 1} = {k + 2} e{k})" for k in range(MAX_FLOORS + 1))
    loops = ", ".join(f"i{k}" for k in range(MAX_FLOORS + 2))
    box = " and ".join(f"0 <= i{k} < 9" for k in range(MAX_FLOORS + 2))
    touch = isl.Map(f"{{ T[t, {loops}] -> A[{loops}] : 0 <= t < 2 and {box} and {floors} }}")
    claim = previous.claimed_previous(touch)
    with pytest.raises(TooHard, match="a set of accesses has too many parts to be counted"):
        require_few_floors(claim.latest)
    with pytest.raises(AssertionError, match="certificate"):
        _ = claim.certified


def test_no_array_is_certified_where_another_has_too_many_floors(monkeypatch: pytest.MonkeyPatch) -> None:
    def certified(*_: object) -> None:
        raise AssertionError("the certificate was asked for")

    monkeypatch.setattr(previous, "certify_previous", certified)
    monkeypatch.setattr(reuse, "require_few_floors", refuse_the_second(iter(range(2))))
    access_sets = ClosedForms(model("gemv"), {}).large_size_sets
    with pytest.raises(TooHard, match="the second"):
        reuse.reuse(access_sets)


def refuse_the_second(calls: Iterator[int]) -> Callable[[object], None]:
    """A check of maps that refuses the second one."""

    def check(_: object) -> None:
        if next(calls) == 1:
            raise TooHard("the second", 0)

    return check


def test_sums_with_floors_have_the_value_of_their_parts_everywhere() -> None:
    texts = (
        "{ T[i, j] -> 3 * i + 2 : 0 <= i < 9 and j <= i }",
        "{ T[i, j] -> floor(i/2) + j : i >= 2 and 0 <= j < 7 }",
        "{ T[i, j] -> j * j : 0 <= j < 5 and 0 <= i < 4 }",
        "{ T[i, j] -> 7 : (i + j) mod 2 = 0 }",
        "{ T[i, j] -> i - j : i >= j }",
    )
    parts = [isl.PwQPolynomial(text) for text in texts]
    total = added(parts)
    for i, j in product(range(-3, 12), repeat=2):
        at = isl.Point.zero(total.get_domain_space())
        at = at.set_coordinate_val(isl.dim_type.set, 0, isl.Val(i)).set_coordinate_val(isl.dim_type.set, 1, isl.Val(j))
        assert str(total.eval(at)) == str(sum(part.eval(at).to_python() for part in parts)), (i, j)


@pytest.mark.thorough
def test_a_red_black_smoother_is_refused_within_seconds() -> None:
    forms = ClosedForms(model("gsrb_branch"), {})
    before = time.process_time()
    with pytest.raises(NoClosedForm, match="a set of accesses"):
        forms.plateau_forms("load_store")
    assert time.process_time() - before < 10  # it took half a minute, and then was refused for the same reason

"""Time as an expression: its values, and that all who evaluate it find the same."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from roofdsl.lang.source import Source
from roofdsl.loops.load import load_file
from roofdsl.machine.lower import lower
from roofdsl.machine.model import BandwidthCeiling, ComputeCeiling, Machine
from roofdsl.page.time_function import seconds_function
from roofdsl.predict.time_forms import in_closed_form
from roofdsl.predict.time_model import (
    ComputePart,
    Largest,
    capped_bandwidth,
    compute_seconds,
    launch_seconds,
    level_seconds,
    link_seconds,
    timed_bytes,
)
from roofdsl.sets.quasi import Quasi
from roofdsl.sweep.numeric import Points, TooLarge
from roofdsl.sweep.rounding import OverOne
from tests.page.javascript import evaluate

G = 10**9
F = Fraction


def machine(text: str) -> Machine:
    body = "".join(f"    {line}\n" for line in text.split("\n"))
    return lower(load_file(Source("m.roof", f"machine m:\n{body}")).machines["m"])


def parts(**rates: int) -> list[ComputePart]:
    return [ComputePart("f64", cls, 0, F(rate)) for cls, rate in rates.items()]


def test_the_largest_of_sums() -> None:
    of = Largest(((("a", F(2)), ("b", F(1, 3))), (("b", F(1)),)))
    assert of.each({"a": 5, "b": 6}) == (12, 6)
    assert [of.at({"a": a, "b": 6}) for a in (5, 1)] == [12, 6]
    assert of.over(F(4)).at({"a": 5, "b": 6}) == 3
    with pytest.raises(KeyError):
        of.at({"a": 5})


def test_an_expression_in_other_counts_has_the_same_value() -> None:
    """Statements instead of operations: whatever they are executed, the value is that of the operations they do."""
    draw = random.Random(1)
    for _ in range(100):
        of = expression(draw, "abc")
        statements = {f"s{k}": {n: draw.randrange(4) for n in "abc" if draw.random() < 0.7} for k in range(3)}
        times = {name: draw.randrange(9) for name in statements}
        done = {n: sum(times[s] * own.get(n, 0) for s, own in statements.items()) for n in "abc"}
        assert of.made_of(statements).each(times) == of.each(done)


def expression(draw: random.Random, names: str) -> Largest:
    """A few sums with awkward weights."""
    sums = [[(n, F(draw.randrange(1, 50), draw.choice((1, 7, 10**9, 3 * 10**12)))) for n in names] for _ in range(3)]
    return Largest(tuple(tuple(draw.sample(one, draw.randrange(1, len(names) + 1))) for one in sums))


def test_parts_follow_one_upon_another_and_pipes_do_not() -> None:
    counts = {"f64 fma": 12, "f64 add": 6, "f64 mul": 3}
    one = machine("peak f64 fma 2 GFLOP/s\nmemory M 1 GiB, 1 GB/s")
    both = compute_seconds(parts(fma=2 * G, add=G, mul=G), one, None)
    assert both.at(counts) == F(6 + 6 + 3, G)
    two = machine("peak f64 2 GFLOP/s\npipes separate add mul\nmemory M 1 GiB, 1 GB/s")
    assert compute_seconds(parts(add=2 * G, mul=2 * G), two, None).each(counts) == (F(6, G), F(3, G))
    assert compute_seconds([ComputePart("f64", "tensor", 0, F(8 * G))], two, "tensor").at({"f64 tensor": 16}) == F(2, G)


def test_a_ceiling_caps_what_is_under_it_and_the_rest_keeps_its_rate() -> None:
    m = machine("peak f64 fma 2 GFLOP/s\npeak f64 exp 1 GFLOP/s\nmemory M 1 GiB, 1 GB/s")
    slow = ComputeCeiling("slow", "f64", F(G, 2), "special")
    of = compute_seconds(parts(exp=G, add=G), m, None, (slow,))
    assert of.each({"f64 exp": 4, "f64 add": 3}) == (F(7, G), F(8 + 3, G))


def test_levels_links_and_launches() -> None:
    moved = {"L2 bytes": 30, "L2 loads": 20, "L2 stores": 10}
    assert timed_bytes("L2", duplex=False).at(moved) == 30
    assert timed_bytes("L2", duplex=True).at(moved) == 20
    assert level_seconds("L2", F(5), duplex=True).at(moved) == 4
    caps = (BandwidthCeiling("", "L2", F(3)), BandwidthCeiling("", "L1", F(2)))
    assert [capped_bandwidth(n, F(4), caps) for n in ("L1", "L2", "L3")] == [2, 3, 4]
    assert link_seconds(F(5)).at({"bytes": 10, "latency": F(1, 2)}) == F(5, 2)
    assert launch_seconds(machine("peak f64 1 GFLOP/s\nmemory M 1 GiB, 1 GB/s\nlaunch 2 us")).at({"launches": 3}) == F(
        6, 10**6
    )
    assert launch_seconds(machine("peak f64 1 GFLOP/s\nmemory M 1 GiB, 1 GB/s")).at({"launches": 3}) == 0


# ---- evaluators ----


def drawn(count: int) -> list[tuple[Largest, dict[str, int]]]:
    draw = random.Random(2)
    return [
        (expression(draw, "abc"), {n: draw.randrange(10 ** draw.randrange(1, 8)) for n in "abc"}) for _ in range(count)
    ]


@pytest.mark.parametrize("exact", [False, True])
def test_arrays_say_what_fractions_say(exact: bool) -> None:
    """In numbers of the processor where they are large enough, else in Python's."""
    compared = 0
    for of, counts in drawn(50):
        amounts = {n: np.array([v, 0, 2 * v], dtype=object if exact else np.float64) for n, v in counts.items()}
        try:
            name, top, below = OverOne("T", of).at(amounts, Points({}, 3, exact=exact))
        except TooLarge:
            continue
        found = [F(int(t), below) for t in top]
        assert name == "T" and found == [of.at({n: int(v[k]) for n, v in amounts.items()}) for k in range(3)]
        compared += 1
    assert compared == 50 if exact else compared >= 5


def test_a_count_that_all_points_share_is_a_number() -> None:
    of = Largest(((("a", F(3, 7)), ("b", F(2))), (("b", F(5)),)))
    for b in (np.array([1.0, 10.0]), 10):
        _, top, below = OverOne("T", of).at({"a": 21, "b": b}, Points({}, 2))
        assert [F(int(t), below) for t in top] == [of.at({"a": 21, "b": int(v)}) for v in np.broadcast_to(b, 2)]


def test_arrays_tell_where_floats_end() -> None:
    of = Largest(((("a", F(3)),),))
    with pytest.raises(TooLarge):
        OverOne("T", of).at({"a": np.array([2.0**52])}, Points({}, 1))
    exact = np.array([2**70], dtype=object)
    assert OverOne("T", of).at({"a": exact}, Points({}, 1, exact=True))[1][0] == 3 * 2**70


def test_a_page_says_what_fractions_say() -> None:
    rows = drawn(100)
    functions = tuple(seconds_function((("T", of), ("more", of.over(F(2))))) for of, _ in rows)
    text = "COUNTS.map((counts, k) => FUNCTIONS[k]((name) => counts[name]))"
    found = evaluate(functions, text, COUNTS=[counts for _, counts in rows])
    for (of, counts), ((name, seconds), (other, less)) in zip(rows, found, strict=True):
        assert (name, other) == ("T", "more")
        assert seconds == pytest.approx(float(of.at(counts)), rel=1e-15)
        assert less == pytest.approx(seconds / 2, rel=1e-15)


def test_closed_forms_say_what_fractions_say() -> None:
    n = Quasi.symbol("n")
    of = link_seconds(F(7))
    form = in_closed_form(of, {"bytes": n * n, "latency": n * F(1, 2)})
    assert form.evaluate({"n": 14}) == of.at({"bytes": 196, "latency": 7}) == 35
    with pytest.raises(ValueError, match="too many"):
        in_closed_form(level_seconds("L2", F(7), duplex=True), {"L2 loads": n, "L2 stores": n})

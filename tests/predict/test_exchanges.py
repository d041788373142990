"""Collectives of programs: their time beside the launches', and what is wrong with links."""

from __future__ import annotations

from fractions import Fraction

import pytest

from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.source import Source
from roofdsl.loops.load import load_file
from roofdsl.machine.find import load_machine, machine_of, shipped
from roofdsl.predict.options import Options
from roofdsl.predict.program import ProgramPrediction, predict_launches
from roofdsl.predict.threshold import Question, program_bounds

TEXT = """
kernel add(n):
    in x: f32[n]
    inout y: f32[n]
    for i in range(n):
        y[i] += x[i]

program steps(n, p = 4, t = 3):
    run add(n)
    repeat t:
        collective all_reduce y: f32[n] among p over ring
        run add(n)
    run gathered(2 * n, p)

program gathered(m, p):
    run add(m)
    collective all_gather y: bf16[m, 3] among p over ring by two_way_ring

program wrong(n):
    run add(n)
    collective all_reduce y: f32[n] among 4 LINK

machine several:
    peak f32 fma 1 TFLOP/s
    memory HBM 1 GiB, 100 GB/s
    memory host 1 GiB, 100 GB/s
    memory peer 1 GiB, 100 GB/s
    link ring: HBM <-> peer 10 GB/s
    link far: host <-> peer 20 GB/s
    link there: HBM -> peer 5 GB/s
    launch 1 us

machine lone:
    peak f32 fma 1 TFLOP/s
    memory HBM 1 GiB, 100 GB/s
"""


def predicted(
    name: str = "steps", link: str = "over ring", machine: str = "several", **sizes: int
) -> ProgramPrediction:
    checked = load_file(Source("p.roof", TEXT.replace("LINK", link)))
    return predict_launches(checked, name, sizes, machine_of(checked, machine))


def test_bytes_over_the_link_are_those_of_a_ring() -> None:
    p = predicted(n=1000)
    (link,) = p.total.links
    reduced, gathered = 3 * 2 * Fraction(3, 4) * 4000, Fraction(3, 8) * 2 * 2000 * 3  # both ways round: half
    assert (link.name, link.bytes, link.collectives) == ("ring", reduced + gathered, 4)
    assert dict(p.total.terms)["ring"] == (reduced + gathered) / 10**10
    launches = [part for part in p.parts if part.launches]
    assert p.total.launches == sum(part.launches for part in launches) == 5
    assert p.total.work == sum(part.work for part in launches) == 4 * 1000 + 2000
    assert p.total.bound_s == sum(part.bound_s for part in launches) + (reduced + gathered) / 10**10
    assert p.total.no_overlap_s == sum(part.no_overlap_s for part in launches) + (reduced + gathered) / 10**10
    rows = {row.total.kernel: row for row in p.by_kernel}
    assert rows["all_reduce y"].collectives == 3 and rows["all_reduce y"].bounds == ("ring",)
    assert sum(row.share for row in p.by_kernel) == 1
    document = p.to_json()
    assert document["links"][0]["bytes"] == float(reduced + gathered)
    assert [k["collectives"] for k in document["by_kernel"] if "collectives" in k] == [3, 1]


def test_one_device_has_nobody_to_talk_to() -> None:
    p = predicted(n=1000, p=1)
    assert dict(p.total.terms)["ring"] == 0
    assert p.total.bound_s == sum(part.bound_s for part in p.parts if part.launches)


def test_steps_have_a_latency_where_one_is_given() -> None:
    checked = load_file(Source("p.roof", TEXT.replace("LINK", "")))
    machine, step = machine_of(checked, "several"), Fraction(1, 10**6)
    slow = predict_launches(checked, "steps", {"n": 8}, machine, Options(step_s=step)).total
    quick = predict_launches(checked, "steps", {"n": 8}, machine).total
    assert slow.bound_s - quick.bound_s == (3 * 6 + 2) * step  # 2 (p - 1) steps, p // 2 both ways round


@pytest.mark.parametrize(("link", "machine", "message", "marked"), [
    ("over rink", "several", "machine several has no link `rink`", "rink"),
    ("over far", "several", "link far of several joins host and peer, and arrays lie in HBM", "far"),
    ("over there by switch", "several", "leads from HBM to peer only", "switch"),
    ("", "several", "machine several has 3 links: ring, far, there", "collective all_reduce y: f32[n] among 4"),
    ("over ring", "lone", "machine lone has no link `ring`", "ring"),
    ("", "lone", "machine lone has no links to other devices", "collective all_reduce y: f32[n] among 4"),
    ("by ring", "lone", "lone has no links to other devices", "collective all_reduce y: f32[n] among 4 by ring"),
])  # fmt: skip
def test_links_that_lead_nowhere_are_underlined(link: str, machine: str, message: str, marked: str) -> None:
    with pytest.raises(InputError) as caught:
        predicted("wrong", link, machine, n=8)
    (found,) = caught.value.diagnostics
    assert found.code == "link-end" and message in found.message and found.help
    line = caught.value.source.line(found.span.line)
    assert line[found.span.column - 1 : found.span.end_column - 1] == marked


def test_sizes_that_are_none() -> None:
    text = "program p(n):\n    run add(n)\n    collective all_reduce y: f32[n // 8] among n\n"
    checked = load_file(Source("p.roof", TEXT.replace("LINK", "") + text))
    with pytest.raises(CommandError, match="a collective of y with a dimension of 0"):
        predict_launches(checked, "p", {"n": 4}, machine_of(checked, "several"))


def test_from_where_on_the_link_is_no_longer_the_bound() -> None:
    checked = load_file(Source("p.roof", TEXT.replace("LINK", "")))
    machine = machine_of(checked, "several")
    whole, parts = program_bounds(checked, "steps", {}, machine, Question("n"))
    assert whole.searched_to is None and len(parts) == 2
    for n in (1, 2, 100, 1000, 3000, 5000, 8000, 20_000, 50_000):
        interval = next(i for i in whole.intervals if i.first <= n and (i.last is None or n <= i.last))
        terms = dict(predict_launches(checked, "steps", {"n": n}, machine).total.terms)
        assert set(interval.names) == {name for name, t in terms.items() if t == max(terms.values())}
    assert {name for i in whole.intervals for name in i.names} == {"launch", "ring"}
    with pytest.raises(CommandError, match="`p` is the number of devices"):
        program_bounds(checked, "steps", {"n": 8}, machine, Question("p"))


# ---- the shipped layer on several devices ----


def layer(**sizes: int) -> ProgramPrediction:
    checked = load_file(shipped("kernels")["llama_parallel"])
    return predict_launches(checked, "layer_parallel", sizes, load_machine("h100_sxm"), Options(unit="tensor"))


@pytest.mark.thorough
def test_a_layer_shared_by_one_is_the_layer() -> None:
    checked = load_file(shipped("kernels")["transformer"])
    sizes = {"d": 8192, "kv": 8, "group": 8, "dh": 128, "ffn": 28672, "new": 64, "context": 64}
    alone = predict_launches(checked, "layer", sizes, load_machine("h100_sxm"), Options(unit="tensor")).total
    shared = layer(p=1, new=64, context=64).total
    assert (shared.work, shared.memory.bytes, shared.launches) == (alone.work, alone.memory.bytes, alone.launches)
    assert shared.bound_s == alone.bound_s


@pytest.mark.thorough
def test_a_layer_shared_by_eight() -> None:
    """Shoeybi et al., section 3: two all-reduces of batch x sequence x hidden; matrices are divided by p."""
    one, eight = layer(p=1, new=64, context=64), layer(p=8, new=64, context=64)
    (link,) = eight.total.links
    assert link.bytes == 2 * Fraction(2 * 7, 8) * 2 * 64 * 8192

    def products(p: ProgramPrediction) -> int:
        return next(row.total.work for row in p.by_kernel if row.total.kernel == "linear")

    assert products(one) == 8 * products(eight)

"""Every change is a kernel that checks clean, lies canonically, and computes what the kernel before it computes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from roofdsl.advise.advise import FINDERS
from roofdsl.advise.candidate import Candidate, Refused, Subject
from roofdsl.advise.evaluate import Case, Estimate, Illegal, require_legal_change
from roofdsl.advise.register_blocks import Blocking, blocked, nests_to_block
from roofdsl.checks.deep import require_legal
from roofdsl.lang.format import format_source
from roofdsl.lang.source import Source
from roofdsl.lang.write import NAME, written
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.transform import apply
from roofdsl.machine.find import load_machine, shipped, shipped_model
from roofdsl.machine.model import Machine
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from tests.frontends.running import unfolded
from tests.models.execute import execute, inputs
from tests.oracle.values import same_result

SIZES = {
    "n": 8,
    "m": 8,
    "ni": 8,
    "nj": 4,
    "nk": 8,
    "tsteps": 2,
    "steps": 2,
    "b": 4,
    "bands": 2,
    "ngpown": 3,
    "ncouls": 4,
}

CPU = (
    "matmul_ijk", "matmul_blocked", "gemv", "gemm", "syrk", "seidel_2d", "jacobi2d", "jacobi2d_time", "transpose",
    "triad", "gramschmidt", "gpp_divides", "trisolv",
)  # fmt: skip
GPU = ("matmul_ijk", "jacobi2d", "transpose", "seidel_2d")
CASES = [(name, "skylake_gold_6148") for name in CPU] + [(name, "v100") for name in GPU]


def subject_of(text: str, machine: Machine) -> Subject:
    """A shipped kernel at SIZES."""
    target = shipped_model(text)
    assert target is not None and target.name is not None
    checked = load_file(target.path)
    k = kernel(checked, target.name)
    values = {p.name: SIZES.get(p.name, 8) for p in k.parameters}
    case = Case(values, machine, Options())
    found = predict(k, values, machine)
    return Subject(checked.kernels[target.name], k, dict(k.constants), case, Estimate(found))


def changes(subject: Subject) -> list[Candidate]:
    """The candidates that pass the check of their legality."""
    found = []
    for find in FINDERS.values():
        for change in find(subject):
            if isinstance(change, Refused) or not change.text:
                continue
            try:
                require_legal_change(subject.lowered(change.text))
            except Illegal:
                continue
            found.append(change)
    return found


def assert_same(subject: Subject, change: Candidate) -> None:
    """The changed kernel leaves in every array what the kernel leaves there."""
    old, new = apply(subject.kernel), apply(subject.lowered(change.text))
    values = subject.case.values
    start = inputs(old, values)
    before = execute(old, values, {n: a.copy() for n, a in start.items()})
    own = inputs(new, values)
    after = execute(new, values, {n: start[n].copy() if n in start else a for n, a in own.items()})
    for a in subject.kernel.arrays:
        if a.intent != "temp":
            np.testing.assert_allclose(after.arrays[a.name], before.arrays[a.name], rtol=1e-9, err_msg=change.text)


@pytest.mark.spread(1)
@pytest.mark.parametrize(("name", "machine"), CASES)
def test_changes_keep_the_results(name: str, machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roofdsl.advise.loop_changes.bound_behind_cache", lambda subject: True)  # tiles at any size
    subject = subject_of(name, load_machine(machine))
    for change in changes(subject):
        assert format_source(Source(NAME, change.text)) == change.text
        require_legal(subject.lowered(change.text))
        assert_same(subject, change)


def test_the_check_sees_a_wrong_change() -> None:
    subject = subject_of("seidel_2d", load_machine("skylake_gold_6148"))
    wrong = next(c for c in FINDERS["order"](subject) if isinstance(c, Candidate) and c.what == "order t, j, i")
    with pytest.raises(AssertionError):
        assert_same(subject, wrong)
    with pytest.raises(Illegal, match="reverses a flow dependence on `A`") as illegal:
        require_legal_change(subject.lowered(wrong.text))
    assert "in line" not in str(illegal.value)  # nobody has seen the lines of a changed kernel


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["kernels", "polybench"])
def test_written_kernels_are_the_same(kind: str) -> None:
    for path in shipped(kind).values():
        checked = load_file(path)
        for name in checked.own_kernels:
            again = load_file(Source(NAME, written(checked.kernels[name]))).kernels[name]
            given = checked.kernels[name]
            assert again.traffic == given.traffic and again.costs == given.costs
            bodies = [unfolded(each.tree.body) for each in (again, given)]
            first, second = ([i for i in body if type(i).__name__ != "Traffic"] for body in bodies)
            assert first == second


@pytest.mark.thorough
def test_reciprocals_are_those_of_the_deck() -> None:
    """GPP's version 7 is version 6 with its divisions turned: the same work, by class."""
    machine = load_machine("v100")
    subject = subject_of("gpp_divides", machine)
    (change,) = FINDERS["reciprocal"](subject)
    assert isinstance(change, Candidate) and change.rounding
    target = shipped_model("gpp_reciprocals")
    assert target is not None
    ours = predict(subject.lowered(change.text), subject.case.values, machine)
    deck = predict(kernel(load_file(target.path), "gpp_reciprocals"), subject.case.values, machine)
    assert ours.parts == deck.parts
    assert ours.compute_s < subject.now.prediction.compute_s


@pytest.mark.thorough
def test_a_block_in_registers_reads_each_element_once() -> None:
    """4 x 4: 8 reads for 16 updates instead of 4 accesses for each, and C once."""
    machine = load_machine("skylake_gold_6148")
    subject = subject_of("matmul_ijk", machine)
    (change,) = [c for c in FINDERS["registers"](subject) if isinstance(c, Candidate)]
    assert change.what.startswith("C in registers (4 x 4 of i, j)")
    before = subject.now.prediction.levels[0]
    after = predict(subject.lowered(change.text), subject.case.values, machine).levels[0]
    n, tiles = SIZES["n"], change.text.count("kk")
    assert before.bytes == 8 * 4 * n**3
    sweeps = 1 if not tiles else n // int(change.text.split("range(kk, kk + ")[1].split(")")[0])
    assert after.bytes == 8 * (n**3 // 2 + 2 * n**2 * sweeps)
    assert Fraction(after.bytes, before.bytes) < Fraction(1, 4)


def test_a_block_whose_points_lie_apart_computes_the_same() -> None:
    """For threads of a GPU: neighboring iterations access neighboring elements. The loops may begin anywhere."""
    text = """\
kernel shifted(m, n, k):
    in A: f32[m + 3, k], B: f32[n, k]
    inout C: f32[n, m + 3]
    for p in range(k), i in range(3, m + 3), j in range(n):
        C[j, i] -= A[i, p] * B[j, p]
"""
    given = load_file(Source(NAME, text)).kernels["shifted"]
    (nest,) = nests_to_block(given.tree)
    made = written(given, blocked(given.tree, nest, Blocking((("j", 2), ("i", 4)), apart=True)))
    assert "i in range(3, 3 + ((m + 3) - 3) // 4)" in made and "C[j + n // 2, i + 3 * (((m + 3) - 3) // 4)]" in made
    changed = kernel(load_file(Source(NAME, made)), "shifted")
    require_legal(changed)
    assert same_result(kernel(load_file(Source(NAME, text)), "shifted"), changed, {"m": 8, "n": 6, "k": 3})

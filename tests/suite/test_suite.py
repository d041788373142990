"""The rows of a suite are what the commands say of each kernel alone; nothing that is asked for is dropped."""

from __future__ import annotations

import csv
import json
import re
from io import StringIO
from pathlib import Path

import pytest
from sympy import Symbol, sympify

from roofdsl.cli.suite import subjects_of
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.load import kernel, load_file
from roofdsl.machine.find import load_machine, shipped, standard_sizes
from roofdsl.machine.model import Machine
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.suite.rows import Row, Subject, forms, largest, rows
from roofdsl.tell.as_text import to_text
from roofdsl.tell.suite import blocks, to_csv
from tests.cli.conftest import Run, roofdsl

__all__ = ["roofdsl"]

NAMES = ("gemm", "trisolv", "floyd_warshall", "jacobi_1d")


def subjects(size: str = "mini") -> list[Subject]:
    found = []
    for name in NAMES:
        k = kernel(load_file(shipped("polybench")[name]), name)
        found.append(Subject(name, k, standard_sizes()[name][size]))
    return [*found, Subject("lost", None, {}, "it has no text")]


def describe(table: list[Row], machine: Machine, size: str, width: int = 0) -> str:
    return "\n".join(to_text(blocks(table, machine, size, width)))


@pytest.fixture(scope="module")
def table() -> list[Row]:
    return rows(subjects(), load_machine("skylake_gold_6148"), Options(), 60.0, lambda part, step: None)


@pytest.mark.thorough
def test_rows_are_predictions(table: list[Row]) -> None:
    machine = load_machine("skylake_gold_6148")
    assert [r.name for r in table] == [*NAMES, "lost"]
    for row, subject in zip(table, subjects(), strict=True):
        if subject.kernel is None or row.name == "floyd_warshall":
            continue
        alone = predict(subject.kernel, subject.sizes, machine)
        assert row.prediction == alone
        assert row.work == alone.work
        assert row.compulsory_bytes is not None and row.compulsory_bytes <= alone.memory.bytes
        assert row.lower_bound_bytes is not None and row.loads_bytes is not None
        assert 0 < row.lower_bound_bytes <= row.loads_bytes


def test_compulsory_traffic_is_counted_by_hand(table: list[Row]) -> None:
    """gemm, MINI: A, B and C are loaded, C is stored; trisolv: b and the lower triangle of L, x is stored."""
    ni, nj, nk, n = 20, 25, 30, 40
    assert table[0].compulsory_bytes == 8 * (ni * nk + nk * nj + 2 * ni * nj)
    assert table[1].compulsory_bytes in (8 * (n * (n + 1) // 2 + 2 * n), 8 * (n * (n + 1) // 2 + 3 * n))


def test_what_is_refused_is_told(table: list[Row]) -> None:
    floyd, lost = table[2], table[4]
    assert floyd.prediction is None and floyd.work == 2 * 60**3
    assert floyd.notes == ("machine skylake_gold_6148 has no peak for i32",)
    assert lost.notes == ("it has no text",)
    text = describe(table, load_machine("skylake_gold_6148"), "mini")
    for row in table:
        assert any(line.split()[:1] == [row.name] for line in text.split("\n"))
    assert "    lost: it has no text" in text


@pytest.mark.parametrize("width", [80, 120])
def test_a_table_fits_the_terminal(table: list[Row], width: int) -> None:
    """Wide ones are two: what moves, and what follows, each with the kernels' names and the same cells."""
    machine = load_machine("skylake_gold_6148")
    whole, fitted = describe(table, machine, "mini"), describe(table, machine, "mini", width)
    assert max(map(len, whole.split("\n")[2:8])) > 120
    assert max(map(len, fitted.split("\n")[2:16])) <= width
    assert fitted.count("  kernel ") == 2
    assert sorted(fitted.split()) == sorted([*whole.split(), "kernel", *(row.name for row in table)])
    assert describe(table, machine, "mini", 200) == whole


@pytest.mark.thorough
def test_a_limit_leaves_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def forever(*args: object) -> None:
        while True:
            pass

    monkeypatch.setattr("roofdsl.suite.rows.predict", forever)
    found = rows(subjects()[:1], load_machine("skylake_gold_6148"), Options(), 1.0, lambda part, step: None)
    assert found[0].notes == ("the prediction not found in 1 s",)
    assert found[0].work == 3 * 20 * 25 * 30 + 20 * 25 and found[0].prediction is None


def test_csv_has_every_number(table: list[Row]) -> None:
    machine = load_machine("skylake_gold_6148")
    lines = list(csv.DictReader(StringIO(to_csv(table, machine))))
    assert [line["kernel"] for line in lines] == [*NAMES, "lost"]
    p = table[0].prediction
    assert p is not None
    assert int(lines[0]["DRAM_bytes"]) == p.memory.bytes
    assert float(lines[0]["time_s"]) == float(p.bound_s)
    assert lines[2]["time_s"] == ""


def test_closed_forms() -> None:
    found = forms(subjects()[:1], load_machine("skylake_gold_6148"), None, 60.0, lambda part, step: None)
    assert found[0].work is not None and "3*ni*nj*nk" in found[0].work.replace(" ", "")
    assert found[0].lower_bound is not None and "sqrt(S)" in found[0].lower_bound


def test_closed_forms_count_as_asked(roofdsl: Run) -> None:
    """The bytes of three arrays, of which one is also stored: 24 n**2 if each datum counts once."""
    line = ("suite", "polybench/gemm", "--machine", "v100", "--symbolic", "--json")
    as_usual, once = (
        sympify(json.loads(roofdsl(*line, *more).stdout)["kernels"][0]["compulsory_bytes"]).subs(
            dict.fromkeys(SIDES, 100)
        )
        for more in ((), ("--traffic", "once"))
    )
    assert (as_usual, once) == (4 * 8 * 100**2, 3 * 8 * 100**2)


SIDES = ("ni", "nj", "nk")


def test_a_standard_size_goes_to_polybench_by_any_name_and_to_no_other_kernel(tmp_path: Path) -> None:
    (found,) = subjects_of("gemver", "mini", {})
    assert dict(found.sizes) == standard_sizes()["gemver"]["mini"]
    (found,) = subjects_of(str(shipped("polybench")["gemver"]), "mini", {})
    assert dict(found.sizes) == standard_sizes()["gemver"]["mini"]
    mine = tmp_path / "mine.roof"
    mine.write_text(shipped("polybench")["gemver"].read_text(encoding="utf-8"), encoding="utf-8")
    for file in (str(mine), "gemv"):
        with pytest.raises(CommandError, match="have no standard sizes"):
            subjects_of(file, "mini", {})


@pytest.mark.parametrize(("name", "where"), [("v100", "the L2"), ("mi300x", "one of 8 copies of the L2")])
def test_the_legend_says_which_memory_the_lower_bound_takes(name: str, where: str) -> None:
    machine = load_machine(name)
    assert f"every legal order needs, with {where} as fast memory" in describe([], machine, "mini")


PARTS = """
kernel halves(n, c):
    in u: f32[n, c]
    inout v: f32[n, c]
    for i in range(n), k in range(c):
        if i % 2 == 0 or k < 3:
            v[i, k] += u[i, k]

program twice(n = 4, c = 4):
    run halves(n, c)
"""


@pytest.mark.thorough
def test_cases_are_written_for_people(roofdsl: Run, tmp_path: Path) -> None:
    """In a file with a program too: a suite is of its kernels."""
    (tmp_path / "p.roof").write_text(PARTS, encoding="utf-8")
    line = ("suite", str(tmp_path / "p.roof"), "--machine", "v100_textbook")
    shown = roofdsl(*line, "--symbolic").stdout
    assert "  if c " in shown and "Piecewise" not in shown
    document = json.loads(roofdsl(*line, "--symbolic", "--json").stdout)
    assert [k["kernel"] for k in document["kernels"]] == ["halves"]
    work = sympify(document["kernels"][0]["work"], {"n": Symbol("n", positive=True), "c": Symbol("c", positive=True)})
    for n, c in ((5, 2), (5, 7), (6, 3), (1, 1)):
        by_hand = sum(i % 2 == 0 or k < 3 for i in range(n) for k in range(c))
        given = json.loads(roofdsl(*line, "--set", f"n={n},c={c}", "--json").stdout)["kernels"][0]["work_flops"]
        assert given == by_hand == work.subs({s: {"n": n, "c": c}[s.name] for s in work.free_symbols})
    assert "`twice` is a program" in roofdsl("suite", f"{line[1]}:twice", *line[2:]).stderr


def test_bounds_below_another_are_left_out() -> None:
    m, n, s = (Symbol(name, positive=True) for name in "mns")
    assert largest([4 * m * n, sympify(0), 5 * m * n, 5 * m * n]) == [5 * m * n]
    assert largest([m * n, m * n**2 / s]) == [m * n, m * n**2 / s]


@pytest.mark.thorough
def test_the_command(roofdsl: Run, tmp_path: Path) -> None:
    line = ("suite", "polybench/trisolv", "gemv", "--machine", "skylake_gold_6148")
    result = roofdsl(*line, "--set", "n=40", "--json", "-o", str(tmp_path / "out.csv"))
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["schema"] == "roofdsl.suite/1"
    assert [k["kernel"] for k in document["kernels"]] == ["trisolv", "gemv"]
    alone = json.loads(roofdsl("predict", "gemv", "--machine", "skylake_gold_6148", "--set", "n=40", "--json").stdout)
    assert document["kernels"][1]["prediction"] == alone
    assert (tmp_path / "out.csv").read_text().startswith("kernel,parameters,work,")


@pytest.mark.spread(1)
@pytest.mark.parametrize("symbolic", [False, True])
def test_a_kernel_that_is_not_legal_has_no_numbers(symbolic: bool, roofdsl: Run, tmp_path: Path) -> None:
    text = "kernel k(n):\n    in a: f64[n]\n    out b: f64[n]\n    for i in range(n): b[i] = a[i - 1] + 1.0\n"
    (tmp_path / "k.roof").write_text(text, encoding="utf-8")
    asked = ("--symbolic",) if symbolic else ("--set", "n=10")
    line = ("suite", str(tmp_path / "k.roof"), "--machine", "v100", *asked, "--json")
    (found,) = json.loads(roofdsl(*line).stdout)["kernels"]
    assert "`a[i - 1]` leaves `a`" in " ".join(found["notes"])
    given = ("kernel", "parameters", "notes", "traffic")
    assert not any(value for key, value in found.items() if key not in given), found


@pytest.mark.parametrize("group", ["kernels", "polybench"])
def test_a_group_is_all_its_kernels(group: str) -> None:
    """Some of its files have only programs, which run kernels of other files."""
    texts = [path.read_text(encoding="utf-8") for path in shipped(group).values()]
    named = [name for text in texts for name in re.findall(r"^kernel (\w+)", text, re.MULTILINE)]
    found = subjects_of(group, None, {})
    assert sorted(s.name for s in found) == sorted(named)
    assert all(s.kernel is not None for s in found)


@pytest.mark.spread(1)
@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("kernels --size mini", "the kernels of `kernels` have no standard sizes"),
        ("gemv --set zz=3", "none of these kernels has a parameter `zz`"),
        ("polybench --symbolic -o out.csv", "--symbolic writes no CSV"),
        ("nothing", "there is no file or shipped kernel named `nothing`"),
    ],
)
def test_wrong_questions(line: str, says: str, roofdsl: Run) -> None:
    result = roofdsl("suite", *line.split(" "), "--machine", "v100")
    assert (result.returncode, result.stdout) == (2, "")
    assert says in result.stderr and "Traceback" not in result.stderr

"""Deep checks: legal kernels have no errors, illegal ones the golden ones, random ones agree with an oracle."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path
from subprocess import run

import pytest

from roofdsl.checks import deep, dependence_pairs, legality
from roofdsl.checks.deep import deep_check, require_legal
from roofdsl.checks.legality import find_reversal
from roofdsl.lang import codes
from roofdsl.lang.diagnostics import Diagnostic, InputError, render
from roofdsl.loops.load import kernel, kernels, load_file, read_source
from roofdsl.loops.model import Kernel
from roofdsl.loops.transform import apply
from roofdsl.sets.library import set_of
from tests.checks.deep.generate import bounds_kernel, directive_kernel, intents_kernel
from tests.checks.deep.oracle import dependent_loops, order_reversed, outside, unwritten
from tests.oracle.directives import random_directive_kernel
from tests.oracle.enumerate import admissible
from tests.oracle.families import Family, families
from tests.oracle.loading import kernel_of
from tests.oracle.random_kernels import random_kernel

CASES = sorted((Path(__file__).parent / "deep" / "cases").glob("*.roof"))
SHIPPED = sorted((Path(__file__).parents[2] / "models" / "kernels").glob("*.roof"))


def errors(found: list[Diagnostic]) -> list[Diagnostic]:
    return [d for d in found if d.severity == "error"]


def sizes(k: Kernel, n: tuple[int, ...], others: tuple[int, ...]) -> Iterator[dict[str, int]]:
    """All admissible sizes: `n` for the parameter n, `others` for the others."""
    names = [p.name for p in k.parameters]
    for values in product(*[n if name == "n" else others for name in names]):
        chosen = dict(zip(names, values, strict=True))
        if admissible(k, chosen):
            yield chosen


def said(k: Kernel, d: Diagnostic) -> dict[str, int]:
    """The sizes that a message names: the first value of each parameter after ` at `."""
    names = {p.name for p in k.parameters}
    found: dict[str, int] = {}
    for name, value in re.findall(r"(\w+) = (-?\d+)", d.message.split(" at ", maxsplit=1)[1]):
        if name in names:
            found.setdefault(name, int(value))
    assert admissible(k, found)
    return found


# ---- kernels without errors ----


@pytest.mark.spread(12)
@pytest.mark.parametrize("family", families(), ids=lambda f: f.name)
def test_families_are_legal(family: Family) -> None:
    assert deep_check(kernel_of(family.text)) == []
    require_legal(kernel_of(family.text))


@pytest.mark.spread(5)
@pytest.mark.parametrize("path", SHIPPED, ids=lambda p: p.stem)
def test_shipped_kernels_are_legal(path: Path) -> None:
    for k in kernels(load_file(path)).values():
        assert deep_check(k) == []


@pytest.mark.thorough
def test_random_kernels_are_within_bounds_and_write_first() -> None:
    for seed in range(120):
        found = deep_check(kernel_of(random_kernel(seed).text))
        assert {d.code for d in found} <= {"intent-unused"}, seed


LEGAL = {
    "blocked, zeroed in the first tile": """
kernel k(n, b):
    assume n % b == 0
    in A, B: f64[n, n]
    out C: f64[n, n]
    for kk in range(0, n, b), ii in range(0, n, b), jj in range(0, n, b):
        if kk == 0:
            for i in range(ii, ii + b), j in range(jj, jj + b):
                C[i, j] = 0
        for k in range(kk, kk + b), i in range(ii, ii + b), j in range(jj, jj + b):
            C[i, j] += A[i, k] * B[k, j]
""",
    "ragged tiles, zeroed before": """
kernel k(n, b):
    in A, B: f64[n, n]
    out C: f64[n, n]
    for ii in range(0, n, b), i in range(ii, min(n, ii + b)), j in range(n):
        C[i, j] = 0
    for ii in range(0, n, b), k in range(n), i in range(ii, min(n, ii + b)), j in range(n):
        C[i, j] += A[i, k] * B[k, j]
""",
    "two levels of tiles": """
kernel k(n, b, c):
    assume n % b == 0, b % c == 0
    in A: f64[n]
    out B: f64[n]
    for ii in range(0, n, b), jj in range(ii, ii + b, c), k in range(jj, jj + c):
        B[k] = A[k]
""",
    "dimensions that are products": """
kernel k(n, m):
    out A: f64[n * m], B: f64[n * n]
    for i in range(n + m - 1):
        A[i] = 1.0
    for i in range(2 * n - 1):
        B[i] = 1.0
""",
    "digits": """
kernel k(n):
    assume n % 4 == 0
    out A: f64[n // 4, 4]
    for i in range(n):
        A[i // 4, i % 4] = 0.0
""",
    "matrix product in any order and in tiles": """
kernel k(n, b):
    in A, B: f64[n, n]
    inout C: f64[n, n]
    tile j, k, i by b
    order kk, jj, k, ii, j, i
    for i in range(n), j in range(n), k in range(n):
        C[i, j] += A[i, k] * B[k, j]
""",
    "Gauss-Seidel, inner loops swapped": """
kernel k(n, t):
    inout A: f64[n, n]
    order s, j, i
    for s in range(t), i in range(1, n - 1), j in range(1, n - 1):
        A[i, j] = A[i - 1, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j]
""",
    "an order that undoes a tiling": """
kernel k(n):
    inout A: f64[n + 1, n + 1]
    tile j by 4
    order i, jj, j
    for i in range(n), j in range(1, n):
        A[i + 1, j - 1] = A[i, j]
""",
    "red and black": """
kernel k(n):
    inout A: f64[n]
    for colour in range(2):
        parallel for i in range(1, n - 1):
            if i % 2 == colour:
                A[i] = A[i - 1] + A[i + 1]
""",
    "parallel rows with a `let`": """
kernel k(n):
    in A: f64[n, n]
    inout y: f64[n]
    parallel for i in range(n):
        for j in range(n):
            let t = A[i, j] * A[i, j]
            y[i] += t
""",
    "a scalar set in the first iteration": """
kernel k(n):
    out s: f64
    temp q: f64
    for i in range(n):
        if i == 0:
            s = 0
            q = 1
        s += q
    s += q
""",
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name: str) -> None:
    assert deep_check(kernel_of(LEGAL[name].lstrip("\n"))) == []


# ---- kernels with findings ----


@pytest.mark.spread(12)
@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_findings(path: Path, golden: Callable[[Path, str], None]) -> None:
    source = read_source(path)
    k = kernel(load_file(source), None)
    found = deep_check(k)
    assert found
    for d in found:
        assert d.code in codes.DEEP_CODES or d.code in codes.CODES
    text = "\n".join(render(source, d) for d in found)
    golden(path.with_suffix(".txt"), text.replace(str(path), path.name) + "\n")
    if errors(found):
        with pytest.raises(InputError) as caught:
            require_legal(k)
        assert caught.value.diagnostics == errors(found)
    else:
        require_legal(k)


def test_there_are_many_cases() -> None:
    assert len(CASES) >= 40
    assert not codes.DEEP_CODES.keys() & codes.CODES.keys()


def test_every_deep_code_is_shown_by_a_case() -> None:
    shown = {c for p in CASES for c in re.findall(r"(?:error|warning)\[([a-z-]+)\]", p.with_suffix(".txt").read_text())}
    assert set(codes.DEEP_CODES) <= shown


def test_regrouping_is_one_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "kernel k(n):\n    inout s: f64\n    in A: f64[n, n]\n    order j, i\n"
    k = kernel_of(text + "    for i in range(n), j in range(n):\n        s += A[i, j]\n")
    assert [(d.code, d.severity) for d in deep_check(k)] == [("reduction-order", "error")]
    assert find_reversal(k, reductions=False) == (None, None)
    monkeypatch.setattr("roofdsl.checks.legality.REGROUPING", "warning")
    require_legal(k)


def _allow_pairs(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    for module in (dependence_pairs, legality):
        monkeypatch.setattr(module, "MOST", most)


def test_dependences_after_many_equal_ones_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs of uses in five arrays have the same answers; what comes after them is looked at all the same."""
    _allow_pairs(monkeypatch, 24)
    arrays = [f"a{k}" for k in range(5)]

    def text(loops: str, op: str, last: str) -> str:
        before = [f"        {a}[i, {c}] {op} 1" for a in arrays for c in range(4)]
        dims = f"inout {', '.join(f'{a}: f64[n, 4]' for a in arrays)}, z: f64[n, n]"
        return "\n".join(["kernel k(n):", f"    {dims}", *loops.splitlines(), *before, f"        {last}", ""])

    parallel = "    parallel for i in range(1, n):"
    for last, codes_found in (("z[i, 0] = z[i - 1, 0]", ["parallel-dependence"]), ("z[i, 0] = z[i, 1]", [])):
        assert [d.code for d in legality.check_parallel(kernel_of(text(parallel, "=", last)))] == codes_found

    ordered = "    order j, i\n    for i in range(1, n), j in range(n - 1):"
    for last, is_reversed in (("z[i, j] = z[i - 1, j + 1]", True), ("z[i, j] = z[i - 1, j]", False)):
        found, unknown = find_reversal(kernel_of(text(ordered, "+=", last)), reductions=False)
        assert (found is not None, unknown) == (is_reversed, None)


def test_too_many_pairs_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    k = kernel_of("""kernel k(n):
    out A: f64[4 * n]
    parallel for i in range(n):
        A[4 * i] = 0
        A[4 * i + 1] = 0
        A[4 * i + 2] = 0
        A[4 * i + 3] = 0
""")
    assert legality.check_parallel(k) == []
    _allow_pairs(monkeypatch, 6)  # there are 7 distances
    (found,) = legality.check_parallel(k)
    assert found.severity == "warning" and found.message.endswith("it has too many cases")


def test_stores_to_different_planes_are_no_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs that a constant subscript keeps apart need no question."""
    planes = "".join(f"        A[{p}, i] = 0\n" for p in range(40))
    k = kernel_of(f"kernel k(n):\n    out A: f64[40, n]\n    parallel for i in range(n):\n{planes}")
    _allow_pairs(monkeypatch, 100)
    assert legality.check_parallel(k) == []
    (found,) = legality.check_parallel(
        kernel_of(f"""kernel k(n):
    out A: f64[40, n]
    parallel for i in range(n):
{planes}        A[39, 0] = 1
""")
    )
    assert found.code == "parallel-dependence"


def test_too_hard_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    set_of.cache_clear()  # known sets take no operations
    monkeypatch.setattr(deep, "THOROUGH", 50)
    k = kernel_of(families()[-1].text)
    assert {(d.code, d.severity) for d in deep_check(k)} == {("unchecked", "warning")}
    set_of.cache_clear()
    monkeypatch.setattr(deep, "QUICK", 50)
    require_legal(k)


def test_the_library_is_loaded_late() -> None:
    program = "import sys, roofdsl.checks.deep; sys.exit('islpy' in sys.modules)"
    assert run([sys.executable, "-c", program], check=False).returncode == 0


# ---- random kernels against the oracle ----


@pytest.mark.spread(1)
@pytest.mark.parametrize("block", range(10))
def test_bounds_agree_with_enumeration(block: int) -> None:
    for seed in range(block * 20, block * 20 + 20):
        k = kernel_of(bounds_kernel(seed))
        found = [d for d in deep_check(k) if d.code in ("subscript-bounds", "unchecked")]
        for d in found:
            if d.severity == "error":
                assert (d.span.line, d.span.column) in outside(k, said(k, d)), seed
        lines = k.source.text.split("\n")

        def element(line: int, column: int, lines: list[str] = lines) -> str:
            return lines[line - 1][column - 1 :].split("]")[0]

        known = {element(d.span.line, d.span.column) for d in errors(found)}
        for chosen in sizes(k, (1, 2, 3, 4, 5), (1, 2, 3)):
            assert {element(*place) for place in outside(k, chosen)} <= known, (seed, chosen)


@pytest.mark.spread(1)
@pytest.mark.parametrize("block", range(10))
def test_intents_agree_with_enumeration(block: int) -> None:
    undecided = 0
    for seed in range(block * 20, block * 20 + 20):
        k = kernel_of(intents_kernel(seed))
        found = [d for d in deep_check(k) if d.code == "intent-order"]
        for d in found:
            assert (d.span.line, d.span.column) in unwritten(k, said(k, d)).values(), seed
        names = {d.message.split("`")[1].split("[")[0] for d in found}
        undecided += any(d.code == "unchecked" for d in deep_check(k))
        for chosen in sizes(k, (1, 2, 3, 4, 5), (1, 2, 3)):
            assert unwritten(k, chosen).keys() <= names, (seed, chosen)
    assert undecided <= 4


def check_legality(k: Kernel, seed: int, small: Mapping[str, tuple[int, ...]]) -> str:
    """Compares with enumeration; returns what was found of the directives."""
    found = deep_check(k)
    illegal = [d for d in found if d.code in ("dependence-reversed", "reduction-order")]
    parallel = [d for d in found if d.code == "parallel-dependence"]
    assert not any(d.code == "unchecked" for d in found), seed
    for d in illegal:
        assert order_reversed(k, said(k, d), d.code == "reduction-order"), seed
    names = set()
    for d in parallel:
        names.add(re.findall(r"`parallel for (\w+)`", d.message)[0])
        changed = apply(k) if d.message.startswith("with the directives") else k
        assert re.findall(r"`parallel for (\w+)`", d.message)[0] in dependent_loops(changed, said(k, d)), seed
    for chosen in sizes(k, small["n"], small["others"]):
        if not illegal or illegal[0].code == "reduction-order":
            assert not order_reversed(k, chosen, not illegal), (seed, chosen)
        assert dependent_loops(k, chosen) <= names, (seed, chosen)
        if not parallel:
            assert not dependent_loops(apply(k), chosen), (seed, chosen)
    return illegal[0].code if illegal else "legal"


@pytest.mark.spread(1)
@pytest.mark.parametrize("block", range(10))
def test_legality_agrees_with_enumeration(block: int) -> None:
    outcomes = []
    for seed in range(block * 15, block * 15 + 15):
        k = kernel_of(directive_kernel(seed))
        try:
            apply(k)
        except InputError as error:
            assert [d.code for d in error.diagnostics] == ["tile-bounds"]
            assert error.diagnostics == deep_check(k)[:1] or error.diagnostics[0] in deep_check(k)
            continue
        outcomes.append(check_legality(k, seed, {"n": (3, 5), "others": (2, 3)}))
    assert {"legal", "dependence-reversed"} <= set(outcomes)


def test_legality_of_the_oracles_directives(pytestconfig: pytest.Config) -> None:
    for seed in range(60 if pytestconfig.option.thorough else 12):
        case = random_directive_kernel(seed)
        k = kernel_of(case.text)
        try:
            apply(k)
        except InputError:
            continue
        outcome = check_legality(k, seed, {"n": (4, 6), "others": (2, 3)})
        assert not case.any_order or outcome != "dependence-reversed", seed

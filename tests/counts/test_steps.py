"""The facts of `derive --steps`, against enumeration of every access."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from fractions import Fraction
from functools import cache

import pytest

from roofdsl.counts.derive import derive
from roofdsl.counts.derived import Derivation, Quantity
from roofdsl.counts.growth import growth_of
from roofdsl.loops.model import Kernel
from roofdsl.sets.quasi import Quasi
from roofdsl.tell.derive_text import to_text
from tests.oracle import lru
from tests.oracle.enumerate import executions, run
from tests.oracle.loading import kernel_of

TEXTS = {
    "gemv": "kernel k(n):\n    in A: f64[n, n], x: f64[n]\n    inout y: f64[n]\n"
    "    for i in range(n), j in range(n):\n        y[i] += A[i, j] * x[j]\n",
    "matmul": "kernel k(n):\n    in A, B: f64[n, n]\n    out C: f32[n, n]\n    for i in range(n), j in range(n):\n"
    "        C[i, j] = 0\n        for k in range(n):\n            C[i, j] += A[i, k] * B[k, j]\n",
    "jacobi": "kernel k(n):\n    assume n >= 3\n    in A: f64[n, n]\n    out B: f64[n, n]\n"
    "    for i in range(1, n - 1), j in range(1, n - 1):\n"
    "        B[i, j] = A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j]\n",
    "triangle": "kernel k(n):\n    in L: f64[n, n]\n    inout x: f64[n]\n    for i in range(n):\n"
    "        for j in range(i):\n            x[i] -= L[i, j] * x[j]\n        x[i] /= L[i, i]\n",
}
CONVENTIONS = ("once", "load_store", "write_allocate")


@cache
def derivation(name: str, convention: str) -> Derivation:
    return derive(kernel_of(TEXTS[name]), traffic=convention, steps=True)  # type: ignore[arg-type]


def at(q: Quantity | None, n: int) -> Fraction:
    assert q is not None
    assert q.form is not None
    return q.form.evaluate({"n": n})


@pytest.mark.spread(3)
@pytest.mark.parametrize("name", TEXTS)
def test_executions_and_operations_add_up(name: str) -> None:
    d = derivation(name, "once")
    assert d.steps is not None
    for n in (3, 6, 9):
        counts = executions(d.kernel, {"n": n})
        assert [at(s.executions, n) for s in d.steps.statements] == list(counts.values())
        assert sum(s.total * at(s.executions, n) for s in d.steps.statements) == at(d.work.total, n)
        assert sum(s.fused_pairs * at(s.executions, n) for s in d.steps.statements) == at(d.work.fused_pairs, n)


@pytest.mark.spread(5)
@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("name", TEXTS)
def test_arrays_are_what_is_touched_and_add_up_to_q(name: str, convention: str) -> None:
    d = derivation(name, convention)
    assert d.steps is not None
    for n in (3, 7):
        touched: dict[str, set[tuple[int, ...]]] = defaultdict(set)
        for e in run(d.kernel, {"n": n}):
            for a in e.accesses:
                touched[a.array].add(a.index)
        assert {a.name: at(a.distinct, n) for a in d.steps.arrays} == {k: len(v) for k, v in touched.items()}
        want = lru.traffic(d.kernel, {"n": n}, None, None, convention)
        if convention == "once":
            assert sum(at(a.bytes, n) for a in d.steps.arrays) == want.bytes
        else:
            assert sum(at(a.loaded, n) for a in d.steps.arrays) == want.loads
            assert sum(at(a.stored, n) for a in d.steps.arrays) == want.stores


@pytest.mark.parametrize("name", TEXTS)
def test_what_happens_to_an_array_first(name: str) -> None:
    d = derivation(name, "load_store")
    assert d.steps is not None
    found = {a.name: a.first for a in d.steps.arrays}
    want = {
        "gemv": {"A": "read", "x": "read", "y": "read, then written"},
        "matmul": {"A": "read", "B": "read", "C": "written, then read"},
        "jacobi": {"A": "read", "B": "written"},
        "triangle": {"L": "read", "x": "read, then written"},
    }
    assert found == want[name]


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("name", TEXTS)
def test_arrays_of_a_plateau_add_up_to_its_traffic(name: str, convention: str) -> None:
    d = derivation(name, convention)
    assert d.steps is not None
    order = growth_of(d.kernel)
    assert len(d.steps.plateaus) == len(d.plateaus)
    for row in d.steps.plateaus:
        total = Quasi.constant(0)
        for _, q in row.by_array:
            assert q.form is not None
            total = total + (q.form.single or Quasi.constant(0))
        assert row.plateau.bytes.form is not None
        assert order.leading(total) == order.leading(row.plateau.bytes.form.single or Quasi.constant(0))


def brute_force(kernel: Kernel, n: int) -> dict[tuple[str, str | None], tuple[int, int, int]]:
    """(array, loop that brings it; None within its iteration) -> (how often, least, greatest distance in bytes)."""
    sizes = {a.name: a.type.bytes for a in kernel.arrays}
    loops = [p.name for p in kernel.parameters]
    stack: OrderedDict[tuple[str, tuple[int, ...]], dict[str, int]] = OrderedDict()
    found: dict[tuple[str, str | None], list[int]] = defaultdict(list)
    for e in run(kernel, {"n": n}):
        env = {k: v for k, v in e.env.items() if k not in loops}
        for k, a in enumerate(e.accesses):
            key = (a.array, a.index)
            updated = k > 0 and a.is_write and not e.accesses[k - 1].is_write and e.accesses[k - 1].index == a.index
            if key in stack and not (updated and e.accesses[k - 1].array == a.array):
                distance = 0
                for other in reversed(stack):
                    distance += sizes[other[0]]
                    if other == key:
                        break
                before = stack[key]
                loop = next((v for v in env if v in before and before[v] != env[v]), None)
                found[a.array, loop].append(distance)
            stack[key] = env
            stack.move_to_end(key)
    return {key: (len(v), min(v), max(v)) for key, v in found.items()}


@pytest.mark.spread(2)
@pytest.mark.parametrize("name", TEXTS)
def test_reuses_are_those_of_the_access_stream(name: str) -> None:
    d = derivation(name, "once")
    assert d.steps is not None
    n = 20
    counted = brute_force(d.kernel, n)
    times: dict[tuple[str, str | None], Fraction] = defaultdict(Fraction)
    high: dict[tuple[str, str | None], Fraction] = defaultdict(Fraction)
    for r in d.steps.reuses:
        key = (r.array, None if r.within else r.loop)
        times[key] += at(r.times, n)
        high[key] = max(high[key], at(r.high, n))
    for key, number in times.items():  # leading terms: a few of n = 20 short
        often, _, greatest = counted[key]
        assert 0.7 * often <= number <= 1.5 * often, key
        assert 0.6 * greatest <= high[key] <= 1.4 * greatest, key
    most = max(often for often, _, _ in counted.values())
    missing = {k for k, (often, _, _) in counted.items() if often > most / 4} - times.keys()
    assert not missing


@pytest.mark.spread(2)
@pytest.mark.parametrize("line", [None, 64])
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "kernel k(n, w = 5):\n    in A: f64[n], f: f64[w]\n    inout B: f64[n]\n"
            "    for i in range(n - w), q in range(w):\n        B[i] += A[i + q] * f[q]\n"
            "    for i in range(n):\n        B[i] = 0\n",
            "whether a statement is executed depends on which of its sizes is larger",
        ),
        (
            "kernel k(n, m = 3):\n    assume n <= 100\n    in A: f64[n]\n    inout B: f64[n, m]\n"
            "    for i in range(n), j in range(m):\n        B[i, j] += A[i]\n",
            "its assumptions do not allow large sizes",
        ),
    ],
)
def test_plateaus_of_some_sizes_have_no_reuse_for_large_ones(text: str, why: str, line: int | None) -> None:
    d = derive(kernel_of(text), steps=True, line_bytes=line)
    assert d.steps is not None
    assert d.steps.reuses == () == d.steps.plateaus
    assert d.steps.note == (why if d.plateaus else "")
    assert d.plateaus or d.plateaus_note == why
    assert " ".join(to_text(d).split()).count(f"no closed form: {why}") == 1


def test_every_side_of_the_intensity_holds_where_it_is_shown() -> None:
    """W > 0 only for n > w, and Q has other cases, so that the parts of one case are no parts of another."""
    text = """kernel k(n, w):
    in A: f64[n], f: f64[w]
    out B: f64[n]
    for i in range(n):
        B[i] = 0
    for i in range(n - w), q in range(w):
        B[i] += A[i + q] * f[q]
"""
    told = to_text(derive(kernel_of(text), plateaus=False, steps=True))
    (line,) = (line for line in told.splitlines() if line.lstrip().startswith("I = "))
    sides = line.split(" FLOP/B", maxsplit=1)[0].split(" = ")[1:]
    assert sides[0] == "W/Q" and len(sides) > 1
    for n, w in ((5, 1), (8, 3), (9, 8)):
        work = 2 * (n - w) * w
        read = len({i + q for i in range(n - w) for q in range(w)}) + w
        for side in sides[1:]:
            assert eval(side, {"n": Fraction(n), "w": Fraction(w)}) == Fraction(work, 8 * (read + n))
    assert "fused pairs if n >= w + 1" in told

"""`derive` of kernels with index arrays: W and bounds against streams written by hand, alpha as the paper has it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from typing import cast, get_args

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from roofdsl.counts.closed_forms import ClosedForms, NoClosedForm
from roofdsl.counts.derive import derive
from roofdsl.counts.derived import Derivation, Quantity, combined
from roofdsl.counts.indirect_groups import Counted
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Traffic
from roofdsl.matrices.attach import with_data
from roofdsl.sets.cases import Case, Cases
from roofdsl.sets.quasi import Quasi
from roofdsl.tell.derive_json import to_json
from roofdsl.tell.derive_latex import to_latex
from roofdsl.tell.derive_text import to_text
from roofdsl.tell.schemas.commands import schema_of
from tests.models.shipped import model
from tests.oracle.loading import kernel_of
from tests.oracle.sparse import csr_arrays, csr_stream, lru_bytes, places

MATRICES = (
    "banded:n=30,w=2",
    "random:n=25,row=6,seed=1",
    "random:n=18,m=70,row=2,seed=2",
    "powerlaw:n=20,row=9,exponent=1,seed=3",
)


def of_csr(dense: Mapping[str, int], cache: int | None, line: int | None) -> Derivation:
    return derive(model("spmv_csr"), dense, traffic="load_store", cache_bytes=cache, line_bytes=line)


@pytest.mark.spread(2)
@pytest.mark.parametrize("line", [None, 32])
@pytest.mark.parametrize("source", MATRICES)
def test_the_bounds_hold(source: str, line: int | None) -> None:
    dense = places(source)
    sizes = {"n": dense.shape[0], "m": dense.shape[1], "nnz": int(dense.sum())}
    for cache_bytes in (None, 512):
        moved = lru_bytes(csr_stream(dense), csr_arrays(dense), cache_bytes or 1 << 40, line)
        d = of_csr(sizes, cache_bytes, line)
        assert d.work.total.value == 2 * sizes["nnz"]
        ends = d.interval(d.at_cache.bytes, d.shares_at_cache)
        assert ends is not None and ends[0] <= sum(moved.values()) <= ends[1]
        for share in d.shares_at_cache:
            alpha = Fraction(moved[share.array], int(share.accesses.value or 0) * share.element_bytes)
            assert share.low is not None and share.high is not None
            assert share.low <= alpha <= share.high, (share.array, cache_bytes)
        known = {n: q for n, q in d.by_array.items() if n not in {s.array for s in d.shares}}
        if cache_bytes is None:
            assert known.keys() == {"rowptr", "col", "val", "y"}
            assert {n: q.value for n, q in known.items()} == {n: moved[n] for n in known}


@pytest.mark.spread(2)
@pytest.mark.parametrize("line", [None, 32])
@pytest.mark.parametrize("source", MATRICES[1:])
def test_any_cache_lies_between(source: str, line: int | None) -> None:
    """Every cache from the smallest on, and the one from which on nothing but the compulsory traffic is left."""
    dense = places(source)
    sizes = {"n": dense.shape[0], "m": dense.shape[1], "nnz": int(dense.sum())}
    d = derive(model("spmv_csr"), sizes, traffic="load_store", line_bytes=line, any_cache=True)
    assert d.any_cache is not None and d.between is not None
    ends = d.interval(d.any_cache.bytes, d.between.shares)
    whole, smallest = d.between.whole.value, d.between.from_bytes
    assert ends is not None and whole is not None
    arrays = csr_arrays(dense)
    assert whole == sum(-(-n * size // (line or size)) * (line or size) for n, size in arrays.values())
    for cache in (smallest, 2 * smallest, 700, int(whole) // 2, int(whole)):
        moved = sum(lru_bytes(csr_stream(dense), arrays, cache, line).values())
        assert ends[0] <= moved <= ends[1], cache
    compulsory = sum(lru_bytes(csr_stream(dense), arrays, 1 << 40, line).values())
    assert moved == compulsory
    document = to_json(d)
    Draft202012Validator(schema_of("derive")).validate(document)
    assert document["any_cache"]["from_bytes"] == smallest
    assert document["any_cache"]["interval"] == {"least": ends[0], "most": ends[1]}
    text = to_text(d)
    assert f"for every Z >= {smallest} B" in text and "a line for each access" in text


@pytest.mark.spread(2)
@pytest.mark.parametrize("line", [None, 32])
@pytest.mark.parametrize("source", MATRICES[2:])
def test_data_make_it_exact(source: str, line: int | None) -> None:
    dense = places(source)
    kernel, sizes = with_data(model("spmv_csr"), [f"rowptr,col={source}"], {})
    for cache_bytes in (None, 300):
        moved = lru_bytes(csr_stream(dense), csr_arrays(dense), cache_bytes or 1 << 40, line)
        d = derive(kernel, sizes, traffic="load_store", cache_bytes=cache_bytes, line_bytes=line)
        (share,) = (s for s in d.shares_at_cache if s.array == "x")
        assert d.at_cache.bytes.value == sum(moved.values())
        assert share.value == Fraction(moved["x"], 8 * int(dense.sum()))
        if cache_bytes is None:  # the form, with alpha's value in it, is the traffic
            assert d.interval(d.compulsory.bytes, d.shares) == (d.compulsory.bytes.value,) * 2


@pytest.mark.spread(1)
@pytest.mark.parametrize("part", ["0, d", "1, d", "2, 5"])
@pytest.mark.parametrize("stated", ["", "    assume token takes 3 values\n"])
def test_rows_that_the_data_choose(part: str, stated: str) -> None:
    """Parts of rows that begin anywhere in a line, a few of them again and again."""
    kernel = kernel_of(f"""kernel rows(words, d):
    in token: i32[words] index(9), table: f32[9, d]
    out sum: f32[d]
    assume d >= 5
{stated}    for e in range({part}):
        sum[e] = 0
    for t in range(words), e in range({part}):
        sum[e] = table[token[t], e]
""")
    rng = np.random.default_rng(3)
    for d, words, line in product((5, 20), (3, 8), (None, 16, 64)):
        rows = rng.permutation(9)[:3]
        tokens = [*rows, *rng.choice(rows, words - 3)]
        first, last = (d if s == " d" else int(s) for s in part.split(","))
        touched = {(t * d + e) * 4 // (line or 4) for t in tokens for e in range(first, last)}
        (share,) = (s for s in derive(kernel, {"d": d, "words": words}, line_bytes=line).shares if s.array == "table")
        alpha = Fraction(len(touched) * (line or 4), words * (last - first) * 4)
        assert share.low is not None and share.high is not None and share.low <= alpha <= share.high
        assert not stated or line or share.low == alpha == share.high


def test_alpha_of_the_paper() -> None:
    """6 + 4 alpha + 8 / N_nzr bytes a FLOP for f64 and 32-bit indices, without the row offsets."""
    d = derive(model("spmv_csr"), traffic="write_allocate")
    (share,) = d.shares
    assert (share.name, share.references, share.element_bytes) == ("alpha_x", ("x[col[k]]",), 8)
    form = d.compulsory.bytes.form
    assert form is not None and form.single is not None
    for row, alpha in ((7, Fraction(1, 7)), (27, Fraction(1, 2)), (3, Fraction(1))):
        n = 10**6
        at = {"n": n, "m": n, "nnz": n * row}
        moved = form.single.evaluate({**at, "alpha_x": alpha})
        offsets = 4 * (n + 1)
        assert (moved - offsets) / (2 * n * row) == 6 + 4 * alpha + Fraction(8, row)
        (here,) = derive(model("spmv_csr"), at, traffic="write_allocate").shares
        assert (here.low, here.high) == (Fraction(1, n * row), Fraction(1, row))


def test_what_is_stated_narrows() -> None:
    text = """kernel k(n, m, nnz, d):
    in rowptr: i32[n + 1], col: i32[nnz] index(m), val: f64[nnz], x: f64[m]
    out y: f64[n]
    temp s: f64
    assume rowptr rises from 0 to nnz
    assume col takes d values
    assume x has alpha 0.25
    for i in range(n):
        s = 0
        for k in range(rowptr[i], rowptr[i + 1]):
            s += val[k] * x[col[k]]
        y[i] = s
"""
    at = {"n": 10, "m": 40, "nnz": 100, "d": 30}
    d = derive(kernel_of(text), at, cache_bytes=1024)
    (compulsory,) = d.shares
    assert compulsory.low == compulsory.high == Fraction(30, 100)
    assert {s.array: s.low for s in d.cache_shares}["x"] == Fraction(1, 4)


def test_collisions_of_output() -> None:
    """What `y[row[k]] +=` moves is loaded and stored; an `out` that is set everywhere is exact."""
    d = derive(model("spmv_coo"), {"n": 50, "m": 60, "nnz": 400}, traffic="load_store")
    assert {s.array: (s.loads, s.stores) for s in d.shares} == {"x": (True, False), "y": (True, True)}
    assert d.interval(d.compulsory.bytes, d.shares) == (400 * 16 + 8 + 16, 400 * 16 + 60 * 8 + 50 * 16)
    d = derive(model("histogram"), {"n": 1000, "bins": 16}, traffic="load_store")
    assert d.shares == () and d.compulsory.bytes.value == 4000 + 64
    d = derive(model("embedding_lookup"), {"words": 9, "vocabulary": 5, "d": 4}, traffic="load_store")
    assert d.interval(d.compulsory.bytes, d.shares) == (9 * 4 + 9 * 16 + 16, 9 * 4 + 9 * 16 + 5 * 16)


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", ["spmv_csr", "spmv_ell", "spmv_sell", "spmv_coo", "histogram", "embedding_lookup"])
def test_every_shipped_kernel_is_told(name: str) -> None:
    kernel = model(name)
    sizes = dict.fromkeys((p.name for p in kernel.parameters), 64)
    for values, cache, traffic in (({}, None, "once"), (sizes, 4096, "load_store"), (sizes, 4096, "write_allocate")):
        line = None if cache is None else 64
        d = derive(kernel, values, traffic=cast(Traffic, traffic), cache_bytes=cache, line_bytes=line)
        assert d.work.total.form is not None
        missing = "how much of count_of is read before it is written depends on the data"
        told = " ".join(to_text(d).split("Plateaus")[0].split())
        expected = name == "histogram" and traffic == "load_store"
        assert ("no closed form: " in told) == (missing in told) == expected, told
        Draft202012Validator(schema_of("derive")).validate(to_json(d))
        assert "alpha" in to_latex([d]) or not d.shares


def bounds(d: Derivation) -> object:
    return d.interval(d.compulsory.bytes, d.shares)


def test_loops_that_run_for_some_sizes_only() -> None:
    """Each element of `col`, `v` and `y` is accessed once, so what `x` moves is all that the data can change."""
    kernel = kernel_of("""kernel k(n, m):
    in col: i32[n] index(m), v: f64[n], x: f64[m]
    out y: f64[n]
    for i in range(n - 2):
        y[i] = v[i] * x[col[i]]
""")
    for traffic in get_args(Traffic):
        d = derive(kernel, traffic=traffic)
        for n in (1, 2, 3, 9):
            times, m = max(0, n - 2), 5
            rest = times * (4 + 8 + (16 if traffic == "write_allocate" else 8))
            at = derive(kernel, {"n": n, "m": m}, traffic=traffic)
            if times:
                assert bounds(at) == (rest + 8, rest + 8 * min(times, m))
            form = d.compulsory.bytes.form
            assert form is not None and form.evaluate({"n": n, "m": m, "alpha_x": 1}) == rest + 8 * times
            if d.compulsory.loads is not None:
                loads = d.compulsory.loads.form
                assert loads is not None
                assert loads.evaluate({"n": n, "m": m, "alpha_x": 1}) == rest  # x is loaded, and y is stored


def test_sums_keep_what_their_parts_assume() -> None:
    """One element of each row: as many lines as rows only if no two rows begin in one line."""
    kernel = kernel_of("""kernel k(n, w, m):
    in col: i32[n] index(m), v: f64[n, w], x: f64[m]
    out y: f64[n]
    for i in range(n):
        y[i] = v[i, 0] * x[col[i]]
""")
    for w, whole in ((8, True), (5, False)):
        d = derive(kernel, {"n": 10, "m": 7, "w": w}, traffic="load_store", line_bytes=64)
        assert d.compulsory.bytes.assumes == d.by_array["v"].assumes != ()
        lines = {name: len({i * step // 64 for i in range(10)}) for name, step in (("v", 8 * w), ("col", 4), ("y", 8))}
        assert (lines["v"] == 10) == whole
        moved = 64 * (sum(lines.values()) + 1)  # all of x is in one line
        assert bounds(d) == ((moved, moved) if whole else None)


def test_sums_of_cases() -> None:
    n = Quasi.symbol("n")
    some, more = (((n - 3, False),),), (((n * -1 + 2, False),),)
    none, one, two = Cases(()), Cases((Case(some, n),)), Cases((Case(more, n * 2), Case(some, n * 3)))
    for a, b in product((none, one, two), repeat=2):
        for factor in (1, -1):
            found = combined(Quantity(a), Quantity(b), factor).form
            assert found is not None
            for size in range(6):
                at = {"n": size}
                assert found.evaluate(at) == a.evaluate(at) + factor * b.evaluate(at)
    assert combined(Quantity(one), Quantity(Cases((Case(more, n),))), 1).form is None


def test_arrays_without_a_form_are_not_known_to_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = kernel_of("""kernel k(n, m):
    in col: i32[n] index(m), x: f64[m]
    out y: f64[n]
    for i in range(n):
        y[i] = x[col[i]] + x[0]
""")
    counted = Counted(kernel, {}, None)
    assert [counted.reaches_all(g.array, g.known) for g in counted.groups] == [True, False, True]

    def too_hard(_: ClosedForms) -> dict[str, Cases]:
        raise NoClosedForm("too hard")

    monkeypatch.setattr(ClosedForms, "by_array", too_hard)
    assert not any(counted.reaches_all(g.array, g.known) for g in counted.groups)


def test_trips_that_are_not_known() -> None:
    text = """kernel k(n, m):
    in first: i32[n] index(m), last: i32[n] index(m), x: f64[m]
    inout y: f64[n]
    for i in range(n):
        for k in range(first[i], last[i]):
            y[i] += x[k]
"""
    with pytest.raises(CommandError, match="how often the loop over k runs in all is not known"):
        derive(kernel_of(text))
    with pytest.raises(CommandError, match="how often the loop over k runs in all is not known"):
        derive(kernel_of(text), any_cache=True)
    with pytest.raises(CommandError, match="step by step"):
        derive(model("spmv_csr"), steps=True)

"""Matrices from generators and files, against dense ones made by hand; and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.sized import Sized
from roofdsl.matrices.attach import parse_source, with_data
from roofdsl.matrices.files import read_file
from roofdsl.matrices.generate import generated
from roofdsl.matrices.matrix import Matrix, matrix
from roofdsl.matrices.points import touching, unfolded
from tests.models.shipped import model
from tests.oracle.loading import kernel_of
from tests.oracle.sparse import places, write_market

SOURCES = (
    "banded:n=9,w=2",
    "banded:n=4,m=9,w=3",
    "random:n=20,row=3,seed=5",
    "random:n=7,m=30,row=9,seed=6",
    "powerlaw:n=15,row=4,exponent=1.5,seed=7",
)


def dense_of(found: object) -> np.ndarray:
    assert isinstance(found, Matrix)
    dense = np.zeros((found.rows, found.columns), dtype=bool)
    dense[found.row, found.column] = True
    assert dense.sum() == found.entries
    return dense


@pytest.mark.parametrize("source", SOURCES)
def test_generators(source: str) -> None:
    assert (dense_of(generated(source)) == places(source)).all()


@pytest.mark.parametrize("exponent", ["", ",exponent=1.5"])
def test_routing_chooses_different_columns(exponent: str) -> None:
    """Each row has as many different columns as it draws; column 0 is drawn most if chances fall."""
    dense = dense_of(generated(f"routing:n=400,m=8,row=3,seed=1{exponent}"))
    assert dense.shape == (400, 8) and (dense.sum(axis=1) == 3).all()
    load = dense.sum(axis=0)
    if exponent:
        assert load[0] > 2.5 * load[7] and load[0] > 350
    else:
        assert load.min() > 110 and load.max() < 190  # 150 each
    with pytest.raises(CommandError, match="different columns"):
        generated("routing:n=4,m=2,row=3,seed=1")


def test_rows_become_columns() -> None:
    """CSR of a transposed matrix, and what is no matrix."""
    source = "random:n=7,m=30,row=9,seed=6"
    kernel, sizes = with_data(model("spmv_csr"), [f"rowptr,col={source}+transposed"], {})
    assert kernel.data is not None
    row = np.repeat(np.arange(30), np.diff(kernel.data.values["rowptr"]))
    dense = np.zeros((30, 7), dtype=bool)
    dense[row, kernel.data.values["col"]] = True
    assert (dense == places(source).T).all() and (sizes["n"], sizes["m"]) == (30, 7)
    assert "transposed" in kernel.data.about[0]
    with pytest.raises(CommandError, match="list of integers"):
        with_data(model("histogram"), ["bin=random:n=9,count=5,seed=1+transposed"], {})


def test_a_source_takes_its_additions_in_either_order() -> None:
    one, other = (parse_source(f"chunk,col=A.mtx{more}") for more in ("+transposed+sigma=64", "+sigma=64+transposed"))
    assert one == other and (one.text, one.sigma, one.transposed) == ("A.mtx", 64, True)


@pytest.mark.parametrize(("name", "sigma"), [("spmv_sell", ""), ("spmv_sell", "+sigma=16"), ("spmv_ell", "")])
def test_the_fill_of_padded_formats_is_told(name: str, sigma: str) -> None:
    """beta: entries by stored ones, counted from the lengths of rows."""
    source = "powerlaw:n=64,m=90,row=7,exponent=1,seed=3"
    lengths = places(source).sum(axis=1)
    names = "chunk,col" if name == "spmv_sell" else "col"
    kernel, _ = with_data(model(name), [f"{names}={source}{sigma}"], {"C": 4} if name == "spmv_sell" else {})
    if name == "spmv_ell":
        stored = 64 * lengths.max()
    else:
        by_window = [sorted(w, reverse=True) for w in lengths.reshape(-1, 16)] if sigma else lengths.reshape(-1, 16)
        stored = 4 * np.array(by_window).reshape(-1, 4).max(axis=1).sum()
    assert kernel.data is not None
    assert f"beta {lengths.sum() / stored:.3g}" in kernel.data.about[0]


def test_lists() -> None:
    found = generated("powerlaw:n=50,count=4000,exponent=1,seed=2")
    assert isinstance(found, np.ndarray) and found.min() >= 0 and found.max() < 50
    share = np.bincount(found, minlength=50)[0] / 4000
    assert abs(share - 1 / sum(1 / k for k in range(1, 51))) < 0.03


def test_files(tmp_path: Path) -> None:
    dense = np.random.default_rng(1).random((6, 8)) < 0.4
    write_market(tmp_path / "a.mtx", dense)
    assert (dense_of(read_file(tmp_path / "a.mtx", "col")) == dense).all()
    (tmp_path / "s.mtx").write_text("%%MatrixMarket matrix coordinate pattern symmetric\n\n3 3 2\n2 1\n3 3\n")
    want = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1]], dtype=bool)
    assert (dense_of(read_file(tmp_path / "s.mtx", "col")) == want).all()
    row, column = np.nonzero(dense)
    indptr = np.concatenate([[0], np.cumsum(dense.sum(axis=1))])
    np.savez(
        tmp_path / "s.npz", indptr=indptr, indices=column, shape=dense.shape, format=b"csr", data=np.ones(len(row))
    )
    assert (dense_of(read_file(tmp_path / "s.npz", "col")) == dense).all()
    np.savez(tmp_path / "t.npz", col=column, other=row)
    assert (read_file(tmp_path / "t.npz", "col") == column).all()
    np.save(tmp_path / "t.npy", column.astype(np.uint8))
    assert (read_file(tmp_path / "t.npy", "col") == column).all()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.mtx", "", "does not begin"),
        ("a.mtx", "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n", "dense"),
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n", "damaged"),
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 1\n", "announces 3"),
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1\n", "outside"),
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\nx y 1\n", "damaged"),
        ("a.mtx", "%%MatrixMarket matrix coordinate real symmetric\n3 5 1\n1 5 1\n", "is square"),
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n9999999999 2 1\n1 1 1\n", "too large"),
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n-2 2 1\n1 1 1\n", "no rows"),
        ("a.npz", "no zip", "damaged"),
        ("a.npy", "no array", "damaged"),
        ("a.csv", "1,2", "no known kind"),
    ],
)
def test_damaged_files(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(CommandError, match=said):
        read_file(tmp_path / name, "col")


def test_pickles_are_not_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(CommandError, match="damaged"):
        read_file(tmp_path / "a.npy", "col")
    with pytest.raises(CommandError, match="cannot be read"):
        read_file(tmp_path / "missing.mtx", "col")


@pytest.mark.parametrize(
    ("kernel", "data", "settings", "said"),
    [
        ("spmv_csr", ["rowptr,col=banded:n=9,w=1"], {"n": 8}, "data say 10"),
        ("spmv_csr", ["rowptr,cole=banded:n=9,w=1"], {}, "no index array `cole`"),
        ("spmv_csr", ["rowptr,val=banded:n=9,w=1"], {}, "no index array `val`"),
        ("spmv_csr", ["rowptr=banded:n=9,w=1"], {}, "cannot hold it"),
        ("spmv_csr", ["rowptr,col=random:n=9,count=4,seed=1"], {}, "list of integers"),
        ("spmv_csr", ["rowptr,col=banded:n=9,w=1", "col=random:n=9,count=4"], {}, "twice"),
        ("spmv_csr", ["col=random:n=9,count=4"], {"m": 9}, "values of rowptr"),
        ("spmv_csr", ["rowptr,col"], {}, "not of the form"),
        ("spmv_csr", ["rowptr,col=banded:n=9"], {}, "does not say `w`"),
        ("spmv_csr", ["rowptr,col=banded:n=9,w=1,row=3"], {}, "no option"),
        ("spmv_csr", ["rowptr,col=random:n=999999999,row=999999999"], {}, "`n` is 999,999,999, and the limit"),
        ("spmv_csr", ["rowptr,col=powerlaw:n=9,m=999999999,row=1"], {}, "`m` is 999,999,999, and the limit"),
        ("spmv_csr", ["rowptr,col=random:n=99999,row=99999"], {}, "takes 9,999,800,001 draws, and the limit"),
        ("spmv_csr", ["rowptr,col=banded:n=99999,w=9999"], {}, "makes 1,999,880,001 entries, and the limit"),
        ("spmv_csr", ["rowptr,col=powerlaw:n=9,row=1,exponent=-1"], {}, "exponent"),
        ("spmv_csr", ["rowptr,col=random:n=9,row=1,seed=-1"], {}, "seed"),
        ("spmv_csr", ["rowptr,col=banded:n=9,w=1+sigma=4"], {}, "SELL"),
        ("spmv_sell", ["chunk,col=banded:n=9,w=1+sigma=x"], {}, "sigma"),
        ("gemv", ["A=banded:n=9,w=1"], {}, "affine"),
    ],
)
def test_refused(kernel: str, data: list[str], settings: dict[str, int], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        with_data(model(kernel), data, settings)


@pytest.mark.parametrize("times", [1_000_000_000, (1 << 63) // 1000 + 1])
def test_executions_that_are_too_many_take_no_memory(times: int) -> None:
    """1,000 rows would become more than 10**12, or more than 2**63."""
    text = """kernel rows(n, m, nnz, k):
    in rowptr: i32[n + 1], col: i32[nnz] index(m), x: f64[m]
    inout y: f64[n]
    assume rowptr rises from 0 to nnz
    for i in range(n), t in range(k), j in range(rowptr[i], rowptr[i + 1]):
        y[i] += x[col[j]]
"""
    kernel, sizes = with_data(kernel_of(text), ["rowptr,col=banded:n=1000,w=1"], {})
    at = Sized(kernel, {**sizes, "k": 5})
    assert [unfolded(at, t.placed).number for t in touching(kernel)] == [1000 * 5, 2998 * 5]
    at = Sized(kernel, {**sizes, "k": times})
    for part in touching(kernel):
        with pytest.raises(CommandError, match="runs too long at these sizes"):
            unfolded(at, part.placed)


def test_values_are_checked(tmp_path: Path) -> None:
    text = """kernel k(n, m, d):
    in p: i32[n] index(m), q: i32[n]
    inout y: f64[m]
    assume q rises from 0 to d
    assume p takes d values
    for i in range(n):
        for k in range(q[i]):
            y[p[i]] += 1
"""

    def given(p: list[int], q: list[int], **sizes: int) -> None:
        np.savez(tmp_path / "a.npz", p=p, q=q)
        with_data(kernel_of(text), [f"p={tmp_path}/a.npz", f"q={tmp_path}/a.npz"], sizes)

    given([1, 1, 2], [0, 1, 2], m=3)
    for p, q, sizes, said in (
        ([1, 1, 3], [0, 1, 2], {"m": 3}, "holds 3, but its values must be from 0 to 2"),
        ([1, 1, -1], [0, 1, 2], {"m": 3}, "holds -1"),
        ([1, 1, 2], [0, 3, 2], {"m": 3}, "does not rise"),
        ([1, 1, 1], [0, 1, 2], {"m": 3}, "takes 1 values"),
        ([1, 1, 2], [0, 1, 2], {}, "--set m=1000|`m` does not follow"),
        ([1, 2], [0, 1, 2], {"m": 3}, "data say|data 2"),
    ):
        with pytest.raises(CommandError, match=said):
            given(p, q, **sizes)


@pytest.mark.parametrize(
    "source",
    ["random:n=100,row=8,seed=1", "powerlaw:n=10,count=900,seed=1", "banded:n=300,w=1", "A.mtx", "A.npz", "A.npy"],
)
def test_what_needs_more_memory_than_there_is(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """48 B an entry: six numbers."""
    write_market(tmp_path / "A.mtx", places("banded:n=300,w=1"))
    np.save(tmp_path / "A.npy", np.arange(900))
    np.savez_compressed(tmp_path / "A.npz", np.arange(900))

    def found() -> object:
        return generated(source) if ":" in source else read_file(tmp_path / source, "a")

    monkeypatch.setattr("roofdsl.budget.available_bytes", lambda: 48 * 1000)
    assert found() is not None
    monkeypatch.setattr("roofdsl.budget.available_bytes", lambda: 48 * 700)
    with pytest.raises(
        CommandError, match=r"the [89]\d\d entries of .* need .* GiB of memory, and .* GiB are available"
    ):
        found()


def test_equal_draws_become_one_entry() -> None:
    """Places in any order, some of them twice, against numpy's `unique`; places in order are kept as they are."""
    rng = np.random.default_rng(3)
    for n, m, entries in ((1, 1, 5), (7, 3, 100), (50, 400, 30), (20, 20, 0)):
        row, column = rng.integers(0, n, entries), rng.integers(0, m, entries)
        want = np.unique(row * m + column)
        made = matrix(n, m, row.copy(), column.copy(), "")
        assert (made.row * m + made.column).tolist() == want.tolist() and (made.column < m).all()
        again = matrix(n, m, made.row, made.column, "")
        assert again.row.tolist() == made.row.tolist() and again.column.tolist() == made.column.tolist()

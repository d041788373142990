"""The table of sparse kernels: what it says of made-up launches, and one short launch."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import sparse
from benchmarks.sparse import LISTS, MATRICES, Row, section
from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.find import load_machine
from roofdsl.matrices.attach import parse_source

HERE = load_machine("haswell_e5_2695v3")


def row(kernel: str, measured: float, others: float = 0.0) -> Row:
    return Row(kernel, "random:n=9,row=2,seed=1", measured, 2e-3, 1e-3, "a cause", others)


def test_the_medians_are_of_distances_from_the_expected_time() -> None:
    """0.5, 0.1 and 0.3 above or below the expected 2 ms; the list counts only among all launches."""
    rows = [row("spmv_csr", 1e-3), row("spmv_ell", 2.2e-3), row("spmv_coo", 2.6e-3), row("histogram", 2e-3)]
    told = section(HERE, rows)
    assert "3 matrices: 30%" in told and "4 all launches: 20%" in told and "Others used" not in told
    line = "| `spmv_ell` | `random:n=9,row=2,seed=1` | 2.2 ms | 2 ms | 1.10 | a cause |"
    assert line in told.split("\n")
    assert "Others used up to 1.5 cores in 1 launches" in section(HERE, [*rows, row("histogram", 1e-3, 1.5)])


def test_twelve_matrices_are_compared_and_every_source_is_one() -> None:
    assert len(MATRICES) == 12
    for name, arrays, source in (*MATRICES, *LISTS):
        assert parse_source(f"{arrays}={source}").names == tuple(arrays.split(",")), name


def test_a_machine_of_another_processor_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "other.roof"
    file.write_text(
        'machine other:\n    processor "Imaginary 1"\n    peak f64 1 GFLOP/s\n    memory RAM 1 GiB, 1 GB/s\n',
        encoding="utf-8",
    )
    with pytest.raises(CommandError, match="was measured on Imaginary 1"):
        sparse.run(file)


def test_names_and_the_time_limit(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "_machine", lambda path: HERE)
    told = sparse.run(None, ["embedding_lookup"], seconds=-1)
    assert told.count("the time limit was reached") == 1 and "embedding_lookup" in told and not capsys.readouterr().out

"""`machines show`: one machine in full, for people."""

from __future__ import annotations

from pathlib import Path

import pytest

from roofdsl.cli.main import run

MEASURED = """machine m:
    peak f64 1 GFLOP/s source "a"
    cache L1 32 KiB, 90 GB/s, line 64 B, ways 8, write_allocate, typical 80 GB/s, stores 70 GB/s, beside 60 GB/s, fill 50 GB/s source "b"
    memory DRAM 1 GiB, 1 GB/s source "c"
"""  # noqa: E501


def test_many_options_take_several_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The sources of all numbers stand in one column, not far to the right of the longest of them."""
    path = tmp_path / "m.roof"
    path.write_text(MEASURED, encoding="utf-8")
    assert run(["machines", "show", str(path)]) == 0
    lines = capsys.readouterr().out.split("\n")
    first = next(k for k, line in enumerate(lines) if "cache L1" in line)
    assert lines[first].endswith("typical 80 GB/s,  b")
    assert lines[first + 1].strip() == "stores 70 GB/s, beside 60 GB/s, filled at 50 GB/s"
    assert {line.rindex(source) for line in lines for source in ("  a", "  b", "  c") if line.endswith(source)} == {
        lines[first].rindex("  b")
    }

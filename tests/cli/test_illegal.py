"""Kernels that are not legal get no bound and no threshold; test_commands.py has other commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run


def test_no_bound_of_a_kernel_that_is_not_legal(roofdsl: Run, tmp_path: Path) -> None:
    """A subscript out of bounds, an `out` that is read first, a reversed dependence: as for other commands."""
    head = "kernel k(n):\n    inout a: f64[n, n]\n    out b: f64[n]\n"
    for text, code in (
        ("    for i in range(n): b[i] = a[i, i - 1]\n", "subscript-bounds"),
        ("    for i in range(n): a[i, i] = b[i]\n    for i in range(n): b[i] = 1.0\n", "intent-order"),
        (
            "    order j, i\n    for i in range(1, n), j in range(n - 1): a[i, j] = a[i - 1, j + 1]\n",
            "dependence-reversed",
        ),
    ):
        (tmp_path / "k.roof").write_text(head + text, encoding="utf-8")
        result = roofdsl("bound", str(tmp_path / "k.roof"))
        assert (result.returncode, result.stdout) == (1, "")
        assert f"error[{code}]" in result.stderr


@pytest.mark.spread(2)
@pytest.mark.parametrize("subject", ["k.roof:k", "k.roof:p"])
@pytest.mark.parametrize("formula", [(), ("--formula",)])
def test_no_threshold_of_a_kernel_that_is_not_legal(
    subject: str, formula: tuple[str, ...], roofdsl: Run, tmp_path: Path
) -> None:
    text = "kernel k(n):\n    in a: f64[n]\n    out b: f64[n]\n    for i in range(n): b[i] = a[i - 1] + 1.0\n"
    (tmp_path / "k.roof").write_text(text + "program p(n):\n    run k(n)\n", encoding="utf-8")
    result = roofdsl("threshold", str(tmp_path / subject), "--machine", "v100_textbook", "--over", "n", *formula)
    assert (result.returncode, result.stdout) == (1, "")
    assert "error[subscript-bounds]" in result.stderr

"""Leading terms of the 30 PolyBench bounds against the published ones (tests/reference/polybench_bounds.json)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sympy

from tests.bounds.test_sound import POLYBENCH, bound_of, shipped

ROWS = json.loads((Path(__file__).parents[1] / "reference" / "polybench_bounds.json").read_text())["rows"]
PUBLISHED = {row["kernel"].replace("-", "_").replace("2mm", "mm2").replace("3mm", "mm3"): row for row in ROWS}
RENAMED = {"tsteps": "T", "tmax": "T"}

LEADING = {
    "adi": ("4*n**2*tsteps", "above"),
    "atax": ("2*m*n", "above"),
    "bicg": ("m*n", "best"),
    "cholesky": ("n**3/(3*sqrt(2)*sqrt(S))", "best"),
    "correlation": ("m**2*n/(sqrt(2)*sqrt(S))", "above"),
    "covariance": ("m**2*n/(sqrt(2)*sqrt(S))", "above"),
    "deriche": ("5*h*w", "above"),
    "doitgen": ("2*np**2*nq*nr/sqrt(S)", "best"),
    "durbin": ("n**2", "iolb"),
    "fdtd_2d": ("2*sqrt(3)*nx*ny*tmax/sqrt(S)", "best"),
    "floyd_warshall": ("2*n**3/sqrt(S)", "best"),
    "gemm": ("2*ni*nj*nk/sqrt(S)", "best"),
    "gemver": ("2*n**2", "above"),
    "gesummv": ("2*n**2", "best"),
    "gramschmidt": ("m*n**2/2", "above"),
    "heat_3d": ("2*9**Rational(1, 3)*n**3*tsteps/S**Rational(1, 3)", "iolb"),
    "jacobi_1d": ("2*n*tsteps/S", "best"),
    "jacobi_2d": ("4*sqrt(6)*n**2*tsteps/(3*sqrt(S))", "iolb"),
    "lu": ("2*n**3/(3*sqrt(S))", "best"),
    "ludcmp": ("2*n**3/(3*sqrt(S))", "best"),
    "mm2": ("2*ni*nj*(nk + nl)/sqrt(S)", "best"),
    "mm3": ("2*nj*(ni*nk + ni*nl + nl*nm)/sqrt(S)", "best"),
    "mvt": ("n**2", "best"),
    "nussinov": ("n**3/(3*sqrt(S))", "best"),
    "seidel_2d": ("sqrt(6)*n**2*tsteps/sqrt(S)", "iolb"),
    "symm": ("sqrt(2)*m**2*n/sqrt(S)", "below"),
    "syr2k": ("sqrt(2)*m*n**2/sqrt(S)", "above"),
    "syrk": ("m*n**2/(sqrt(2)*sqrt(S))", "best"),
    "trisolv": ("n**2/2", "best"),
    "trmm": ("m**2*n/sqrt(S)", "best"),
}
"""The leading term, and how it stands to the table's: its best column reached or passed, else IOLB's, else below.

`symm` is below because both columns' 2 m^2 n / sqrt(S) is above a schedule that exists (test_published.py)."""


def symbols(names: list[str]) -> dict[str, sympy.Symbol]:
    return {n: sympy.Symbol(n, integer=True, positive=True) for n in names}


@pytest.mark.spread(1)
@pytest.mark.parametrize("path", POLYBENCH, ids=lambda p: p.stem)
def test_leading_terms(path: Path) -> None:
    kernel = shipped(path)
    found = bound_of(path)
    names = [p.name for p in kernel.parameters]
    text, standing = LEADING[path.stem]
    expected = sympy.sympify(text, locals=symbols([*names, "S"]))
    assert any(sympy.simplify(value - expected) == 0 for value in found.leading()), found.leading()

    row = PUBLISHED[path.stem]
    ours = expected.subs(
        {s: sympy.Symbol(RENAMED.get(s.name, s.name.upper()), positive=True) for s in expected.free_symbols}
    )
    theirs = {
        column: sympy.sympify(row[f"Q_lower_{column}"], locals={s.name: s for s in ours.free_symbols} | _upper(row))
        for column in ("iolb", "best")
        if row[f"Q_lower_{column}"] is not None
    }
    at = {s: 4096 if s.name == "S" else 10**6 for s in set().union(*(t.free_symbols for t in [ours, *theirs.values()]))}
    ratio = {column: float((ours / value).subs(at)) for column, value in theirs.items()}
    stands = "above" if ratio["best"] > 1 + 1e-9 else "best" if ratio["best"] > 1 - 1e-9 else None
    if stands is None:
        stands = "iolb" if ratio["iolb"] > 1 - 1e-9 else "below"
    assert stands == standing, ratio


def _upper(row: dict[str, list[str]]) -> dict[str, sympy.Symbol]:
    return {n: sympy.Symbol(n, positive=True) for n in [*row["params"], "S", "T"]}


def row(path: Path) -> str:
    """The kernel's line in docs/bound.md."""
    found = bound_of(path)
    text, stands = LEADING[path.stem]
    expected = sympy.sympify(text, locals=symbols([*(p.name for p in found.kernel.parameters), "S"]))
    whose = [name for (name, _), value in zip(found.arguments, found.leading(), strict=True) if value.equals(expected)]
    published = PUBLISHED[path.stem]
    columns = [f"`{v}`" if (v := published[f"Q_lower_{c}"]) else "" for c in ("iolb", "soap")]
    below = "below IOLB, which is too high if sums may be reordered"
    word = {"best": "best", "above": "above best", "iolb": "above IOLB", "below": below}[stands]
    if published.get("disputed"):
        word += "; SOAP is too high"
    if path.stem == "durbin":  # the table takes SOAP's value as the best one, and an order exists that is below it
        word = "above best; SOAP is too high"
    leading = text.replace("Rational(1, 3)", "(1/3)")
    return f"| {path.stem} | `{leading}` | {whose[0]} | {columns[0]} | {columns[1]} | {word} |"


@pytest.mark.thorough
def test_the_page_has_the_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "bound.md").read_text()
    assert [path.stem for path in POLYBENCH if row(path) not in page] == []

"""Every form of a shipped kernel's derivation is the same from the disk, to the last character."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from roofdsl.counts.derive import derive
from roofdsl.counts.derived import Derivation
from roofdsl.loops.load import kernel, load_file
from roofdsl.machine.find import shipped_models
from roofdsl.store import memo
from roofdsl.tell.derive_html import to_html
from roofdsl.tell.derive_json import to_json
from roofdsl.tell.derive_latex import to_latex
from roofdsl.tell.derive_text import to_text

QUICK = ("polybench/lu", "polybench/trisolv", "polybench/jacobi_1d", "dot_first", "transpose")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    every = metafunc.config.getoption("--kept")
    metafunc.parametrize("name", sorted(shipped_models()) if every else QUICK)


def forms(found: Derivation) -> tuple[str, ...]:
    return to_text(found), json.dumps(to_json(found)), to_latex([found]), to_html(found)


@pytest.mark.spread(1)
def test_a_shipped_kernel(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOFDSL_CACHE", "on")
    monkeypatch.setenv("ROOFDSL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(memo, "LEAST_S", 0.0)
    target = shipped_models().get(name) or shipped_models()[name.rpartition("/")[2]]
    checked = load_file(target.path)
    if target.name in checked.programs:
        pytest.skip("a program, whose kernels are derived")
    found = kernel(checked, target.name, dict.fromkeys(_constants(checked, target.name), 2))
    first = forms(derive(found, steps=True))
    monkeypatch.setattr("roofdsl.counts.derive._derive", None)
    assert forms(derive(found, steps=True)) == first


def _constants(checked: object, name: str | None) -> list[str]:
    """`const` parameters without a number."""
    tree = checked.kernels[name].tree  # type: ignore[attr-defined]
    return [p.name.text for p in tree.parameters if p.const and p.default is None]

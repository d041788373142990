"""Sums of terms as they are shown: text, LaTeX, JSON that says the same as the form it is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import sympy

from roofdsl.counts.derive import derive
from roofdsl.counts.derived import Derivation
from roofdsl.loops.load import kernel, load_file
from roofdsl.page.mathml import mathml
from roofdsl.sets.facts import CACHE
from roofdsl.tell.derive_html import to_html
from roofdsl.tell.derive_json import to_json
from roofdsl.tell.derive_latex import to_latex
from roofdsl.tell.derive_text import to_text

HERE = Path(__file__).parent
POLYBENCH = Path(__file__).parents[2] / "models" / "polybench"


def derived(name: str, **options: Any) -> Derivation:
    return derive(kernel(load_file(POLYBENCH / f"{name}.roof"), name), **options)


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", ["mvt", "cholesky"])
def test_text_and_latex(name: str, golden: Callable[[Path, str], None]) -> None:
    found = derived(name, any_cache=True)
    golden(HERE / "golden" / f"terms_{name}.txt", to_text(found, all_cases=True) + "\n" + to_latex([found]))
    formulas = [part for k, part in enumerate(to_latex([found]).split("$")) if k % 2]
    assert len(formulas) > 20
    for formula in formulas:
        assert mathml(formula).startswith("<math")
    assert "the sum of (B)" in to_html(found)


def test_at_a_number_and_sizes() -> None:
    found = derived("cholesky", values={"n": 12}, cache_bytes=200, plateaus=False)
    assert found.at_cache.bytes.terms is not None
    assert found.at_cache.bytes.terms.evaluate({"n": 12}) == found.at_cache.bytes.value
    assert found.intensity.value is not None
    text = to_text(found)
    assert "Traffic through a cache of 200 B, for n >= 4: the sum of" in text
    assert f"in all {int(found.at_cache.bytes.value or 0):,} B" in text


def value_of(entry: Mapping[str, Any], env: Mapping[str, int]) -> int:
    """What an entry of the JSON says, read as docs/derive.md says, with sympy for its expressions."""

    def number(expression: str, known: Mapping[str, int]) -> Any:
        return sympy.sympify(expression, locals={n: sympy.Symbol(n) for n in known}).subs(known)

    def meaning(d: Mapping[str, Any], known: Mapping[str, int]) -> int:
        first, last = int(number(d["from"], known)), int(number(d["to"], known))
        if d["is"] == "bounded":
            return max(first, min(last, int(sympy.floor(number(d["of"], known)))))
        most = number(d["at_most"], known)
        held = [x for x in range(first, last + 1) if number(d["of"], {**known, d["name"]: x}) <= most]
        return max(held, default=first - 1) if d["is"] == "greatest" else min(held, default=last + 1)

    def defined(known: dict[str, int]) -> dict[str, int]:
        for d in entry["terms"]["where"]:
            if not any(f"i{k}" in d["of"] and f"i{k}" not in known for k in range(1, 9)):
                known[d["name"]] = meaning(d, known)
        return known

    total = 0
    for term in entry["terms"]["sum"]:
        over = term.get("over")
        spans = [env]
        if over is not None:
            first, last = int(number(over["from"], env)), int(number(over["to"], env))
            spans = [{**env, over["name"]: x} for x in range(first, last + 1)]
        for one in spans:
            known = defined(dict(one))
            if term["if"] is None or number(term["if"], known):
                total += int(number(term["expr"], known))
    return total


def test_json_says_the_same() -> None:
    found = derived("mvt", any_cache=True, plateaus=False)
    assert found.any_cache is not None and found.any_cache.bytes.terms is not None
    entry = to_json(found)["any_cache"]["bytes"]
    assert entry["expr"] is None and entry["assumes"] == f"n >= 4, {CACHE} >= 8"
    for env in ({"n": 5, CACHE: 130}, {"n": 6, CACHE: 350}):
        assert value_of(entry, env) == found.any_cache.bytes.terms.evaluate(env)

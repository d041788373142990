"""Expected times on a page are those of `predict`, at the sizes that it has; elsewhere it says what to run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine
from roofdsl.page.assemble import to_page
from roofdsl.page.content import Asked, Content, content_of
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from tests.measure.examples import EXAMPLE
from tests.page.browser import browser, chromium
from tests.page.javascript import evaluate
from tests.page.kernels import kernel_of, machine_of

HASWELL = load_machine("haswell_e5_2695v3")
MACHINES = (HASWELL, load_machine("v100"), machine_of("lined"))
FIRST, MEASURED = {"n": 2000}, {"n": 300}
LAST_CACHE = HASWELL.caches[-1].size_bytes

SHOWN = (
    "ASKED.map(([m, type, values, cache]) => "
    "expectedAt(DATA.kernels[0], type, DATA.machines[m], '', values, cache === null ? null : BigInt(cache)))"
)


def dot() -> Kernel:
    return kernel_of("dot")


@pytest.fixture(scope="module")
def content() -> Content:
    """dot on a CPU that states its instructions, on a GPU, and on a machine without instructions; measured at 300."""
    point = replace(EXAMPLE, kernel="dot", parameters=tuple(MEASURED.items()))
    asked = Asked("", ((dot(), FIRST),), MACHINES, types=("f32",), measurements=(point,))
    return content_of(asked)


@pytest.mark.parametrize("values", [FIRST, MEASURED], ids=["first", "measured"])
def test_it_is_that_of_predict(content: Content, values: dict[str, int]) -> None:
    (found,) = evaluate(content.functions, SHOWN, DATA=content.document, ASKED=[(0, "f64", values, LAST_CACHE)])
    said = predict(dot(), values, HASWELL, Options(code=Code()))
    assert said.expected is not None
    assert found["seconds"] == float(said.expected.expected_s) and found["bound"] == float(said.bound_s)
    assert found["model"] == "stated: relaxed compiler"
    assert [(c["cause"], c["share"]) for c in found["causes"]] == [
        (c.cause, float(c.share_s)) for c in said.expected.causes
    ]
    assert sum(c["share"] for c in found["causes"]) == pytest.approx(found["seconds"] - found["bound"])


@pytest.mark.parametrize(
    "asked",
    [(0, "f64", {"n": 2001}, LAST_CACHE), (0, "f32", FIRST, LAST_CACHE), (0, "f64", FIRST, 4096)],
    ids=["other sizes", "another type", "another cache"],
)
def test_elsewhere_there_is_none_and_it_says_where(content: Content, asked: Any) -> None:
    (found,) = evaluate(content.functions, SHOWN, DATA=content.document, ASKED=[asked])
    assert found == {"known": [FIRST, MEASURED]}


def test_a_machine_that_does_not_state_what_it_needs(content: Content) -> None:
    own = {m.name: content.document["kernels"][0]["expected"][m.name] for m in MACHINES}
    assert own["lined"]["missing"].endswith("lined has neither")


def test_a_gpu_has_the_time_of_its_threads(content: Content) -> None:
    time = content.document["kernels"][0]["expected"]["v100"]["times"][0]
    found = predict(dot(), FIRST, load_machine("v100"), Options(code=Code())).expected
    assert found is not None and time["seconds"] == float(found.expected_s)


def test_a_kernel_without_one_has_the_reason() -> None:
    half = kernel_of("copy", "f16")
    document = content_of(Asked("", ((half, {"n": 64}),), (HASWELL,), types=())).document
    (time,) = document["kernels"][0]["expected"][HASWELL.name]["times"]
    assert time == {"values": {"n": 64}, "missing": "conversions of f16 are modeled only from compiled code"}


@pytest.mark.thorough
@pytest.mark.skipif(chromium() is None, reason="no Chromium on this machine")
def test_the_page_shows_it_and_says_what_to_run_elsewhere(content: Content, tmp_path: Path) -> None:
    path, program = tmp_path / "page.html", chromium()
    path.write_text(to_page(content), encoding="utf-8")
    assert program is not None
    said = predict(dot(), FIRST, HASWELL, Options(code=Code())).expected
    assert said is not None
    shown = "document.querySelector('.bars .expected')"
    with browser(program) as page:
        page.open(path)
        assert float(page.run(f"{shown}.dataset.seconds")) == float(said.expected_s)
        assert page.run(f"{shown}.textContent").startswith("Expected: ")
        page.run("document.querySelector('[aria-label=\"n of dot\"]').focus()")
        page.press("ArrowRight", 1)
        n = int(page.run("document.querySelector('[aria-label=\"n of dot, as a number\"]').value"))
        assert n != FIRST["n"]
        text = page.run(f"{shown}.textContent")
        assert "has no closed form; the page has it for n = 2\u202f000; n = 300." in text
        assert f"roofdsl predict FILE:dot --machine haswell_e5_2695v3 --set n={n}" in text
        assert page.messages == []

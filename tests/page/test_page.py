"""The page as a file: self-contained, under its policy, with nothing of a user's taken for markup."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from roofdsl.cli.explore import explore
from roofdsl.cli.main import run
from roofdsl.counts.derive import derive
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.source import Source
from roofdsl.lang.visible import visible
from roofdsl.loops.load import kernels, load_file
from roofdsl.machine.find import load_machine
from roofdsl.machine.lower import lower
from roofdsl.measure.measurement import Measurement
from roofdsl.page.article import derivation_html
from roofdsl.page.assemble import LARGEST_BYTES, SCRIPTS, asset, to_page
from roofdsl.page.content import Asked, content_of
from roofdsl.page.mathml import mathml
from tests.measure.examples import EXAMPLE
from tests.page.kernels import KERNELS, kernel_of, machine_of

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror=hacked()>&\u2028'\\\""


class Tags(HTMLParser):
    """The elements of a page with their attributes, and the text of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self.texts.setdefault(tag, []).append("")
        self.inside = tag

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside in ("script", "style"):
            self.texts[self.inside][-1] += data


def page_of(*names: str, title: str = "title") -> str:
    return to_page(content_of(Asked(title, tuple((kernel_of(n), {}) for n in names), (machine_of("plain"),))))


@pytest.fixture(scope="module")
def page() -> str:
    return page_of("dot", "blocked")


def test_scripts_and_styles_are_those_of_the_policy(page: str) -> None:
    tags = Tags(page)
    (policy,) = (a["content"] or "" for t, a in tags.found if a.get("http-equiv") == "Content-Security-Policy")
    data, program = tags.texts["script"]
    hashes = [b64encode(sha256(t.encode()).digest()).decode() for t in (program, tags.texts["style"][0])]
    assert policy == (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert {k["name"] for k in json.loads(data)["kernels"]} == {"dot", "blocked"}


def test_nothing_is_asked_of_a_network_and_no_handler_stands_in_markup(page: str) -> None:
    for tag, attributes in Tags(page).found:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form")
        assert not attributes.keys() & {"src", "href", "style", "srcset", "action"} or attributes == {
            "class": "skip",
            "href": "#controls",
            "id": "skip",
        }
        assert not [a for a in attributes if a.startswith("on")]
    own = "".join(map(asset, SCRIPTS)) + asset("style.css")
    assert re.findall(r"\b(?:fetch|XMLHttpRequest|eval|Function|innerHTML|import|url)\s*\(", own) == []
    assert set(re.findall(r"https?://[^\"'\s]*", own)) == {"http://www.w3.org/2000/svg"}


def test_size(page: str) -> None:
    assert len(page.encode()) < 150_000 < LARGEST_BYTES == 500_000


def test_a_page_that_grows_too_large_is_refused() -> None:
    content = content_of(Asked("x" * LARGEST_BYTES, ((kernel_of("dot"), {}),), (machine_of("plain"),)))
    with pytest.raises(CommandError, match="but the limit is"):
        to_page(content)


def test_users_texts_are_never_markup() -> None:
    said = HOSTILE.replace('"', "").replace("\u2028", "")
    kernel_text = f"# {said}\n{COPY.format(said)}"
    machine_text = MACHINE.format(*[said] * 4)
    (kernel,) = kernels(load_file(Source("k.roof", kernel_text))).values()
    machine = lower(load_file(Source("m.roof", machine_text)).machines["m"])
    points = measured("k", {"n": 5}, device=HOSTILE)
    content = content_of(Asked(HOSTILE, ((kernel, {}),), (machine,), measurements=points))
    tags = Tags(to_page(content))
    assert [t for t, _ in tags.found].count("script") == 2
    assert "img" not in [t for t, _ in tags.found]
    data = json.loads(tags.texts["script"][0])
    assert data["title"] == visible(HOSTILE)
    assert data["machines"][0]["title"] == said
    assert [row["device"] for row in data["measured"]] == [visible(HOSTILE)]


COPY = """\
kernel k(n):  # {}
    in A: f64[n]
    out B: f64[n]
    for i in range(n):
        B[i] = A[i]
"""
MACHINE = """\
machine m "{}":
    source "{}"
    peak f64 fma 1 TFLOP/s
    ceiling "{}" f64 1 GFLOP/s
    memory M 1 GB, 1 GB/s source "{}"
"""


def measured(kernel: str, values: dict[str, int], device: str = "here") -> tuple[Measurement, ...]:
    return (replace(EXAMPLE, kernel=kernel, parameters=tuple(values.items()), device={"name": device}),)


def test_measurements_that_do_not_belong_are_named_and_left_out() -> None:
    every = measured("dot", {"n": 64}) + measured("other", {"n": 64}) + measured("dot", {"m": 64})
    content = content_of(Asked("", ((kernel_of("dot"), {}),), (machine_of("plain"),), measurements=every))
    assert [row["values"] for row in content.document["measured"]] == [{"n": 64}]
    assert [w.partition(":")[0] for w in content.warnings] == [
        "dot has changed since it was measured",
        "the measurement of other is left out",
        "a measurement of dot is left out",
    ]


def test_a_measurement_with_another_constant_is_left_out() -> None:
    text = "kernel k(n, const s = 2):\n    in x: f64[s * n]\n    inout y: f64[n]\n"
    loops = "    for i in range(n): y[i] += x[s * i]\n"
    (kernel,) = kernels(load_file(Source("k.roof", text + loops))).values()
    every = measured("k", {"s": 8, "n": 64}) + measured("k", {"s": 2, "n": 32})
    content = content_of(Asked("", ((kernel, {"n": 64}),), (machine_of("plain"),), measurements=every))
    assert [row["values"] for row in content.document["measured"]] == [{"n": 32}]
    assert "a measurement of k is left out: it was made with s = 8, and the page shows s = 2" in content.warnings


# ---- formulas ----


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        ("n", "<math><mi>n</mi></math>"),
        ("8 n^{2}", "<math><mrow><mn>8</mn><msup><mi>n</mi><mn>2</mn></msup></mrow></math>"),
        (r"\frac{n}{12}", "<math><mfrac><mi>n</mi><mn>12</mn></mfrac></math>"),
        (r"\mathrm{a\_b} - 1", '<math><mrow><mi mathvariant="normal">a_b</mi><mo>−</mo><mn>1</mn></mrow></math>'),
        (r"\mathtt{i \% 2 + n\_x}", "<math><mtext>i % 2 + n_x</mtext></math>"),
        ("a < b", "<math><mrow><mi>a</mi><mo>&lt;</mo><mi>b</mi></mrow></math>"),
    ],
)
def test_formulas(latex: str, shown: str) -> None:
    assert mathml(latex) == shown


@pytest.mark.parametrize("latex", [r"\frac{1}", r"\unknown", "}", r"\begin{matrix}\end{matrix}", r"\left( 1"])
def test_formulas_that_reports_do_not_write(latex: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        mathml(latex)


def test_a_loop_that_starts_at_a_remainder_is_set() -> None:
    """`explore` of such a kernel had failed: reports write its bounds in typewriter letters."""
    text = "kernel k(n):\n    out A: f64[n]\n    for i in range(n), j in range(i % 2, n, 2):\n        A[j] = 2\n"
    (kernel,) = kernels(load_file(Source("k.roof", text))).values()
    assert "<mtext>i % 2 + 2</mtext>" in derivation_html(derive(kernel, steps=True))


@pytest.mark.spread(5)
@pytest.mark.parametrize("name", KERNELS)
def test_derivations_are_set_whole(name: str) -> None:
    text = derivation_html(derive(kernel_of(name), steps=True, any_cache=True))
    assert text.count("<math") > 5
    assert "\\" not in re.sub(r"<[^>]*>", "", text), "LaTeX is left"


# ---- the command ----


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dot", "--machine", "v100_textbook", "-o", "page.txt"], "does not end in .html"),
        (["dot", "--machine", "v100_textbook", "-o", "none/page.html"], "there is no directory"),
        (["dot", "--machine", "nowhere", "-o", "p.html"], "nowhere"),
        (["dot", "--machine", "v100_textbook", "-o", "p.html", "--type", "f63"], "there is no type `f63`"),
        (["dot", "--machine", "v100_textbook", "-o", "p.html", "--set", "m=3"], "no parameter `m`"),
        (["lstm_forward", "--machine", "v100_textbook", "-o", "p.html"], "is a program"),
        (["matmul_blocked", "--machine", "v100_textbook", "-o", "p.html", "--set", "n=100,b=3"], "assumes n % b == 0"),
        (["dot", "dot", "--machine", "v100_textbook", "-o", "p.html"], "twice"),
        (["dot", "--machine", "v100_textbook", "-o", "p.html", "--results", "no.json"], "cannot be read"),
    ],
)
def test_what_cannot_be_done_is_said(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["explore", *arguments]) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert "Traceback" not in shown
    assert list(tmp_path.iterdir()) == []


def test_the_command(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    given = ["dot", "--machine", "v100_textbook", "--machine", "v100_deck", "-o", str(out), "--set", "n=4096"]
    result = CliRunner().invoke(explore, given, catch_exceptions=False)
    assert result.exit_code == 0
    assert "1 kernel, 2 machines" in result.stdout
    data = json.loads(Tags(out.read_text(encoding="utf-8")).texts["script"][0])
    assert data["kernels"][0]["parameters"][0]["value"] == 4096
    assert [m["name"] for m in data["machines"]] == ["v100_textbook", "v100_deck"]


def test_a_machine_without_a_unit_or_type_is_shown_with_the_reason() -> None:
    machines = tuple(map(machine_of, ("plain", "matrix")))
    data = content_of(Asked("", ((kernel_of("dot"), {}),), machines, unit="tensor", types=("f16",))).document
    assert data["units"] == ["", "tensor"]
    variants = data["kernels"][0]["variants"]
    rates = {name: variants["f64"]["machines"][name]["rates"]["tensor"] for name in ("plain", "matrix")}
    assert "no tensor rate" in rates["plain"]["missing"]
    assert rates["matrix"]["missing"] == ""
    assert "no peak for f16" in variants["f16"]["machines"]["plain"]["rates"][""]["missing"]


# ---- colours ----


def colours() -> Iterator[tuple[str, dict[str, str]]]:
    """The variables of each theme."""
    for name, block in re.findall(r"(:root[^{]*)\{([^}]*--paper:[^}]*)\}", asset("style.css")):
        yield name.strip(), dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))


def luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_contrast_is_enough_to_read() -> None:
    """WCAG 2.1, 1.4.3: 4.5 to 1 for text, on paper, panels and the tinted regions."""
    themes = list(colours())
    assert len(themes) == 3
    for name, found in themes:
        for text in ("ink", "muted", "accent", *(f"k{i}" for i in range(6))):
            for ground in ("paper", "panel") if text.startswith("k") else ("paper",):
                light, dark = sorted((luminance(found[text]), luminance(found[ground])), reverse=True)
                assert (light + 0.05) / (dark + 0.05) >= 4.5, (name, text, ground)


def test_a_kernel_without_operations_has_the_roofs_of_what_it_moves() -> None:
    text = "kernel copy(n):\n    in x: c64[n]\n    out y: c64[n]\n    for i in range(n):\n        y[i] = x[i]\n"
    (copy,) = kernels(load_file(Source("copy.roof", text))).values()
    document = content_of(Asked("", ((copy, {"n": 8}),), (load_machine("a100_80"),))).document
    (variant,) = document["kernels"][0]["variants"].values()
    assert variant["types"] == ["f32"], "the parts of a complex number"
    roofs = document["machines"][0]["roofs"]["f32"][""]
    assert roofs["slopes"]
    assert roofs["roofs"][0]["rate"] == 19.5e12

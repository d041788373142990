"""The page in a real Chromium: sliders, links, the crossing, three sizes, no console message, no request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from roofdsl.cli.options import choose, kernels_of
from roofdsl.counts.traffic_at import traffic_at
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine
from roofdsl.page.assemble import to_page
from roofdsl.page.content import Asked, content_of
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from tests.measure.examples import EXAMPLE
from tests.page.browser import Browser, browser, chromium
from tests.page.kernels import kernel_of, machine_of
from tests.page.test_positions import machine as position_machine

PROGRAM = chromium()
pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason="no Chromium on this machine (apt-get install chromium), so the page is not tested in one"
)

SIZES = {"phone": (360, 740), "laptop": (1366, 768), "projector": (1920, 1080)}
SETTLED = "new Promise(done => setTimeout(() => done(location.hash), 600))"
SPARSE = Options(unit="tensor_sparse")


def shipped(name: str) -> Kernel:
    return kernels_of(choose(name), {})[0][0]


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Dot against matmul on the machine of the guide, with a textbook's machine beside it."""
    kernels = ((shipped("dot_bf16"), {}), (shipped("matmul_bf16"), {}))
    machines = (load_machine("h100_guide"), machine_of("plain"))
    asked = Asked("Dot against matmul", kernels, machines, unit="tensor_sparse", types=("f64", "f32"))
    path = tmp_path_factory.mktemp("guide") / "page.html"
    path.write_text(to_page(content_of(asked)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def cached(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache, tiles, a kernel without operations, and a measured point."""
    kernels = tuple((kernel_of(name), {}) for name in ("matmul", "blocked", "copy"))
    points = (replace(EXAMPLE, kernel="matmul", parameters=(("n", 40),), times_s=(1e-5, 2e-5, 3e-5)),)
    asked = Asked("A cache", kernels, (machine_of("cached"), machine_of("plain")), types=(), measurements=points)
    path = tmp_path_factory.mktemp("cached") / "page.html"
    path.write_text(to_page(content_of(asked)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One kernel behind a cache with lines of several elements, whose rows begin within lines at most sizes."""
    asked = Asked("One", ((shipped("matmul"), {"n": 64}),), (position_machine("ridged"),), types=())
    content = content_of(asked)
    path = tmp_path_factory.mktemp("one") / "page.html"
    path.write_text(to_page(content), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def running() -> Iterator[Browser]:
    assert PROGRAM is not None
    started = browser(PROGRAM)
    try:
        page = started.__enter__()
    except (EOFError, TimeoutError, OSError) as error:
        pytest.skip(f"{PROGRAM} does not start here ({error}), so the page is not tested in a browser")
    try:
        yield page
    finally:
        started.__exit__(None, None, None)


@pytest.fixture
def page(running: Browser) -> Iterator[Browser]:
    """The browser; whatever a test does, nothing is asked of the network and the console stays empty."""
    running.requests.clear()
    running.messages.clear()
    running.resize(1366, 768)
    yield running
    assert [url for url in running.requests if not url.startswith(("file:", "about:"))] == []
    assert running.messages == []


def point(page: Browser, kernel: str) -> tuple[float, float]:
    """(intensity, rate) of the point that is drawn."""
    found: list[str] = page.run(
        f"(e => [e.dataset.intensity, e.dataset.rate])(document.querySelector('#roofline g[data-kernel={kernel}]'))"
    )
    return float(found[0] or "nan"), float(found[1])


def numbers(page: Browser, kernel: str) -> dict[str, float | str]:
    """The row of the table."""
    script = (
        f"Object.fromEntries([...document.querySelectorAll('#table tr[data-kernel={kernel}] td')]"
        ".map(e => [e.dataset.column, e.dataset.value || e.textContent]))"
    )
    found: dict[str, str] = page.run(script)
    return {k: float(v) if re.fullmatch(r"[-+.e\d]+", v) else v for k, v in found.items()}


def focus(page: Browser, label: str) -> None:
    assert page.run(
        f"(e => (e.focus(), document.activeElement === e))(document.querySelector('[aria-label=\"{label}\"]'))"
    )


# ---- numbers ----


def test_it_begins_at_the_guides_figures(page: Browser, guide: Path) -> None:
    page.open(guide)
    for name, n in (("dot_bf16", 1048576), ("matmul_bf16", 64)):
        expected = predict(shipped(name), {"n": n}, load_machine("h100_guide"), SPARSE)
        row = numbers(page, name)
        assert row["W"] == expected.work
        assert row["Q"] == expected.memory.bytes
        for key, value in (
            ("compute", expected.compute_s),
            ("HBM", expected.memory.time_s),
            ("rate", expected.rate_per_s),
        ):
            assert row[key] == pytest.approx(float(value), rel=1e-12)
        assert row["bound"] == "HBM"
    assert page.run("document.querySelector('.jump').dataset.size") == "1773"


def test_a_slider_moves_the_point_to_what_python_predicts(page: Browser, guide: Path) -> None:
    page.open(guide)
    kernel, machine = shipped("matmul_bf16"), load_machine("h100_guide")
    focus(page, "n of matmul_bf16")
    seen = []
    for key, times in (("ArrowRight", 16), ("ArrowRight", 40), ("ArrowLeft", 7), ("End", 1)):
        page.press(key, times)
        n = int(page.run("document.querySelector('[aria-label=\"n of matmul_bf16, as a number\"]').value"))
        expected = predict(kernel, {"n": n}, machine, SPARSE)
        intensity, rate = point(page, "matmul_bf16")
        assert intensity == pytest.approx(float(expected.intensity or 0), rel=1e-12)
        assert rate == pytest.approx(float(expected.rate_per_s), rel=1e-12)
        shown = page.run("document.activeElement.getAttribute('aria-valuetext').replace(/\\s/g, '')")
        assert shown == f"n={n}"
        seen.append((n, expected.compute_s > expected.memory.time_s))
    assert seen[0] == (128, False)
    assert [n for n, _ in seen] == sorted({n for n, _ in seen}, key=[n for n, _ in seen].index)
    assert seen[-1][1]
    said = page.run(f"({SETTLED}).then(() => document.getElementById('status').textContent)")
    assert "compute-bound" in said


@pytest.mark.thorough
def test_the_point_crosses_the_ridge_at_1773(page: Browser, guide: Path) -> None:
    for n, side in ((1772, False), (1773, True)):
        page.open(guide, f"matmul_bf16.n={n}")
        row = numbers(page, "matmul_bf16")
        assert (float(row["compute"]) >= float(row["HBM"])) is side
        assert (point(page, "matmul_bf16")[0] >= 1979 / 3.35) is side
    page.open(guide)
    page.run("document.querySelector('.jump').click()")
    assert page.run("document.querySelector('[aria-label=\"n of matmul_bf16, as a number\"]').value") == "1773"


def test_a_cache_slider_moves_traffic_to_what_python_counts(page: Browser, cached: Path) -> None:
    page.open(cached, "matmul.n=24&kernel=matmul")
    focus(page, "fast memory Z")
    page.press("Home")
    seen = set()
    for _ in range(6):
        page.press("ArrowRight", 8)
        cache = int(page.run("document.querySelector('#curve [data-cache]').dataset.cache"))
        row = page.run("document.querySelector('#table tr[data-kernel=matmul]').dataset.how")
        expected = traffic_at(kernel_of("matmul"), {"n": 24}, cache, None, "load_store").bytes
        assert row in ("exact", "fits")
        assert numbers(page, "matmul")["Q"] == expected
        seen.add(expected)
    assert len(seen) >= 3
    page.press("End")
    assert page.run("document.querySelector('#curve [data-cache]').dataset.cache") == "none"
    assert numbers(page, "matmul")["Q"] == 32 * 24**2


def test_tiles_keep_what_the_kernel_assumes(page: Browser, cached: Path) -> None:
    page.open(cached)
    focus(page, "b of blocked, as a number")
    page.run("(e => { e.value = '48'; e.dispatchEvent(new Event('change')); })(document.activeElement)")
    n, b = (
        int(page.run(f"document.querySelector('[aria-label=\"{p} of blocked, as a number\"]').value")) for p in "nb"
    )
    assert b == 48
    assert n % b == 0
    assert "Q" in numbers(page, "blocked")


def test_hardware_type_and_arithmetic_are_chosen(page: Browser, guide: Path) -> None:
    choose_in = "(e => {{ e.value = '{}'; e.dispatchEvent(new Event('change')); }})(document.getElementById('{}'))"
    page.open(guide)
    page.run(choose_in.format("1", "machine"))
    page.run(choose_in.format("f32", "type"))
    page.run(choose_in.format("", "unit"))
    text = Path(shipped("matmul_bf16").source.name).read_text(encoding="utf-8").replace("bf16[", "f32[")
    from roofdsl.lang.source import Source
    from roofdsl.loops.load import kernels, load_file

    kernel = kernels(load_file(Source("f32.roof", text)))["matmul_bf16"]
    expected = predict(kernel, {"n": 64}, machine_of("plain"))
    assert numbers(page, "matmul_bf16")["Q"] == expected.memory.bytes == 3 * 4 * 64**2
    assert point(page, "matmul_bf16")[1] == pytest.approx(float(expected.rate_per_s), rel=1e-12)
    hash_ = page.run(SETTLED)
    assert {"machine=plain", "type=f32", "unit="} <= set(hash_[1:].split("&"))


def test_a_kernel_without_operations_and_a_measured_point(page: Browser, cached: Path) -> None:
    page.open(cached, "machine=plain&copy.n=1000000")
    expected = predict(kernel_of("copy"), {"n": 1000000}, machine_of("plain"))
    assert numbers(page, "copy")["Q"] == expected.memory.bytes
    assert point(page, "copy")[0] != point(page, "copy")[0]  # none
    assert "GB/s" in page.run("document.querySelector('#roofline g[data-kernel=copy] text').textContent")
    assert page.run("document.querySelectorAll('#roofline .measured').length") == 1
    assert "n = 40" in page.run("document.querySelector('#roofline .measured text').textContent")


# ---- links ----


def test_a_link_shows_the_same_again(page: Browser, guide: Path) -> None:
    page.open(guide)
    focus(page, "n of matmul_bf16")
    page.press("ArrowRight", 5)
    page.run("document.getElementById('theme').click()")
    page.run("document.getElementById('previous').click()")
    link = page.run(SETTLED)
    before = numbers(page, "matmul_bf16")
    page.open(guide, link[1:])
    assert numbers(page, "matmul_bf16") == before
    assert page.run("document.documentElement.dataset.theme") == "dark"
    assert page.run("document.getElementById('step-title').textContent").startswith("4 of 5")
    assert page.run("document.querySelectorAll('#roofline [data-kernel]').length") == 0
    assert page.run(SETTLED) == link


@pytest.mark.spread(1)
@pytest.mark.parametrize(
    "fragment",
    ["machine=%00&type=__proto__&unit=constructor&kernel=toString", "matmul_bf16.n=-5&dot_bf16.n=1e99&step=77&Z=-3",
     "Z=0&matmul_bf16.n=99999999999999999999", "%E0%A4%A&=&&&===", "matmul_bf16.n=<script>alert(1)</script>"],
)  # fmt: skip
def test_a_broken_link_shows_the_page_as_it_begins(page: Browser, guide: Path, fragment: str) -> None:
    page.open(guide, fragment)
    assert numbers(page, "matmul_bf16")["W"] == 2 * 64**3
    assert page.run("document.getElementById('step-title').textContent").startswith("5 of 5")


# ---- for everybody ----


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_fits_every_screen(page: Browser, guide: Path, cached: Path, name: str, dark: bool) -> None:
    width, height = SIZES[name]
    page.resize(width, height, dark)
    for path in (guide, cached):
        page.open(path)
        assert page.run("document.documentElement.scrollWidth") <= width
        outside = page.run(
            "[...document.querySelectorAll('.figure svg')].flatMap(svg => { const frame = svg.getBoundingClientRect();"
            " return [...svg.querySelectorAll('text')].filter(t => { const b = t.getBoundingClientRect();"
            " return b.left < frame.left - 2 || b.right > frame.right + 2 || b.top < frame.top - 2"
            " || b.bottom > frame.bottom + 2; }).map(t => t.textContent); })"
        )
        assert outside == []
        paper = page.run("getComputedStyle(document.documentElement).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") is not dark
        assert len(page.picture(whole=False)) > 20_000


def test_every_control_has_a_name_and_is_reached_in_order(page: Browser, guide: Path) -> None:
    page.open(guide)
    nameless = page.run(
        "[...document.querySelectorAll('button, input, select')].filter(e => !(e.getAttribute('aria-label')"
        " || e.textContent.trim() && e.tagName === 'BUTTON' || e.labels && e.labels.length)).map(e => e.outerHTML)"
    )
    assert nameless == []
    page.run("document.activeElement.blur()")
    reached: list[Any] = []
    stops = "a, button:not(:disabled), input, select, summary, [tabindex='0']"
    every = f'[...document.querySelectorAll("{stops}")]'
    count = page.run(f"{every}.length")
    for _ in range(count):
        page.press("Tab")
        reached.append(page.run(f"{every}.indexOf(document.activeElement)"))
    assert reached == list(range(count))


@pytest.mark.thorough
def test_what_scrolls_is_named_and_reached_by_keyboard(page: Browser, cached: Path) -> None:
    """On a phone tables and sources are wider than the page; on a wide screen they take no stop of the Tab key."""
    found = {}
    for name in ("phone", "projector"):
        page.resize(*SIZES[name])
        page.open(cached)
        page.run("document.querySelectorAll('details').forEach(e => { e.open = true; })")
        page.run("new Promise(done => setTimeout(() => done(0), 100))")
        scrolled, stops = (
            page.run(f"[...document.querySelectorAll('.wide, pre')].map((e, k) => {test} ? k : -1).filter(k => k >= 0)")
            for test in ("e.scrollWidth > e.clientWidth", "e.tabIndex === 0 && e.getAttribute('role') === 'region'")
        )
        assert scrolled == stops
        names = page.run("[...document.querySelectorAll('[role=region]')].map(e => e.getAttribute('aria-label'))")
        assert len(set(names)) == len(names)
        assert all(names)
        found[name] = len(stops)
    assert found["phone"] > found["projector"]


AXE = find_spec("axe_core_python")


@pytest.mark.thorough
@pytest.mark.skipif(AXE is None, reason="axe is not here (pip install axe-core-python)")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing(page: Browser, guide: Path, cached: Path, one: Path, dark: bool) -> None:
    """One kernel, several, machines with and without caches, measured points, intervals; all that folds out is open."""
    assert AXE is not None
    assert AXE.origin is not None
    axe = (Path(AXE.origin).parent / "axe.min.js").read_text(encoding="utf-8")
    shown = ((guide, ""), (cached, "machine=plain"), (cached, "n=9"), (one, "matmul.n=91"), (one, "step=1"))
    here, elsewhere = ("laptop", "phone") if dark else ("phone", "laptop")
    for (path, fragment), name in [*((each, here) for each in shown), (shown[0], elsewhere)]:
        page.resize(*SIZES[name], dark)
        page.open(path, fragment)
        page.run("document.querySelectorAll('details').forEach(e => { e.open = true; })")
        box = "document.querySelector('input[type=number]')"
        page.run(f"(e => {{ e.value = '0'; e.dispatchEvent(new Event('change')); }})({box})")
        page.run("new Promise(done => setTimeout(() => done(0), 600))")
        page.run(f"{axe};0")
        found = page.run(
            "axe.run().then(r => r.violations.map(v => [v.id, v.help, v.nodes.map(n => n.html.slice(0, 200))]))"
        )
        assert found == []
        page.messages.clear()  # what axe itself says


# ---- what is typed, what a phone shows, what lines mean ----


@pytest.mark.spread(1)
@pytest.mark.parametrize("typed", ["0", "-5", "2.5", "", "9007199254740993", "1e30"])
def test_a_number_that_cannot_be_taken_is_told(page: Browser, guide: Path, typed: str) -> None:
    page.open(guide)
    label = "n of matmul_bf16, as a number"
    focus(page, label)
    box = f"document.querySelector('[aria-label=\"{label}\"]')"

    def type_in(text: str) -> Any:
        change = f"e.value = '{text}'; e.dispatchEvent(new Event('change')); return [e.value, e.ariaInvalid];"
        return page.run(f"(e => {{ {change} }})({box})")

    assert type_in(typed)[1] == "true"
    said = f"document.getElementById({box}.getAttribute('aria-describedby')).textContent"
    assert page.run(f"{said}.replace(/\\s/g, ' ')") == (
        "n of matmul_bf16 takes a whole number from 1 to 9 007 199 254 740 991; it stays at 64."
    )
    assert numbers(page, "matmul_bf16")["W"] == 2 * 64**3
    assert type_in("100") == ["100", "false"]
    assert page.run(f"{box}.getAttribute('aria-describedby')") is None
    assert page.run("[...document.querySelectorAll('[role=alert]')].map(e => e.textContent).join('')") == ""
    assert numbers(page, "matmul_bf16")["W"] == 2 * 100**3


def test_the_roofline_stays_in_view_on_a_phone(page: Browser, guide: Path) -> None:
    page.resize(390, 844)
    page.open(guide)
    every = "[...document.querySelectorAll('#controls input[type=range]')]"
    for k in range(page.run(f"{every}.length")):
        page.run(f"{every}[{k}].focus()")
        above, below, slider = page.run(
            "(figure => [figure.top, figure.bottom, document.activeElement.getBoundingClientRect().top])"
            "(document.querySelector('#roofline svg').getBoundingClientRect())"
        )
        assert 0 <= above < below <= slider, k
        assert below < 844 / 2, "at least half of the screen is left to the controls"


@pytest.mark.thorough
def test_a_phone_on_its_side_is_not_covered_by_the_roofline(page: Browser, guide: Path) -> None:
    page.resize(844, 390)
    page.open(guide)
    assert page.run("getComputedStyle(document.getElementById('roofline')).position") == "static"


KEY = "[...document.querySelectorAll('#roofline-key li')].map(e => e.textContent.replace(/\\s/g, ' '))"


def test_the_key_says_what_trail_and_hollow_points_are(page: Browser, cached: Path) -> None:
    page.open(cached, "machine=plain")
    assert [text.partition(":")[0] for text in page.run(KEY)] == ["trail", "hollow"]
    page.open(cached, "step=4")
    assert page.run(KEY) == []


@pytest.mark.thorough
def test_the_key_says_what_trail_and_interval_are(page: Browser, one: Path) -> None:
    page.open(one)
    assert page.run(KEY) == ["trail: where matmul goes as n grows to 131 072"]
    page.open(one, "matmul.n=91")
    assert [text.partition(":")[0] for text in page.run(KEY)] == ["trail", "interval"]
    page.open(one, "step=4")
    assert page.run(KEY) == []


# ---- intervals ----


@pytest.mark.thorough
def test_an_interval_is_drawn_as_one_and_undecided_everywhere(page: Browser, one: Path) -> None:
    """At n = 91 Q lies between two values on either side of the ridge, at n = 96 it is exact."""
    for n, is_interval in ((91, True), (96, False)):
        page.open(one, f"matmul.n={n}")
        row = page.run(
            "Object.fromEntries([...document.querySelectorAll('#table td')]"
            ".map(e => [e.dataset.column, [e.dataset.value, e.dataset.most, e.textContent]]))"
        )
        mark = "document.querySelector('#roofline g[data-kernel=matmul]')"
        drawn = page.run(f"[{mark}.dataset.intensity, {mark}.dataset.most].map(Number)")
        assert drawn == [float(v) for v in row["I"][:2]]
        assert (drawn[0] < drawn[1]) is is_interval
        assert page.run(f"{mark}.querySelectorAll('.interval').length") == int(is_interval)
        assert page.run(f"{mark}.querySelectorAll('.point.open').length") == 2 * int(is_interval)
        status = page.run(f"({SETTLED}).then(() => document.getElementById('status').textContent)")
        assert ("undecided, " in status) is is_interval
        assert row["bound"][2].startswith("undecided: ") is is_interval
        assert page.run("document.querySelector('#bars .bars > p').textContent").startswith("Undecided") is is_interval
        assert (" to " in row["Q"][2]) is is_interval
        assert page.run("document.querySelectorAll('#curve .in-focus .interval').length") == int(is_interval)
        assert ("an interval" in page.run("document.getElementById('curve-text').textContent")) is is_interval


def test_the_anatomy_is_walked_by_keyboard(page: Browser, guide: Path) -> None:
    page.open(guide, "step=1")
    seen = []
    for _ in range(5):
        seen.append(
            page.run("[...document.querySelectorAll('#roofline svg > g')].map(g => g.getAttribute('class')).join()")
        )
        page.run("document.getElementById('next').focus()")
        page.press("Enter")
    assert len(set(seen)) >= 4
    assert seen[0] == "axes"
    assert page.run("document.getElementById('next').disabled")


def test_texts_of_users_are_shown_and_not_run(page: Browser, tmp_path: Path) -> None:
    hostile = "</title><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
    machine = replace_title(hostile)
    content = content_of(Asked(hostile, ((kernel_of("dot"), {}),), (machine,)))
    path = tmp_path / "page.html"
    path.write_text(to_page(content), encoding="utf-8")
    page.open(path)
    assert page.run("window.hacked") is None
    assert page.run("document.querySelector('h1').textContent") == hostile
    assert page.run("document.querySelector('#machine option').textContent") == hostile


def replace_title(title: str) -> Any:
    from roofdsl.lang.record import replace as replace_record

    return replace_record(machine_of("plain"), title=title, source=title)

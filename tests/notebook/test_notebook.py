"""The notebook extension in a real IPython shell."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from roofdsl import api
from roofdsl.lang.diagnostics import CommandError, Diagnostic, InputError
from roofdsl.lang.source import Source, Span
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from roofdsl.notebook import derive, explore, machine, predict, roofline, simulate, traffic
from roofdsl.notebook.extension import FIELDS
from roofdsl.notebook.findings import MOST, Findings
from roofdsl.notebook.rich import RESULTS, record_html
from tests.measure.examples import EXAMPLE

InteractiveShell = pytest.importorskip(
    "IPython.core.interactiveshell", reason="IPython is not installed"
).InteractiveShell

CELL = """\
%%roof
kernel axpy(n):
    in a: f64, x: f64[n]
    inout y: f64[n]
    for i in range(n):
        y[i] += a * x[i]

machine lap "My laptop":
    peak f64 fma 200 GFLOP/s
    memory RAM 16 GiB, 50 GB/s

program twice(n):
    repeat 2:
        run axpy(n)
"""


class Shell:
    """A shell whose displays and printed errors are kept."""

    def __init__(self) -> None:
        from traitlets.config import Config

        quiet = Config()
        quiet.HistoryManager.enabled = False
        self.shell = InteractiveShell.instance(config=quiet)
        self.shell.display_formatter.active_types = ["text/plain", "text/html", "text/latex", "image/svg+xml"]
        self.shown: list[dict[str, str]] = []
        self.shell.display_pub.publish = self._publish
        self.run("%load_ext roofdsl")

    def _publish(self, data: dict[str, str], *more: Any, **named: Any) -> None:
        self.shown.append(data)

    def run(self, cell: str) -> Any:
        """The result of a cell; raises what the cell raises."""
        found = self.shell.run_cell(cell, store_history=False)
        found.raise_error()
        return found.result

    def formats(self, value: Any) -> dict[str, str]:
        data, _ = self.shell.display_formatter.format(value)
        return dict(data)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    InteractiveShell.clear_instance()
    made = Shell()
    yield made
    InteractiveShell.clear_instance()


class Whole(HTMLParser):
    """Checks that elements close, and gathers text."""

    VOID = frozenset(("br", "hr", "img", "input"))

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


# ---- the cell magic ----


def test_a_cell_gives_its_definitions_to_the_notebook(shell: Shell) -> None:
    assert repr(shell.run(CELL)) == "kernel axpy(n); machine lap; program twice"
    assert isinstance(shell.shell.user_ns["axpy"], Kernel)
    assert isinstance(shell.shell.user_ns["lap"], Machine)
    shell.run("from roofdsl.notebook import *")
    one, two = shell.run("predict(axpy, lap, n=1000)"), shell.run("predict(twice, lap, n=1000)")
    assert one.memory.bytes == 24000
    assert two.total.bound_s == 2 * one.bound_s


def test_errors_are_underlined_in_place(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    text = "%%roof\nkernel f(n):\n    inout A: f64[n]\n    for i in range(n):\n"
    text += "        A[i] += B[i]  # <i>\n        A[i] = c\n"
    with pytest.raises(InputError):
        shell.run(text)
    (shown,) = shell.shown
    Whole(shown["text/html"])
    under = re.findall(r'underline wavy [^"]*"[^>]*>([^<]*)</span>', shown["text/html"])
    assert under == ["B", "c"]
    assert "<i>" not in shown["text/html"]
    assert "^" in shown["text/plain"]
    printed = capsys.readouterr()
    assert "Traceback" not in printed.out + printed.err
    assert re.search(r"\d errors? in <cell>", printed.out + printed.err)
    assert "f" not in shell.shell.user_ns


def test_warnings_are_shown_and_the_cell_is_read(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    from roofdsl.notebook import magic

    warned = Diagnostic("name-unknown", "look here", Span(2, 1, 2, 7), severity="warning")
    real = magic.read

    def read(cell: str, settings: dict[str, int]) -> Any:
        found, _ = real(cell, settings)
        return found, Findings(Source("<cell>", cell), (warned,))

    monkeypatch.setattr(magic, "read", read)
    shell.run(CELL)
    assert "look here" in shell.shown[0]["text/html"]
    assert "axpy" in shell.shell.user_ns


def test_const_parameters_take_numbers_after_the_magic(shell: Shell) -> None:
    body = "kernel f(n, const s):\n    in A: f64[s * n]\n    out B: f64[n]\n"
    body += "    for i in range(n):\n        B[i] = A[s * i]\n"
    shell.run(f"%%roof s=3\n{body}")
    assert shell.shell.user_ns["f"].constants == (("s", 3),)
    for line, message in (("", "s"), ("s", "not of the form"), ("s=x", "not of the form"), ("s=0", "not of the form")):
        with pytest.raises(CommandError, match=message):
            shell.run(f"%%roof {line}\n{body}")


def test_what_cannot_be_done_is_said_without_a_traceback(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run(CELL)
    shell.run("from roofdsl.notebook import *")
    capsys.readouterr()
    for cell, message in (
        ("predict(axpy, lap)", "needs a number for n\nhelp: give it with n=..."),
        ("predict(axpy, lap, m=3)", "no parameter `m`"),
        ("predict('nothing', lap)", "no file or shipped kernel named `nothing`"),
        ("predict(axpy, 'v1000')", "v1000"),
        ("predict('conv2d_passes', lap)", "nothing"),
        ("derive(axpy, cache='3 GB/s')", "cache:"),
        ("roofline()", "nothing to draw"),
        ("roofline(axpy)", "not a prediction"),
        ("explore(axpy, on=lap, m=3)", "parameter `m`"),
    ):
        with pytest.raises(CommandError):
            shell.run(cell)
        printed = capsys.readouterr()
        assert "Traceback" not in printed.out + printed.err
        if message != "nothing":
            assert message in printed.out + printed.err


def test_other_errors_keep_their_traceback(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError):
        shell.run("1 / 0")
    assert "ZeroDivisionError" in "".join(capsys.readouterr())


def test_unloading_takes_everything_back(shell: Shell) -> None:
    shell.run("%load_ext roofdsl")
    assert "text/html" in shell.formats(load_machine("v100_deck"))
    shell.run("%unload_ext roofdsl")
    assert "text/html" not in shell.formats(load_machine("v100_deck"))
    assert "roof" not in shell.shell.magics_manager.magics["cell"]


# ---- results ----


GEMV, DECK = "gemv", "v100_deck"
FOUND: dict[str, Callable[[], Any]] = {
    "prediction": lambda: predict(GEMV, DECK, n=256),
    "program": lambda: predict(_program(), DECK, n=64),
    "derivation": lambda: derive(GEMV, n=64),
    "steps": lambda: derive(GEMV, steps=True, cache="Z"),
    "quantity": lambda: derive(GEMV).work.total,
    "ratio": lambda: derive(GEMV).intensity,
    "simulated": lambda: simulate(GEMV, cache="1 KiB", n=16),
    "machine": lambda: machine(DECK),
    "kernel": lambda: api.kernel(GEMV),
    "measurement": lambda: EXAMPLE,
    "levels": lambda: predict(GEMV, DECK, n=256).levels[0],
}


def test_a_result_in_a_list_takes_one_line_or_says_itself(shell: Shell) -> None:
    found = predict("gemv", "v100_deck", n=64)
    alone, listed = (shell.formats(value)["text/plain"] for value in (found, [found]))
    assert listed == f"[{alone.splitlines()[0]}]"
    assert shell.formats([EXAMPLE])["text/plain"].startswith("[Measurement(kernel='triad'")
    assert shell.formats(EXAMPLE)["text/plain"].splitlines()[1].split()[:3] == ["triad", "n=1000", "loops"]


def _program() -> Any:
    from roofdsl.notebook.magic import read

    return read(CELL.partition("\n")[2], {})[0].programs[0]


@pytest.mark.parametrize("name", FOUND)
def test_every_result_is_shown(shell: Shell, name: str) -> None:
    formats = shell.formats(FOUND[name]())
    text = Whole(formats["text/html"]).texts
    assert len("".join(text)) > 5
    assert ("text/latex" in formats) == (name not in ("kernel", "levels"))
    assert "Fraction(" not in formats["text/html"]
    if name == "prediction":
        assert "HBM" in text
        assert "<- bound" in text
    tex = formats.get("text/latex", "")
    assert tex.count("{") - tex.count(r"\{") == tex.count("}") - tex.count(r"\}")


def test_a_simulation_shows_misses_and_bytes(shell: Shell) -> None:
    """A 64 x 64 matrix of 8 B is read once, in 512 lines; x and y are 8 lines each, and y is written back."""
    told = shell.formats(simulate(GEMV, cache="4 KiB", line="64 B", n=64))["text/plain"]
    assert "528 misses" in told
    rows = {words[0]: words[1:] for words in map(str.split, told.splitlines()) if words}
    assert rows["A"] == ["64", "B", "512", "0", "0"]
    assert rows["y"][-1] == "8"
    assert rows["load_store"] == ["34.3", "kB", "33.79", "kB", "512", "B"]


def test_texts_in_results_are_never_markup(shell: Shell) -> None:
    from roofdsl.lang.record import replace

    hostile = "<script>alert(1)</script>"
    formats = shell.formats(replace(load_machine("v100_deck"), title=hostile, source=hostile))
    assert hostile not in formats["text/html"]
    assert "&lt;script&gt;" in formats["text/html"]
    assert hostile not in record_html(EXAMPLE.__class__(**{**vars(EXAMPLE), "compiler": hostile}))


def test_every_result_named_is_there() -> None:
    for place in (*RESULTS, *FIELDS):
        module, _, name = place.partition(":")
        assert isinstance(getattr(import_module(module), name), type)


def test_figures_and_pages(shell: Shell, tmp_path: Path) -> None:
    for figure in (
        roofline(predict("gemv", "v100_deck", n=64), predict("gemv", "v100_deck", n=4096)),
        roofline(on="v100_deck"),
        traffic("dot", n=16, on="v100_deck"),
    ):
        assert shell.formats(figure)["image/svg+xml"].lstrip().startswith("<?xml")
    page = explore("dot", on=["v100_textbook", "v100_deck"], n=64, title="<b>")
    framed = shell.formats(page)["text/html"]
    assert framed.startswith("<iframe")
    assert 'sandbox="allow-scripts"' in framed
    assert framed.count("<") == 2  # all of the page is an attribute
    page.save(str(tmp_path / "page.html"))
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page.text


def test_sizes_by_mapping_and_by_name() -> None:
    assert predict("gemv", "v100_deck", sizes={"n": 64}) == predict("gemv", "v100_deck", n=64)
    assert derive("gemv", cache="32KiB", n=64).cache_bytes == 32768
    assert derive("gemv", cache=32768, n=64).cache_bytes == 32768


def test_findings_of_long_texts_show_the_lines_around() -> None:
    text = "\n".join(f"line {k}" for k in range(1, 201))
    spans = [Diagnostic("syntax", f"wrong {k}", Span(k, 1, k, 5)) for k in (1, 100, 200)]
    shown = "".join(Whole(Findings(Source("x", text), tuple(spans))._repr_html_()).texts)
    assert [int(n) for n in re.findall(r"(\d+) \| ", shown)] == [1, 2, 3, 98, 99, 100, 101, 102, 198, 199, 200]
    many = tuple(Diagnostic("syntax", "wrong", Span(k, 1, k, 5)) for k in range(1, MOST + 8))
    assert "and 7 more" in Findings(Source("x", text), many)._repr_html_()
    beyond = Findings(Source("x", ""), (Diagnostic("file-empty", "nothing", Span(1, 1, 1, 2)),))
    assert "nothing" in "".join(Whole(beyond._repr_html_()).texts)


def test_the_package_alone_imports_nothing() -> None:
    script = "import sys, roofdsl; print([m for m in sys.modules if m.startswith('roofdsl.') or m == 'IPython'])"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.strip() == "[]"

"""What commands print holds no control characters of other people's text."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from roofdsl.cli.main import run
from roofdsl.lang.visible import visible

ESCAPES = "\x1b]0;PWNED\x07\x1b[31mred\x9b31m\u202ertl\u2066\u200f\x7f\x00\u2028"
UNSAFE = set("\x1b\x07\x9b\u202e\u2066\u200f\x7f\x00\u2028\x90\x85\r\b")

MACHINE = """machine m "{}":
    peak f64 7 TFLOP/s source "{}"
    memory HBM 16 GiB, 900 GB/s
"""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 数 🙂\n\ttab", "plain é 数 🙂\n\ttab"),
        ("\x1b[31m", "\\u001b[31m"),
        ("\x1b[1mbold\x1b[0m", "\x1b[1mbold\x1b[0m"),
        ("a\x9bb\u202ec\rd", "a\\u009bb\\u202ec\\u000dd"),
        ("\ufeffx\u2069", "\\ufeffx\\u2069"),
    ],
)
def test_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    "command",
    ["check F", "predict matmul --set n=64 --machine F", "predict matmul --set n=64 --machine F --json",
     "machines show F", "predict matmul --set n=64 --machine F:\x1b[31mx\u202e", "derive F\x9b31m", "\x1b[31mderive"],
)  # fmt: skip
def test_nothing_printed_holds_control_characters(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.roof"
    path.write_text(MACHINE.format("T\x1b[31mRED\x1b]0;PWN\x07", "\x9b32m\u202esrc\u2069"))
    run([word.replace("F", str(path), 1) for word in command.split(" ")])
    out, err = capsys.readouterr()
    assert out + err
    assert not UNSAFE & set(out + err)
    if "--json" in command and out:
        assert json.loads(out)


def test_a_name_with_escapes_in_a_kernel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.roof"
    path.write_text(f'kernel "{ESCAPES.replace(chr(0), "").replace(chr(0x2028), "")}"(n):\n    y = 1\n')
    assert run(["check", str(path)]) == 1
    out, err = capsys.readouterr()
    assert not UNSAFE & set(out + err)


def test_what_is_laid_out_stays_as_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = MACHINE.format("T\x1b[31mRED", "src\u202e")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8"))
    assert run(["fmt", "-"]) == 0
    assert capsys.readouterr().out == text


def test_a_page_holds_none(tmp_path: Path) -> None:
    """Neither in its markup nor in its data, where `JSON.parse` would make them whole again."""
    path, out = tmp_path / "m.roof", tmp_path / "page.html"
    path.write_text(MACHINE.format("T\x9b31mRED\x1b]0;PWN\x07", "\x9b32m\u202esrc\u2069"))
    assert run(["explore", "gemv", "--machine", str(path), "-o", str(out)]) == 0
    page = out.read_text(encoding="utf-8")
    assert not UNSAFE & set(page)
    data = page.split('id="data">')[1].split("</script>")[0]
    assert "T\\u009b31mRED" in json.loads(data)["machines"][0]["title"]

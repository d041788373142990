"""An attribute of machines is one row of `roofdsl/lang/machine_attributes.py` and a field of the model."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from roofdsl.lang.machine_attributes import ATTRIBUTES, attributes
from roofdsl.machine.core import Core
from roofdsl.machine.instruction import Instruction
from roofdsl.machine.model import Cache, Machine, Memory, Peak, Sustained
from roofdsl.machine.multiprocessor import Multiprocessor
from tests.copied import ROOT, run_in_copy

ROWS = """\
    Attribute("refresh", _MACHINE, "time", "refresh_s", "between two refreshes"),
    Attribute("banks", _CACHE, "count", "banks", "what is read at once", example="4", shown="{number} banks"),
    Attribute("scrub", _LEVELS, "bandwidth", "scrub_bytes_per_s", "lost to scrubbing", shown="scrub {text}"),
    Attribute("ecc", ("memory",), None, "ecc", "errors are corrected", value=True, shown="ecc"),
"""
AFTER_ROWS = '    Attribute(\n        "duplex",'
SCRUB = "    scrub_bytes_per_s: Fraction | None = None\n"
CACHE = "    beside_bytes_per_s: Fraction | None = None\n"
MEMORY = (
    "    line_bytes: int | None = None\n    duplex: bool = False\n"
    "    typical_bytes_per_s: Fraction | None = None\n    stores_bytes_per_s: Fraction | None = None\n"
    "    strided_bytes_per_s: Fraction | None = None\n"
    "    strided_stores_bytes_per_s: Fraction | None = None\n    crowded_bytes_per_s: Fraction | None = None\n"
    "    gathered_bytes_per_s: Fraction | None = None\n"
    "    random_bytes_per_s: Fraction | None = None\n    random_stores_bytes_per_s: Fraction | None = None\n"
    "    restart_s: Fraction | None = None\n"
    "    energy_j_per_byte: Fraction | None = None\n    one_stream_bytes_per_s: Fraction | None = None\n"
    "    streams: int = 0\n    streamed_bytes_per_s: Fraction | None = None\n    source"
)
MACHINE = "    clock_hz: Fraction | None = None\n"
CHANGES = {
    "lang/machine_attributes.py": [(AFTER_ROWS, ROWS + AFTER_ROWS)],
    "machine/model.py": [
        (CACHE, CACHE + SCRUB + "    banks: int | None = None\n"),
        (MEMORY, MEMORY.replace("    source", SCRUB + "    ecc: bool = False\n    source")),
        (MACHINE, MACHINE + "    refresh_s: Fraction | None = None\n"),
    ],
}

PROGRAM = '''
import json
from pathlib import Path

from click.testing import CliRunner

import roofdsl
from roofdsl.cli.machines import machines
from roofdsl.editors import textmate
from roofdsl.editors.pygments_lexer import RoofLexer
from roofdsl.lang.check import check
from roofdsl.lang.diagnostics import InputError
from roofdsl.lang.format import format_source
from roofdsl.lang.source import Source
from roofdsl.loops.load import load_file
from roofdsl.machine.find import machine_of

TEXT = """
machine m:
    peak f64 10 GFLOP/s
    cache L1   32 KiB, 100 GB/s,line 64 B,   banks   8,scrub 1 GB/s
    memory DRAM 1 GiB, 10 GB/s, ecc
    refresh   7.8 us source "note"
"""

def wrong(text):
    try:
        check(Source("wrong.roof", text))
    except InputError as error:
        return [[d.code, d.message, d.help] for d in error.diagnostics]

Path("m.roof").write_text(TEXT)
model = machine_of(load_file(Source("m.roof", TEXT)), None)
shown = CliRunner().invoke(machines, ["show", "m.roof"], catch_exceptions=False)
as_json = CliRunner().invoke(machines, ["show", "m.roof", "--json"], catch_exceptions=False)
print(json.dumps({
    "package": roofdsl.__file__,
    "model": [model.caches[0].banks, float(model.caches[0].scrub_bytes_per_s), model.memories[0].ecc],
    "refresh": float(model.refresh_s),
    "fmt": format_source(Source("m.roof", TEXT)),
    "show": shown.output,
    "json": json.loads(as_json.output),
    "grammar": textmate.text(),
    "highlighted": [[str(kind), text] for kind, text in RoofLexer().get_tokens(TEXT)],
    "unknown": wrong(TEXT.replace("banks", "bankss")),
    "no number": wrong(TEXT.replace("banks   8", "banks")),
    "a number": wrong(TEXT.replace("ecc", "ecc 3")),
    "twice": wrong(TEXT + "    refresh 1 us" + chr(10)),
    "unit": wrong(TEXT.replace("7.8 us", "7.8 GHz")),
    "elsewhere": wrong(TEXT.replace("ecc", "banks 3")),
}))
'''


@pytest.mark.thorough
def test_four_more_attributes(tmp_path: Path) -> None:
    found = run_in_copy(tmp_path, PROGRAM, CHANGES)
    assert (found["model"], found["refresh"]) == ([8, 1e9, True], 7.8e-6)
    assert "    cache L1 32 KiB, 100 GB/s, line 64 B, banks 8, scrub 1 GB/s\n" in found["fmt"]
    assert '    refresh 7.8 us source "note"\n' in found["fmt"]
    rows = {line.split("  ")[1]: line for line in found["show"].splitlines() if line.startswith("  ")}
    assert rows["cache L1"].endswith("32 KiB, 100 GB/s, line 64 B, 8 banks, scrub 1 GB/s")
    assert rows["memory DRAM"].endswith("1 GiB, 10 GB/s, ecc")
    assert rows["refresh"].split() == ["refresh", "7.8", "us", "note"]
    cache, memory = found["json"]["caches"][0], found["json"]["memories"][0]
    assert (cache["banks"], cache["scrub_bytes_per_s"]) == (8, 1e9)
    assert (memory["ecc"], memory["scrub_bytes_per_s"], found["json"]["refresh_s"]) == (True, None, 7.8e-6)
    assert "clock|throttled|units|constant_power|power_cap|refresh|multiprocessor" in found["grammar"]
    assert ["Token.Keyword", "refresh"] in found["highlighted"]
    assert {"banks", "ecc"} <= {t for kind, t in found["highlighted"] if kind == "Token.Name.Attribute"}
    (unknown,) = found["unknown"]
    assert unknown[:2] == ["machine-option", "a cache has no `bankss`"] and "`banks`" in unknown[2]
    assert found["no number"] == [["machine-option", "`banks` needs a number", "write `banks 4`"]]
    assert found["a number"] == [["machine-option", "`ecc` takes no number", ""]]
    assert [d[0] for d in found["twice"]] == ["machine-twice"]
    assert [d[0] for d in found["unit"]] == ["unit-kind"]
    assert found["elsewhere"] == [
        [
            "machine-option",
            "a memory has no `banks`",
            "a memory has `line`, `scrub`, `ecc`, `duplex`, `typical`, `stores`, `streamed`, `one_stream`, `streams`, "
            "`strided`, `strided_stores`, `crowded`, `gathered`, `random`, `random_stores`, `restart` and `energy`",
        ]
    ]


def test_every_attribute_is_a_field_of_the_model() -> None:
    models = {
        "machine": Machine, "peak": Peak, "cache": Cache, "memory": Memory, "multiprocessor": Multiprocessor,
        "sustained": Sustained, "core": Core, "instruction": Instruction,
    }  # fmt: skip
    for attribute in ATTRIBUTES:
        for place in attribute.of:
            assert attribute.field in models[place].__match_args__, attribute.word
    given = {
        "name",
        "level",
        "direction",
        "size_bytes",
        "bandwidth_bytes_per_s",
        "source",
        "cls",
        "type",
        "bits",
        "rate_per_s",
    }
    for place in ("peak", "cache", "memory", "multiprocessor", "sustained", "core", "instruction"):
        assert {a.field for a in attributes(place).values()} == {*models[place].__match_args__} - given


def test_the_language_page_lists_the_attributes(golden: Callable[[Path, str], None]) -> None:
    path = ROOT / "docs/language.md"
    units = {
        "size": "SIZE", "bandwidth": "BANDWIDTH", "time": "TIME", "frequency": "FREQUENCY", "count": "N", "number": "N",
        "cycles": "CYCLES", "power": "POWER", "byte_energy": "ENERGY", "operation_energy": "ENERGY",
    }  # fmt: skip
    lines = [f"| `{a.word} {units[str(a.kind)]}` | {a.about} |" for a in ATTRIBUTES if "machine" in a.of]
    rows = [
        f"| `{a.word}{f' {units[a.kind]}' if a.kind else ''}` | {' and '.join(a.of)} | {a.about} |"
        for a in ATTRIBUTES
        if "machine" not in a.of
    ]
    page = path.read_text(encoding="utf-8")
    for head, tail, made in (
        (r"(?<=\n)(?=\| `launch TIME` )", r"(?=\| `multiprocessor)", lines),
        (r"(?<=\| option \| of \| \|\n\| --- \| --- \| --- \|\n)", r"(?=\n)", rows),
    ):
        page, count = re.subn(f"{head}(?:\\|.*\n)*?{tail}", "\n".join([*made, ""]), page)
        assert count == 1
    golden(path, page)

"""Every form of a derivation, word for word, for kernels of each kind; `pytest --update-golden` writes them anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from roofdsl.cli.derive import derive as command
from roofdsl.counts.derive import derive
from roofdsl.counts.derived import Derivation
from roofdsl.lang.record import replace
from roofdsl.loops.load import kernel, load_file
from roofdsl.machine.find import find_model
from roofdsl.store.codec import read, write
from roofdsl.tell.derive_html import to_html
from roofdsl.tell.derive_json import to_json
from roofdsl.tell.derive_latex import to_latex
from roofdsl.tell.derive_text import to_text

GOLDEN = Path(__file__).parent / "golden" / "derive"

KERNELS = {
    "gemv": {},
    "gemv_at": {"kernel": "gemv", "values": {"n": 4096}, "cache_bytes": 32768, "traffic": "load_store"},
    "matmul": {},
    "matmul_lines": {"kernel": "matmul_ijk", "line_bytes": 64},
    "matmul_blocked": {"values": {"b": 16}, "cache_bytes": 32768},
    "jacobi2d": {},
    "lu": {},
    "minplus": {},
    "vector_add": {"traffic": "write_allocate"},
    "transpose": {},
    "dot_first": {},
}


@cache
def derivation(name: str) -> Derivation:
    options = dict(KERNELS[name])
    target = find_model(str(options.pop("kernel", name)))
    return derive(kernel(load_file(target.path), target.name), steps=True, **options)  # type: ignore[arg-type]


def _json(d: Derivation) -> str:
    return json.dumps(to_json(d), indent=1) + "\n"


FORMS: dict[str, Callable[[Derivation], str]] = {
    "txt": lambda d: to_text(replace(d, steps=None)),
    "steps.txt": to_text,
    "tex": lambda d: to_latex([replace(d, steps=None)]),
    "steps.tex": lambda d: to_latex([d]),
    "json": _json,
    "html": lambda d: to_html(replace(d, steps=None)) + "\n",
    "steps.html": lambda d: to_html(d) + "\n",
}


@cache
def kept(name: str) -> Derivation:
    """The derivation as it comes from the cache on disk."""
    found = derivation(name)
    known = {"kernel": found.kernel}
    again: Derivation = read(json.loads(json.dumps(write(found, known))), known)
    return again


@pytest.mark.spread(5)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", KERNELS)
def test_what_is_written(name: str, form: str, golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / f"{name}.{form}", FORMS[form](derivation(name)))
    golden(GOLDEN / f"{name}.{form}", FORMS[form](kept(name)))


@pytest.mark.parametrize(
    ("options", "form"),
    [((), "txt"), (("--steps",), "steps.txt"), (("--latex",), "tex"), (("--steps", "--latex"), "steps.tex")],
)
def test_options_choose_the_form(options: tuple[str, ...], form: str) -> None:
    result = CliRunner().invoke(command, ["gemv", *options])
    assert (result.exit_code, result.stdout) == (0, (GOLDEN / f"gemv.{form}").read_text(encoding="utf-8"))


def test_two_outputs_at_once_are_refused() -> None:
    result = CliRunner().invoke(command, ["gemv", "--latex", "--json"])
    assert result.exit_code == 2
    assert "choose one" in result.output

"""C that is read: roofdsl's code of the kernel computes what the user's compiled function does, bit for bit."""

from __future__ import annotations

import ctypes
import functools
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roofdsl.codegen.generate import generate
from roofdsl.frontends.c.read import _Reader
from roofdsl.lang import tree
from roofdsl.lang.checked import CheckedFile
from roofdsl.lang.format import format_source
from roofdsl.lang.source import Source
from roofdsl.lang.write import written
from roofdsl.loops.load import kernel as lowered
from roofdsl.loops.load import load_file, read_source
from roofdsl.loops.model import Kernel
from tests.codegen.running import CLibrary
from tests.frontends.running import EXACT, call, data, differences, library, unfolded

TAKEN = Path(__file__).with_name("taken.c")
TEXT = TAKEN.read_text(encoding="utf-8")
HEAD = re.compile(r"^(void|int|double|float) (\w+)\(([^)]*(?:\(\*\w+\)[^)]*)?)\) \{", re.MULTILINE)
FUNCTIONS = {name: (result, parameters) for result, name, parameters in HEAD.findall(TEXT)}
SIZES = {"n": 9, "m": 6, "s": 2}


def signature(parameters: str) -> list[tuple[str, str]]:
    """Names and types of a C function's parameters."""
    found = []
    for parameter in re.split(r",(?![^\[(]*[\])])", parameters):
        words = re.sub(r"\b(const|restrict|complex)\b", "", parameter)
        name = re.findall(r"\w+", re.sub(r"\[.*?\]", "", words))[-1]
        pointer = "*" in words or "[" in words
        found.append((name, words.split()[0] + ("*" if pointer else "")))
    return found


@functools.cache
def reader() -> _Reader:
    return _Reader(read_source(str(TAKEN)))


def read(name: str) -> CheckedFile:
    """What `frontends.c.read` gives of a function, which would go through the whole file for each of them."""
    (region,) = reader().regions(name)
    _, own, _ = reader().kernel(region)
    file = tree.File((own.tree,), source=reader().source)
    return CheckedFile(reader().source, file, {own.tree.name.text: own}, {}, {}, (own.tree.name.text,), ())


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[ctypes.CDLL, CLibrary, dict[str, Kernel]]:
    """The user's functions and the generated ones, compiled, and the kernels."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("taken")
    kernels = {name: lowered(read(name), None) for name in FUNCTIONS}
    generated = [generate(kernel, "c", "loops") for kernel in kernels.values()]
    return library(TEXT, folder), CLibrary(generated, folder, (*EXACT, "-Wno-error")), kernels


@pytest.mark.parametrize("name", FUNCTIONS)
def test_computes_the_same(name: str, both: tuple[ctypes.CDLL, CLibrary, dict[str, Kernel]]) -> None:
    user, ours, kernels = both
    result, parameters = FUNCTIONS[name]
    kernel = kernels[name]
    sizes = {p.name: SIZES[p.name] for p in kernel.parameters}
    for seed in (1, 2):
        mine = data(kernel.arrays, sizes, seed)
        theirs = {n: np.array(v) for n, v in mine.items()}
        function: Any = getattr(user, name)
        function.restype = {"void": None, "int": ctypes.c_int, "double": ctypes.c_double, "float": ctypes.c_float}[
            result
        ]
        value = call(function, signature(parameters), theirs, sizes)
        ours(generate(kernel, "c", "loops"), mine, sizes)
        if result != "void":
            (out,) = [a for a in kernel.arrays if a.is_scalar and a.intent == "out"]
            assert mine[out.name][0] == value
            del theirs[out.name]
        assert any(a.intent in ("out", "inout") for a in kernel.arrays)
        assert differences(kernel, mine, theirs) == []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_text_is_the_kernel(name: str) -> None:
    """What `convert` prints is canonical, and is the kernel that is analyzed."""
    own = read(name).kernels[name]
    text = written(own)
    again = load_file(Source("again.roof", text))
    assert unfolded(again.kernels[name].tree.body) == unfolded(own.tree.body)
    assert again.warnings == ()
    assert format_source(Source("again.roof", text)) == text


def test_there_are_enough() -> None:
    assert len(FUNCTIONS) >= 45

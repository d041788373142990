"""Reading files: what cannot be read, what is not a text, which kernel is meant."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.source import Source
from roofdsl.loops.integers import Const, Product, Sym
from roofdsl.loops.load import decode, kernel, kernels, load_file
from roofdsl.loops.program_model import program

KERNEL = "kernel {}(n, m = 3):\n    out y: f64[n]\n    y[0] = m\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_used_files_lie_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    write(tmp_path / "lib" / "b.roof", KERNEL.format("b"))
    main = write(tmp_path / "a.roof", 'use "lib/b.roof"\n' + KERNEL.format("a"))
    checked = load_file(main)
    assert list(kernels(checked)) == ["a"]
    assert kernel(checked, None).name == "a" and kernel(checked, "b").name == "b"
    assert kernel(checked, "b").source.name == str(tmp_path / "lib" / "b.roof")
    assert list(kernels(load_file(write(tmp_path / "c.roof", 'use "lib/b.roof"\n')))) == ["b"]


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        load_file(tmp_path / "none.roof")
    with pytest.raises(CommandError, match="is a directory"):
        load_file(tmp_path)
    with pytest.raises(CommandError, match=r"larger than a \.roof file can be"):
        load_file(write(tmp_path / "big.roof", "#" * (1 << 21)))
    os.mkfifo(tmp_path / "pipe.roof")
    with pytest.raises(CommandError, match="not a regular file"):
        load_file(tmp_path / "pipe.roof")
    with pytest.raises(CommandError, match="is JSON") as caught:
        load_file(write(tmp_path / "results.json", '{"schema": "roofdsl-result-1"}'))
    assert "--results" in caught.value.help


def test_encodings(tmp_path: Path) -> None:
    path = tmp_path / "a.roof"
    path.write_bytes(b"\xef\xbb\xbf" + KERNEL.format("a").encode().replace(b"\n", b"\r\n"))
    assert list(kernels(load_file(path))) == ["a"]
    with pytest.raises(InputError) as caught:
        decode("kernel é".encode("latin-1"), "t")
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.span.line, diagnostic.span.column) == ("file-encoding", 1, 8)
    with pytest.raises(InputError, match="UTF-16"):
        decode("kernel".encode("utf-16"), "t")


def test_picking_a_kernel() -> None:
    two = load_file(Source("t.roof", KERNEL.format("one") + KERNEL.format("two")))
    with pytest.raises(CommandError, match="several kernels") as caught:
        kernel(two, None)
    assert caught.value.help == "pick one, such as t.roof:one (it has one, two)"
    with pytest.raises(CommandError, match="no kernel `onee`") as caught:
        kernel(two, "onee")
    assert "did you mean `one`" in caught.value.help
    machine = "machine m:\n    peak f64 1 GFLOP/s\n    memory D 1 GiB, 1 GB/s\n"
    with pytest.raises(CommandError, match="has no kernel"):
        kernel(load_file(Source("t.roof", machine)), None)


def test_programs_are_flattened_to_launches() -> None:
    text = KERNEL.format("a") + KERNEL.format("b").replace("m = 3", "const m = 3").replace("f64[n]", "f64[m * n]")
    text += "program p(T, q = 5):\n    run a(T)\n    repeat T:\n"
    text += "        repeat 2 * q:\n            run b(2 * T, q + 1)\n            run b(7)\n"
    lowered = program(load_file(Source("t", text)), "p")
    t, q = Sym("T"), Sym("q")
    first, second, third = lowered.launches
    assert (first.kernel.name, first.arguments, first.times) == ("a", (("n", t), ("m", Const(3))), Const(1))
    assert (second.arguments, second.times) == ((("n", Product((Const(2), t))),), Product((Const(2), t, q)))
    assert second.kernel.constants == (("m", 6),) and third.kernel.constants == (("m", 3),)
    assert [p.name for p in lowered.parameters] == ["T", "q"]
    with pytest.raises(CommandError, match="no program `a`"):
        program(load_file(Source("t", text)), "a")
    open_ = text.replace("q = 5", "q")
    with pytest.raises(CommandError, match="needs a number for its `const` parameter `m`"):
        program(load_file(Source("t", open_)), "p")
    assert program(load_file(Source("t", open_)), "p", {"q": 1}).launches[1].kernel.constants == (("m", 2),)

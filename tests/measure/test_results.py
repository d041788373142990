"""Result files: what is written is read back; what is damaged is refused, with a message and a place."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import pytest

from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernels, load_file
from roofdsl.machine.find import load_machine
from roofdsl.measure.machine_file import machine_text, save_machine
from roofdsl.measure.measurement import load, parse, save, source_hash
from tests.measure.examples import EXAMPLE
from tests.measure.made_up import characterized

MACHINE = characterized()


def test_one_and_several_are_read_back(tmp_path: Path) -> None:
    other = replace(EXAMPLE, kernel="copy", work=0, footprint_bytes=None)
    save(tmp_path / "one.json", [EXAMPLE])
    save(tmp_path / "two.json", [EXAMPLE, other])
    assert load(tmp_path / "one.json") == (EXAMPLE,)
    assert load(tmp_path / "two.json") == (EXAMPLE, other)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one.json", "two.json"]


def test_the_contract_keys() -> None:
    document = EXAMPLE.to_json()
    keys = "schema kernel parameters backend variant device software when repeats times_s median_s low_s high_s"
    assert {*keys.split(), "work_flops", "flops_per_s", "verified", "source_sha256"} <= document.keys()
    assert document["median_s"] == 3e-6 and document["flops_per_s"] == pytest.approx(2000 / 3e-6)
    assert {"against", "max_error"} <= document["verified"].keys()


def change(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document.update(fields)


WRONG = {
    "schema": (change(schema="roofdsl.predict/1"), "schema `roofdsl.predict/1`"),
    "no kernel": (lambda d: d.pop("kernel"), "`kernel` is missing"),
    "time 0": (lambda d: d["times_s"].__setitem__(0, 0), "not a possible time of a call"),
    "time text": (lambda d: d["times_s"].__setitem__(0, "1"), "has the wrong type"),
    "fewer times": (lambda d: d["times_s"].pop(), "does not match `repeats`"),
    "median": (change(median_s=1e-9), "the times give"),
    "rate": (change(flops_per_s=1e12), "the times give"),
    "hash": (change(source_sha256="abc"), "not a SHA-256"),
    "date": (change(when="yesterday"), "not a date and time"),
    "state": (change(state="lukewarm"), "warm, cold or rotated"),
    "backend": (change(backend="tpu"), "must be cpu or gpu"),
    "not verified": (lambda d: d["verified"].update(of_allowed=1.5), "not verified"),
    "bool": (change(threads=True), "has the wrong type"),
    "negative": (change(work_flops=-1), "at least 0"),
    "parameter": (change(parameters={"n": 1.5}), "has the wrong type"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_documents_are_refused(name: str) -> None:
    damage, message = WRONG[name]
    document = EXAMPLE.to_json()
    damage(document)
    with pytest.raises(InputError, match=message) as caught:
        parse(Source("r.json", json.dumps(document, indent=1)))
    assert "result-damaged" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "[]",
        '{"schema": "roofdsl.measurement/1", "kernels": []}',
        "null",
        "{",
        '{"schema": NaN}',
        "[" * 100_000,
        '"text"',
        "\x00",
    ],
)
def test_what_is_no_document_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"r\.json:1:"):
        parse(Source("r.json", text))


def test_every_prefix_is_refused() -> None:
    text = json.dumps(EXAMPLE.to_json(), indent=1)
    for length in range(0, len(text), 7):
        with pytest.raises(InputError):
            parse(Source("r.json", text[:length]))


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        load(tmp_path / "missing.json")
    with pytest.raises(CommandError, match="cannot be written"):
        save(tmp_path / "missing" / "r.json", [EXAMPLE])


def test_only_the_kernels_own_text_counts_as_its_source(tmp_path: Path) -> None:
    path = tmp_path / "k.roof"
    plain = "kernel k(n):\n    inout a: f64[n]\n    for i in range(n):\n        a[i] += 1.0\n"
    path.write_text(plain)
    first = source_hash(kernels(load_file(path))["k"])
    path.write_text(
        "# new\nkernel other(n):\n    out b: f64[n]\n    b[0] = 1\n\n" + plain.replace("a[i] +=", "a[i]  +=")
    )
    assert source_hash(kernels(load_file(path))["k"]) == first
    path.write_text(plain.replace("1.0", "2.0"))
    changed = kernels(load_file(path))["k"]
    assert source_hash(changed) != first
    assert replace(EXAMPLE, source_sha256=first).is_stale(changed)
    assert not replace(EXAMPLE, source_sha256=source_hash(changed)).is_stale(changed)


def write_results(path: Path, generation: int) -> None:
    many = [replace(EXAMPLE, times_s=EXAMPLE.times_s * 20, parameters=(("n", generation),))] * 4
    save(path, many)


def read_results(path: Path) -> object:
    found = load(path)
    assert len({m.parameters for m in found}) == 1 and len(found) == 4
    return found[0].parameters


def write_machine(path: Path, generation: int) -> None:
    save_machine(path, machine_text(replace(MACHINE, call_s=generation * 1e-6), f"m{generation}"))


def read_machine(path: Path) -> object:
    machine = load_machine(str(path))
    assert machine.launch_s == Fraction(int(machine.name[1:]), 10**6) and machine.units == 2  # its first and last lines
    return machine.name


def write_for_ever(path: Path, ready: int, write: Callable[[Path, int], None]) -> NoReturn:
    """Saves one generation after the other, until killed."""
    os.write(ready, b"x")
    generation = os.getpid() % 5000
    while True:
        generation += 1
        write(path, generation)


@pytest.mark.spread(1)
@pytest.mark.parametrize(
    ("name", "write", "read"), [("r.json", write_results, read_results), ("m.roof", write_machine, read_machine)]
)
def test_a_killed_writer_leaves_a_whole_file(
    tmp_path: Path,
    name: str,
    write: Callable[[Path, int], None],
    read: Callable[[Path], object],
    pytestconfig: pytest.Config,
) -> None:
    """SIGKILL at random moments: the file is always one whole generation.

    On a busy computer, many writers are killed before they write anything: then there are more of them, and later ones
    have more time.
    """
    path = tmp_path / name
    write(path, 1)
    dice = random.Random(3)
    seen: set[object] = set()
    killed, least = 0, 50 if pytestconfig.option.thorough else 15
    while killed < least or (len(seen) <= 2 and killed < 1000):
        killed += 1
        ready, told = os.pipe()
        writer = os.fork()
        if writer == 0:
            try:
                write_for_ever(path, told, write)
            finally:
                os._exit(1)
        assert os.read(ready, 1) == b"x"
        time.sleep(dice.uniform(0, 0.05) * (1 + killed // 100))
        os.kill(writer, signal.SIGKILL)
        _, status = os.waitpid(writer, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL
        os.close(ready)
        os.close(told)
        seen.add(read(path))
    assert len(seen) > 2
    leftovers = [other for other in os.listdir(tmp_path) if other != name]
    assert all(other.endswith(".part") for other in leftovers)

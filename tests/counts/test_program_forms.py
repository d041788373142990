"""Closed forms of programs against the launches done one by one, and derived at their sizes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

import pytest

from roofdsl.counts.program import derive_program
from roofdsl.counts.traffic_at import traffic_at
from roofdsl.counts.work_at import work_at
from roofdsl.lang.checked import CheckedFile
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.machine.find import find_model
from roofdsl.sets.facts import Remainders
from roofdsl.tell.derive_program import to_text
from tests.oracle import lru
from tests.oracle.enumerate import executions

TEXT = """\
kernel product(m, n, k):
    in A: f32[m, k], B: f32[k, n]
    inout C: f32[m, n]
    for i in range(m), j in range(n), p in range(k):
        C[i, j] += A[i, p] * B[p, j]

kernel every(n, const s = 2):
    assume n >= s
    in a: f32[n]
    out b: f32[n]
    for i in range(0, n, s):
        b[i] = a[i] + 1.0

program inner(n, times):
    repeat times:
        run product(n, 2 * n, 3)

program outer(n, m, const s = 3):
    run inner(n + 1, m)
    repeat 2 * n:
        run product(m, n, m)
        run every(m * n + 2, s)
    run product(n + 1, 2 * n + 2, 3)

program short(n):
    run every(n - 2)
"""
OPERATIONS = {"product": 2, "every": 1}  # of one execution of the kernel's statement


def by_hand(n: int, m: int, s: int) -> list[tuple[str, dict[str, int]]]:
    """Every launch of `outer`, as one reads it."""
    found: list[tuple[str, dict[str, int]]] = []
    found += [("product", {"m": n + 1, "n": 2 * (n + 1), "k": 3})] * m
    for _ in range(2 * n):
        found.append(("product", {"m": m, "n": n, "k": m}))
        found.append(("every", {"n": m * n + 2, "s": s}))
    return [*found, ("product", {"m": n + 1, "n": 2 * n + 2, "k": 3})]


@pytest.mark.spread(1)
@pytest.mark.parametrize("sizes", [{"n": 1, "m": 3, "s": 3}, {"n": 3, "m": 2, "s": 3}, {"n": 2, "m": 5, "s": 2}])
@pytest.mark.parametrize("convention", ["once", "load_store", "write_allocate"])
@pytest.mark.parametrize("cache", [None, 48])
def test_launch_by_launch(sizes: dict[str, int], convention: str, cache: int | None) -> None:
    """W by executing every statement, Q by brute-force LRU, launch by launch."""
    checked = load_file(Source("<test>", TEXT))
    work, moved, loads = 0, 0, 0
    for name, arguments in by_hand(**sizes):
        constants = {"s": arguments["s"]} if "s" in arguments else {}
        own = {n: v for n, v in arguments.items() if n not in constants}
        launched = kernel(checked, name, constants)
        work += OPERATIONS[name] * sum(executions(launched, own).values())
        traffic = lru.traffic(launched, own, cache, None, convention)
        moved, loads = moved + traffic.bytes, loads + (traffic.loads or 0)
    with_numbers = derive_program(checked, "outer", sizes, traffic=convention, cache_bytes=cache)  # type: ignore[arg-type]
    assert (with_numbers.work.total.value, with_numbers.at_cache.bytes.value) == (work, moved)
    assert with_numbers.launches.value == len(by_hand(**sizes))
    if with_numbers.at_cache.loads is not None:
        assert with_numbers.at_cache.loads.value == loads
    symbolic = derive_program(checked, "outer", {"s": sizes["s"]}, traffic=convention)  # type: ignore[arg-type]
    assert symbolic.work.total.form is not None and symbolic.launches.form is not None
    assert symbolic.work.total.form.evaluate(sizes) == work
    assert symbolic.launches.form.evaluate(sizes) == len(by_hand(**sizes))
    if cache is None:
        assert symbolic.compulsory.bytes.form is not None
        assert symbolic.compulsory.bytes.form.evaluate(sizes) == moved


SHIPPED = [
    ("lstm_forward", {"batch": 5, "sequence": 3, "features": 7, "hidden": 4}),
    ("lstm_backward", {"batch": 2, "sequence": 4, "features": 3, "hidden": 5}),
    ("layer", {"batch": 2, "new": 3, "context": 5, "d": 8, "kv": 2, "group": 2, "dh": 6, "ffn": 9}),
    ("llama3_8b_decode", {"batch": 3, "context": 17}),
    ("conv2d_im2col", {"batch": 2, "h": 9, "w": 8, "c": 3, "f": 4, "r": 3, "s": 2}),
    ("fft_128", {"images": 3}),
]


@pytest.mark.spread(1)
@pytest.mark.parametrize(("name", "sizes"), SHIPPED)
def test_shipped_programs(name: str, sizes: dict[str, int]) -> None:
    """The forms at sizes are the sums of what the launches are at those sizes."""
    checked = load_file(find_model(name).path)
    symbolic = derive_program(checked, name, {"s": sizes["s"]} if "s" in sizes else {})
    work, moved, launches = _launch_by_launch(checked, name, sizes)
    assert symbolic.launches.form is not None and symbolic.launches.form.evaluate(sizes) == launches
    assert symbolic.work.total.form is not None and symbolic.work.total.form.evaluate(sizes) == work
    for q in symbolic.work.by_class.values():
        assert q.form is not None
    assert symbolic.compulsory.bytes.form is not None and symbolic.compulsory.bytes.form.evaluate(sizes) == moved
    assert sum(p.work.form.evaluate(sizes) for p in symbolic.parts if p.work.form is not None) == work


def _launch_by_launch(checked: CheckedFile, name: str, sizes: Mapping[str, int]) -> tuple[int, int, int]:
    from roofdsl.loops.program_model import program

    times: Counter[tuple[str, tuple[tuple[str, int], ...]]] = Counter()
    lowered = program(checked, name, sizes)
    for launch in lowered.launches:
        key = (launch.kernel.name, tuple((n, e.evaluate(sizes)) for n, e in launch.arguments))
        times[key] += launch.times.evaluate(sizes)
    kernels = {launch.kernel.name: launch.kernel for launch in lowered.launches}
    work = sum(n * work_at(kernels[k], dict(own)).total for (k, own), n in times.items())
    moved = sum(
        n * traffic_at(kernels[k], dict(own), None, None, kernels[k].traffic or "load_store").bytes
        for (k, own), n in times.items()
    )
    return work, moved, sum(times.values())


@pytest.mark.thorough
def test_random_arguments() -> None:
    """Forms hold at many sizes, not only at one."""
    checked = load_file(Source("<test>", TEXT))
    symbolic = derive_program(checked, "outer")
    random_sizes = random.Random(7)
    for _ in range(20):
        sizes = {"n": random_sizes.randint(1, 30), "m": random_sizes.randint(2, 30)}
        exact = derive_program(checked, "outer", sizes)
        for q, of in ((symbolic.work.total, exact.work.total), (symbolic.compulsory.bytes, exact.compulsory.bytes)):
            assert q.form is not None and q.form.evaluate(sizes) == of.value


@pytest.mark.parametrize(
    ("name", "sizes", "message"),
    [
        ("outer", {"q": 3}, "program outer has no parameter `q`"),
        ("conv2d_im2col", {"batch": 1, "h": 2, "w": 8, "c": 1, "f": 1, "r": 3, "s": 1}, "assumes h >= r"),
        ("short", {"n": 2}, "n of every is 0 at these sizes"),
    ],
)
def test_what_is_wrong(name: str, sizes: dict[str, int], message: str) -> None:
    checked = load_file(Source("<test>", TEXT)) if f"program {name}(" in TEXT else load_file(find_model(name).path)
    with pytest.raises(CommandError, match=message.replace("`", ".")):
        derive_program(checked, name, sizes)


def test_one_class_of_operations_is_said_as_for_a_kernel() -> None:
    """A program that only adds says so, instead of giving the same form twice under another name."""
    one = load_file(Source("<test>", TEXT + "\nprogram adds(n):\n    repeat 3:\n        run every(n, 1)\n"))
    lines = to_text(derive_program(one, "adds", {"n": 5})).splitlines()
    assert "  W         = 3*n = 15 FLOP (f32)" in lines and "    all add = 3*n = 15" in lines


STENCIL = """\
kernel sides(n):
    in A: f64[n, n]
    out B: f64[n, n]
    for i in range(n), j in range(1, n - 1):
        B[i, j] = A[i, j - 1] + A[i, j + 1]

program twice(n):
    run sides(2 * n)

program fixed(n):
    run sides(96)

kernel gemv(m, n):
    in A: f64[m, n], x: f64[n]
    inout y: f64[m]
    for i in range(m), j in range(n):
        y[i] += A[i, j] * x[j]

program narrow(m):
    run gemv(m, 3)

kernel product(n, b):
    assume n % b == 0
    in A: f64[n, n], B: f64[n, n]
    inout C: f64[n, n]
    tile i, j, k by b
    for i in range(n), j in range(n), k in range(n):
        C[i, j] += A[i, k] * B[k, j]

program tiled(n, b):
    run product(n, b)
    run product(2 * n, 32)
"""


def test_remainders_are_those_of_the_arguments() -> None:
    checked = load_file(Source("<test>", STENCIL))
    found = derive_program(checked, "twice", {"n": 500}, cache_bytes=4096, line_bytes=64).at_cache.bytes
    stated = [str(fact.condition) for fact in found.assumes if isinstance(fact, Remainders)]
    assert stated == ["(2*n) % 8 == 0"]
    assert found.form is not None and found.form.evaluate({"n": 500}) == found.value
    found = derive_program(checked, "fixed", cache_bytes=4096, line_bytes=64).at_cache.bytes
    assert found.form is not None and not found.assumes, "numbers decide them"


def test_there_is_no_form_where_the_arguments_violate_what_it_assumes() -> None:
    """Through 1 KiB, the form of `gemv` is for n >= 4."""
    checked = load_file(Source("<test>", STENCIL))
    found = derive_program(checked, "narrow", {"m": 50}, cache_bytes=1024).at_cache.bytes
    assert found.form is None and found.note == "the form assumes `n >= 4`, which its arguments violate"
    own = {"m": 50, "n": 3}
    assert found.value == traffic_at(kernel(checked, "gemv", {}), own, 1024, None, "load_store").bytes


def test_forms_at_numbers_of_tile_sizes_say_so() -> None:
    """Lines of 64 B need numbers for the tiles; the forms are for these numbers only."""
    checked = load_file(Source("<test>", STENCIL))
    found = derive_program(checked, "tiled", {"n": 64, "b": 16}, line_bytes=64)
    assert len(found.notes) == 2
    assert found.notes[0].startswith("Kernel of product(n, b): ") and found.notes[0].endswith(": at b = 16")
    assert found.notes[1].startswith("Kernel of product(2*n, 32): ") and found.notes[1].endswith(": at b = 32")
    text = " ".join(to_text(found).split())
    assert all(note in text for note in found.notes)

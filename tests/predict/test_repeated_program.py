"""Programs executed again and again: bytes against a cache that runs through the whole program twice."""

from __future__ import annotations

from collections import OrderedDict
from fractions import Fraction

import pytest

from roofdsl.lang.record import replace
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.program_at_sizes import ProgramAt, program_at
from roofdsl.machine.find import load_machine, machine_of
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.predict.program import predict_at
from roofdsl.predict.repeated_program import gaps
from tests.oracle.enumerate import run

LINE = 64
TEXT = """
kernel update(n):
    in x: f64[n]
    inout y: f64[n]
    for i in range(n):
        y[i] += 2 * x[i]

kernel twice(n):
    in x: f64[n]
    out y: f64[n]
    for t in range(2), i in range(n):
        y[i] = t * x[i]

program alone(n):
    repeat 3:
        run update(n)

program between(n, m):
    repeat 2:
        run update(n)
    run twice(m)
    run update(n)
    run twice(m)

program kept(n):
    run update(n)
    run twice(n)

machine one:
    peak f64 fma 100 GFLOP/s
    cache L1 {size} B, 200 GB/s, line 64 B, write_allocate
    memory RAM 1 GiB, 10 GB/s
"""


def bytes_of(at: ProgramAt, size: int, executions: int) -> int:
    """Bytes to and from memory of a cache of lines, least recently used, flushed at the end; writes load their line."""
    held: OrderedDict[tuple[int, str, int], bool] = OrderedDict()
    moved = 0
    for _ in range(executions):
        for place in at.order():
            part = at.launched[place]
            for execution in run(part.kernel, dict(part.arguments)):
                for access in execution.accesses:
                    line = (place, access.array, access.index[0] * 8 // LINE)
                    if line not in held:
                        moved += LINE
                    held[line] = held.pop(line, False) or access.is_write
                    while len(held) > size // LINE:
                        moved += LINE * held.popitem(last=False)[1]
    return moved + LINE * sum(held.values())


def found(name: str, sizes: dict[str, int], size: int) -> tuple[int, int]:
    """(predicted bytes of an execution after others, those of the cache)."""
    checked = load_file(Source("<test>", TEXT.replace("{size}", str(size))))
    at = program_at(checked, name, sizes)
    p = predict_at(at, machine_of(checked, "one"), Options(warm=True))
    assert p.total.memory.bytes == sum(part.memory.bytes for part in p.parts)
    assert [part.launches for part in p.parts] == [part.times for part in at.launched]
    return p.total.memory.bytes, bytes_of(at, size, 2) - bytes_of(at, size, 1)


@pytest.mark.parametrize(("name", "sizes", "size"), [
    ("alone", {"n": 64}, 2048),  # all of it stays
    ("alone", {"n": 128}, 1024),  # nothing does
    ("between", {"n": 32, "m": 128}, 1024),  # the longer launches leave nothing; the second of two finds everything
    ("between", {"n": 256, "m": 128}, 512),
])  # fmt: skip
def test_bytes_are_those_of_a_cache(name: str, sizes: dict[str, int], size: int) -> None:
    predicted, counted = found(name, sizes, size)
    assert predicted == counted


def test_where_something_is_left_the_prediction_is_a_lower_bound() -> None:
    predicted, counted = found("kept", {"n": 128}, 3072)  # 1024 bytes each, three of the four arrays fit
    assert predicted < counted
    assert found("kept", {"n": 128}, 4096) == (0, 0)


def test_gaps_look_back_into_the_execution_before() -> None:
    assert list(gaps([0, 1, 1, 2, 0], [1, 10, 100])) == [(0, 0), (1, 101), (1, 0), (2, 11), (0, 110)]
    assert list(gaps([0], [5])) == [(0, 0)]


TRANSPOSES = """
kernel transpose(n, m):
    in A: f64[m, n]
    out B: f64[n, m]
    for i in range(m), j in range(n):
        B[j, i] = A[i, j]

kernel scale(n):
    inout x: f64[n]
    for i in range(n):
        x[i] = 2 * x[i]

program alone(n):
    repeat 10:
        run transpose(n, n)

program between(n):
    repeat 10:
        run transpose(n, n)
        run scale(10000)
"""


def test_the_expected_time_has_the_strided_walks_of_a_warm_launch(pytestconfig: pytest.Config) -> None:
    """Alone, each launch is like a warm one; with a short launch in between, only the last cache is as warm."""
    checked, known = load_file(Source("<test>", TRANSPOSES)), load_machine("skylake_gold_6148")
    slow = {"strided_bytes_per_s": Fraction(10**8), "strided_stores_bytes_per_s": Fraction(10**8)}
    strided = replace(known, memories=(replace(known.main_memory, **slow), *known.memories[1:]))
    options = Options(warm=True, code=Code())
    for n in (512, 2048) if pytestconfig.option.thorough else (512,):
        one = predict(kernel(checked, "transpose"), {"n": n, "m": n}, strided, options).expected
        alone, between = (
            predict_at(program_at(checked, name, {"n": n}), strided, options).total.expected
            for name in ("alone", "between")
        )
        assert one is not None and alone is not None and between is not None
        assert alone.expected_s == 10 * one.expected_s
        assert between.expected_s > alone.expected_s

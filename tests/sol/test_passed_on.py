"""What a launch finds of an array that an earlier one touched, against the elements of both by brute force."""

from __future__ import annotations

import pytest

from roofdsl.lang.source import Source
from roofdsl.loops.load import load_file
from roofdsl.loops.program_at_sizes import ProgramAt, program_at
from roofdsl.machine.find import load_machine
from roofdsl.sol.fused import arrays_of
from roofdsl.sol.passed_on import found_again
from roofdsl.sol.program import program_light

TEXT = """\
kernel lower(n, m):
    in a: f64[n, m]
    out b: f64[n, 2 * m]
    for i in range(n):
        for j in range(m):
            b[i, j] = 2 * a[i, j]

kernel upper(n, m):
    in b: f64[n, 2 * m]
    out c: f64[n, m]
    for i in range(n):
        for j in range(m):
            c[i, j] = 2 * b[i, j + FROM]

program both(n, m):
    run lower(n, m)
    run upper(n, m)
"""


def launches(begin: str, n: int, m: int) -> ProgramAt:
    return program_at(load_file(Source("<test>", TEXT.replace("FROM", begin))), "both", {"n": n, "m": m})


@pytest.mark.parametrize(("begin", "share"), [("0", 1), ("m", 0), ("m // 2", 0.5), ("m - 1", 1 / 1000)])
def test_only_what_was_touched_before_is_found_in_the_cache(begin: str, share: float) -> None:
    """The first launch writes columns 0 to m - 1, of which the second reads a share."""
    machine = load_machine("a100_80")
    found = program_light(launches(begin, 40_000, 1000), machine)
    one, other = launches(begin, 300, 1000).launched
    (written,) = (a for a in arrays_of(one) if a.name == "b")
    (read,) = (a for a in arrays_of(other) if a.name == "b")
    assert found_again(other, read, [(one, written)]) == 8 * 300 * 1000 * share
    assert bool(found.together) == bool(share)
    if found.together:
        (group,) = found.together
        bytes_ = dict(group.terms)["HBM"] * machine.main_memory.bandwidth_bytes_per_s
        # a and c move, and what the second launch reads of b that the first one did not write
        assert bytes_ == pytest.approx(8 * 40_000 * 1000 * (1 + 1 + 1 - share), rel=0.1)


def test_two_launches_that_touch_different_halves_pass_nothing_on() -> None:
    found = program_light(launches("m", 300, 1000), load_machine("a100_80"))
    assert not found.kept and not any(group.arrays for group in found.together)


def test_other_layouts_have_in_common_what_leaves_no_other_place() -> None:
    """b is written in rows and read as one row: 3/4 of its elements are touched, 3/4 are read, so at least half are
    both.
    """
    text = """\
kernel first(n):
    out b: f64[n, 8]
    for i in range(n), j in range(6):
        b[i, j] = 1

kernel second(n):
    in b: f64[8 * n]
    out c: f64[8 * n]
    for i in range(6 * n):
        c[i] = b[i]

program pair(n):
    run first(n)
    run second(n)
"""
    one, other = program_at(load_file(Source("<test>", text)), "pair", {"n": 100}).launched
    written, read = arrays_of(one)[0], next(a for a in arrays_of(other) if a.name == "b")
    assert found_again(other, read, [(one, written)]) == 8 * 400


STRIDED = """\
kernel first(n):
    in a: f64
    out b: f64[16 * n]
    for i in range(n):
        b[16 * i] = a

kernel last(n):
    in b: f64[16 * n]
    inout s: f64
    for i in range(n):
        s += b[16 * i]

program strided(n):
    run first(n)
    run last(n)
"""


def test_a_cache_holds_whole_lines_of_what_launches_touch() -> None:
    """Every element is in a line of its own: 40 MiB hold 327,680 lines of 128 bytes, those of both launches."""
    machine = load_machine("a100_80")
    at = [program_at(load_file(Source("<test>", STRIDED)), "strided", {"n": n}) for n in (150_000, 170_000)]
    fits, exceeds = (program_light(one, machine) for one in at)
    assert [k.array for k in fits.kept] == ["b"] and not exceeds.kept

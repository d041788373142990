"""The compiled code of every shipped kernel can be walked through: nothing in it branches on data or is unknown."""

from __future__ import annotations

import platform

import pytest

from roofdsl.incore.compiled import walked_through
from roofdsl.incore.native import by_numba
from roofdsl.incore.rates import Rates
from roofdsl.incore.walk import Walked
from roofdsl.lang.record import replace
from tests.codegen.shipped import ragged, shipped
from tests.incore.machines import CORE, INSTRUCTIONS

pytestmark = pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"), reason="the assembly of x86-64 is read"
)

EXP = next(i for i in INSTRUCTIONS if i.cls == "exp")
CALLS = [
    replace(EXP, cls=cls, type=type_name, bits=int(type_name[1:]))
    for cls in ("exp", "log", "tanh")
    for type_name in ("f64", "f32")
]
BLOCKS = [replace(EXP, cls=cls, type="", bits=512) for cls in ("memset", "memcpy")]

CHOOSING = ("relu_backward", "gpp_blocks", "gpp_divides", "gpp_reciprocals", "gpp_squares", "store_cache_f8")
"""Kernels that choose between values: the compiler's vectors do not branch, but its code for single elements does."""


@pytest.mark.spread(1, 20)
@pytest.mark.parametrize("name", list(shipped()))
def test_every_shipped_kernel_has_an_in_core_time(name: str) -> None:
    given = shipped()[name]
    known = Rates("made_up", replace(CORE, window=512, waiting=97), (*INSTRUCTIONS, *CALLS, *BLOCKS))
    sizes = {p.name: 32 for p in given.parameters} if name in CHOOSING else ragged(given)
    assert walked_through(by_numba(given), given, sizes, known).cycles > 0


FEW = 400_000
"""Launches of at most this many instructions are walked through whole, to compare with."""


@pytest.mark.parametrize("name", ["fft_columns", "winograd_images"])
def test_loops_that_count_on_the_stack_are_skipped_to_their_end(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compare_with_whole_walk(name, monkeypatch)


@pytest.mark.spread(1, 20)
@pytest.mark.parametrize("name", list(shipped()))
def test_skipped_iterations_count_as_those_that_are_walked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compare_with_whole_walk(name, monkeypatch)


def compare_with_whole_walk(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The instructions and the time of a launch are those of a walk that skips nothing."""
    given = shipped()[name]
    known = Rates("made_up", replace(CORE, window=512, waiting=97), (*INSTRUCTIONS, *CALLS, *BLOCKS))
    sizes = {p.name: 32 for p in given.parameters} if name in CHOOSING else ragged(given)
    native = by_numba(given)
    short = walked_through(native, given, sizes, known)
    if executed_instructions(short) > FEW:
        pytest.skip("a launch is too long to be walked through whole")
    for skipping in ("_skip_outer", "_skip_steady"):
        monkeypatch.setattr(f"roofdsl.incore.walk._Walk.{skipping}", lambda self, loop: None)
    whole = walked_through(native, given, sizes, known)
    assert executed_instructions(short) == pytest.approx(executed_instructions(whole), rel=0.02)
    assert short.cycles == pytest.approx(whole.cycles, rel=0.05)


def executed_instructions(walked: Walked) -> float:
    """The instructions of a launch, with those of skipped iterations."""
    blocks = walked.flow.blocks
    return sum(times * (blocks[at].stop - at) for at, times in walked.totals.blocks.items())

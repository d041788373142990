"""The compiled code of every shipped kernel can be walked through: nothing in it branches on data or is unknown."""

from __future__ import annotations

import platform

import pytest

from roofdsl.incore.compiled import walked_through
from roofdsl.incore.native import by_numba
from roofdsl.incore.rates import Rates
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

CHOOSING = ("relu_backward", "gpp_divides", "gpp_reciprocals", "gpp_squares", "store_cache_f8")
"""Kernels that choose between values: the compiler's vectors do not branch, but its code for single elements does."""


@pytest.mark.spread(1, 20)
@pytest.mark.parametrize("name", list(shipped()))
def test_every_shipped_kernel_has_an_in_core_time(name: str) -> None:
    given = shipped()[name]
    known = Rates("made_up", replace(CORE, window=512, waiting=97), (*INSTRUCTIONS, *CALLS, *BLOCKS))
    sizes = {p.name: 32 for p in given.parameters} if name in CHOOSING else ragged(given)
    assert walked_through(by_numba(given), given, sizes, known).cycles > 0

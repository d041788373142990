"""Predictions and the sets of caches: what is warned of, and the bytes with sets, against `simulate`."""

from __future__ import annotations

import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.find import load_machine
from roofdsl.predict.kernel import Options, predict
from roofdsl.simulate.cache_levels import CacheLevel
from roofdsl.simulate.hierarchy import simulate
from tests.models.shipped import model

SKYLAKE = "skylake_gold_6148"


def test_warnings_name_array_stride_and_what_helps() -> None:
    k, on = model("transpose"), load_machine(SKYLAKE)
    (warning,) = predict(k, {"n": 128}, on, Options(conflicts=True)).warnings
    assert warning.startswith("L1: loop i reuses 144 lines")
    assert "4 of 64 sets get more than 8" in warning and "lines of B are 1,024 B apart" in warning
    assert "rows of B that are 8 elements longer" in warning and "--sets" in warning
    assert predict(k, {"n": 136}, on, Options(conflicts=True)).warnings == ()
    assert predict(k, {"n": 128}, on).warnings == ()
    memory = Options(levels="memory", conflicts=True)
    assert predict(k, {"n": 128}, on, memory).warnings == ()  # its L3 picks sets by a hash


@pytest.mark.parametrize("n", [128, 100])
def test_bytes_with_sets(n: int) -> None:
    """Each level is a simulation of the cache before it; what fits and has no conflict stays as it was."""
    k, on = model("transpose"), load_machine(SKYLAKE)
    plain, sets = (predict(k, {"n": n}, on, Options(sets=chosen)) for chosen in (False, True))
    cache = on.caches[0]
    run = simulate(k, {"n": n}, [CacheLevel("L1", cache.size_bytes, 64, cache.ways)])
    second = next(level for level in sets.levels if level.name == "L2")
    assert (second.loads_bytes, second.stores_bytes) == (run.load_bytes(0), run.store_bytes(0))
    before = next(level for level in plain.levels if level.name == "L2")
    assert (second.bytes > 5 * before.bytes) if n == 128 else second.bytes == before.bytes
    assert sets.memory.bytes == plain.memory.bytes
    assert any("simulated behind L1 with 64 sets of 8 ways" in a for a in sets.assumptions) and not sets.warnings


def test_where_sets_have_no_meaning() -> None:
    with pytest.raises(CommandError, match="does not define the associativity"):
        predict(model("gemv"), {"n": 64}, load_machine("v100"), Options(sets=True))
    with pytest.raises(CommandError, match="empty caches"):
        predict(model("gemv"), {"n": 64}, load_machine(SKYLAKE), Options(sets=True, warm=True))
    once = predict(model("gemv"), {"n": 64}, load_machine(SKYLAKE), Options(sets=True, traffic="once"))
    assert any("the convention assumes no cache" in w for w in once.warnings)

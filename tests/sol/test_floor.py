"""The floor where a part of it is not known."""

from __future__ import annotations

import pytest

from roofdsl.counts.traffic_at import OutOfReach
from roofdsl.loops.load import kernel as pick
from roofdsl.loops.load import load_file
from roofdsl.machine.find import load_machine, shipped_models
from roofdsl.sol.floor import floor


def test_a_floor_without_the_bytes_that_take_too_long_to_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_long(*args: object) -> None:
        raise OutOfReach("matmul", "too many accesses", 1, 1)

    own, on = pick(load_file(shipped_models()["matmul"].path), "matmul"), load_machine("v100")
    whole = floor(own, {"n": 64}, on)
    monkeypatch.setattr("roofdsl.counts.traffic_at.traffic_at", too_long)
    found = floor(own, {"n": 64}, on)
    assert [t for t in whole.terms if t.name in ("compute", "launch")] == list(found.terms)
    assert any("take too long to count" in note for note in found.notes)

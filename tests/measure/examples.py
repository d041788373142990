"""A whole measurement, to be changed in tests."""

from __future__ import annotations

from roofdsl.measure.measurement import Measurement, Verified, text_hash

EXAMPLE = Measurement(
    kernel="triad",
    parameters=(("n", 1000),),
    backend="cpu",
    variant="loops",
    device={"kind": "cpu", "name": "a processor", "cores": 2, "caches": []},
    software={"python": "3.11.7", "numba": "0.68.1"},
    when="2026-11-21T12:00:00+00:00",
    times_s=(2e-6, 1e-6, 4e-6, 3e-6, 5e-6),
    calls_per_repeat=10,
    state="warm",
    threads=1,
    pinned=True,
    compiler="numba 0.68.1",
    work=2000,
    operation="FLOP",
    footprint_bytes=24000,
    verified=Verified("numpy in longdouble", 1e-16, 0.25, 0.0, (("n", 100),)),
    source="stream.roof",
    source_sha256=text_hash("a"),
    generated_sha256=text_hash("b"),
    warnings=('a warning with "quotes" and a β',),
    details={"block": [1, 2]},
)

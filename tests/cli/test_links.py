"""What `collective`, `shard` and `threshold --formula` print, word for word; `--update-golden` writes it anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run, Said

TPU = "--machine tpu_v5e --unit tensor"

PRINTED = {
    "collective_ring": "collective all-reduce --bytes 1GiB --devices 8 --machine tpu_v5e --latency 1us",
    "collective_among": "collective all-gather --bytes 1GiB --among HBM0,HBM1,HBM2 --machine summit",
    "shard_sums": f"shard matmul_bdf --split D --devices 2 --over D {TPU}",
    "shard_gather": f"shard matmul_bdf --split F --devices 4 --gather X --result parts --topology two-way-ring {TPU}",
    "shard_several": f"shard matmul_bdf --split D --devices 2,8,32 --over B --topology switch --latency 2us {TPU}",
    "break_even": f"threshold matmul_i8 --over B --formula {TPU}",
    "break_even_program": "threshold layer_decode --over batch --formula --set context=128 --machine h100_sxm "
    "--unit tensor",
}


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", PRINTED)
def test_what_is_printed(name: str, prints: Said) -> None:
    prints(name, PRINTED[name])


FAILS = {
    "collective_who": "collective all-reduce --bytes 1GiB --machine tpu_v5e",
    "collective_unit": "collective all-reduce --bytes 1024 --devices 8 --machine tpu_v5e",
    "collective_no_links": "collective all-reduce --bytes 1GiB --devices 8 --machine v100_deck",
    "collective_which_link": "collective all-reduce --bytes 1GiB --devices 8 --machine summit",
    "collective_nowhere": "collective all-gather --bytes 1GiB --among HBM0,HBM7 --machine summit",
    "collective_latency": "collective all-gather --bytes 1GiB --devices 2 --machine tpu_v5e --latency 3",
    "shard_uneven": f"shard matmul_bdf --split D --devices 3 {TPU}",
    "shard_devices": f"shard matmul_bdf --split D --devices 1,2 {TPU}",
    "shard_one_figure": f"shard matmul_bdf --split D --devices 2 --plot out.svg {TPU}",
    "shard_square": f"shard matmul_bf16 --split n --devices 2 {TPU}",
    "shard_several": f"shard models/kernels/matmul_sharded.roof --split D --devices 2 {TPU}",
    "break_even_caches": "threshold matmul_bdf --over B --formula --machine h100_pcie --unit tensor",
    "break_even_three": f"threshold matmul_bdf --over B --formula --between compute,HBM,launch {TPU}",
    "break_even_no_launch": f"threshold matmul_bdf --over B --formula --between compute,launch {TPU}",
    "break_even_parameter": f"threshold matmul_bdf --over b --formula {TPU}",
}


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", FAILS)
def test_what_goes_wrong(name: str, fails: Said) -> None:
    fails(name, FAILS[name])


@pytest.mark.thorough
def test_json(roofdsl: Run) -> None:
    def read(line: str) -> dict[str, object]:
        found = json.loads(roofdsl(*line.split(" "), "--json").stdout)
        assert isinstance(found, dict)
        return found

    ring = read(PRINTED["collective_ring"])
    assert ring["schema"] == "roofdsl.collective/1"
    assert ring["time_s"] == pytest.approx(1.75 * 2**30 / 45e9 + 14e-6)
    among = read(PRINTED["collective_among"])
    assert among["at_least_s"] == among["time_s"] == pytest.approx(2 / 3 * 2**30 / 50e9)
    sums = read(PRINTED["shard_sums"])
    assert (sums["schema"], sums["devices"], sums["bound"]) == ("roofdsl.shard/1", 2, "ICI and compute")
    assert isinstance(sums["break_even"], list)
    assert [b["from"] for b in sums["break_even"]] == [664, 8756]
    found = read(PRINTED["break_even"])
    assert found["schema"] == "roofdsl.threshold/1"
    assert found["formulas"] == [
        {
            "launch": "matmul_i8",
            "term": "HBM",
            "parameter": "B",
            "expr": "19700*D*F/(81*D*F - 19700*D - 19700*F)",
            "limit": pytest.approx(243.2, abs=0.1),
            "from": 259,
            "intervals": [[259, None]],
        }
    ]
    several = read(PRINTED["shard_several"])
    assert isinstance(several["shards"], list)
    assert [f["devices"] for f in several["shards"]] == [2, 8, 32]
    both = read(f"threshold models/kernels/matmul_sharded.roof --over B --formula {TPU}")
    assert isinstance(both["kernels"], list)
    assert len(both["kernels"]) == 4


@pytest.mark.thorough
def test_a_figure_over_devices(roofdsl: Run, tmp_path: Path) -> None:
    out = tmp_path / "shard.svg"
    line = f"shard matmul_bdf --split F --gather X --result parts --devices 2,4,8 --plot {out} {TPU}"
    assert roofdsl(*line.split()).returncode == 0
    assert out.stat().st_size > 5000
    before = out.read_bytes()
    roofdsl(*line.split())
    assert out.read_bytes() == before

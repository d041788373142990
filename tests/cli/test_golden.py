"""What commands print, word for word; `pytest --update-golden` writes it anew."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Said

PRINTED = {
    "help": "--help",
    "predict_gemv": "predict models/kernels/gemv.roof --machine v100_deck --set n=4096",
    "predict_gemv_json": "predict gemv --machine v100_deck --set n=4096 --json",
    "predict_minplus": "predict minplus --machine v100_deck --set n=512",
    "predict_transpose": "predict transpose --machine skylake_gold_6148 --set n=1000",
    "predict_tensor": "predict gemm_f16 --machine v100 --set m=256,n=256,k=256 --unit tensor",
    "predict_integer": "predict floyd_warshall --machine h100_sxm --set n=100",
    "predict_opteron": "predict vector_add --machine opteron_2356 --set n=1000 --ceiling=no\u00a0SIMD",
    "predict_stream": "predict models/kernels/stream.roof --machine v100 --set n=4096",
    "machines": "machines",
    "machines_show": "machines show v100",
    "machines_show_pipes": "machines show opteron_2356",
    "machines_flow": "machines flow summit --from DRAM0 --to HBM3,HBM4,HBM5",
    "models": "models",
    "models_show": "models show minplus_blocked",
    "check": "check models/kernels/gemv.roof models/machines/v100.roof",
}


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", PRINTED)
def test_what_is_printed(name: str, prints: Said) -> None:
    prints(name, PRINTED[name])


FAILS = {
    "no_command": ("predic gemv", 2),
    "no_kernel": ("predict gemw --machine v100", 2),
    "no_file": ("predict missing.roof --machine v100", 2),
    "no_machine": ("predict gemv --machine v10", 2),
    "no_name_in_file": ("predict models/kernels/dot.roof:dott --machine v100", 2),
    "no_parameter": ("predict minplus --machine v100", 2),
    "unknown_parameter": ("predict gemv --machine v100 --set m=3", 2),
    "bad_parameter": ("predict gemv --machine v100 --set n=big", 2),
    "zero_parameter": ("predict gemv --machine v100 --set n=0", 2),
    "broken_assumption": ("predict matmul_blocked --machine v100 --set n=10,b=3", 2),
    "no_type": ("predict gemv --machine v100_time_paper", 2),
    "no_matrix_rate": ("predict gemv --machine v100 --unit tensor", 2),
    "no_contraction": ("predict minplus --machine v100 --unit tensor --set n=8", 2),
    "no_ceiling": ("predict gemv --machine v100 --ceiling=read", 2),
    "no_stream": ("machines flow summit --from DRAM --to HBM0", 2),
    "machine_not_kernel": ("predict models/machines/summit.roof --machine v100", 2),
    "bad_figure": ("plot roofline gemv --machine v100 -o roof.gif", 2),
    "machine_missing": ("predict gemv", 2),
    "one_kernel": ("plot traffic gemv matmul -o q.svg", 2),
    "bad_point": ("plot roofline --machine v100 -o roof.svg --measured=mine=3", 2),
}


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", FAILS)
def test_what_goes_wrong(name: str, fails: Said) -> None:
    fails(name, *FAILS[name])

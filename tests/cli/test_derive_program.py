"""`roofdsl derive` of programs and of files with both, word for word; `pytest --update-golden` writes it anew."""

from __future__ import annotations

import json

import pytest
import sympy

from tests.cli.conftest import Run, Said

PRINTED = {
    "derive_lstm": "derive lstm_forward",
    "derive_lstm_at": "derive lstm_forward --set batch=16,sequence=16,features=32,hidden=16 --cache 32KiB",
    "derive_lstm_latex": "derive lstm_forward --latex",
    "derive_llama": "derive llama3_8b_decode",
    "derive_parallel": "derive layer_parallel --set p=8",
    "derive_im2col": "derive conv2d_im2col --set s=2",
    "derive_im2col_at": "derive conv2d_im2col --set s=2,h=112,w=112,c=64,f=64,r=3,batch=16",
}
FAILS = {
    "derive_program_steps": ("derive lstm_forward --steps", 2),
    "derive_program_any_cache": ("derive lstm_forward --cache Z", 2),
    "derive_program_unknown": ("derive lstm_forward --set bach=3", 2),
    "derive_whole_unknown": ("derive tests/lang/good/language_page.roof --set bach=3", 2),
}
PAGE = "tests/lang/good/language_page.roof"


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", PRINTED)
def test_what_is_printed(name: str, prints: Said) -> None:
    prints(name, PRINTED[name])


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", FAILS)
def test_what_goes_wrong(name: str, fails: Said) -> None:
    fails(name, *FAILS[name])


@pytest.mark.thorough
def test_a_file_with_nothing_picked_is_all_it_defines(roofdsl: Run) -> None:
    """The language's own page: its kernels, and its program, whose W is what predictions add up."""
    document = json.loads(roofdsl("derive", PAGE, "--set", "B=16,F=32,H=16", "--json").stdout)
    names = [d["kernel"] for d in document["kernels"]]
    assert names[:3] == ["gemv", "minplus", "matmul_blocked"] and names[-1] == "lstm_step"
    program = document["kernels"][-1]
    predicted = json.loads(roofdsl("predict", f"{PAGE}:lstm_step", "--machine", "v100_time_paper", "--json").stdout)
    assert program["launches"]["value"] == predicted["launches"] == 5
    assert program["work"]["total"]["value"] == predicted["work_flops"]
    assert program["bytes"]["value"] == sum(p["bytes"]["value"] for p in program["by_kernel"])
    sizes = {name: sympy.Symbol(name, integer=True, positive=True) for name in ("B", "F", "H")}
    for entry in (program["work"]["total"], program["compulsory"]["bytes"], program["intensity"]):
        form = sympy.sympify(entry["expr"], locals=dict(sizes))
        at = {symbol: {"B": 16, "F": 32, "H": 16}[name] for name, symbol in sizes.items()}
        assert float(form.subs(at)) == pytest.approx(entry["value"], rel=1e-15)

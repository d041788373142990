"""A function is one row of `roofdsl/lang/functions.py`: two more in a copy of the package are known everywhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from roofdsl.lang.functions import FUNCTIONS
from roofdsl.lang.operation_classes import SPECIAL_FUNCTIONS
from tests.copied import ROOT, run_in_copy

ROWS = """\
    Function("atan", python=Spelling("math.atan({x})"), c=Spelling("atan{f}({x})"), numpy=lambda np: np.arctan),
    Function(
        "softplus",
        python=_helper("math.log({one} + math.exp({x}))"),
        c=_helper("log{f}({one} + exp{f}({x}))"),
        numpy=lambda np: lambda x: np.log(1 + np.exp(x)),
        argument="-a",
    ),
"""
BEFORE = '    Function(\n        "conj",\n'

PROGRAM = '''
import json, shutil
from pathlib import Path

import numpy as np

import roofdsl
from roofdsl.codegen.generate import generate
from roofdsl.counts.derive import derive
from roofdsl.editors import textmate
from roofdsl.editors.pygments_lexer import RoofLexer
from roofdsl.lang.source import Source
from roofdsl.loops.load import load_file
from roofdsl.measure import gpu_microkernels, microkernels
from roofdsl.machine.find import machine_of
from roofdsl.tell.derive_json import to_json
from tests.codegen.running import Case, CLibrary, CudaLibrary, Interpreted
from tests.oracle.loading import kernel_of

KERNEL = """
kernel k(n):
    in x: f64[n], z: f32[n]
    out u: f64[n, 2], v: f32[n, 2]
    for i in range(n):
        u[i, 0] = atan(x[i])
        u[i, 1] = softplus(x[i])
        v[i, 0] = atan(z[i])
        v[i, 1] = softplus(z[i])
"""
MACHINE = """
machine m:
    peak f64 10 GFLOP/s
    peak f64 atan 2 GFLOP/s
    cost softplus 20
    memory DRAM 1 GiB, 10 GB/s
"""
kernel = kernel_of(KERNEL)
case = Case(kernel, {"n": 9})
code = {target: generate(kernel, target) for target in ("python", "c", "cuda")}
case.check(Interpreted(), code["python"])
if shutil.which("gcc"):
    Path("c").mkdir()
    case.check(CLibrary([code["c"]], Path("c"), ["-std=c11", "-O1"]), code["c"])
if shutil.which("g++"):
    Path("cuda").mkdir()
    case.check(CudaLibrary([code["cuda"]], Path("cuda")), code["cuda"])
want, x = case.want, case.inputs["x"]
by_numpy = np.stack([np.arctan(x), np.log1p(np.exp(x))], 1)
np.testing.assert_allclose(np.asarray(want.values["u"], float), by_numpy, rtol=1e-13)
assert (want.errors["u"] > 0).all() and (want.errors["u"] < 1e-14).all()

machine = machine_of(load_file(Source("new.roof", MACHINE)), None)
highlighted = RoofLexer().get_tokens("kernel k(n):\\n    in x: f64[n]\\n    y[0] = softplus(x[0])\\n")
print(json.dumps({
    "package": roofdsl.__file__,
    "derived": to_json(derive(kernel, {"n": 9}))["work"],
    "code": {target: made.source for target, made in code.items()},
    "rates": {f: float(machine.rate("f64", f).per_s) for f in ("atan", "softplus", "exp")},
    "grammar": textmate.text(),
    "highlighted": [[str(kind), text] for kind, text in highlighted],
    "cpu": {f: microkernels.ARITHMETIC[f][0][0] for f in ("atan", "softplus")},
    "gpu": {f"{a.type} {a.cls}": a.step for a in gpu_microkernels.ARITHMETIC},
}))
'''


@pytest.mark.thorough
def test_two_more_rows(tmp_path: Path) -> None:
    found = run_in_copy(tmp_path, PROGRAM, {"lang/functions.py": [(BEFORE, ROWS + BEFORE)]})
    by_function = found["derived"]["by_function"]
    assert {f: by_function[f]["value"] for f in by_function} == {"atan": 18, "softplus": 18}
    assert found["derived"]["by_class"]["special"]["expr"] == "4*n"
    assert "math.atan(x[i])" in found["code"]["python"]
    assert "def softplus_f32(x):\n    return math.log(np.float32(1) + math.exp(x))" in found["code"]["python"]
    for target in ("c", "cuda"):
        assert "v[i * 2 + 0] = atanf(z[i]);" in found["code"][target]
        assert "double softplus_f64(double x) { return log(1.0 + exp(x)); }" in found["code"][target]
    assert "#include <math.h>" in found["code"]["c"]
    # exp has nothing of its own there, so it takes the default cost of a special function
    assert found["rates"] == {"atan": 2e9, "softplus": 10e9 / 20, "exp": 10e9 / 8}
    assert "|sigmoid|sin|cos|atan|softplus|conj|" in found["grammar"]
    assert ["Token.Name.Builtin", "softplus"] in found["highlighted"]
    assert found["cpu"] == {"atan": "a = math.atan(a) + c", "softplus": "a = (math.log(one + math.exp((-a)))) + c"}
    assert found["gpu"]["f32 softplus"] == "a = (logf((float)1 + expf((-a)))) + d"


def test_without_them_there_is_no_such_function() -> None:
    assert not {"atan", "softplus"} & FUNCTIONS.keys()


def test_the_language_page_lists_the_functions(golden: Callable[[Path, str], None]) -> None:
    path = ROOT / "docs/language.md"
    page = path.read_text(encoding="utf-8")
    about = ", ".join(f"`{f.name}` is {f.about}" for f in FUNCTIONS.values() if f.about)
    row = f"| `{' '.join(SPECIAL_FUNCTIONS)}` | of real values; {about} |"
    listed, count = re.subn(r"^\| `sqrt .*$", row, page, flags=re.MULTILINE)
    assert count == 1
    golden(path, listed)
    section = page[page.index("and these functions:") : page.index("`**` binds")]
    assert set(re.findall(r"[a-z]+", " ".join(re.findall(r"`([^`]*)`", section)))) >= FUNCTIONS.keys()

"""npbench's kernels: what is read computes what the user's own function does; the rest is refused for a true reason."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roofdsl import reading_options
from roofdsl.frontends.python.read import read_text
from roofdsl.frontends.python.signature import shape_option
from roofdsl.frontends.python.verify import verify_file
from roofdsl.lang.diagnostics import InputError
from roofdsl.loops.load import read_source
from tests.frontends import external
from tests.frontends.python_running import both, wrong

NAMES = external.files("npbench", "*.py")
LENET = (
    "input=N,28,28,1:f32;conv1=5,5,1,6:f32;conv1bias=6:f32;conv2=5,5,6,16:f32;conv2bias=16:f32;fc1w=256,120:f32;"
    "fc1b=120:f32;fc2w=120,84:f32;fc2b=84:f32;fc3w=84,10:f32;fc3b=10:f32"
)
SHAPES = {
    "adi": "u=N,N",
    "arc_distance": "theta_1=n;theta_2=n;phi_1=n;phi_2=n",
    "azimint_hist": "data=n;radius=n",
    "bicg": "A=n,m;p=m;r=n",
    "cavity_flow": "u=ny,nx;v=ny,nx;p=ny,nx",
    "cholesky2": "A=n,n",
    "compute": "array_1=n,m:i64;array_2=n,m:i64;a=:i64;b=:i64;c=:i64",
    "covariance": "data=n,M",
    "crc16": "data=n:i64",
    "deriche": "imgIn=w,h",
    "durbin": "r=n",
    "floyd_warshall": "path=n,n:i32",
    "gemver": "A=n,n;u1=n;u2=n;v1=n;v2=n;w=n;x=n;y=n;z=n",
    "go_fast": "a=n,n",
    "gramschmidt": "A=n,m",
    "hdiff": "in_field=I+4,J+4,K;out_field=I,J,K;coeff=I,J,K",
    "jacobi_1d": "A=n;B=n",
    "k2mm": "A=n,k;B=k,m;C=m,l;D=n,l",
    "lenet": LENET,
    "lu": "A=n,n",
    "mandelbrot2": "",
    "mvt": "x1=n;x2=n;y_1=n;y_2=n;A=n,n",
    "resnet": "input=N,H,W,8:f32;conv1=1,1,8,4:f32;conv2=3,3,4,4:f32;conv3=1,1,4,8:f32",
    "seidel_2d": "A=N,N",
    "spmv": "A_row=n:i32;A_col=m:i32;A_val=m;x=k",
    "syr2k": "A=n,m;B=n,m;C=n,n",
    "trisolv": "L=n,n;x=n;b=n",
}
"""What a user says of the arguments."""
SIZES = {
    "n": 9, "m": 7, "k": 6, "l": 5, "N": 8, "M": 6, "I": 5, "J": 6, "K": 4, "w": 8, "h": 9, "H": 6, "W": 7,
    "nx": 7, "ny": 8, "nt": 3, "nit": 2, "TSTEPS": 4,
}  # fmt: skip
REFUSED = {
    "arc_distance": ("py-call", "np.arctan2"),
    "azimint_hist": ("py-call", "np.histogram"),
    "cholesky2": ("py-call", "np.linalg.cholesky"),
    "crc16": ("py-type", "0xFF & b"),
    "mandelbrot2": ("py-type", "np.mgrid"),
    "spmv": ("py-index", "A_row[i]"),
}
"""The kernels that are not read: the code, and the text that is underlined."""
READ = [n for n in SHAPES if n not in REFUSED]


def _well_conditioned(name: str) -> Any:
    def prepare(arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        if name in ("lu", "trisolv"):
            (square,) = [a for a in arrays.values() if a.ndim == 2]
            square += 20 * np.eye(len(square))
        if name in ("cavity_flow", "deriche", "durbin"):  # positive, and small steps
            for array in arrays.values():
                array[...] = np.abs(array) * 0.2 + 0.1

    return prepare


def test_enough_are_read() -> None:
    external.required("npbench")
    assert sorted(f"{n}_numpy" for n in SHAPES) == NAMES
    assert len(SHAPES) - len(REFUSED) >= 20


@pytest.mark.spread(8)
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("name", READ)
def test_computes_what_the_users_function_does(name: str, tmp_path: Path, fuse: bool = False) -> None:
    path, prepare = external.required("npbench") / f"{name}_numpy.py", _well_conditioned(name)
    ((ours, theirs, kernel),) = both(path, None, SHAPES[name], SIZES, tmp_path, prepare=prepare, fuse=fuse)
    assert wrong(ours, theirs, kernel) == []
    assert any(a.intent in ("out", "inout") for a in kernel.arrays)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.spread(3)
@pytest.mark.parametrize("name", READ)
def test_fused_loops_compute_what_the_users_function_does(name: str, tmp_path: Path) -> None:
    test_computes_what_the_users_function_does(name, tmp_path, fuse=True)


@pytest.mark.spread(1)
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("name", ["gramschmidt", "hdiff", "lenet", "seidel_2d"])
def test_verified_by_the_command(name: str) -> None:
    path = external.required("npbench") / f"{name}_numpy.py"
    reading_options.use(reading_options.Options(shapes=tuple(SHAPES[name].split(";"))))
    try:
        (found,) = verify_file(str(path))
    finally:
        reading_options.use(reading_options.Options())
    assert found.ways == ("Python",) and len(found.sizes) == 3
    assert found.exact == (name in ("hdiff", "seidel_2d"))


@pytest.mark.parametrize("name", list(REFUSED))
def test_refused_with_the_line(name: str) -> None:
    path = external.required("npbench") / f"{name}_numpy.py"
    shapes = dict(shape_option(part) for part in SHAPES[name].split(";") if part)
    with pytest.raises(InputError) as caught:
        read_text(read_source(path), None, shapes)
    (found,) = caught.value.diagnostics
    code, text = REFUSED[name]
    assert found.code == code
    assert path.read_text(encoding="utf-8").splitlines()[found.span.line - 1][found.span.column - 1 :].startswith(text)
    assert found.message and found.help

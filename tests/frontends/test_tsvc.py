"""TSVC's loops: what is read computes what the user's own compiled function does, bit for bit; the rest is refused."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import numpy as np
import pytest

from roofdsl.frontends.c.read import read
from roofdsl.lang.diagnostics import InputError
from roofdsl.loops.load import kernel as lowered
from tests.frontends import external
from tests.frontends.running import Arrays, data, differences, library, run_generated

NAMES = external.files("tsvc")
REFUSED = {
    "s1161": ("c-statement", "goto"),
    "s1279": ("c-condition", "b[i] > a[i]"),  # `c[i]` is stored for some i only
    "s2710": ("c-condition", "a[i] > b[i]"),
    "s272": ("c-condition", "e[i] >= t"),
    "s275": ("c-condition", "aa[0][i] > (real_t)0."),
    "s278": ("c-statement", "goto"),
    "s318": ("c-index", "k"),  # its increment lies behind a label
    "s342": ("c-index", "j"),
    "s4113": ("c-pointer", "ip"),
    "s4116": ("c-pointer", "ip"),
    "s424": ("c-pointer", "flat_2d_array[i]"),  # `xx` points into the same array
    "s442": ("c-statement", "switch (indx[i])"),
    "s481": ("c-call", "exit (0)"),
}
"""The loops that are not read: the code, and the text that is underlined."""

HARNESS = """
#include <setjmp.h>
#include <math.h>
#include <stdlib.h>
#include "{folder}/{name}.c"
real_t flat_2d_array[LEN_2D*LEN_2D], x[LEN_1D], a[LEN_1D], b[LEN_1D], c[LEN_1D], d[LEN_1D], e[LEN_1D];
real_t aa[LEN_2D][LEN_2D], bb[LEN_2D][LEN_2D], cc[LEN_2D][LEN_2D], tt[LEN_2D][LEN_2D];
int indx[LEN_1D];
real_t *__restrict__ xx, *yy;
static jmp_buf out;
static real_t last;
int initialise_arrays(const char *name) {{ return 0; }}
real_t calc_checksum(const char *name) {{ return 0; }}
int dummy(real_t p[LEN_1D], real_t q[LEN_1D], real_t r[LEN_1D], real_t s[LEN_1D], real_t t[LEN_1D],
          real_t u[LEN_2D][LEN_2D], real_t v[LEN_2D][LEN_2D], real_t w[LEN_2D][LEN_2D], real_t given) {{
    last = given;
    longjmp(out, 1);
}}
/* The user's function up to the first call of `dummy`: the region, executed once. */
real_t once(void) {{
    static int number = 1;
    struct args_t args = {{ .arg_info = &number }};
    if (!setjmp(out)) {name}(&args);
    return last;
}}
"""


def test_enough_are_read() -> None:
    external.required("tsvc")
    assert len([n for n in NAMES if n not in REFUSED]) >= 38
    assert set(REFUSED) <= set(NAMES)


@pytest.mark.spread(5)
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("name", [n for n in NAMES if n not in REFUSED])
def test_computes_what_the_users_function_does(name: str, tmp_path: Path) -> None:
    folder = external.required("tsvc")
    kernel = lowered(read(str(folder / f"{name}.c")), None)
    sizes = {p.name: 1 for p in kernel.parameters}
    ours = data(kernel.arrays, sizes)
    user = library(HARNESS.format(folder=folder, name=name), tmp_path)
    theirs: Arrays = {}
    for array in kernel.arrays:
        if not array.is_scalar:
            source = ours[array.name].reshape(-1)
            theirs[array.name] = _place(user, "flat_2d_array" if array.name == "xx" else array.name, source.size)
            theirs[array.name][:] = source
    user.once.restype = ctypes.c_float
    last = user.once()
    for array in kernel.arrays:
        if array.intent == "in":  # as the function itself has filled them before the region
            ours[array.name].reshape(-1)[:] = theirs[array.name]
    run_generated(kernel, ours, sizes, tmp_path)
    flat = {n: v.reshape(-1) for n, v in ours.items()}
    assert differences(kernel, flat, theirs) == []
    results = [a.name for a in kernel.arrays if a.is_scalar and a.type.name == "f32" and a.intent == "out"]
    if results:  # what the function hands on
        shown = {n: ours[n][0] for n in results}
        assert np.float32(last) in shown.values(), shown
    assert results or any(a.intent in ("out", "inout") for a in kernel.arrays)


def _place(user: ctypes.CDLL, name: str, size: int) -> np.ndarray:  # type: ignore[type-arg]
    return np.ctypeslib.as_array((ctypes.c_float * size).in_dll(user, name))


@pytest.mark.spread(6)
@pytest.mark.parametrize("name", list(REFUSED))
def test_refused_with_the_line(name: str) -> None:
    path = external.required("tsvc") / f"{name}.c"
    with pytest.raises(InputError) as caught:
        read(str(path))
    (found,) = caught.value.diagnostics
    code, text = REFUSED[name]
    assert found.code == code
    span = found.span
    line = path.read_text().splitlines()[span.line - 1]
    assert line[span.column - 1 :].startswith(text)
    assert span.end_line > span.line or line[: span.end_column - 1].endswith(text)
    assert found.help

"""Code for kernels with index arrays: the reference and compiled code against dense products by numpy."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from roofdsl.codegen.generate import generate
from roofdsl.codegen.inputs import random_inputs
from roofdsl.codegen.load import load_python
from roofdsl.codegen.reference import reference
from roofdsl.matrices.attach import with_data
from tests.models.shipped import model
from tests.oracle.sparse import places

SOURCE = "powerlaw:n=30,m=41,row=6,exponent=1,seed=4"
DATA = {
    "spmv_csr": [f"rowptr,col={SOURCE}"],
    "spmv_ell": [f"col={SOURCE}"],
    "spmv_sell": [f"chunk,col={SOURCE}+sigma=8"],
    "spmv_coo": [f"row,col={SOURCE}"],
}


def dense_product(name: str, inputs: dict[str, Any]) -> np.ndarray:
    """The product of the matrix with the values that the format's places have, and x."""
    dense, x = np.zeros(places(SOURCE).shape), inputs["x"]
    if name in ("spmv_csr", "spmv_coo"):
        dense[np.nonzero(places(SOURCE))] = inputs["val"]
        return dense @ x + (inputs["y"] if name == "spmv_coo" else 0)
    products = inputs["val"] * x[inputs["col"]]
    if name == "spmv_ell":
        return products.sum(axis=1)
    chunk = inputs["chunk"]
    return inputs["y"] + [products[a:b].sum(axis=0) for a, b in pairwise(chunk)]


@pytest.mark.parametrize("name", DATA)
def test_the_reference(name: str) -> None:
    kernel, sizes = with_data(model(name), DATA[name], {"C": 4} if name == "spmv_sell" else {})
    inputs = random_inputs(kernel, sizes, 3)
    found = reference(kernel, sizes, inputs)
    assert np.allclose(found.values["y"].astype(float), dense_product(name, inputs))


@pytest.mark.parametrize("data", [True, False])
def test_compiled_code(data: bool) -> None:
    """With the matrix, and with random offsets and columns that the declarations allow."""
    kernel, sizes = with_data(model("spmv_csr"), DATA["spmv_csr"], {})
    given = sizes if data else {"n": 17, "m": 23, "nnz": 101}
    inputs = random_inputs(kernel, given, 5)
    want = reference(kernel, given, inputs).values["y"]
    y = np.zeros(given["n"])
    run = load_python(generate(kernel, "python", "loops"))
    run(*(inputs[n] for n in ("rowptr", "col", "val", "x")), y, *given.values())
    assert np.allclose(y, want.astype(float))
    assert (np.diff(inputs["rowptr"]) >= 0).all() and inputs["rowptr"][-1] == given["nnz"]


def test_c() -> None:
    text = generate(model("spmv_csr"), "c", "loops").source
    assert "for (int64_t k = (int64_t)rowptr[i]; k < (int64_t)rowptr[i + 1]; ++k)" in text
    assert "s += val[k] * x[(int64_t)col[k]];" in text

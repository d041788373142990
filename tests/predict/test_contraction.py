import pytest

from roofdsl.predict.contraction import is_contraction
from tests.predict.machines import kernel_of

HEAD = (
    "kernel k(n):\n    in A, B: f64[n, n], q: f64\n    inout C, D: f64[n, n]\n    for i in range(n), j in range(n):\n"
)


@pytest.mark.parametrize(
    "body",
    [
        ["C[i, j] += A[i, j] * B[j, i]"],
        ["C[i, j] = C[i, j] + A[i, j] * B[j, i]"],
        ["C[i, j] = A[i, j] * B[j, i] + C[i, j]"],
        ["C[i, j] = 0", "C[i, j] += A[i, j] * B[j, i]"],
        ["C[i, j] = A[i, j] * B[j, i]", "C[i, j] += A[i, j] * B[j, i]"],
        ["let a = A[i, j]", "let p = a * B[j, i]", "C[i, j] += p"],
        ["if i > j:", "    C[i, j] += A[i, j] * B[j, i]"],
    ],
)
def test_contractions(body: list[str]) -> None:
    assert is_contraction(kernel_of(HEAD + "".join(f"        {line}\n" for line in body)))


@pytest.mark.parametrize(
    "body",
    [
        ["C[i, j] min= A[i, j] + B[j, i]"],
        ["C[i, j] += A[i, j] + B[j, i]"],
        ["C[i, j] += q * B[j, i]"],
        ["C[i, j] = A[i, j] * B[j, i]"],
        ["C[i, j] = D[i, j] + A[i, j] * B[j, i]"],
        ["C[i, j] += A[i, j] * B[j, i]", "D[i, j] = exp(A[i, j])"],
        ["C[i, j] += 2 * A[i, j] * B[j, i]"],
    ],
)
def test_what_is_none(body: list[str]) -> None:
    assert not is_contraction(kernel_of(HEAD + "".join(f"        {line}\n" for line in body)))


def test_complex_conjugates_are_factors() -> None:
    head = "kernel k(n):\n    in a, b: c64[n]\n    out s: c64\n    s = 0\n"
    assert is_contraction(kernel_of(head + "    for i in range(n):\n        s += conj(a[i]) * b[i]\n"))

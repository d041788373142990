"""Kernels as keys of what is kept of them."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import pytest

from roofdsl.lang.record import Record
from roofdsl.loops.model import Array, Kernel
from tests.oracle.loading import kernel_of

TEXT = "kernel k(n):\n    in a: f64[n]\n    out b: f64[n]\n    for i in range(n):\n        b[i] = a[i]\n"


def test_the_hash_of_a_kernel_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(self: Record) -> int:
        asked.append(type(self).__name__)
        return Record.__hash__(self)

    monkeypatch.setattr(Array, "__hash__", counted)
    one, other = kernel_of(TEXT), kernel_of(TEXT)
    found = hash(one)
    first = len(asked)
    assert first and hash(one) == found and len(asked) == first
    assert one == other and hash(other) == found


def test_a_kernel_takes_no_hash_to_another_process() -> None:
    """Texts have other hashes there."""
    kernel = kernel_of(TEXT)
    hash(kernel)
    copied = pickle.loads(pickle.dumps(kernel))
    assert isinstance(copied, Kernel) and copied == kernel and vars(copied).keys() == set(Kernel.__match_args__)
    code = (
        "import pickle, sys\nfrom tests.loops.test_model import TEXT, kernel_of\n"
        "assert {pickle.loads(sys.stdin.buffer.read()): 1}.get(kernel_of(TEXT)) == 1"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    subprocess.run([sys.executable, "-c", code], input=pickle.dumps(kernel), check=True, env=environment)

"""Where bytes are taken and how they are counted: docs/rules.md, rule 11, with the engine's numbers."""

from pathlib import Path

import pytest

from roofdsl.counts.traffic_at import traffic_at
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Traffic
from roofdsl.machine.find import models_folder
from roofdsl.predict.boundary import memory_boundary
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from tests.predict.machines import kernel_of, machine

ADD = "kernel add(n):\n{}    in B, C: f64[n]\n    out A: f64[n]\n    for i in range(n):\n        A[i] = B[i] + C[i]\n"
PLAIN, ONCE = kernel_of(ADD.format("")), kernel_of(ADD.format("    traffic once\n"))


def cached(policy: str = ""):  # type: ignore[no-untyped-def]
    return machine(
        "peak f64 1 TFLOP/s", f"cache L1 1 KiB, 9 TB/s{policy}", f"cache L2 4 KiB, 2 TB/s, line 64 B{policy}"
    )


def test_who_decides_the_convention() -> None:
    bare = machine("peak f64 1 TFLOP/s")
    assert memory_boundary(PLAIN, bare).convention == "load_store"
    assert memory_boundary(PLAIN, cached()).convention == "load_store"
    assert memory_boundary(PLAIN, cached(", write_allocate")).convention == "write_allocate"
    assert memory_boundary(PLAIN, cached(", no_write_allocate")).convention == "load_store"
    assert memory_boundary(ONCE, cached(", write_allocate")).convention == "once"
    assert memory_boundary(ONCE, cached(", write_allocate"), "load_store").convention == "load_store"


def test_the_last_cache_is_the_boundary() -> None:
    found = memory_boundary(PLAIN, cached())
    assert (found.cache_bytes, found.line_bytes) == (4096, 64)
    assert memory_boundary(PLAIN, machine("peak f64 1 TFLOP/s")).cache_bytes is None


def test_copies_of_the_last_cache_are_an_assumption() -> None:
    assert "copies" not in "".join(memory_boundary(PLAIN, cached()).assumptions)
    assert "one of its 4 copies" in memory_boundary(PLAIN, cached(", copies 4")).assumptions[0]


@pytest.mark.parametrize(
    ("convention", "bytes_moved"), [("once", 24 * 512), ("load_store", 24 * 512), ("write_allocate", 32 * 512)]
)
def test_the_engine_is_asked_for_that_boundary(convention: Traffic, bytes_moved: int) -> None:
    p = predict(PLAIN, {"n": 512}, cached(), Options(traffic=convention))
    assert p.memory.bytes == bytes_moved
    assert (p.traffic, p.cache_bytes, p.line_bytes) == (convention, 4096, 64)
    assert p.footprint_bytes == 24 * 512


def test_a_footprint_that_does_not_fit_is_told() -> None:
    small = machine("peak f64 1 TFLOP/s", "memory M 1 kB, 1 GB/s")
    assert "touches 12 KiB, more than m's M holds (1000 B)" in predict(PLAIN, {"n": 512}, small).warnings[0]
    assert predict(PLAIN, {"n": 41}, small).warnings == ()


def test_a_missing_parameter_is_a_command_error() -> None:
    with pytest.raises(CommandError, match="needs a number for n"):
        predict(PLAIN, {}, cached())


TABLE = {  # rule 11's table, at n
    "vector_add": lambda n: (24 * n, 24 * n, 32 * n),
    "gemv": lambda n: (8 * n**2 + 16 * n, 8 * n**2 + 24 * n, 8 * n**2 + 24 * n),
    "matmul": lambda n: (24 * n**2, 32 * n**2, 32 * n**2),
    "transpose": lambda n: (16 * n**2, 16 * n**2, 24 * n**2),
}


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("n", [1, 5, 64])
def test_the_table_of_conventions(name: str, n: int) -> None:
    path = Path(models_folder()) / "kernels" / f"{name}.roof"
    shipped = kernel(load_file(path), name)
    conventions: tuple[Traffic, ...] = ("once", "load_store", "write_allocate")
    assert tuple(traffic_at(shipped, {"n": n}, None, None, c).bytes for c in conventions) == TABLE[name](n)

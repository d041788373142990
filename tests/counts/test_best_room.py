"""How much less room the best replacement needs: `derive --steps` against simulated caches of both replacements."""

from __future__ import annotations

from fractions import Fraction

import pytest

from roofdsl.counts.derive import derive
from roofdsl.counts.derived import PlateauStep
from roofdsl.loops.model import Kernel
from roofdsl.loops.transform import apply
from roofdsl.simulate.best_curve import best_curve
from roofdsl.simulate.distances import miss_curve
from roofdsl.tell.blocks import Paragraph
from roofdsl.tell.derive_steps import step_blocks
from tests.oracle.families import families
from tests.oracle.loading import kernel_of

SHEET = """
kernel sheet(n):
    assume n >= 3
    inout x: f64[n, n]
    for i in range(1, n - 1), j in range(1, n - 1):
        x[i, j] += x[i, j + 1] + 2.0 * x[i + 1, j] + x[i, j - 1] + 2.0 * x[i - 1, j]
"""
JACOBI = """
kernel jacobi(n):
    assume n >= 3
    in A: f64[n, n]
    out B: f64[n, n]
    for i in range(1, n - 1), j in range(1, n - 1):
        B[i, j] = 0.2 * (A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j])
"""
GEMV = next(f.text for f in families() if f.name == "gemv")
MATMUL = next(f.text for f in families() if f.name == "matmul_ijk")


def rows(text: str) -> tuple[Kernel, list[PlateauStep]]:
    kernel = kernel_of(text)
    steps = derive(kernel, {}, steps=True).steps
    assert steps is not None
    return kernel, [row for row in steps.plateaus if row.best_from_bytes is not None]


def told(text: str) -> str:
    blocks = step_blocks(derive(kernel_of(text), {}, steps=True))
    return " ".join(
        "".join(part if isinstance(part, str) else part.text for part in block.content)
        for block in blocks
        if isinstance(block, Paragraph)
    )


@pytest.mark.spread(2)
@pytest.mark.parametrize(("text", "n"), [(SHEET, 60), (JACOBI, 60), (GEMV, 60), (MATMUL, 26)])
def test_the_room_is_enough_and_needed(text: str, n: int) -> None:
    """With it, and a few numbers more, the best replacement misses no more than LRU from its own size on. With a fifth
    less, it misses more than that.
    """
    kernel, found = rows(text)
    assert found
    lru, best = miss_curve(apply(kernel), {"n": n}), best_curve(apply(kernel), {"n": n})
    for row in found:
        assert row.best_from_bytes is not None and row.best_from_bytes.form is not None
        assert row.plateau.from_bytes.form is not None
        at = {"n": Fraction(n)}
        own, other = (q.form.evaluate(at) for q in (row.best_from_bytes, row.plateau.from_bytes) if q.form is not None)
        assert own is not None and other is not None and own < other
        few = 12 * 8
        reached = lru.misses(int(other) + few)
        assert best.misses(int(own) + few) <= reached
        assert best.misses(int(own) * 4 // 5) > reached
        assert lru.misses(int(own) + few) > reached


@pytest.mark.parametrize(
    ("text", "lru", "what", "best"),
    [
        # In place: the rest of the row above, the row, and the beginning of the row below. LRU keeps a third row.
        (
            SHEET, "24*n B (as much as three rows of x)", "x[i - 1, j], x[i, j + 1] over i",
            "16*n B (as much as two rows of x)",
        ),
        # From A to B: LRU holds three rows of A and one of B.
        (
            JACOBI, "32*n B (as much as four rows of A)", "A[i - 1, j], A[i, j + 1] over i",
            "16*n B (as much as two rows of A)",
        ),
        (GEMV, "16*n B", "x[j] over i", "8*n B"),
    ],
)  # fmt: skip
def test_rows_in_words(text: str, lru: str, what: str, best: str) -> None:
    needs = f"LRU needs {lru} to hold {what}; the best replacement, which drops what is not used again, needs {best}."
    assert needs in told(text)

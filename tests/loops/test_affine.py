"""Affine forms have the value of the expression, and compute divisions of numbers."""

from __future__ import annotations

from roofdsl.loops.affine import affine
from roofdsl.loops.integers import Const, FloorDiv, Mod, Product, Sum, Sym


def test_divisions_of_numbers_are_numbers() -> None:
    divided = FloorDiv(Sum((Const(4003), Const(-3))), Const(4))
    assert affine(Sum((Sym("i"), Product((Const(2), divided))))) == affine(Sum((Sym("i"), Const(2000))))
    assert affine(FloorDiv(Const(-7), Const(2))).constant == -4
    assert affine(Sum((Mod(Const(-7), Const(3)), FloorDiv(divided, Const(7))))).constant == 2 + 142


def test_other_divisions_are_terms() -> None:
    for term in (FloorDiv(Sym("n"), Const(4)), FloorDiv(Const(4), Sym("n")), Mod(Const(4), Const(0))):
        assert affine(term).terms == ((term, 1),)

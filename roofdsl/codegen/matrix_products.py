"""Large sums of products of two arrays in the reference: one matrix product instead of a loop."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from roofdsl.codegen.computed_types import computed, kind_of
from roofdsl.codegen.emitter import chain_of
from roofdsl.codegen.reference_values import Memory
from roofdsl.codegen.storage import LARGEST, UNIT
from roofdsl.lang.record import Record
from roofdsl.loops.integers import Const, IntExpr, Sym
from roofdsl.loops.model import Assign, Binary, Element, For

WORTH = 2**21
"""The least number of iterations for which the matrix product is used: its error bound is wider than the loop's."""


class Contraction(Record):
    """`target += left * right`, where each subscript is a loop variable; the loops run from 0 to `stops`."""

    target: Element
    left: Element
    right: Element
    stops: tuple[tuple[str, IntExpr], ...]


def contraction(root: For) -> Contraction | None:
    """The contraction that a nest computes, in f32 or f64; None for any other nest."""
    chain = list(chain_of(root))
    body = chain[-1].body
    variables = {loop.var for loop in chain}
    if len(body) != 1 or any(loop.start != Const(0) or loop.step != Const(1) for loop in chain):
        return None
    match body[0]:
        case Assign(Element() as target, "+=", Binary("*", Element() as left, Element() as right)):
            value = body[0].value
        case _:
            return None
    used = [e.subscripts for e in (target, left, right)]
    plain = all(isinstance(s, Sym) and s.name in variables for subscripts in used for s in subscripts)
    distinct = all(len(set(subscripts)) == len(subscripts) for subscripts in used)
    # numpy.einsum sums over every index that the operands have. A loop whose variable none of them has would repeat the
    # same sum, which einsum does not do.
    covered = {s.name for subscripts in used[1:] for s in subscripts if isinstance(s, Sym)} == variables
    bounded = not any(loop.stop.symbols() & variables for loop in chain)
    other = target.array.name not in (left.array.name, right.array.name)
    same = kind_of(value) == computed(target.array.type) and target.array.type.name in ("f32", "f64")
    if not (plain and distinct and covered and bounded and other and same):
        return None
    return Contraction(target, left, right, tuple((loop.var, loop.stop) for loop in chain))


def contract(c: Contraction, memory: Mapping[str, Memory], stops: Mapping[str, int], compute: str) -> bool:
    """Add the products to the target. If the factors are not exact or the product is small, do nothing and return
    False.

    compute: the type in which the code under test may round. The bound is that of a sum of k products in any order: k +
    1 roundings of the sum of the sizes of all terms, plus as many roundings in f64 for this product itself.
    """
    total = prod(stops.values())
    factors = [memory[e.array.name] for e in (c.left, c.right)]
    if total < WORTH or any(m.error.any() for m in factors):
        return False
    letters = {var: chr(ord("a") + k) for k, (var, _) in enumerate(c.stops)}

    def text(e: Element) -> str:
        return "".join(letters[str(s)] for s in e.subscripts)

    def part(e: Element) -> tuple[slice, ...]:
        return tuple(slice(0, stops[str(s)]) for s in e.subscripts)

    spec = f"{text(c.left)},{text(c.right)}->{text(c.target)}"
    a, b = (m.value[part(e)].astype(np.float64) for m, e in zip(factors, (c.left, c.right), strict=True))
    held, here = memory[c.target.array.name], part(c.target)
    products: Any = np.einsum(spec, a, b, optimize=True)
    sizes: Any = np.abs(held.value[here]).astype(np.float64) + np.einsum(spec, np.abs(a), np.abs(b), optimize=True)
    terms = total // prod(stops[str(s)] for s in c.target.subscripts)
    unit = UNIT[compute] + UNIT["f64"]
    held.value[here] += products
    held.error[here] = np.where(
        sizes <= LARGEST[c.target.array.type.name], held.error[here] + unit * (terms + 1) * sizes, np.inf
    )
    held.written[here] = True
    return True

"""The partition argument in bytes, for kernels whose arrays have elements of different sizes.

A segment of the run has X bytes of objects to work with, and the objects of class c have at least e_c bytes each. With
x_c objects of class c, the executions are at most prod_c x_c^s_c up to a constant, and sum_c e_c x_c <= X. This is
largest at x_c = X s_c / (s e_c): in bytes, the constant of `partition.Allowed` is divided by prod_c e_c^s_c. A segment
ends with the arrival that completes its T bytes, so it may have one element more. Of a class with objects of several
sizes, any may be made on chip: each is taken for the largest. For f16 operands and f32 sums,
2 m n k / sqrt(S) loads of a product become 8 m n k / sqrt(bytes) bytes, where taking all elements for the smallest ones
gives 4 sqrt(2) m n k / sqrt(bytes).
"""

from __future__ import annotations

from fractions import Fraction

import sympy

from roofdsl.bounds.bound_at_sizes import Power, Segments, Share, rounded_up
from roofdsl.bounds.flow import Flow, sets
from roofdsl.bounds.partition import Partition, rational
from roofdsl.bounds.pieces import Piece

WIDEST = 16
"""Bytes of the largest element of the language. Values in registers are taken to be as large."""


def partition_bytes(flow: Flow, partition: Partition) -> Segments | None:
    """The argument with S and the loads in bytes; None if it is not proven.

    Interval products are left out: what they count for a value made on chip holds for elements of one size.
    """
    if any(a.piece.finished is not None for a in partition.parts):
        return None
    every = [_class_bytes(flow, a.piece) for a in partition.parts]
    sizes = [{group: min(own) for group, own in classes.items()} for classes in every]
    largest = max(max(own) for classes in every for own in classes.values())
    power = partition.parts[0].power
    shares, made = [], []
    for allowed, own in zip(partition.parts, sizes, strict=True):
        constant = allowed.constant
        for slot, share in zip(allowed.piece.slots, allowed.exponents, strict=True):
            constant /= sympy.Integer(own[slot.group]) ** rational(share)
        shares.append(Share((allowed.piece.size,), (Power(rounded_up(constant), power),)))
        made += [(largest, m) for m in allowed.piece.made]
    ratio = Fraction(1) / (power - 1)
    return Segments(tuple(shares), ratio, False, partition.registers * WIDEST, largest, tuple(made), apart=True)


def _class_bytes(flow: Flow, piece: Piece) -> dict[int, set[int]]:
    """The bytes of the objects of each class of a piece."""
    arrays = {f"IN_{a.name}": a.type.bytes for a in flow.kernel.arrays}
    made = {s.name: s.array.type.bytes for s in flow.statements}
    found: dict[int, set[int]] = {}
    for group, objects in piece.objects.items():
        found[group] = {(arrays | made)[part.get_tuple_name()] for part in sets(objects)} or {1}
    return found

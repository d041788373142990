"""From an operator, or a group of fused ones, to its kernel: one table for each kind of operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from roofdsl.frontends.tensors import contractions, movement, normalizations, pooling, reductions
from roofdsl.frontends.tensors.elementwise import is_elementwise, kernel_of_group
from roofdsl.frontends.tensors.graph import UNKNOWN, Node
from roofdsl.frontends.tensors.writing import KernelText

TABLE: Mapping[str, Callable[[Node], KernelText]] = {
    **contractions.KERNELS, **movement.KERNELS, **normalizations.KERNELS, **pooling.KERNELS, **reductions.KERNELS,
}  # fmt: skip


def is_known(node: Node) -> bool:
    """Whether an operator is known; otherwise only the bytes of its arguments and results are counted."""
    return node.op != UNKNOWN and (is_elementwise(node) or node.op in TABLE)


def kernel_of(nodes: Sequence[Node], kept: frozenset[int]) -> KernelText:
    """The kernel of an operator or of a group of elementwise ones. kept: ids of results that are used elsewhere."""
    first = nodes[0]
    if len(nodes) > 1 or is_elementwise(first):
        return kernel_of_group(nodes, kept)
    return TABLE[first.op if first.op in TABLE else UNKNOWN](first)

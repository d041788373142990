"""Sums over all iterations of a nest, as CUDA adds them up: the threads of a block together, then the blocks.

The iterations of a nest that only updates scalars (`s += a[i] * b[i]`) depend on each other only through these updates.
Every thread updates a copy of its own, a block joins the copies of its threads in shared memory and leaves one part in
memory, and one more block joins the parts with the scalar itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roofdsl.codegen.clike import CLike
from roofdsl.codegen.computed_types import computed
from roofdsl.codegen.emitter import Emitter, chain_of
from roofdsl.codegen.independent_loops import leaf_statements, mentioned
from roofdsl.codegen.syntax import Text
from roofdsl.loops.accesses import LoopId, elements
from roofdsl.loops.model import Array, Assign, For, Node, ScalarRef

BLOCK = 256
"""Threads of a block that adds up parts, and the most in a block that makes them."""

MOST_PARTS = 1024
"""The most blocks in a launch that makes parts: with BLOCK threads each, about as many threads as the largest devices
hold at once.
"""

_JOINED = {"+=": "+=", "-=": "+=", "min=": "min=", "max=": "max="}
"""The operator that joins two parts, for each operator of an update."""

Sums = Mapping[str, tuple[Array, str]]
"""The scalars that a nest updates, each with the operator that joins two parts."""


def sums_of(root: For) -> Sums | None:
    """The scalars that a nest updates, if it does nothing else and its values read none of them; otherwise None."""
    found: dict[str, tuple[Array, str]] = {}
    for node in leaf_statements((root,)):
        if not isinstance(node, Assign):
            continue
        if not isinstance(node.target, ScalarRef) or node.op not in _JOINED:
            return None
        array, joined = node.target.array, _JOINED[node.op]
        if found.setdefault(array.name, (array, joined)) != (array, joined):
            return None
    values = tuple(node.value for node in leaf_statements((root,)))
    return found if found and not found.keys() & set(mentioned(values)) else None


def may_be_spread(position: LoopId, root: For) -> dict[LoopId, int]:
    """The loops of the nest at `position` that may run on several threads: all perfectly nested ones."""
    return {(*position, *(0,) * depth): 0 for depth, _ in enumerate(chain_of(root))}


def can_follow(nodes: Sequence[Node], root: For, sums: Sums) -> bool:
    """Whether these statements before the nest may also run after its parts are made.

    That is so if the nest reads nothing that they write, and its parts do not start from the scalars.
    """
    if any(joined != "+=" for _, joined in sums.values()):
        return False
    written = {n.target.array.name for n in leaf_statements(nodes) if isinstance(n, Assign)}
    values = tuple(node.value for node in leaf_statements((root,)))
    return not written & {*mentioned(values), *(e.array.name for value in values for e in elements(value))}


# ---- the text ----


def parts_of(function: str, syntax: CLike, sums: Sums) -> list[str]:
    """Declarations of the memory for the parts that `function` makes."""
    return [
        f"__device__ {syntax.names[computed(a.type)]} {function}_{_called(a, op)}[{MOST_PARTS}];"
        for a, op in sums.values()
    ]


def start_parts(emitter: Emitter, sums: Sums) -> None:
    """Declares a thread's own copies: 0 for a sum. Copies of a minimum or maximum start at the scalar."""
    for array, joined in sums.values():
        kind = computed(array.type)
        value = emitter.syntax.zero(kind) if joined == "+=" else emitter.loaded(Text(f"*{array.name}_out"), array)
        emitter.out.add(emitter.syntax.declare(emitter.name(array.name), kind, value, constant=False))


def leave_parts(syntax: CLike, emitter: Emitter, function: str, sums: Sums) -> None:
    """Combines the copies of a block's threads, and stores the block's part in memory."""
    if not sums:
        return
    out = emitter.out
    out.add("const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);")
    out.add("const int threads = blockDim.x * blockDim.y * blockDim.z;")
    own = {name: emitter.name(name) for name in sums}
    _join(syntax, emitter, sums, own, "threads")
    out.add("const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);")
    for array, op in sums.values():
        called = _called(array, op)
        out.add(f"if (thread == 0) {function}_{called}[block] = {called}[0];")


def join_parts(syntax: CLike, emitter: Emitter, made_by: str, sums: Sums) -> dict[str, str]:
    """Combines the `parts` parts of all blocks in one block; returns where thread 0 finds the total for each scalar."""
    out = emitter.out
    out.add("const int thread = threadIdx.x;")
    own = {}
    for name, (array, op) in sums.items():
        kind, parts = computed(array.type), f"{made_by}_{_called(array, op)}"
        own[name] = f"own_{name}"
        value = emitter.syntax.zero(kind) if op == "+=" else emitter.loaded(Text(f"*{array.name}_out"), array)
        out.add(emitter.syntax.declare(own[name], kind, value, constant=False))
        emitter.syntax.open(out, f"for (index_t p = thread; p < parts; p += {BLOCK})")
        out.add(f"{own[name]} = {_both(emitter, array, op, own[name], f'{parts}[p]')};")
        emitter.syntax.close(out)
    _join(syntax, emitter, sums, own, str(BLOCK))
    return {name: f"{_called(array, op)}[0]" for name, (array, op) in sums.items()}


def add_whole(emitter: Emitter, sums: Sums, wholes: Mapping[str, str]) -> None:
    """Combines each scalar, in its register, with the total of its parts."""
    for name, (array, op) in sums.items():
        own = emitter.name(name)
        emitter.out.add(f"{own} = {_both(emitter, array, op, own, wholes[name])};")


def _join(syntax: CLike, emitter: Emitter, sums: Sums, own: dict[str, str], threads: str) -> None:
    """Joins the copies of a block's threads, a power of two of them, as a tree; the first thread has the result."""
    out = emitter.out
    for name, (array, op) in sums.items():
        called = _called(array, op)
        out.add(f"__shared__ {syntax.names[computed(array.type)]} {called}[{BLOCK}];")
        out.add(f"{called}[thread] = {own[name]};")
    out.add("__syncthreads();")
    emitter.syntax.open(out, f"for (int p = {threads} / 2; p > 0; p /= 2)")
    for array, op in sums.values():
        called = _called(array, op)
        both = _both(emitter, array, op, f"{called}[thread]", f"{called}[thread + p]")
        out.add(f"if (thread < p) {called}[thread] = {both};")
    out.add("__syncthreads();")
    emitter.syntax.close(out)


def _called(array: Array, op: str) -> str:
    return f"{array.name}_{'sum' if op == '+=' else op[:-1]}"


def _both(emitter: Emitter, array: Array, op: str, a: str, b: str) -> str:
    return emitter.combine(op, Text(a), Text(b), computed(array.type)).text

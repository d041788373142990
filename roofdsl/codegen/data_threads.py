"""Which loops of a kernel with index arrays become threads in CUDA, or are shared by the cores of a CPU, found from the
text: no data are needed.

Iterations may run at the same time if each writes elements of its own (`y[i]` in a loop over i), if what they write is
only updated, by atomic operations (`y[row[k]] += ...`; only in CUDA), and if each has scalars of its own (`s = 0` at
its beginning).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from roofdsl.codegen.function_parts import positions
from roofdsl.codegen.independent_loops import leaf_statements, mentioned, own_places, runs_once
from roofdsl.lang.record import Record
from roofdsl.loops.accesses import LoopId, elements
from roofdsl.loops.model import Array, Assign, Element, For, If, Kernel, Let, Node, ScalarRef

ATOMIC = {"+=": ("f64", "f32", "i64", "i32"), "-=": ("f64", "f32", "i64", "i32"),
           "min=": ("i64", "i32"), "max=": ("i64", "i32")}  # fmt: skip
"""The element types of each update that CUDA has an atomic operation for."""


class DataThreads(Record):
    """free: the loops with independent iterations, as `generate` takes them. private: scalars of which each thread has
    its own.
    """

    free: Mapping[LoopId, int]
    private: frozenset[str]


def data_threads(kernel: Kernel, declared: Mapping[LoopId, int], *, atomic: bool = True) -> DataThreads:
    """The loops of a kernel with its directives applied that may be spread over threads.

    declared: those that the kernel itself declares parallel; they are left out only for scalars that threads cannot
    have for themselves. atomic: whether threads may update the same element, by atomic operations.
    """
    free: dict[LoopId, int] = {}
    loops = dict(positions(kernel.body))
    for position, loop in loops.items():
        depth = len(position) - 1
        around = {loops[position[:k]].var for k in range(1, len(position)) if position[:k] in loops}
        found = None if runs_once(loop) else _of_loop(loop, around, atomic)  # such a loop has no threads of its own
        if (found is None and position not in declared) or not all(is_private(a, loop.body) for a in scalars_set(loop)):
            continue
        free[position] = declared.get(position, 0 if found else depth)
    while leaving := _leaving(kernel, [loops[position] for position in free]):
        free = {p: depth for p, depth in free.items() if leaving.isdisjoint(scalars_set(loops[p]))}
    return DataThreads(free, frozenset(a.name for position in free for a in scalars_set(loops[position])))


def scalars_set(loop: For) -> frozenset[Array]:
    """The scalars that statements in a loop set or update."""
    assigned = (node for node in leaf_statements(loop.body) if isinstance(node, Assign))
    return frozenset(node.target.array for node in assigned if isinstance(node.target, ScalarRef))


def _leaving(kernel: Kernel, free: Sequence[For]) -> frozenset[Array]:
    """The scalars that free loops set and something reads elsewhere, where no free loop has set them before."""
    found = set()
    for array in frozenset[Array]().union(*map(scalars_set, free)):
        own = [loop for loop in free if array in scalars_set(loop)]
        inside = {id(node) for loop in own for node in leaf_statements(loop.body)}
        if any(id(node) not in inside and array.name in _read(node) for node in leaf_statements(kernel.body)):
            found.add(array)
    return frozenset(found)


def _read(node: Assign | Let) -> set[str]:
    """The scalars that a statement reads."""
    if isinstance(node, Assign) and isinstance(node.target, ScalarRef) and node.op == "=":
        return set(mentioned(node.value))
    return set(mentioned((node,)))


def updated_together(root: For, variables: Sequence[str]) -> frozenset[int]:
    """The updates (by identity) in a nest with which several threads may change the same element, if the loops over
    these variables are spread over threads.
    """
    found = set()
    every = set(_variables((root,)))
    for node in leaf_statements((root,)):
        if isinstance(node, Assign) and isinstance(node.target, Element) and node.op in ATOMIC:
            uses = [e for e in _elements((root,)) if e.array.name == node.target.array.name]
            if any(own_places(uses, var, every - {var}) is None for var in variables):
                found.add(id(node))
    return frozenset(found)


def is_private(array: Array, nodes: Sequence[Node]) -> bool:
    """Whether a `temp` scalar is set before it is used wherever a block mentions it, and in each iteration of loops."""
    if array.intent != "temp":
        return False
    for node in nodes:
        match node:
            case Assign(ScalarRef(target), "=", value) if target == array and array.name not in set(mentioned(value)):
                return True  # whatever comes after it in this block
            case For(body=body):
                if not is_private(array, body):
                    return False
            case If(_, then, orelse):
                if not (is_private(array, then) and is_private(array, orelse)):
                    return False
            case _:
                if array.name in set(mentioned((node,))):
                    return False
    return True


def _of_loop(loop: For, around: set[str], atomic: bool) -> bool | None:
    """True if the text shows that the iterations of all executions of the loop together are independent, False if only
    those within one execution, None if not even those. atomic: whether they may update the same element.
    """
    written: dict[str, list[Assign]] = {}
    for node in leaf_statements(loop.body):
        if isinstance(node, Assign) and isinstance(node.target, Element):
            written.setdefault(node.target.array.name, []).append(node)
    everywhere = True
    for name, updates in written.items():
        uses = [e for e in _elements(loop.body) if e.array.name == name]
        rest = own_places(uses, loop.var, set(_variables(loop.body)))
        if rest is not None:
            everywhere = everywhere and not rest & around
            continue
        # Iterations that update the same elements, which the data choose, need atomic updates. Their order is open, so
        # nothing may read the result before the end, and all have to be sums, or all the same extremum.
        type_name = updates[0].target.array.type.name
        read = any(e.array.name == name for n in leaf_statements(loop.body) for e in elements(n.value))
        together = atomic and all(type_name in ATOMIC.get(n.op, ()) for n in updates)
        if read or not together or len({"+=" if n.op == "-=" else n.op for n in updates}) > 1:
            return None
        everywhere = False
    return everywhere


def _elements(nodes: Sequence[Node]) -> Iterator[Element]:
    """Every element that statements read or write, without those in subscripts, which are of index arrays."""
    for node in leaf_statements(nodes):
        yield from elements(node.value)
        if isinstance(node, Assign) and isinstance(node.target, Element):
            yield node.target


def _variables(nodes: Sequence[Node]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, For):
            yield node.var
            yield from _variables(node.body)
        elif isinstance(node, If):
            yield from _variables((*node.then, *node.orelse))

"""The statements of one launch as a kernel of its own, with what the launch does with each array."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from roofdsl.lang.record import Record, replace
from roofdsl.lang.source import Source
from roofdsl.lang.types import ElementType
from roofdsl.loops.accesses import accesses, bound_accesses, operands
from roofdsl.loops.integers import Condition, IntExpr
from roofdsl.loops.model import Array, Assign, For, If, Intent, Kernel, Let, Node
from roofdsl.loops.parameter_values import with_numbers
from roofdsl.loops.successive_nests import successive_nests
from roofdsl.loops.transform import apply

if TYPE_CHECKING:
    from roofdsl.codegen.launch_grids import Call


def alone(
    plain: Kernel, nodes: tuple[Node, ...], outer: Mapping[str, int], before: Set[str], temps: Set[str]
) -> Kernel:
    """A kernel of the statements of a launch. before: the arrays that launches before it have written. temps: those
    of which nothing is needed after it.
    """
    reads, stores = set(_read(nodes)), set(written(nodes))
    known = {a.name: a for a in (*_arrays(nodes), *plain.arrays)}  # buffers of copies too
    arrays = {
        name: a if name in temps else replace(a, intent=_intent(a, name in reads, name in stores, name in before))
        for name, a in known.items()
        if name in reads | stores
    }
    body = _with_arrays(nodes, arrays)
    return with_numbers(replace(plain, body=body, arrays=tuple(arrays.values())), outer)


def nests_alone(kernel: Kernel) -> tuple[Kernel, ...]:
    """Each loop nest of a kernel (`successive_nests`) as its own kernel, which reads what those before it wrote."""
    plain, found, before = apply(kernel), list[Kernel](), set[str]()
    parts = successive_nests(plain.body)
    users = Counter(name for nodes in parts for name in {*_read(nodes), *written(nodes)})
    temps = {a.name for a in plain.arrays if a.intent == "temp" and users[a.name] == 1}
    for nodes in parts:
        found.append(alone(plain, nodes, {}, before, temps))
        before.update(written(nodes))
    return tuple(found)


def in_one_launch(
    kernel: Kernel, made: Sequence[tuple[Call, dict[str, int], int]], private: Callable[[str], Set[str]]
) -> frozenset[str]:
    """The `temp` arrays of which nothing is needed after the launch that accesses them: no other one does, or only the
    same launch in other iterations of the host's loop, which writes them anew. Copies of a thread are not among them:
    they stay behind in a buffer.

    private: the arrays of which an iteration of that loop reads only what it has written, and nothing else reads that.
    """
    accessed: dict[str, set[str]] = {}
    left: set[str] = set()
    temps = {a.name for a in kernel.arrays if a.intent == "temp"}
    for call, outer, _ in made:
        for name in temps & {*_read(call.nodes), *written(call.nodes)}:
            accessed.setdefault(name, set()).add(call.function)
            if name in call.copied or (outer and name not in private(list(outer)[-1])):
                left.add(name)
    return frozenset(name for name, functions in accessed.items() if len(functions) == 1 and name not in left)


def _with_arrays(part: Any, arrays: Mapping[str, Array]) -> Any:
    """Statements that refer to these arrays by the same names."""
    if type(part) is tuple:
        return tuple(_with_arrays(p, arrays) for p in part)
    if isinstance(part, Array):
        return arrays[part.name]
    if isinstance(part, Record) and not isinstance(part, Source | ElementType | IntExpr | Condition):
        fields = {n: getattr(part, n) for n in part.__match_args__ if n != "span"}
        return replace(part, **{n: _with_arrays(value, arrays) for n, value in fields.items()})
    return part


def _intent(array: Array, is_read: bool, is_written: bool, written_before: bool) -> Intent:
    """What a launch does with an array. An array that is no input, and that no earlier launch has written, is written
    before it is read.
    """
    if not is_written:
        return "in"
    if not is_read:
        return "out"
    return "inout" if array.intent in ("in", "inout") or written_before else "out"


def _read(nodes: Sequence[Node]) -> Iterator[str]:
    """The arrays and scalars that statements read, and those that subscripts and bounds of loops read."""
    for node in nodes:
        if isinstance(node, For):
            yield from (a.element.array.name for a in bound_accesses(node))
            yield from _read(node.body)
        elif isinstance(node, If):
            yield from _read((*node.then, *node.orelse))
        elif isinstance(node, Assign | Let):
            yield from (a.element.array.name for a in accesses(node) if not a.is_write)
            yield from (operand.array.name for operand in operands(node.value))
            if isinstance(node, Assign) and node.op != "=":
                yield node.target.array.name


def written(nodes: Sequence[Node]) -> Iterator[str]:
    """The arrays and scalars that statements write."""
    return (array.name for array in _arrays(nodes))


def _arrays(nodes: Sequence[Node]) -> Iterator[Array]:
    """The arrays and scalars that statements write."""
    return (node.target.array for node in _statements(nodes) if isinstance(node, Assign))


def _statements(nodes: Sequence[Node]) -> Iterator[Assign | Let]:
    for node in nodes:
        if isinstance(node, For):
            yield from _statements(node.body)
        elif isinstance(node, If):
            yield from _statements((*node.then, *node.orelse))
        elif isinstance(node, Assign | Let):
            yield node

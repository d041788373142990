"""Which iterations of a loop of the host make launches alike: those of the same sizes whose accesses to each array lie
in the same way to each other and to the lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from roofdsl.loops.accesses import accesses, bound_accesses
from roofdsl.loops.affine import affine
from roofdsl.loops.integers import Const, IntExpr
from roofdsl.loops.model import Assign, Element, For, If, Let, Node, Read

if TYPE_CHECKING:
    from roofdsl.codegen.launch_grids import Call, Step

SAMPLES = 8
"""How many iterations stand for the others if too many differ in where they access arrays."""


class _Differs(Exception):
    """Raised if no two iterations can be compared."""


def alike(
    body: Sequence[Step], var: str, values: Sequence[int], env: Mapping[str, int], line_bytes: int
) -> list[tuple[int, int]]:
    """(a value of the host's loop, how many are like it), if the sizes of the launches in `body` are the same for all.

    env: the numbers of everything outside the loop. Values are alike if the accesses of each launch to each array have
    the same distances, and begin at the same place of a line.
    """
    try:
        arrays = [array for call in _calls(body) for array in _moving(call, var, env)]
    except _Differs:
        return [(value, 1) for value in values]
    if not arrays:
        return [(values[0], len(values))]
    first: dict[tuple[int, ...], int] = {}
    times: Counter[int] = Counter()
    for value in values:
        place = tuple(number for array in arrays for number in array.place(value, line_bytes))
        times[first.setdefault(place, value)] += 1
    return list(times.items())


def sampled(found: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """SAMPLES of these values with their numbers: the first and the last, and others that stand for their neighbors."""
    inner, parts = found[1:-1], SAMPLES - 2
    blocks = [inner[len(inner) * p // parts : len(inner) * (p + 1) // parts] for p in range(parts)]
    middle = [(block[len(block) // 2][0], sum(times for _, times in block)) for block in blocks if block]
    return [found[0], *middle, found[-1]]


class _Array:
    """Where the references of a launch to an array lie, as far as that depends on the variable of the host's loop.

    aligned: whether their place in a line matters; it does not for a single element.
    """

    def __init__(self, elements: Sequence[Element], var: str, env: Mapping[str, int]) -> None:
        array = elements[0].array
        known = {name: Const(value) for name, value in env.items() if name != var}
        strides = array.strides(env)
        self._var, self._bytes, self.aligned = var, array.type.bytes, len(elements) > 1
        self._terms: list[list[tuple[int, IntExpr]]] = []
        for element in elements:
            own: list[tuple[int, IntExpr]] = []
            for stride, subscript in zip(strides, element.subscripts, strict=True):
                for term, factor in affine(subscript.substitute(known)).terms:
                    if var not in term.symbols():
                        self.aligned = True
                    elif len(term.symbols()) > 1 or any(isinstance(part, Read) for part in term.walk()):
                        raise _Differs
                    else:
                        own.append((stride * factor, term))
            self._terms.append(own)

    @property
    def moves(self) -> bool:
        return any(self._terms)

    def place(self, value: int, line_bytes: int) -> list[int]:
        """What distinguishes the places of the references at a value of the variable."""
        at = {self._var: value}
        first, *others = (self._bytes * sum(c * term.evaluate(at) for c, term in own) for own in self._terms)
        return [first % line_bytes if self.aligned else 0, *(other - first for other in others)]


def _calls(steps: Sequence[Step]) -> Iterator[Call]:
    from roofdsl.codegen.launch_grids import HostIf, HostLoop

    for step in steps:
        if isinstance(step, HostLoop):
            yield from _calls(step.body)
        elif isinstance(step, HostIf):
            yield from _calls((*step.then, *step.orelse))
        else:
            yield step


def _moving(call: Call, var: str, env: Mapping[str, int]) -> Iterator[_Array]:
    """The arrays of a launch that it accesses in places that depend on `var`. Raises _Differs."""
    by_name: dict[str, dict[tuple[IntExpr, ...], Element]] = {}
    for element in _elements(call.nodes):
        by_name.setdefault(element.array.name, {}).setdefault(element.subscripts, element)
    for elements in by_name.values():
        if any(var in subscript.symbols() for subscripts in elements for subscript in subscripts):
            own = _Array(tuple(elements.values()), var, env)
            if own.moves:
                yield own


def _elements(nodes: Sequence[Node]) -> Iterator[Element]:
    """The elements that statements and bounds of loops access."""
    for node in nodes:
        if isinstance(node, For):
            yield from (a.element for a in bound_accesses(node))
            yield from _elements(node.body)
        elif isinstance(node, If):
            yield from _elements((*node.then, *node.orelse))
        elif isinstance(node, Assign | Let):
            yield from (a.element for a in accesses(node))

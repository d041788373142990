"""Neighboring sums computed together: `grouped`, a variant for products whose innermost loop goes against the rows.

In `for j: C[i, j] = 0; for k: C[i, j] += A[i, k] * B[k, j]`, the loop over k takes one element of each row of B, and
these do not form vectors. The iterations of j are independent, so many of them can run in step: first their statement
before the loop over k, then each iteration of k for all of them. The innermost loop then runs along rows. Every sum
has its terms in the same order as before, so results are the same in strict math. Sums of reduced types stay in
single precision until they are complete, as in a register.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from roofdsl.codegen.computed_types import REDUCED
from roofdsl.codegen.emitter import chain_of
from roofdsl.codegen.identifiers import all_names
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.lang.types import TYPES
from roofdsl.loops.accesses import elements
from roofdsl.loops.affine import affine, minimum
from roofdsl.loops.integers import Const, IntExpr, Sym, add, sub
from roofdsl.loops.model import Array, Assign, Element, Expr, For, If, Kernel, Node
from roofdsl.loops.streams import walks_along

WIDTH = 512
"""The sums that are computed together: few enough to stay in the first cache, and many times what a vector holds."""


class Grouped(Record):
    """A kernel's body in which sums are computed together, and the arrays inside the function that hold them.

    loops: the variables of the loops whose iterations run in step.
    """

    body: tuple[Node, ...]
    held: tuple[Array, ...]
    loops: tuple[str, ...]


def nothing_to_group(kernel: Kernel) -> CommandError:
    """The error for a kernel in which `grouped` finds no such sums."""
    return CommandError(
        f"kernel {kernel.name} has no sums that the variant `grouped` could compute together: no innermost loop goes "
        "from row to row, as `C[i, j] += A[i, k] * B[k, j]` over k does",
        "use the variant `loops`",
    )


def grouped(kernel: Kernel, free: Collection[tuple[int, ...]]) -> Grouped:
    """The body of a kernel (with its directives applied) in which sums are computed together; its `loops` are empty if
    it has no such sums. free: the loops whose iterations are independent, by position.
    """
    found = _Grouping(frozenset(free), frozenset(all_names(kernel)))
    body = found.block(kernel.body, (), [0])
    return Grouped(body, tuple(found.held), tuple(dict.fromkeys(found.loops)))


class _Grouping:
    def __init__(self, free: frozenset[tuple[int, ...]], taken: frozenset[str]) -> None:
        self.free, self.taken = free, taken
        self.held: list[Array] = []
        self.loops: list[str] = []

    def block(self, nodes: Sequence[Node], outer: tuple[int, ...], place: list[int]) -> tuple[Node, ...]:
        """The nodes, with positions as `function_parts.positions` gives them."""
        made: list[Node] = []
        for node in nodes:
            if isinstance(node, If):
                then = self.block(node.then, outer, place)
                made.append(replace(node, then=then, orelse=self.block(node.orelse, outer, place)))
                continue
            here = (*outer, place[0])
            place[0] += 1
            if not isinstance(node, For):
                made.append(node)
                continue
            target = _sum_of(node) if here in self.free else None
            if target is None:
                made.append(replace(node, body=self.block(node.body, here, [0])))
            else:
                self.loops.append(node.var)
                made.append(self._together(node, target))
        return tuple(made)

    def _part(self, name: str) -> str:
        """A name for a part, the same at every call, that nothing in the kernel has and `renamed` does not give."""
        found = (f"{name}_part{number}" for number in ("", *range(2, len(self.taken) + 3)))
        return next(each for each in found if each not in self.taken)

    def _together(self, loop: For, target: Element) -> For:
        """The loop in parts of WIDTH iterations, which run in step."""
        first = self._part(loop.var)
        end = minimum(add(Sym(first), Const(WIDTH)), *loop.stops)
        array = target.array
        own = target
        if array.type.name in REDUCED:
            held = Array(self._part(array.name), TYPES["f32"], (Const(WIDTH),), "temp", False, array.span)
            if held.name not in {a.name for a in self.held}:
                self.held.append(held)
            own = Element(held, (sub(Sym(loop.var), Sym(first)),), target.span)

        def along(assign: Assign) -> For:
            return replace(loop, start=Sym(first), stop=end, body=(assign,))

        body: list[Node] = []
        head = loop.body[0]
        if own is not target and not (isinstance(head, Assign) and head.op == "="):
            body.append(along(Assign(own, "=", target, loop.span)))
        for node in loop.body:
            if isinstance(node, Assign):
                body.append(along(_moved(node, target, own)))
            elif isinstance(node, For):
                chain = list(chain_of(node))
                update = chain[-1].body[0]
                assert isinstance(update, Assign)
                inner: Node = along(_moved(update, target, own))
                for each in reversed(chain):
                    inner = replace(each, body=(inner,))
                body.append(inner)
        if own is not target:
            body.append(along(Assign(target, "=", own, loop.span)))
        return For(first, loop.start, loop.stop, Const(WIDTH), False, tuple(body), loop.span)


def _moved(assign: Assign, target: Element, own: Element) -> Assign:
    return replace(assign, target=own) if assign.target == target else assign


def _sum_of(loop: For) -> Element | None:
    """The element that a loop sums up in inner loops against the rows, if that is all that it does; else None.

    Every statement updates or sets this element, which moves along a row with the loop. At least one inner loop steps
    from row to row of an array whose rows the outer loop runs along, and every element that moves with the outer loop
    moves along a row.
    """
    if loop.step != Const(1):
        return None
    updates: list[tuple[Assign, tuple[For, ...]]] = []
    for node in loop.body:
        chain = tuple(chain_of(node)) if isinstance(node, For) else ()
        leaf = chain[-1].body if chain else (node,)
        if len(leaf) != 1 or not isinstance(leaf[0], Assign) or leaf[0].stream:
            return None
        updates.append((leaf[0], chain))
    target = updates[0][0].target
    if not isinstance(target, Element) or not walks_along(target, loop) or not any(chain for _, chain in updates):
        return None
    against = False
    for assign, chain in updates:
        # Several iterations of the loop will run in step, so each must own its element, and their inner loops must be
        # the same. `y = ...` in an inner loop would keep the last value, which is no sum.
        if assign.target != target or _reads(assign.value, target.array):
            return None
        if any(loop.var in _names(each) for each in chain) or (chain and assign.op == "="):
            return None
        inner = {each.var for each in chain}
        if any(s.symbols() & inner for s in target.subscripts):
            return None
        for element in elements(assign.value):
            moves = loop.var in frozenset().union(*(s.symbols() for s in element.subscripts))
            if moves and not walks_along(element, loop):
                return None
            against = against or (moves and bool(chain) and not walks_along(element, chain[-1]))
    return target if against else None


def _reads(value: Expr, array: Array) -> bool:
    return any(element.array.name == array.name for element in elements(value))


def _names(loop: For) -> frozenset[str]:
    bounds: tuple[IntExpr, ...] = (loop.start, loop.stop, loop.step)
    return frozenset().union(*(affine(bound).expression().symbols() for bound in bounds))

"""Applies `tile` and `order` to a kernel's loops. Whether dependences allow it is decided elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count

from roofdsl.lang.diagnostics import Diagnostic, InputError
from roofdsl.lang.findings import listed
from roofdsl.lang.record import replace
from roofdsl.lang.scope import tile_name
from roofdsl.loops.affine import NotAffineError, Range, affine, at_least, at_most, maximum, minimum
from roofdsl.loops.integers import Compare, Const, IntExpr, Mod, Sym, add, sub
from roofdsl.loops.model import For, If, Kernel, Let, Node, Order, Tile


def apply(kernel: Kernel) -> Kernel:
    """The kernel with its directives applied in order, and none left.

    Raises InputError if a directive names no perfect nest, or if the bounds do not allow it.
    """
    for directive in kernel.directives:
        change = _Tiling(kernel, directive) if isinstance(directive, Tile) else _ordering(kernel, directive)
        kernel = replace(kernel, body=_in_nest(kernel, directive, change))
    return replace(kernel, directives=())


Change = Callable[[list[For]], list[For]]


def repeated(kernel: Kernel, times: int) -> Kernel:
    """The kernel, directives applied, with its body run `times` times in one launch: caches keep their content."""
    plain = apply(kernel)
    taken = {*(p.name for p in kernel.parameters), *_names(plain.body)}
    name = next(n for n in (f"again{k}" for k in count()) if n not in taken)
    outer = For(name, Const(0), Const(times), Const(1), False, plain.body, kernel.span)
    return replace(plain, body=(outer,))


def nested(loops: Sequence[For], body: tuple[Node, ...]) -> tuple[Node, ...]:
    """A body inside loops, outermost first."""
    for loop in reversed(loops):
        body = (replace(loop, body=body),)
    return body


def loops_in(body: Sequence[Node]) -> Iterator[For]:
    """The loops of a body, also under conditions; each before those inside it."""
    for node in body:
        if isinstance(node, For):
            yield node
            yield from loops_in(node.body)
        elif isinstance(node, If):
            yield from loops_in((*node.then, *node.orelse))


def nests(body: Sequence[Node]) -> list[tuple[For, ...]]:
    """The loops of every maximal perfect nest, outermost loop first; outer nests come before inner ones."""
    return [tuple(_nest(root)) for root in _roots(body)]


def _in_nest(kernel: Kernel, directive: Tile | Order, change: Change) -> tuple[Node, ...]:
    """The body, with the only perfect nest that has the directive's loops changed."""
    wanted = set(directive.loops)
    roots = [root for root in _roots(kernel.body) if wanted <= {loop.var for loop in _nest(root)}]
    word = "tile" if isinstance(directive, Tile) else "order"
    if len(roots) != 1:
        what = "are not loops of one perfect nest" if not roots else f"are loops of {len(roots)} nests"
        message = f"`{word}` cannot be applied: {listed(directive.loops, 'and')} {what}"
        raise InputError(kernel.source, [Diagnostic("tile-loops", message, directive.span)])
    root = roots[0]
    nest = _nest(root)
    (changed,) = nested(change(nest), nest[-1].body)
    return _replaced(kernel.body, root, changed)


def _nest(root: For) -> list[For]:
    loops = [root]
    while len(loops[-1].body) == 1 and isinstance(inner := loops[-1].body[0], For):
        loops.append(inner)
    return loops


def _roots(body: Sequence[Node]) -> Iterator[For]:
    """The outermost loop of every maximal perfect nest."""
    for node in body:
        if isinstance(node, For):
            yield node
            yield from _roots(_nest(node)[-1].body)
        elif isinstance(node, If):
            yield from _roots(node.then)
            yield from _roots(node.orelse)


def _replaced(body: Sequence[Node], old: Node, new: Node) -> tuple[Node, ...]:
    result: list[Node] = []
    for node in body:
        if node is old:
            result.append(new)
        elif isinstance(node, For):
            result.append(replace(node, body=_replaced(node.body, old, new)))
        elif isinstance(node, If):
            then, orelse = _replaced(node.then, old, new), _replaced(node.orelse, old, new)
            result.append(replace(node, then=then, orelse=orelse))
        else:
            result.append(node)
    return tuple(result)


def _names(body: Sequence[Node]) -> Iterator[str]:
    for node in body:
        if isinstance(node, For):
            yield node.var
            yield from _names(node.body)
        elif isinstance(node, If):
            yield from _names(node.then)
            yield from _names(node.orelse)
        elif isinstance(node, Let):
            yield node.name


def _ordering(kernel: Kernel, order: Order) -> Change:
    def change(nest: list[For]) -> list[For]:
        loops = {loop.var: loop for loop in nest}
        if len(order.loops) != len(nest):
            message = f"`order` names every loop of the nest: {listed(loops, 'and')}"
            raise InputError(kernel.source, [Diagnostic("tile-loops", message, order.span)])
        for place, var in enumerate(order.loops):
            loop = loops[var]
            needed = (loop.start.symbols() | loop.stop.symbols() | loop.step.symbols()) & loops.keys()
            missing = [v for v in order.loops[place:] if v in needed]
            if missing:
                message = f"the loop `{var}` cannot be moved outside `{missing[0]}`: its bounds depend on it"
                help = f"`{var}` runs over range({loop.start}, {loop.stop})"
                raise InputError(kernel.source, [Diagnostic("tile-bounds", message, order.span, help)])
        return [loops[var] for var in order.loops]

    return change


class _Tiling:
    """Strip-mines the named loops and moves the loops over tiles outside the nest.

    The range of a loop over tiles covers the ranges of the loop that it tiles for all values of the loops that it is
    moved over; the inner loop keeps its own bounds in addition to those of the tile, so that each iteration is done
    once.
    """

    def __init__(self, kernel: Kernel, tile: Tile) -> None:
        self.kernel = kernel
        self.tile = tile
        self.taken = {p.name for p in kernel.parameters} | {name for name, _ in kernel.constants}
        self.taken |= {a.name for a in kernel.arrays} | set(_names(kernel.body))

    def __call__(self, nest: list[For]) -> list[For]:
        outside: list[For] = []
        ranges = {loop.var: Range(loop.start, loop.stop) for loop in nest}
        inside = {loop.var: loop for loop in nest}
        for var, size in zip(self.tile.loops, self.tile.sizes, strict=True):
            over, loop = self._strip(inside[var], size, ranges)
            outside.append(over)
            inside[var] = loop
            ranges[var] = Range(loop.start, loop.stop)
        return outside + list(inside.values())

    def _strip(self, loop: For, size: IntExpr, ranges: dict[str, Range]) -> tuple[For, For]:
        if not self._multiple(size, loop.step):
            what = f"`tile` of the loop `{loop.var}` needs a multiple of its step, {loop.step}"
            message = f"{what}: {size} is not known to be one"
            raise InputError(self.kernel.source, [Diagnostic("tile-bounds", message, self.tile.span)])
        own = (loop.start.symbols() | loop.stop.symbols()) & ranges.keys()
        if loop.step != Const(1) and own:
            message = (
                f"the loop `{loop.var}` cannot be tiled: its step is {loop.step}, and its bounds depend on `{min(own)}`"
            )
            raise InputError(self.kernel.source, [Diagnostic("tile-bounds", message, self.tile.span)])
        name = tile_name(loop.var, self.taken)
        self.taken.add(name)
        try:
            start, stop = at_least(loop.start, ranges), at_most(loop.stop, ranges)
        except NotAffineError:
            message = f"the loop `{loop.var}` cannot be tiled: its bounds depend on other loops through `//` or `%`"
            raise InputError(self.kernel.source, [Diagnostic("tile-bounds", message, self.tile.span)]) from None
        over = For(name, start, stop, size, loop.parallel, (), loop.span)
        end = add(Sym(name), size)
        if own:
            return over, replace(loop, start=maximum(Sym(name), loop.start), stop=minimum(loop.stop, end))
        if self._whole(loop, size):
            return over, replace(loop, start=Sym(name), stop=end)
        return over, replace(loop, start=Sym(name), stop=minimum(loop.stop, end))

    def _whole(self, loop: For, size: IntExpr) -> bool:
        """Whether the extent is known to be a multiple of the tile."""
        return self._multiple(affine(sub(loop.stop, loop.start)).expression(), size)

    def _multiple(self, whole: IntExpr, part: IntExpr) -> bool:
        """Whether `whole` is known to be a multiple of `part`: by numbers, or by an assumption."""
        if part == Const(1) or whole == part:
            return True
        if isinstance(whole, Const):
            return _divides(part, whole)
        for assumption in self.kernel.assumptions:
            match assumption:
                case Compare("==", Mod(numerator, divisor), Const(0)) | Compare(
                    "==", Const(0), Mod(numerator, divisor)
                ):
                    if affine(numerator).expression() == whole and (divisor == part or _divides(part, divisor)):
                        return True
        return False


def _divides(part: IntExpr, whole: IntExpr) -> bool:
    return isinstance(part, Const) and isinstance(whole, Const) and whole.value % part.value == 0

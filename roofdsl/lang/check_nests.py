"""Checks `tile` and `order`: that their loops are one perfect nest, and that sizes are numbers or parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roofdsl.lang import tree
from roofdsl.lang.check_integers import TILE_SIZE, Integers
from roofdsl.lang.findings import Report, did_you_mean, listed, plural
from roofdsl.lang.scope import Scope, tile_name


@dataclass
class Nest:
    """The loops of a maximal perfect nest, outermost first; `clauses` are those of them that the file contains.

    tiles: the sizes of the loops over tiles.
    """

    names: list[str]
    clauses: dict[str, tree.Clause]
    tiles: dict[str, tree.Expr]


def nests(body: Sequence[tree.Item]) -> list[Nest]:
    """Every maximal perfect nest: each loop contains the next one and nothing else."""
    found: list[Nest] = []
    pending = [body]
    while pending:
        for item in pending.pop():
            if isinstance(item, tree.If):
                pending += [branch.body for branch in item.branches] + [item.orelse]
            elif isinstance(item, tree.For):
                nest = Nest([], {}, {})
                inner: tree.Item = item
                while isinstance(inner, tree.For):
                    last = inner
                    for clause in inner.clauses:
                        nest.names.append(clause.var.text)
                        nest.clauses[clause.var.text] = clause
                    if len(inner.body) != 1:
                        break
                    inner = inner.body[0]
                found.append(nest)
                pending.append(last.body if not isinstance(inner, tree.If) else (inner,))
    return found


class Nests:
    """Checks the directives of one kernel in order, and keeps track of the loops that tiling adds."""

    def __init__(self, body: Sequence[tree.Item], scope: Scope, report: Report) -> None:
        self.nests = nests(body)
        self.report = report
        self.integers = Integers(scope, report)
        self.taken = set(scope.symbols) | set(scope.gone)

    def directive(self, item: tree.Tile | tree.Order) -> None:
        """Checks one directive."""
        word = "tile" if isinstance(item, tree.Tile) else "order"
        if isinstance(item, tree.Tile):
            self._sizes(item)
        names = [loop.text for loop in item.loops]
        for i, loop in enumerate(item.loops):
            if loop.text in names[:i]:
                self.report.error("tile-loops", f"`{word}` names the loop `{loop.text}` twice", loop.span)
                return
        nest = self._nest(item, word)
        if nest is None:
            return
        if isinstance(item, tree.Order):
            if len(names) != len(nest.names):
                missing = [n for n in nest.names if n not in names]
                are = "is" if len(missing) == 1 else "are"
                message = f"`order` must name every loop of the nest, but {listed(missing, 'and')} {are} missing"
                self.report.error("tile-loops", message, item.span)
            else:
                nest.names = names
            return
        added = []
        sizes = item.sizes * len(item.loops) if len(item.sizes) == 1 else item.sizes
        for loop, size in zip(item.loops, sizes, strict=False):
            self._step(nest, loop, size)
            added.append(tile_name(loop.text, self.taken))
            self.taken.add(added[-1])
            nest.tiles[added[-1]] = size
        nest.names = added + nest.names

    def _step(self, nest: Nest, loop: tree.Name, size: tree.Expr) -> None:
        """A loop with a step other than 1 does whole steps in a tile."""
        clause = nest.clauses.get(loop.text)
        step = clause.args[2] if clause is not None and len(clause.args) == 3 else nest.tiles.get(loop.text)
        every, number = getattr(step, "value", None), getattr(size, "value", None)
        if step is None or every == 1 or not isinstance(every, int) or not isinstance(number, int) or every <= 0:
            return
        if number % every:
            message = f"`tile` of the loop `{loop.text}` needs a multiple of its step {every}, and {number} is not one"
            where = f"its step is given on line {step.span.line}"
            self.report.error("tile-bounds", message, loop.span, where)

    def _nest(self, item: tree.Tile | tree.Order, word: str) -> Nest | None:
        every = [name for nest in self.nests for name in nest.names]
        unknown = [loop for loop in item.loops if loop.text not in every]
        for loop in unknown:
            known = f"the loops are {listed(dict.fromkeys(every), 'and')}" if every else ""
            help = did_you_mean(loop.text, every, known)
            self.report.error("tile-loops", f"there is no loop `{loop.text}` for `{word}`", loop.span, help)
        if unknown:
            return None
        wanted = {loop.text for loop in item.loops}
        fitting = [nest for nest in self.nests if wanted <= set(nest.names)]
        if not fitting:
            message = f"{listed([loop.text for loop in item.loops], 'and')} are not loops of one perfect nest"
            help = "in a perfect nest, each loop contains the next one and nothing else"
            self.report.error("tile-loops", message, item.span, help)
        elif len(fitting) > 1:
            message = f"`{word}` could mean {len(fitting)} nests that have these loops"
            self.report.error("tile-loops", message, item.span, "give the loops of the nests different names")
        return fitting[0] if len(fitting) == 1 else None

    def _sizes(self, item: tree.Tile) -> None:
        if len(item.sizes) not in (1, len(item.loops)):
            message = f"`tile` has one size for all loops or one for each, not {plural(len(item.sizes), 'size')}"
            message += f" for {plural(len(item.loops), 'loop')}"
            self.report.error("tile-size", message, item.span)
        for size in item.sizes:
            shape = self.integers.shape(size, TILE_SIZE)
            inner = size
            while isinstance(inner, tree.Group):
                inner = inner.inner
            if shape.value is not None and shape.value <= 0:
                self.report.error(
                    "tile-size", f"a tile size must be positive, but this one is {shape.value}", size.span
                )
            elif not shape.constant and not isinstance(inner, tree.Ref):
                message = "a tile size is a positive integer or a parameter"
                self.report.error("tile-size", message, size.span)

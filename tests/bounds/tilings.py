"""Random legal tilings and orders of loops of a kernel, by `tile` and `order` lines that its dependences allow."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from roofdsl.checks.legality import find_reversal
from roofdsl.lang.diagnostics import InputError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.integers import Condition, Const, IntExpr, Sym
from roofdsl.loops.model import For, Kernel, Order, Tile
from roofdsl.loops.transform import apply, nests


def distinct(kernel: Kernel) -> Kernel:
    """The kernel with a name of its own for every loop, so that lines can name them."""
    numbers = count()

    def changed(node: Any, names: Mapping[str, IntExpr]) -> Any:
        if isinstance(node, IntExpr | Condition):
            return node.substitute(names)
        if isinstance(node, tuple):
            return tuple(changed(each, names) for each in node)
        if isinstance(node, For):
            name = f"{node.var}_{next(numbers)}"
            inner = {**names, node.var: Sym(name)}
            bounds = {key: changed(getattr(node, key), names) for key in ("start", "stop", "step")}
            return replace(node, var=name, body=changed(node.body, inner), **bounds)
        if isinstance(node, Record):
            fields = {key: changed(value, names) for key, value in vars(node).items() if key not in ("array", "span")}
            return replace(node, **fields)
        return node

    plain = apply(kernel)
    return replace(plain, body=changed(plain.body, {}))


def random_tilings(kernel: Kernel, rng: random.Random, tries: int) -> Iterator[Kernel]:
    """Those of `tries` random choices that are legal: some nests of two or more loops tiled, or in another order."""
    plain = distinct(kernel)
    found = [nest for nest in nests(plain.body) if len(nest) > 1]
    for _ in range(tries if found else 0):
        lines: list[Tile | Order] = []
        for nest in rng.sample(found, rng.randint(1, min(3, len(found)))):
            loops = [loop.var for loop in nest]
            if rng.random() < 0.3:
                rng.shuffle(loops)
                lines.append(Order(tuple(loops), kernel.span))
            inner = rng.choice(loops[1:])  # to tile the outermost loop alone changes nothing
            tiled = [v for v in rng.sample(loops, len(loops)) if v == inner or rng.random() < 0.5]
            lines.append(Tile(tuple(tiled), tuple(Const(rng.randint(2, 5)) for _ in tiled), kernel.span))
        changed = replace(plain, directives=tuple(lines))
        try:
            if find_reversal(changed) == (None, None):
                yield changed
        except InputError:  # the bounds do not allow it
            continue

"""Changes of the loops: other orders, tiles for the caches, blocks of results in registers, threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import permutations
from math import prod

from roofdsl.advise import edits
from roofdsl.advise.candidate import DEPENDENCES, Candidate, Found, Refused, Subject
from roofdsl.advise.evaluate import Illegal, levels_cost, require_legal_change
from roofdsl.advise.register_blocks import MOST_SCALARS, Blocking, Nest, blocked, nests_to_block
from roofdsl.advise.thread_register_blocks import in_words, keeps_updates, thread_blocks
from roofdsl.advise.tile_sizes import Cost, Sizes, best_tiles, choices, extents
from roofdsl.lang import tree
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.format_text import simple
from roofdsl.loops.model import For, Kernel
from roofdsl.loops.transform import apply, nests
from roofdsl.predict.level_traffic import is_first_level
from roofdsl.predict.time_model import COMPUTE, LAUNCH

MOST_ORDERS = 24
"""At most this many orders of one nest are considered: all orders of four loops."""

MOST_TILES_AROUND = 12
"""At most this many combinations of tile sizes are tried around a register block."""

FACTORS = ((4, 4), (2, 2), (8,), (4,))
"""Register blocks that are tried on cores, for targets with two loops and with one."""

NO_BLOCK = "no register block divides the loop extents at these sizes"


def bound_behind_cache(subject: Subject) -> bool:
    """Whether a level behind a cache bounds the kernel, so that another order of its accesses can help."""
    caches = subject.case.machine.caches
    first = {caches[0].name} if caches and is_first_level(caches[0]) else set()
    return bool(caches) and not set(subject.now.prediction.bounds) <= {COMPUTE, LAUNCH, *first}


def _own_nests(subject: Subject) -> Iterator[tuple[For, ...]]:
    """Nests that share no loop name with another nest, so that directives can name their loops."""
    found = nests(apply(subject.kernel).body)
    names = [loop.var for nest in found for loop in nest]
    for nest in found:
        if all(names.count(loop.var) == 1 for loop in nest):
            yield nest


def _reason(error: Illegal | InputError) -> str:
    return error.diagnostics[0].message if isinstance(error, InputError) else str(error)


# ---- order ----


def orders(subject: Subject) -> Found:
    """Every other order of every perfect nest of two to four loops, refused if the `order` line cannot be applied.

    Whether the dependences allow it is checked later (`evaluate.require_legal_change`).
    """
    for nest in _own_nests(subject):
        own = tuple(loop.var for loop in nest)
        if not 2 <= len(own) <= 4:
            continue
        for wanted in list(permutations(own))[1:MOST_ORDERS]:
            what = f"order {', '.join(wanted)}"
            text = subject.text(_ordered(subject.syntax, wanted))
            try:
                apply(subject.lowered(text))
            except InputError as error:
                yield Refused("order", what, _reason(error), illegal=True)
            else:
                yield Candidate("order", what, text, DEPENDENCES, loops=wanted)


def _ordered(kernel: tree.Kernel, loops: tuple[str, ...]) -> tree.Kernel:
    return edits.with_items(kernel, [edits.order(loops)])


# ---- tiles ----


def tiles(subject: Subject) -> Found:
    """For every perfect nest, the cheapest tile sizes on the machine's caches."""
    for nest in _own_nests(subject):
        sizes = extents(nest, subject.case.values)
        by_loop = {v: own for v, n in sizes.items() if (own := choices(n))}
        if len(nest) < 2 or not by_loop:
            continue
        what = f"tile {', '.join(by_loop)}"
        if not bound_behind_cache(subject):
            yield Refused("tile", what, _leaves(subject))
            continue
        try:
            require_legal_change(subject.lowered(_tiled(subject, {v: own[0] for v, own in by_loop.items()})))
        except (Illegal, InputError) as error:
            yield Refused("tile", what, _reason(error), illegal=True)
            continue
        cost = _cost_of(subject, lambda s: _tiled(subject, s))
        found = best_tiles(by_loop, cost)
        if found is None:
            yield Refused("tile", what, "no simple formula bounds the traffic of a tile")
            continue
        best, least = found
        for other in permutations(best.items()):
            found_cost = cost(dict(other)) if len(best) <= 3 else None
            if found_cost is not None and found_cost < least:
                best, least = dict(other), found_cost
        yield Candidate("tile", simple(edits.tile(best)), _tiled(subject, best), DEPENDENCES)


def _leaves(subject: Subject) -> str:
    return f"it does not change what bounds the kernel: {subject.now.prediction.bound}"


def _tiled(subject: Subject, sizes: Sizes) -> str:
    return subject.text(edits.with_items(subject.syntax, [edits.tile(sizes)]))


def _cost_of(subject: Subject, text: Callable[[Sizes], str]) -> Callable[[Sizes], Cost | None]:
    def cost(sizes: Sizes) -> Cost | None:
        try:
            return levels_cost(subject.lowered(text(sizes)), subject.case)
        except (InputError, CommandError):
            return None

    return cost


# ---- registers ----


def registers(subject: Subject) -> Found:
    """Blocks of results kept in registers: on a GPU by each thread, otherwise with the cheapest tiles around them."""
    is_gpu = subject.case.machine.multiprocessor is not None
    for number, nest in enumerate(nests_to_block(subject.syntax)):
        what = f"{nest.update.target.name.text} in registers"  # type: ignore[union-attr]
        if {COMPUTE} >= set(subject.now.prediction.bounds):
            yield Refused("registers", what, _leaves(subject))
            continue
        try:
            if not (is_gpu and keeps_updates(nest)):
                _require_permutable(subject, nest)
        except (Illegal, InputError) as error:
            yield Refused("registers", what, _reason(error), illegal=True)
            continue
        if is_gpu:
            yield from _blocks_of_threads(subject, nest, number)
            continue
        how = next((b for factors in FACTORS if (b := _blocking(subject, nest, factors)) is not None), None)
        if how is None:
            yield Refused("registers", what, NO_BLOCK)
            continue
        text = subject.text(blocked(subject.syntax, nest, how))
        because = "no dependence has a negative distance in any of the loops, so every tiling is legal"
        yield Candidate("registers", _described(nest, how), text, because)


def _blocks_of_threads(subject: Subject, nest: Nest, number: int) -> Found:
    """The blocks for each thread of a GPU.

    No two iterations of a loop over the block update one element. So the order of these iterations is free, and threads
    may have their own. The other loops keep their order, or have been proven permutable.
    """
    arrays = {a.name: a for a in subject.kernel.arrays}
    hows = list(thread_blocks(nest, _extents(subject, nest), arrays))
    if not hows:
        yield Refused("registers", f"{nest.update.target.name.text} in registers", NO_BLOCK)  # type: ignore[union-attr]
    for how in hows:
        text = subject.text(blocked(subject.syntax, nest, how))
        because = "each element gets its updates in the same order"
        block = number, prod(f for _, f in how.factors)
        yield Candidate("registers", in_words(nest, how), text, because, block=block)


def _require_permutable(subject: Subject, nest: Nest) -> None:
    """Raise Illegal unless no dependence has a negative distance in any loop of the nest.

    Then every order and every tiling of the loops is legal (Irigoin and Triolet, POPL 1988). No dependence has a
    negative distance in a loop exactly if the loop may be moved outermost while the others keep their order.
    """
    own = tuple(c.var.text for c in nest.clauses)
    for var in own[1:]:
        wanted = (var, *(v for v in own if v != var))
        require_legal_change(subject.lowered(subject.text(_ordered(subject.syntax, wanted))))


def _blocking(subject: Subject, nest: Nest, factors: tuple[int, ...]) -> Blocking | None:
    """The block with these factors and the best tiles around it; None if it does not fit the nest."""
    if len(factors) != len(nest.block) or prod(factors) > MOST_SCALARS:
        return None
    sizes = _extents(subject, nest)
    own = dict(zip(nest.block, factors, strict=True))
    if not sizes or any(sizes[v] % f for v, f in own.items()):
        return None
    plain = Blocking(tuple(own.items()))
    by_loop = {v: c for v, n in sizes.items() if (c := choices(n, own.get(v, 1), dividing=True))}
    cost = _cost_of(
        subject, lambda s: subject.text(blocked(subject.syntax, nest, Blocking(plain.factors, (*s.items(),))))
    )
    alone = cost({})
    found = best_tiles(by_loop, cost, most=MOST_TILES_AROUND) if alone is not None else None
    if found is None or alone is None or alone <= found[1]:
        return plain
    return Blocking(plain.factors, tuple(found[0].items()))


def _extents(subject: Subject, nest: Nest) -> Sizes:
    """The trip count of every loop of the nest at the given sizes; empty if one is unknown."""
    found = known_extents(nest, subject.kernel, subject.case.values)
    own = [c.var.text for c in nest.clauses]
    return {v: found[v] for v in own} if set(own) <= found.keys() else {}


def known_extents(nest: Nest, kernel: Kernel, values: Mapping[str, int]) -> Sizes:
    """The trip counts that are known at these values, of the loops of the kernel's first nest with all of this nest's
    variables.
    """
    own = {c.var.text for c in nest.clauses}
    for loops in nests(apply(kernel).body):
        if own <= {loop.var for loop in loops}:
            return extents(loops, values)
    return {}


def _described(nest: Nest, how: Blocking) -> str:
    block = " x ".join(str(f) for _, f in how.factors)
    target = ", ".join(v for v, _ in how.factors)
    around = f"; {simple(edits.tile(dict(how.tiles)))}" if how.tiles else ""
    return f"{nest.update.target.name.text} in registers ({block} of {target}){around}"  # type: ignore[union-attr]


# ---- threads ----


def threads(subject: Subject) -> Found:
    """On a machine with multiprocessors: the independent loops, moved outermost as `parallel for`."""
    from roofdsl.checks.parallel_loops import parallel_loops

    if subject.case.machine.multiprocessor is None or any(_is_directive(item) for item in subject.syntax.body):
        return
    statements = [item for item in subject.syntax.body if edits.is_statement(item)]
    if len(statements) != 1 or not isinstance(statements[0], tree.For):
        yield Refused(
            "parallel", "parallel for", "the kernel has more than one loop nest: launch each of them separately"
        )
        return
    root = statements[0]
    clauses: list[tree.Clause] = []
    loop: tree.Item = root
    body: tuple[tree.Item, ...] = (root,)
    while len(body) == 1 and isinstance(loop := body[0], tree.For):
        if loop.parallel:
            return
        clauses += loop.clauses
        body = loop.body
    # A loop may move outside the others only if its iterations are independent in all executions together, and not only
    # within one iteration of the loops around it (outside > 0).
    free = {len(at) - 1 for at, outside in parallel_loops(subject.kernel).items() if outside == 0}
    own = [c for depth, c in enumerate(clauses) if depth in free]
    rest = [c for c in clauses if c not in own]
    inside = {c.var.text for c in clauses}
    if not own:
        yield Refused("parallel", "parallel for", "no loop of the nest has independent iterations")
        return
    if any(edits.uses(a) & inside for c in own for a in c.args):
        yield Refused("parallel", "parallel for", "the bounds of the independent loops depend on other loops")
        return
    # Neighboring threads run the last loop: which of two should be last depends on the layout of the arrays.
    orders = [own, own[::-1]] if len(own) == 2 else [own]
    for chosen in orders:
        inner = (tree.For(tuple(rest), False, body, edits.HERE),) if rest else body
        new = tree.For(tuple(chosen), True, inner, edits.HERE)
        changed = edits.with_statements(subject.syntax, (new,))
        names = ", ".join(c.var.text for c in chosen)
        because = f"no two iterations of {names} touch the same element if one of them writes it"
        yield Candidate("parallel", f"threads: parallel for {names}", subject.text(changed), because)


def _is_directive(item: tree.Item) -> bool:
    return isinstance(item, tree.Tile | tree.Order)

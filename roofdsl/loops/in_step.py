"""The threads of a block, or of a wave, in step: a loop of the threads' code is moved outside the loops over threads.

`for k in range(i + 1)` in threads `i` runs as long as any thread has an iteration, with the threads `i >= k`. A thread
whose loop begins at a larger `k` than that of others waits for them, unless subscripts count from where it begins.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from roofdsl.lang.record import replace
from roofdsl.loops.accesses import elements_of
from roofdsl.loops.affine import Affine, NotAffineError, Range, affine, at_least, at_most, maximum, minimum
from roofdsl.loops.integers import Const, IntExpr, Sym, add, mul, sub
from roofdsl.loops.model import Assign, Count, For, Let, Node
from roofdsl.loops.parameter_values import with_expressions
from roofdsl.loops.transform import nested


def in_step(threads: Sequence[For], body: Sequence[Node]) -> tuple[Node, ...]:
    """The body done by all threads together.

    A loop stays inside the loops over threads if one of its bounds depends on several thread loops, or on a multiple of
    one, or if it is not certain which of its steps a thread takes.
    """
    names = {loop.var for loop in threads}
    found: list[Node] = []
    straight: list[Node] = []

    def close() -> None:
        if straight:
            found.extend(nested(threads, tuple(straight)))
            straight.clear()

    for node in body:
        if isinstance(node, (Assign, Let, Count)):
            straight.append(node)
            continue
        close()
        if isinstance(node, For) and not (node.start.symbols() | node.stop.symbols()) & names:
            found.append(replace(node, body=in_step(threads, node.body)))
        elif isinstance(node, For) and (moved := _outside(_from_its_start(node, names), threads)) is not None:
            loop, having_one = moved
            found.append(replace(loop, body=in_step(having_one, loop.body)))
        else:
            found.extend(nested(threads, (node,)))
    close()
    return tuple(found)


def _from_its_start(loop: For, threads: Collection[str]) -> For:
    """A loop that begins at a thread's variable, counted from there, if that leaves fewer elements on a diagonal:
    `A[i, j - i]` over `range(i, i + b)`, as a band is stored, becomes `A[i, j]` over `range(b)`.
    """
    begins = [start for start in loop.starts if start.symbols() & set(threads)]
    if len(begins) != 1:
        return loop
    (begin,) = begins
    body = with_expressions(loop.body, {loop.var: add(begin, Sym(loop.var))})
    if _on_a_diagonal(body) >= _on_a_diagonal(loop.body):
        return loop
    start, stop = (e(*(sub(t, begin) for t in of)) for e, of in ((maximum, loop.starts), (minimum, loop.stops)))
    return replace(loop, start=start, stop=stop, body=body)


def _on_a_diagonal(nodes: Sequence[Node]) -> int:
    """The accesses to elements of which two subscripts move with one variable."""
    found = 0
    for element in elements_of(nodes):
        names = [s for e in element.subscripts for s in affine(e).coefficients()]
        found += len(names) > len(set(names))
    return found


def _outside(loop: For, threads: Sequence[For]) -> tuple[For, tuple[For, ...]] | None:
    """A loop over all iterations that any thread has, and the loops over the threads that have an iteration; None if
    these cannot be written as loops.
    """
    ranges = {thread.var: Range(thread.start, thread.stop) for thread in threads}
    by_name = {thread.var: thread for thread in threads}
    if loop.step != Const(1) and loop.start.symbols() & ranges.keys():
        return None
    place = Sym(loop.var)
    # start <= k, and k <= stop - 1
    differences = [sub(place, s) for s in loop.starts] + [sub(sub(t, Const(1)), place) for t in loop.stops]
    for form in map(affine, differences):
        its = _threads_in(form, by_name)
        if its is None:
            return None
        for thread in its:
            by_name[thread.var] = _limited(by_name[thread.var], form)
    try:
        hull = replace(loop, start=at_least(loop.start, ranges), stop=at_most(loop.stop, ranges))
    except NotAffineError:
        return None
    return hull, tuple(by_name[thread.var] for thread in threads)


def _threads_in(form: Affine, threads: dict[str, For]) -> Iterable[For] | None:
    """The thread loop whose variable is in a form, if any; None if there are several, or if one occurs by a factor."""
    if form.hidden() & threads.keys():
        return None
    its = [(threads[name], factor) for name, factor in form.coefficients().items() if name in threads]
    if len(its) > 1 or any(abs(factor) != 1 or thread.step != Const(1) for thread, factor in its):
        return None
    return [thread for thread, _ in its]


def _limited(thread: For, form: Affine) -> For:
    """The threads for which a form, in which their variable has the factor 1 or -1, is not negative."""
    factor = form.coefficients()[thread.var]
    rest: IntExpr = Affine(form.constant, tuple(t for t in form.terms if t[0] != Sym(thread.var))).expression()
    if factor > 0:
        return replace(thread, start=maximum(*thread.starts, mul(Const(-1), rest)))
    return replace(thread, stop=minimum(*thread.stops, add(rest, Const(1))))

"""A temp is private to the iterations of a loop if no value passes between them, by enumeration of last writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

import pytest

from roofdsl.checks.parallel_loops import parallel_loops
from roofdsl.checks.private_copies import private_loops, private_temps
from roofdsl.lang.diagnostics import InputError
from roofdsl.loops.accesses import PlacedStatement, operands, statements
from roofdsl.loops.model import Assign, Count, Element, Kernel, ScalarRef
from roofdsl.loops.transform import apply
from tests.checks.test_parallel_loops import conflict
from tests.oracle.enumerate import run
from tests.oracle.loading import kernel_of

FOUND = {"private": 0, "shared": 0, "dropped": 0, "kept": 0, "freed": 0}
SIZES = tuple({"n": n, "m": m} for n, m in ((1, 1), (2, 1), (2, 3), (3, 2), (4, 1), (1, 4), (4, 4)))
Element_ = tuple[str, tuple[int, ...]]
Loop = tuple[int, ...]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(metafunc.config.getoption("--kernels") // 2))


class Write:
    """An execution that wrote: its statement, its iterations, and the element."""

    def __init__(self, placed: PlacedStatement, at: tuple[int, ...], element: Element_) -> None:
        self.placed, self.at, self.element = placed, at, element

    def iteration(self, loop: Loop) -> tuple[int, ...] | None:
        """The iteration of a loop, and of those around it, that it is in."""
        return self.at[: len(loop)] if self.placed.position[: len(loop)] == loop else None


def events(kernel: Kernel, sizes: Mapping[str, int]) -> Iterator[tuple[Write, list[Element_], bool]]:
    """(where an execution is and what it writes, what it reads before, whether it writes) in order."""
    placed = {id(p.statement): p for p in statements(kernel.body)}
    for execution in run(kernel, sizes):
        p = placed[id(execution.statement)]
        if isinstance(p.statement, Count):
            continue

        def place(e: Element | ScalarRef, env: Mapping[str, int] = execution.env) -> Element_:
            return e.array.name, tuple(s.evaluate(env) for s in (e.subscripts if isinstance(e, Element) else ()))

        reads = [place(e) for e in operands(p.statement.value)]
        at = tuple(execution.env[loop.var] for loop in p.loops)
        writes = isinstance(p.statement, Assign)
        target = place(p.statement.target) if isinstance(p.statement, Assign) else ("", ())
        if isinstance(p.statement, Assign) and p.statement.op != "=":
            reads.append(target)
        yield Write(p, at, target), reads, writes


def is_private(kernel: Kernel, sizes: Mapping[str, int], loop: Loop, name: str) -> bool:
    """Whether every value of the array that is read in an iteration was made in it, and none leaves the loop."""
    last: dict[Element_, Write] = {}
    for here, reads, writes in events(kernel, sizes):
        mine = here.iteration(loop)
        for element in reads:
            if element[0] != name:
                continue
            source = last.get(element)
            if mine != (None if source is None else source.iteration(loop)):
                return False
        if writes:
            last[here.element] = here
    return True


def one_cell(kernel: Kernel, sizes: Mapping[str, int], loop: Loop, name: str, kept: tuple[int, ...]) -> bool:
    """Whether the subscripts `kept` tell elements apart: what was last written to a cell of a copy is what is read."""
    last: dict[object, Element_] = {}
    for here, reads, writes in events(kernel, sizes):
        mine = here.iteration(loop)
        if mine is None:
            continue

        def cell(element: Element_, mine: tuple[int, ...] = mine) -> object:
            return mine, tuple(element[1][d] for d in kept)

        if any(last.get(cell(e)) != e for e in reads if e[0] == name):
            return False
        if writes and here.element[0] == name:
            last[cell(here.element)] = here.element
    return True


def random_temps(seed: int) -> Kernel:
    """A kernel whose iterations of an outer loop set, update and read temps in inner loops."""
    draw = Random(seed)
    while True:
        try:
            return kernel_of(_text(draw))
        except InputError:  # it reads what it never sets
            continue


def _text(draw: Random) -> str:
    inner = 0

    def bound() -> str:
        return draw.choice(("n", "m", "n", "m", "2", "i + 1", "min(n, i + 2)"))

    def subscript(var: str) -> str:
        return draw.choice((var, var, var, f"{var} + 1", "0", "1", "i"))

    def element(var: str) -> str:
        name = draw.choice("TTTUUs")
        if name == "s":
            return "s"
        if name == "T":
            return f"T[{subscript(var)}]"
        return f"U[{draw.choice(('0', '1', f'{var} % 2', f'({var} + 1) % 2'))}, {subscript(var)}]"

    def statement(var: str, first: bool) -> str:
        target = draw.choice((element(var), element(var), "B[i]" if draw.random() < 0.5 else f"B[{subscript(var)}]"))
        op = "=" if first else draw.choice(("=", "=", "+=", "max="))
        value = f"A[i] * {draw.randint(2, 9)}" if first else draw.choice((element(var), "A[i]", f"2 * {element(var)}"))
        return f"{target} {op} {value}"

    def block(depth: int, first: bool) -> list[str]:
        nonlocal inner
        pad = "    " * depth
        if draw.random() < 0.15:
            return [f"{pad}{statement('i', first)}"]
        inner += 1
        var = f"j{inner}"
        lines = [f"{pad}for {var} in range({bound()}):"]
        body = [f"{pad}    {statement(var, first)}" for _ in range(draw.randint(1, 2))]
        if draw.random() < 0.15:
            body = [f"{pad}    if {var} < {draw.choice('2nm')}:", *(f"    {line}" for line in body)]
        return lines + body

    head = ["kernel k(n, m):", "    in A: f64[n + m + 3]", "    inout B: f64[n + m + 3]",
            "    temp T: f64[n + m + 3], U: f64[2, n + m + 3], s: f64"]  # fmt: skip
    around = draw.choice(("for i in range(n):", "for i in range(n):", "for t in range(m), i in range(n):"))
    first = [f"        T[{draw.choice(('i', '0', 'j0'))}] = A[i]"]
    if "j0" in first[0]:
        first = ["        for j0 in range(n + m):", f"    {first[0]}"]
    body = [line for k in range(draw.randint(2, 4)) for line in block(2, k == 0)]
    after = ["    B[0] = T[1]"] if draw.random() < 0.1 else []
    if draw.random() < 0.15:
        after = ["    for e in range(n):", f"        T[e] = {draw.choice(('1', 's'))}", *after]
    return "\n".join([*head, f"    {around}", *first, *body, *after]) + "\n"


def check(kernel: Kernel) -> None:
    plain = apply(kernel)
    found = private_temps(kernel)
    placed = tuple(statements(plain.body))
    for loop in {p.position[: d + 1] for p in placed for d in range(len(p.loops))}:
        own = found.get(loop, {})
        for array in plain.arrays:
            if array.intent != "temp":
                continue
            name = array.name
            uses = [p for p in placed if p.position[: len(loop)] == loop and f"{name}" in _mentioned(p)]
            if not uses:
                assert name not in own
                continue
            private = all(is_private(plain, sizes, loop, name) for sizes in SIZES)
            assert (name in own) == private, (loop, name)
            FOUND["private" if private else "shared"] += 1
            if private:
                kept = tuple(range(len(array.dims)))
                for d in range(len(array.dims)):
                    fewer = tuple(k for k in kept if k != d)
                    if all(one_cell(plain, sizes, loop, name, fewer) for sizes in SIZES):
                        kept = fewer
                assert own[name] == kept, (loop, name)
                FOUND["dropped" if len(kept) < len(array.dims) else "kept"] += bool(array.dims)
    _check_loops(kernel, plain)


def _mentioned(p: PlacedStatement) -> set[str]:
    if isinstance(p.statement, Count):
        return set()
    target = {p.statement.target.array.name} if isinstance(p.statement, Assign) else set()
    return target | {e.array.name for e in operands(p.statement.value)}


def _check_loops(kernel: Kernel, plain: Kernel) -> None:
    """With copies of their own, iterations share nothing else; each copy is needed."""
    without, own = parallel_loops(kernel), private_temps(kernel)
    for loop, found in private_loops(kernel).items():
        FOUND["freed"] += 1
        assert found.outside < without.get(loop, len(loop))
        assert found.copied and set(found.copied) <= set(own[loop])
        for sizes in SIZES:
            assert not conflict(plain, sizes, loop, found.outside, but=set(found.copied)), (loop, sizes)
        for name in found.copied:
            others = set(found.copied) - {name}
            assert any(conflict(plain, sizes, loop, found.outside, but=others) for sizes in SIZES), (loop, name)


def test_random_temps(seed: int) -> None:
    check(random_temps(seed))


def test_both_answers_occur() -> None:
    if sum(FOUND.values()) > 500:
        assert all(count > 0.03 * sum(FOUND.values()) for count in FOUND.values()), FOUND

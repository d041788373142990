"""Published lower bounds that are above an order that exists: why some of ours are below them (docs/bound.md)."""

from __future__ import annotations

from itertools import combinations
from math import sqrt

import pytest

from tests.bounds.belady import loads, scalars_of, tasks
from tests.bounds.test_sound import POLYBENCH, bound_of, shipped

DURBIN = next(p for p in POLYBENCH if p.stem == "durbin")


def test_durbin_in_pairs() -> None:
    """An order of durbin loads 5/4 n^2 in a handful of elements: less than the 3/2 n^2 of SOAP's table.

    z[i] and z[k - 1 - i] need the same two values of y; the sum of the next round takes the first at once.
    """
    n, size = 90, 6
    written = tasks(shipped(DURBIN), {"n": n})
    at = iter(range(len(written)))
    order = [next(at) for _ in range(3)]
    rounds = []
    for k in range(1, n):
        head = [next(at), next(at)]
        sums = [next(at) for _ in range(k)]
        alpha = next(at)
        z, y = [next(at) for _ in range(k)], [next(at) for _ in range(k)]
        rounds.append((head, sums, alpha, z, y, next(at)))
    for k, (head, sums, alpha, z, y, last) in enumerate(rounds, 1):
        if k == 1:
            order += [*head, *sums]
        order.append(alpha)
        following = rounds[k] if k < n - 1 else None
        order += following[0] if following else []
        for i in range((k + 1) // 2):
            pair = dict.fromkeys((i, k - 1 - i))
            order += [*(z[p] for p in pair), *(y[p] for p in pair)]
            order += [following[1][i]] if following else []
        order.append(last)
        order += following[1][(k + 1) // 2 :] if following else []
    assert sorted(order) == list(range(len(written)))
    place = {t: p for p, t in enumerate(order)}
    assert all(place[b] < place[t] for t in order for b in written[t].before)

    found = loads([written[t] for t in order], size)
    assert found < 1.3 * n**2 < 1.5 * n**2
    assert bound_of(DURBIN).at({"n": n}, size)[0] <= found


def test_symm_in_triangles() -> None:
    """Triangular blocks of A do symm in fewer loads than the 2 m^2 n / sqrt(S) of IOLB's table, sums in any order.

    A[i, k], i > k, serves C[k, :] += A[i, k] B[i, :] and the sum over B[k, :] for row i: a block that holds the pairs
    of r rows loads r elements of B and r of C for each column, and does r (r - 1) updates with them. Rows are points
    (group, number), blocks the lines number = x + y * group modulo a prime: two rows of different groups are on one
    line (Beaumont et al., SPAA 2022).
    """
    r, prime = 28, 29
    m, n = r * prime, 10**6
    size = r * (r - 1) // 2 + r + 2  # the pairs, a column of C, one element of B, one to spare
    pairs: set[tuple[int, int]] = set()
    moved = 0
    for x in range(prime):
        for y in range(prime):
            rows = [g * prime + (x + y * g) % prime for g in range(r)]
            block = set(combinations(rows, 2))
            assert len(block) + r + 2 <= size
            assert not block & pairs
            pairs |= block
            moved += len(block) + 2 * r * n
    for group in range(r):  # pairs within a group: in triangles and squares of half its rows
        rows = list(range(group * prime, (group + 1) * prime))
        halves = rows[:15], rows[15:]
        across = {(a, b) for a in halves[0] for b in halves[1]}
        for block in (set(combinations(halves[0], 2)), set(combinations(halves[1], 2)), across):
            assert not block & pairs
            used = len({row for pair in block for row in pair})
            assert len(block) + used + 2 <= size
            pairs |= block
            moved += len(block) + 2 * used * n
    assert len(pairs) == m * (m - 1) // 2
    assert sqrt(2) * m**2 * n / sqrt(size) < moved < 2 * m**2 * n / sqrt(size)


class Written:
    """Tasks of a kernel by statement and loop variables, taken in the written order; and an order made of them."""

    def __init__(self, name: str, params: dict[str, int]) -> None:
        self.path = next(p for p in POLYBENCH if p.stem == name)
        self.params = params
        self.tasks = tasks(shipped(self.path), params, scalars=True)
        self.found: dict[tuple[object, ...], list[int]] = {}
        self.order: list[int] = []
        self._at = 0

    def name(self, *key: object, count: int = 1) -> None:
        """The next `count` tasks are called `key`."""
        self.found[key] = list(range(self._at, self._at + count))
        self._at += count

    def do(self, *key: object) -> None:
        """They come next in the order."""
        self.order += self.found.pop(key)

    def loads(self, size: int) -> int:
        """Of the order, which is checked to be whole and legal; the bound is not above it."""
        assert not self.found
        assert sorted(self.order) == list(range(len(self.tasks)))
        place = {t: p for p, t in enumerate(self.order)}
        assert all(place[b] < place[t] for t in self.order for b in self.tasks[t].before)
        moved = loads([self.tasks[t] for t in self.order], size + scalars_of(shipped(self.path)))
        assert bound_of(self.path).at(self.params, size)[0] <= moved
        return moved


def deriche(w: int, h: int) -> Written:
    """Its tasks: a and b go forwards and backwards along rows, c and d along columns."""
    written = Written("deriche", {"w": w, "h": h})
    written.name("constants", count=13)
    for i in range(w):
        written.name("a", i, count=3)
        for j in range(h):
            written.name("a", i, j, count=4)
    for i in range(w):
        written.name("b", i, count=4)
        for j in reversed(range(h)):
            written.name("b", i, j, count=5)
    for i in range(w):
        for j in range(h):
            written.name("join", i, j)
    for j in range(h):
        written.name("c", j, count=3)
        for i in range(w):
            written.name("c", i, j, count=4)
    for j in range(h):
        written.name("d", j, count=4)
        for i in reversed(range(w)):
            written.name("d", i, j, count=5)
    for i in range(w):
        for j in range(h):
            written.name("end", i, j)
    written.do("constants")
    return written


@pytest.mark.thorough
def test_deriche_attains_5_loads() -> None:
    """The bound of deriche, 5 h w, is that of an order: rows in blocks, the columns' first pass along with them.

    A block of rows goes forwards; then backwards, where it joins both and hands each value of imgOut on to the filter
    that runs down its column. Only that filter's state is loaded, once for every block.
    """
    w = h = 30
    r = 5
    written = deriche(w, h)
    for j in range(h):
        written.do("c", j)
    for top in range(0, w, r):
        for i in range(top, top + r):
            written.do("a", i)
            written.do("b", i)
        for j in range(h):
            for i in range(top, top + r):
                written.do("a", i, j)
        for j in reversed(range(h)):
            for i in range(top, top + r):
                for step in ("b", "join", "c"):
                    written.do(step, i, j)
    for j in range(h):
        written.do("d", j)
        for i in reversed(range(w)):
            written.do("d", i, j)
            written.do("end", i, j)
    assert 5 * h * w < written.loads(30) < 5.6 * h * w


@pytest.mark.thorough
def test_deriche_attains_2_loads_beyond_a_row() -> None:
    """Row by row and then column by column, each twice through while it is there: the bound where two rows fit."""
    w = h = 30
    size = 100
    written = deriche(w, h)
    for i in range(w):
        written.do("a", i)
        written.do("b", i)
        for j in range(h):
            written.do("a", i, j)
        for j in reversed(range(h)):
            written.do("b", i, j)
        for j in range(h):
            written.do("join", i, j)
    for j in range(h):
        written.do("c", j)
        written.do("d", j)
        for i in range(w):
            written.do("c", i, j)
        for i in reversed(range(w)):
            written.do("d", i, j)
        for i in range(w):
            written.do("end", i, j)
    value, argument = bound_of(written.path).at(written.params, size)
    assert argument == "sweep"
    assert value <= written.loads(size) < 1.1 * value


def test_adi_attains_4_loads() -> None:
    """The bound of adi, 4 n^2 T, is that of an order: each sweep's way back makes what the next one needs on its way.

    The way back of a block of columns makes rows of v, from the last to the first; the sweeps along rows take each as
    it comes, and find their state where the block before left it.
    """
    n, steps, r = 22, 2, 10
    inner = range(1, n - 1)
    written = Written("adi", {"n": n, "tsteps": steps})
    written.name("constants", count=11)
    for t in range(steps):
        for sweep in ("columns", "rows"):
            for i in inner:
                written.name(sweep, t, i, "begin", count=3)
                for j in inner:
                    written.name(sweep, t, i, j, count=2)
                written.name(sweep, t, i, "end")
                for j in reversed(inner):
                    written.name(sweep, t, i, j, "back")

    written.do("constants")
    sweeps = [(sweep, t) for t in range(steps) for sweep in ("columns", "rows")]
    for sweep, t in sweeps:
        for i in inner:
            written.do(sweep, t, i, "begin")
            written.do(sweep, t, i, "end")
    for first in range(1, n - 1, r):
        for j in inner:
            for i in range(first, first + r):
                written.do("columns", 0, i, j)
    for number, (sweep, t) in enumerate(sweeps):
        following = sweeps[number + 1] if number + 1 < len(sweeps) else None
        for first in range(1, n - 1, r):
            block = range(first, first + r)
            for j in range(n - 2, -1, -1):
                for i in block if j else ():
                    written.do(sweep, t, i, j, "back")
                if following is not None and j < n - 2:
                    for i in block:
                        written.do(*following, j + 1, i)
    assert 4 * n**2 * steps < written.loads(40) < 4.4 * n**2 * steps

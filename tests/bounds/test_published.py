"""Published lower bounds that are above an order that exists: why some of ours are below them (docs/bound.md)."""

from __future__ import annotations

from itertools import combinations
from math import sqrt

from tests.bounds.belady import loads, tasks
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

"""The units of a core that execute each class of instructions, from the time of pairs of classes run together.

A class that takes t cycles alone occupies its set S of units for w = t |S| cycles of work. Two instructions of a class
and one of another take at least the largest of 2 w_a / |A|, w_b / |B| and (2 w_a + w_b) / |A or B|, and a core that
distributes them well reaches that. One of each tells other sets apart: if each class has two units, two instructions
and one take as long on three units as on four, and one of each does not. The search finds the sets that explain all
times best, class by class from several starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations

UNITS = 4
"""The most vector units that are told apart."""

Sets = dict[str, frozenset[int]]


def together(a: frozenset[int], b: frozenset[int], alone_a: float, alone_b: float, count: int = 2) -> float:
    """Cycles for `count` instructions on the units `a` and one on `b`, which take `alone_a` and `alone_b` by
    themselves.
    """
    work = count * alone_a * len(a) + alone_b * len(b)
    return max(count * alone_a, alone_b, work / len(a | b))


def find_sets(
    alone: Mapping[str, float],
    pairs: Mapping[tuple[str, str], float],
    units: int,
    both: Mapping[tuple[str, str], float] | None = None,
) -> Sets:
    """The set of units of each class: the sets that best reproduce the times, and of equal ones the smaller.

    pairs: cycles of two instructions of the first class and one of the second; both: cycles of one of each.
    """
    times = {(a, b, 2): t for (a, b), t in pairs.items()} | {(a, b, 1): t for (a, b), t in (both or {}).items()}
    choices = [frozenset(k for k in range(units) if mask >> k & 1) for mask in range(1, 1 << units)]
    names = sorted(alone, key=lambda n: (-alone[n], n))
    best: tuple[float, Sets] | None = None
    for turn in range(2 * units):
        sets: Sets = {}
        for name in names[turn:] + names[:turn]:
            sets[name] = min(choices, key=lambda s, name=name: _error(name, s, sets, alone, times))  # type: ignore[misc]
        changed = True
        for _ in range(50):
            if not changed:
                break
            changed = False
            for name in names:
                found = min(choices, key=lambda s, name=name: _error(name, s, sets, alone, times))  # type: ignore[misc]
                if found != sets[name]:
                    sets[name], changed = found, True
        total = sum(_error(name, sets[name], sets, alone, times) for name in names)
        if best is None or total < best[0] - 1e-9:
            best = (total, dict(sets))
    assert best is not None
    return _in_order(best[1], names)


def _error(
    name: str,
    tried: frozenset[int],
    sets: Sets,
    alone: Mapping[str, float],
    times: Mapping[tuple[str, str, int], float],
) -> float:
    """The deviation of a class's times with the set tried; sets with less than a cycle of work are ruled out."""
    work = alone[name] * len(tried)
    total = 1e-4 * len(tried) + (10.0 if work < 0.85 else 0.0)  # an instruction is one cycle of work at least
    total += 0.05 * abs(work - round(work))
    for other, units in sets.items():
        if other == name:
            continue
        for count in (1, 2):
            if (name, other, count) in times:
                expected = together(tried, units, alone[name], alone[other], count)
                total += (expected / times[name, other, count] - 1) ** 2
            if (other, name, count) in times:
                expected = together(units, tried, alone[other], alone[name], count)
                total += (expected / times[other, name, count] - 1) ** 2
    return total


def _in_order(sets: Sets, names: Sequence[str]) -> Sets:
    """The same sets with units numbered by what they execute, so that the numbering does not depend on the search."""
    used = sorted({u for s in sets.values() for u in s})

    def key(unit: int) -> tuple[bool, ...]:
        """Units of fused multiply-add first; among those, units that do not add, then those that do not shuffle."""
        return tuple((unit in units) != (cls == "fma") for cls in ("fma", "add", "shuffle") for units in _of(sets, cls))

    order = {u: k for k, u in enumerate(sorted(used, key=lambda u: (key(u), u)))}
    return {name: frozenset(order[u] for u in sets[name]) for name in names}


def matched(sets: Sets, narrower: Sets) -> Sets:
    """The sets of one width with its units numbered like those of a narrower one that execute most of the same classes.

    Classes are the same if their names are, except for the width at the end.
    """
    own = {name.rpartition("_")[0]: units for name, units in sets.items()}
    other: dict[str, frozenset[int]] = {}
    for name, units in narrower.items():  # the last width counts, which is the nearest
        other[name.rpartition("_")[0]] = units
    used = sorted({u for units in sets.values() for u in units})
    if not other or not used:
        return sets

    def alike(order: tuple[int, ...]) -> float:
        """Weighs the classes in common: those that few units execute say most about the identity of a unit."""
        numbered = dict(zip(used, order, strict=False))
        return sum(
            1 / (len(units) * len(other[name]))
            for name, units in own.items()
            if name in other
            for unit in units
            if numbered[unit] in other[name]
        )

    # Times show which classes share units, not which unit is which: every numbering of a width explains them as well.
    # Of numberings that are as much alike, the one with the smallest numbers counts.
    best = max(permutations(range(UNITS), len(used)), key=lambda order: (alike(order), [-n for n in order]))
    numbered = dict(zip(used, best, strict=True))
    return {name: frozenset(numbered[u] for u in units) for name, units in sets.items()}


def _of(sets: Sets, cls: str) -> list[frozenset[int]]:
    """The sets of a class of f64."""
    return [units for name, units in sorted(sets.items()) if name.startswith(f"{cls}_f64")]

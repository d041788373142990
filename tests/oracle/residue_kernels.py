"""Seeded random kernels whose Q depends on remainders of n, and their plateaus against a simulation of every access.

Loops have steps, subscripts are mirrored (`n - 1 - i`), strided, divided (`//`) and taken modulo (`%`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass
from fractions import Fraction
from math import lcm
from random import Random

from roofdsl.counts.closed_forms import ClosedForms
from roofdsl.counts.plateau_forms import Plateaus
from roofdsl.counts.traffic_form_records import PlateauBytes
from roofdsl.lang.record import replace
from roofdsl.loops.integers import Condition, Const, Mod
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.loops.transform import apply
from roofdsl.sets.facts import Compared as Comparison
from roofdsl.sets.facts import Fact
from roofdsl.sets.quasi import Floor, Quasi
from roofdsl.simulate.distances import MissCurve, miss_curve
from tests.oracle.loading import kernel_of
from tests.oracle.lru import traffic

CONVENTIONS: tuple[Traffic, ...] = ("load_store", "load_store", "write_allocate", "once")

OPERATIONS = 200_000
"""Integer-set operations of each quantity of a kernel: most that are told take fewer, and the others end soon."""

MOST_SIZES = 24
"""Residue classes of one kernel that are simulated, at most."""

SIZES = ("n", "m")


# ---- kernels ----


@dataclass(frozen=True)
class ResidueKernel:
    seed: int
    text: str
    depth: int
    sizes: tuple[str, ...]
    convention: Traffic


def residue_kernel(seed: int) -> ResidueKernel:
    """One or two nests of one or two loops with one or two statements; most are small: one nest, two or three
    references, and divisors of one number, so that there are few residue classes.
    """
    return _Maker(seed).kernel()


class _Maker:
    """A random kernel of one seed."""

    def __init__(self, seed: int) -> None:
        self.seed, self.rng = seed, Random(seed)
        self.small = self.rng.random() < 0.9
        self.depth = 1 if self.rng.random() < 0.85 else 2
        self.sizes = SIZES if self.rng.random() < (0.25 if self.depth == 2 else 0.1) else SIZES[:1]
        self.divisors = self.rng.choice(((2,), (2,), (3,), (2, 4), (4,))) if self.small else (2, 3, 4)
        self.dims: dict[str, int] = {}
        self.written: set[str] = set()

    def kernel(self) -> ResidueKernel:
        rng, lines = self.rng, []
        for _ in range(1 if self.small or self.depth == 2 or rng.random() < 0.7 else 2):
            names = "ij"[: self.depth]
            for level, name in enumerate(names):
                lines.append("    " * (level + 1) + f"for {name} in {self._range(names[:level])}:")
            for _ in range(1 if self.small or self.depth == 2 or rng.random() < 0.8 else 2):
                lines.append("    " * (self.depth + 1) + self._statement(names))
        extent = "3*n + 9" if len(self.sizes) == 1 else "3*n + 3*m + 9"
        declared = []
        for name, dims in sorted(self.dims.items()):
            kind = "in" if name not in self.written else "inout"
            declared.append(f"    {kind} {name}: f64[{', '.join([extent] * dims)}]")
        head = f"kernel residues_{self.seed}({', '.join(self.sizes)}):"
        assumed = f"    assume {', '.join(f'{name} >= 4' for name in self.sizes)}"
        text = "\n".join([head, assumed, *declared, *lines]) + "\n"
        return ResidueKernel(self.seed, text, self.depth, self.sizes, rng.choice(CONVENTIONS))

    def _statement(self, names: str) -> str:
        rng = self.rng
        sources = [self._element(names) for _ in range(rng.choice((1, 1, 2) if self.small else (1, 1, 2, 2, 3)))]
        target = self._element(names, "xyA")
        op = rng.choice(("=", "=", "=", "+="))
        self.written.add(target[0])
        return f"{target} {op} {' + '.join(sources)}"

    def _range(self, outer: str) -> str:
        rng, n = self.rng, self.rng.choice(self.sizes)
        start, back = rng.choice((0, 0, 0, 1, 2)), rng.choice((0, 0, 0, 1, 2))
        stop = n if not back else f"{n} - {back}"
        step = rng.choice((1, 1, *self.divisors))
        stop = rng.choice((stop, stop, stop, stop, f"{n} // {rng.choice(self.divisors)}"))
        if outer and rng.random() < 0.15:
            return rng.choice((f"range({outer})", f"range({outer}, {n}, {step})"))
        return f"range({start}, {stop}, {step})" if step > 1 else f"range({start}, {stop})"

    def _element(self, names: str, among: str = "ABxy") -> str:
        name = self.rng.choice(among)
        dims = self.dims.setdefault(name, 1 if name in "xy" or len(names) == 1 else 2)
        return f"{name}[{', '.join(self._subscript(names) for _ in range(dims))}]"

    def _subscript(self, names: str) -> str:
        rng = self.rng
        n, v, w = rng.choice(self.sizes), rng.choice(names), rng.choice(names)
        shift, k = rng.randint(0, 3), rng.choice(self.divisors)
        mirrored = [f"{m} - 1 - {v}" for m in self.sizes] if len(self.sizes) == 1 else [f"n + m - 1 - {v}"] * 2
        choices = [
            v, v, v, f"{v} + {shift}", f"{v} + {shift}", f"2*{v} + {shift}", f"3*{v}", *mirrored, *mirrored,
            f"{self._whole()} + {shift} - {v}", f"2*({self._whole()}) - 2*{v}", f"{v} // {k}", f"{v} % {k}",
            f"({self._whole()} - {v}) // {k}", f"({n} + {v}) % {k}", f"{v} + {w}", f"{v} + {n} // {k}",
            f"{v} + {n} % {k}",
        ]  # fmt: skip
        return rng.choice(choices)

    def _whole(self) -> str:
        """No smaller than any loop's variable."""
        return " + ".join(self.sizes)


# ---- the comparison ----


@dataclass(frozen=True)
class Compared:
    """How many plateaus at how many sizes were compared, at how many caches; of these to the byte.

    periods: kernels whose plateaus have a period. sampled: those with more residue classes than are simulated.
    brute: caches at which the simulation was compared with an LRU stack kept access by access.
    """

    sizes: int = 0
    rows: int = 0
    caches: int = 0
    exact: int = 0
    brute: int = 0
    periods: int = 0
    sampled: int = 0

    def __add__(self, other: Compared) -> Compared:
        return Compared(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


def check_plateaus(case: ResidueKernel) -> Compared:
    """Compares every plateau with the simulated traffic, in every residue class of every period that occurs.

    Raises AssertionError where they differ, NoClosedForm where plateaus are refused.
    """
    kernel = kernel_of(case.text)
    forms = ClosedForms(kernel, {}, operations=OPERATIONS)
    rows = forms.plateau_forms(case.convention)
    period = lcm(*(p for r in rows for p in _periods(r)), 1)
    chosen = _sizes_of(case, period)
    total = Compared(periods=int(period > 1), sampled=int(len(chosen) < period ** len(case.sizes)))
    total += _small_sizes(kernel, case) if case.seed % 2 == 0 else Compared()
    for k, at in enumerate(chosen):
        given = forms.plateau_forms(case.convention, at)
        assert given and all(r.where is None or r.where.holds(at) for r in given), f"{at}: no plateaus"
        here = tuple(r for r in rows if r.where is None or r.where.holds(at))
        assert given == here or not here, f"{at}: other plateaus where sizes are given"
        assert here or len({r.where for r in rows}) == 1, f"{at}: plateaus of no class"
        if k == 0 and case.seed % 8 == 0:
            again = Plateaus(forms, case.convention).plateau_forms(at)
            assert [replace(r, where=None) for r in again] == [replace(r, where=None) for r in given], f"{at}: others"
        starts = [r.from_bytes.evaluate(at) for r in given]
        assert starts == sorted(set(starts)), f"{at}: plateaus begin at {starts}"
        total += _at_size(kernel, case, given, at, period, brute=k == 0 and case.seed % 4 == 0)
    return total


def _sizes_of(case: ResidueKernel, period: int) -> list[dict[str, int]]:
    """Sizes in the hundreds, one of each class of that period; two sizes are about the same, either the larger."""
    rng = Random(case.seed)
    base = rng.randint(150, 200) if case.depth > 1 else rng.randint(240, 500)
    count = period ** len(case.sizes)
    chosen = range(count) if count <= MOST_SIZES else sorted(rng.sample(range(count), MOST_SIZES))
    if len(case.sizes) == 1:
        return [{"n": base + k} for k in chosen]
    return [{"n": base + k % period, "m": base + rng.choice((-8, 8)) + k // period} for k in chosen]


def _small_sizes(kernel: Kernel, case: ResidueKernel) -> Compared:
    """The simulation against an LRU stack kept access by access, at small sizes."""
    rng = Random(case.seed)
    at = {name: rng.randint(5, 9 if case.depth > 1 else 16) for name in case.sizes}
    curve, caches = miss_curve(apply(kernel), at, None), (8, 8 * rng.randint(2, 12), 8 * rng.randint(13, 60), None)
    return _brute(kernel, case, at, curve, caches)


def _brute(
    kernel: Kernel, case: ResidueKernel, at: Mapping[str, int], curve: MissCurve, caches: Iterable[int | None]
) -> Compared:
    found = Compared()
    for cache in caches:
        seen, held = curve.bytes(cache, case.convention), traffic(kernel, at, cache, None, case.convention).bytes
        assert seen == held, f"{at}, Z = {cache}: simulated {seen}, an LRU stack {held}"
        found += Compared(brute=1)
    return found


def _at_size(
    kernel: Kernel,
    case: ResidueKernel,
    rows: tuple[PlateauBytes, ...],
    at: Mapping[str, int],
    period: int,
    *,
    brute: bool,
) -> Compared:
    curve = miss_curve(apply(kernel), at, None)
    found = Compared(1, len(rows))
    n, convention, stack = min(at.values()), case.convention, []
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        _check_lower_orders(row, at, period)
        until = row.until_bytes if row.until_bytes is not None or following is None else following.from_bytes
        caches: list[int | None] = [*_caches(row.from_bytes, until, at), *([None] if following is None else [])]
        for cache in caches:
            seen, told = curve.bytes(cache, convention), row.bytes.evaluate(at)
            near = 60 * max(told / n, n ** (_power(row.bytes) - 1)) + 200
            assert abs(seen - told) <= near, f"{at}, Z = {cache}: {row.bytes} = {told}, simulated {seen}"
            found += Compared(caches=1)
        stack += caches[:1]
        found += _to_the_byte(curve, convention, row, at, last=following is None)
    return found + (_brute(kernel, case, at, curve, stack) if brute and case.depth == 1 else Compared())


def _to_the_byte(
    curve: MissCurve, convention: Traffic, row: PlateauBytes, at: Mapping[str, int], *, last: bool
) -> Compared:
    """`all_bytes` holds exactly as far as it is said to."""
    found = Compared()
    if row.all_bytes is not None and _assumed(row.all_bytes.assumes, at):
        caches: list[int | None] = [*_caches(row.from_bytes, row.end_bytes, at)]
        for cache in [*caches, *([None] if last and row.end_bytes is None else [])]:
            seen, told = curve.bytes(cache, convention), row.all_bytes.evaluate(at)
            assert seen == told, f"{at}, Z = {cache}: all bytes {told}, simulated {seen}"
            found += Compared(exact=1)
    return found


def _check_lower_orders(row: PlateauBytes, at: Mapping[str, int], period: int) -> None:
    """The terms told are the leading ones of all: at a size a million times as large of the same class."""
    if row.all_bytes is None:
        return
    far = {name: n + period * 10**8 for name, n in at.items()}
    whole, told = row.all_bytes.evaluate(far), row.bytes.evaluate(far)
    assert abs(whole - told) * 10**4 <= told, f"{row.bytes} is not the leading term of all bytes, {whole} at {far}"
    if row.exact:
        assert whole == told, f"{row.bytes} is said to be exact, all bytes are {whole} at {far}"


def _caches(start: Quasi, end: Quasi | None, at: Mapping[str, int]) -> Iterator[int]:
    """Caches on a plateau, away from its ends by more than their lower orders, which only terms with sizes have."""
    low = start.evaluate(at)
    first = low if start.is_constant() else low * Fraction(13, 10) + 100
    if end is None:
        last = 8 * first
    else:
        last = end.evaluate(at)
        last = last - 1 if end.is_constant() else last * Fraction(3, 4) - 100
    if first <= last:
        yield from sorted({-(-first // 1), int((float(first) * float(last)) ** 0.5) + 1, last // 1} - {0})


def _assumed(facts: tuple[Fact, ...], at: Mapping[str, int]) -> bool:
    """Whether the sizes are as large as said; what is said of Z has been taken care of."""
    return all(fact.holds(at) for fact in facts if isinstance(fact, Comparison) and fact.relation == ">=")


def _power(value: Quasi) -> int:
    """The power of sizes with which a traffic grows."""
    return max((sum(power for _, power in m) for m, _ in value), default=0)


def _periods(row: PlateauBytes) -> Iterator[int]:
    if row.where is not None:
        yield from _moduli(row.where)
    values = [row.bytes]
    if row.all_bytes is not None:
        for case in row.all_bytes.cases:
            values += [case.value, *(v for each in case.alternatives for v, _ in each)]
    for value in values:
        yield from _of_floors(value)


def _of_floors(value: Quasi) -> Iterator[int]:
    for atom in value.atoms():
        if isinstance(atom, Floor):
            yield lcm(*(c.denominator for _, c in atom.of)) * lcm(*_of_floors(atom.of), 1)


def _moduli(node: object) -> Iterator[int]:
    if isinstance(node, Mod) and isinstance(node.divisor, Const):
        yield node.divisor.value
    for value in getattr(node, "__dict__", {}).values():
        for child in value if isinstance(value, tuple) else (value,):
            if isinstance(child, (Condition, Mod)):
                yield from _moduli(child)

"""A derivation as a text report for a terminal, in the order of a textbook, its numbers in columns.

`derive_equations` tells the same results as equations, for LaTeX and HTML.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from roofdsl.counts.borders import without_borders
from roofdsl.counts.derived import Derivation, Plateau, Quantity, Ratio
from roofdsl.counts.growth import growth_of, smallest
from roofdsl.counts.narrow_cases import apart, leading_part
from roofdsl.counts.readable_forms import (
    condition_text,
    limit_of,
    names_of_derivation,
    of_quantity,
    of_ratio,
    range_text,
)
from roofdsl.formulas.fact_text import facts_text
from roofdsl.formulas.quotients import Alternatives
from roofdsl.formulas.writing import neat_text
from roofdsl.machine.quantities import show_bytes, show_number, show_size
from roofdsl.sets.facts import CACHE, Compared, Fact
from roofdsl.sets.plateaus import Growth
from roofdsl.sets.terms import Terms
from roofdsl.tell.derive_shares import any_cache_title, any_share_lines, intensity_lines, share_lines
from roofdsl.tell.derive_steps import step_blocks
from roofdsl.tell.equation_lines import Row, missing_lines, render
from roofdsl.tell.line_breaks import WIDTH, aligned, fitted
from roofdsl.tell.quantity_rows import Rows
from roofdsl.tell.terms import terms_lines
from roofdsl.tell.words import (
    CONVENTIONS,
    EXACT,
    NO_PAIR,
    cache_title,
    ceiling,
    exact_number,
    fused_share,
    has_work,
    heading,
    is_zero,
    leading_terms,
    narrow_cases_text,
    once_differs,
    plateaus_by_sizes,
)


def to_text(d: Derivation, width: int = WIDTH, *, all_cases: bool = False) -> str:
    """W, Q, I and the plateaus of Q(Z), in the order of a textbook; the argument instead if the steps were requested.

    width: the columns of a line; longer lines continue on the next one. all_cases: list also the cases of Q(Z) that
    hold on lines of sizes only, and the terms of lower order of a long sum.
    """
    return "\n".join(fitted(_lines(d, width, all_cases), width)) + "\n"


def _lines(d: Derivation, width: int, all_cases: bool) -> Iterator[str]:
    if d.steps is not None:
        from roofdsl.tell.as_text import to_text as render

        yield from (heading(d), *(f"note: {n}" for n in d.notes), "")
        yield from render(step_blocks(d), width)
    else:
        yield from _Report(d, width, all_cases).lines()


class _Report:
    def __init__(self, d: Derivation, width: int, all_cases: bool) -> None:
        self.d = d
        self.width, self.all_cases = width, all_cases
        self.order: Growth = growth_of(d.kernel)
        self.names = names_of_derivation(d)
        self.said: set[str] = set()
        self.common = common_condition(d)
        large = (
            [] if d.shares_at_cache else [p.name for p in d.kernel.parameters]
        )  # I has a limit only with alpha given
        self.rows = Rows(d.work, self.order, d.values, self.names, large)

    def lines(self) -> Iterator[str]:
        d = self.d
        yield heading(d)
        yield f"{d.convention}: {CONVENTIONS[d.convention]}"
        if self.common:
            yield f"everything below is for {condition_text(self.common)}; for other sizes, nothing is executed"
        if self.names:
            yield f"with {', '.join(f'{short.name} = {short.meaning}' for short in self.names.values())}"
        yield from (f"note: {n}" for n in d.notes)
        yield from self._section("Work", list(self._work()))
        yield from (f"  {text}" for text in fused_text(d, self.order))
        arrays = [self.rows.quantity(name, q, "B") for name, q in d.by_array.items()]
        traffic = list(self.rows.traffic(d.compulsory))
        yield from self._section("Compulsory traffic", traffic, "distinct bytes touched", arrays)
        yield from share_lines(d, d.compulsory.bytes, d.shares)
        if d.cache_bytes is not None:
            title = cache_title(d.cache_bytes, d.line_bytes)
            if d.at_cache.bytes.terms is None:
                yield from self._section(title, list(self.rows.traffic(d.at_cache)))
                yield from share_lines(d, d.at_cache.bytes, d.cache_shares)
            else:
                yield from self._sum(title, d.at_cache.bytes, d.at_cache.bytes.terms)
        if d.any_cache is not None and d.between is None:
            yield from self._any_cache(d.any_cache.bytes)
        elif d.any_cache is not None and d.between is not None:
            yield from self._section(any_cache_title(d.between), list(self.rows.traffic(d.any_cache)))
            yield from any_share_lines(d)
        yield from self._section("Intensity", list(self._intensity()))
        yield from intensity_lines(d)
        if not has_work(d):
            yield "  none: W = 0, so that only bytes per second can be compared"
        yield from self._plateaus()

    # ---- sections ----

    def _work(self) -> Iterator[Row]:
        yield from self.rows.work()
        for name, q in self.d.counters.items():
            yield self.rows.quantity(name, q, remark="(counted by the kernel)")

    def _intensity(self) -> Iterator[Row]:
        d = self.d
        if not has_work(d):
            return
        beside = once_differs(d)
        yield self.rows.ratio("I = W/Q", d.intensity, f"({d.convention})" if beside else "")
        if beside:
            what = "(each datum once)" if d.cache_bytes is None else "(once per residency)"
            yield self.rows.ratio("", Ratio(d.work.total, d.once, of_work=True), what)
        if d.cache_bytes is not None:
            yield self.rows.ratio("compulsory", Ratio(d.work.total, d.compulsory.bytes, of_work=True))

    def _plateaus(self) -> Iterator[str]:
        d = self.d
        yield ""
        if not d.plateaus:
            yield "Plateaus of Q(Z)"
            yield from (f"  {line}" for line in missing_lines([Row("", None, note=d.plateaus_note)], self.said))
            return
        yield f"Plateaus of Q(Z), by cache size ({leading_terms(d, self.order)})"
        for where, rows in plateaus_by_sizes(d):
            if where is not None:
                yield f"  for {where}"
            indent = "  " if where is None else "    "
            table = plateau_rows(d, rows, self.order, self.rows.operation)
            yield from (indent + line for line in aligned(table, width=self.width - len(indent)))

    def _any_cache(self, q: Quantity) -> Iterator[str]:
        """Q(Z) with a symbolic Z, case by case from the smallest cache to the largest."""
        title = "Q(Z) with Z a symbol"
        if q.terms is not None:
            yield from self._sum(title, q, q.terms)
            return
        yield ""
        if q.form is None:
            yield title
            yield f"  no closed form: {q.note}"
        else:
            yield f"{title}, for {facts_text(q.assumes)}" if q.assumes else title
            cases, narrow = (q.form.cases, ()) if self.all_cases else apart(q.form.cases, q.assumes, self.order)
            ordered = sorted(cases, key=lambda case: smallest(case, CACHE, self.order))
            wheres = [without_borders(c.alternatives, q.assumes) for c in ordered]
            conditions = [f"if {range_text(where, CACHE)}" if where else "" for where in wheres]
            rows = [(f"Q = {neat_text(c.value)} B", where) for c, where in zip(ordered, conditions, strict=True)]
            yield from (f"  {line}" for line in aligned(rows, width=self.width - 2))
            if narrow:
                yield f"  {narrow_cases_text(len(narrow))}; `--all-cases` lists them"

    def _sum(self, title: str, q: Quantity, form: Terms) -> Iterator[str]:
        """A traffic that is a sum of terms, with its number if sizes are given."""
        assumed = f", for {facts_text(form.assumes)}" if form.assumes else ""
        shown = form if self.all_cases else leading_part(form, self.order)
        yield ""
        yield f"{title}{assumed}: the sum of"
        yield from (f"  {line}" for line in terms_lines(shown))
        if len(shown.terms) < len(form.terms):
            more = len(form.terms) - len(shown.terms)
            yield f"  and {more} terms of lower order in the sizes; `--all-cases` lists them"
        if q.value is not None:
            yield f"  in all {exact_number(q.value)} B"

    # ---- rows ----

    def _section(
        self, title: str, rows: Sequence[Row], more_title: str = "", more: Sequence[Row] = ()
    ) -> Iterator[str]:
        yield ""
        every = [r for r in (*rows, *more) if r.form is not None]
        assumes = list(dict.fromkeys(a for r in every for a in r.assumes if all(other.equal for other in every)))
        stated = facts_text(assumes)
        wheres = {r.form.main.where for r in every if r.form is not None} - {(), self.common}
        cases = max((len(r.form.others) for r in every if r.form is not None), default=0)
        known = {self.common}
        if len(wheres) == 1 and cases != 1:
            (where,) = wheres
            known.add(where)
            others = facts_text(a for a in assumes if not _within(where, a))
            stated = ", ".join(part for part in (condition_text(where), others) if part)
        yield f"{title}, for {stated}" if stated else title
        yield from (f"  {line}" for line in render(rows, known))
        if any(r.form is not None for r in more):
            yield f"  {more_title}"
            yield from (f"    {line}" for line in render(more, known))
        if len(known) > 1 and cases:
            yield f"  other sizes: up to {cases} more cases (see --json)"
        yield from (f"  {line}" for line in missing_lines((*rows, *more), self.said))


# ---- pieces that other reports use too ----


def _within(where: Alternatives, fact: Fact) -> bool:
    """Whether bounds on one size, `n >= 9` or `9 <= n <= 40`, imply `n >= 4`."""
    if not isinstance(fact, Compared) or fact.relation != ">=" or len(where) != 1 or len(fact.symbols()) != 1:
        return False
    (bounds,) = where
    names = frozenset[str]().union(*(value.names() for value, _ in bounds))
    if names != fact.symbols() or any(is_zero for _, is_zero in bounds):
        return False
    (name,) = names
    for value, _ in bounds:
        slope = dict(value.terms).get(((name, 1),), Fraction(0))
        beyond = fact.left - fact.right - value * (1 / slope) if slope > 0 else None
        if beyond is not None and beyond.is_constant() and beyond.constant_value() >= 0:
            return True
    return False


def common_condition(d: Derivation) -> Alternatives:
    """The condition under which anything is done at all, if it is the only case of all derived quantities."""
    work = [d.work.total, *d.work.by_class.values(), d.work.fused_pairs]
    traffic = [q for t in (d.compulsory, d.at_cache) for q in (t.loads, t.stores, t.bytes) if q is not None]
    forms = [q.form for q in (*work, *traffic, *d.by_array.values()) if q.form is not None and q.form.cases]
    found = {c.alternatives for f in forms for c in f.cases}
    return next(iter(found)) if len(found) == 1 and all(len(f.cases) == 1 for f in forms) else ()


def fused_text(d: Derivation, order: Growth) -> Iterator[str]:
    """The share of the fused peak that the mix of operations can reach (rule 5)."""
    work = d.work
    if not has_work(d):
        yield "nothing is computed"
        return
    if is_zero(work.fused_pairs):
        if work.total.form is not None:
            yield NO_PAIR
        return
    alpha = of_ratio(work.fma_fraction, order)
    if alpha is None:
        return
    limit = limit_of(work.fma_fraction, order, d.values)
    known = work.fma_fraction.value
    share = ceiling(fused_share(d, order))
    text = f"alpha = {neat_text(alpha.main.expr)}"
    if known is not None and neat_text(alpha.main.expr) != show_number(known):
        text += f" = {show_number(known)}"
    elif limit is not None and limit != alpha.main.expr:
        text += f" -> {neat_text(limit)}"
    yield text + (f": at most {share} of the fused peak" if share else "")


def plateau_rows(d: Derivation, plateaus: Sequence[Plateau], order: Growth, operation: str) -> list[tuple[str, ...]]:
    """A table of plateaus with its head: cache size, traffic, intensity, and their numbers if sizes are given."""
    ends = [q for p in plateaus for q in (p.from_bytes, p.bytes)]
    valued = any(q.value is not None and not _plain(q) for q in ends)  # a plain number is its own form
    head = ("from Z (B)", "", "Q (B)", "", f"I ({operation}/B)", "", "")
    rows = [head]
    for p in plateaus:
        intensity = of_ratio(p.intensity, order)
        at, moved, ratio = p.from_bytes.value, p.bytes.value, p.intensity.value
        rows.append(
            (
                _main(p.from_bytes, order),
                show_size(at) if valued and at is not None else "",
                _main(p.bytes, order),
                show_bytes(moved) if valued and moved is not None else "",
                "-" if intensity is None else neat_text(intensity.main.expr),
                show_number(ratio) if valued and ratio is not None else "",
                EXACT if p.exact else _end(p, order),
            )
        )
    if not has_work(d):
        rows = [(*row[:4], "", "", row[6]) for row in rows]
    keep = [k for k in range(len(head)) if any(row[k] for row in rows)]
    return [tuple(row[k] for k in keep) for row in rows]


def _end(p: Plateau, order: Growth) -> str:
    """The Z at which Q(Z) begins to fall, if that is before the next plateau."""
    if p.until_bytes is None:
        return ""
    end = _main(p.until_bytes, order)
    return "falls from there on" if end == _main(p.from_bytes, order) else f"until Z = {end}, then falls"


def _main(q: Quantity, order: Growth) -> str:
    form = of_quantity(q, order)
    return "" if form is None else neat_text(form.main.expr)


def _plain(q: Quantity) -> bool:
    single = None if q.form is None else q.form.single
    return single is not None and single.is_constant()

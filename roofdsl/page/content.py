"""Everything that a page shows, as one JSON document and the functions that compute its numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from roofdsl import budget
from roofdsl.counts.closed_forms import NoClosedForm
from roofdsl.counts.derive import derive
from roofdsl.counts.growth import tile_names
from roofdsl.formulas.fact_text import facts_text
from roofdsl.formulas.writing import neat_text
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.operation_classes import MATRIX_CLASSES
from roofdsl.lang.record import Record
from roofdsl.loops.integers import Compare, Condition, Const, Mod, Sym
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.loops.parameter_values import numbers
from roofdsl.loops.streams import require_ordinary
from roofdsl.machine.model import Machine, operation
from roofdsl.measure.measurement import Measurement
from roofdsl.page.article import derivation_html, source_html
from roofdsl.page.count_forms import (
    Held,
    PlateauForm,
    TrafficForms,
    WorkForms,
    of_derivation,
    with_tiles,
    work_forms,
)
from roofdsl.page.expected_times import expected_times
from roofdsl.page.forms_in_javascript import function, truth
from roofdsl.page.line_forms import in_lines
from roofdsl.page.measured_points import measured_points, sizes_of
from roofdsl.page.retype import own_type, retyped
from roofdsl.page.sums import sum_function
from roofdsl.page.time_function import Key, rates_of, seconds_function
from roofdsl.plot.roofs import roofs_of
from roofdsl.predict.access_orders import orders_of
from roofdsl.predict.boundary import memory_boundary
from roofdsl.predict.contraction import is_contraction
from roofdsl.predict.in_core_time import without_expected
from roofdsl.predict.kernel_launches import launches_of_kernel
from roofdsl.predict.time_model import level_seconds, terms_of_a_launch
from roofdsl.sets.cases import Case, Cases
from roofdsl.sets.facts import LeadingTerms, RowsAligned
from roofdsl.sets.terms import Terms

Json = dict[str, Any]

UNITS = ("", *MATRIX_CLASSES)
FIRST_SIZE, FIRST_TILE = 1024, 32
"""The initial values of sliders for parameters without a number: sizes and tile sizes."""

MOST = {0: 1 << 20, 1: 1 << 30, 2: 1 << 20}
MOST_OTHERWISE, MOST_TILE = 1 << 17, 1 << 10
"""The ends of sliders (more for large initial values): by degree in W (MOST), for other degrees, and for tile sizes."""


class Asked(Record):
    """The contents requested for a page.

    kernels: each with the initial sizes of its sliders. types: element types to offer besides the kernels' own; None:
    those of the machines. unit: the matrix unit selected initially; None: each kernel's. measurements: points to draw.
    """

    title: str
    kernels: tuple[tuple[Kernel, Mapping[str, int]], ...]
    machines: tuple[Machine, ...]
    traffic: Traffic | None = None
    unit: str | None = None
    types: tuple[str, ...] | None = None
    measurements: tuple[Measurement, ...] = ()


class Content(Record):
    """The document, the functions that it refers to by number, and messages for the user of the command line."""

    document: Json
    functions: tuple[str, ...]
    warnings: tuple[str, ...]


def content_of(asked: Asked, progress: Callable[[str], None] = lambda text: None) -> Content:
    """Derive everything. Raises what `derive` raises, and CommandError for a kernel or machine given twice, for stores
    that bypass the caches, and for a kernel whose W has no closed form.
    """
    return _Collector(asked, progress).content()


class _Collector:
    def __init__(self, asked: Asked, progress: Callable[[str], None]) -> None:
        self.asked, self.progress = asked, progress
        self.functions: dict[str, int] = {}
        self.warnings: list[str] = []

    def content(self) -> Content:
        asked = self.asked
        _once("kernel", [k.name for k, _ in asked.kernels])
        _once("machine", [m.name for m in asked.machines])
        kernels = []
        for k, (kernel, given) in enumerate(asked.kernels):
            require_ordinary(kernel, "the page")
            with budget.part(len(asked.kernels) - k):
                kernels.append(self.kernel(kernel, given))
        shown = list(dict.fromkeys(t for k in kernels for variant in k["variants"].values() for t in variant["types"]))
        measured, left_out = measured_points([k for k, _ in asked.kernels], asked.measurements)
        self.warnings += left_out
        document = {
            "title": asked.title,
            "unit": asked.unit or "",
            "units": [u for u in UNITS if not u or any(self.has_unit(m, u) for m in asked.machines)],
            "types": sorted({t for k in kernels for t in k["variants"]}),
            "machines": [self.machine(m, shown) for m in asked.machines],
            "kernels": kernels,
            "measured": measured,
        }
        return Content(document, tuple(self.functions), tuple(dict.fromkeys(self.warnings)))

    def number(self, text: str) -> int:
        """The number of a function of the page."""
        return self.functions.setdefault(text, len(self.functions))

    # ---- machines ----

    @staticmethod
    def has_unit(machine: Machine, unit: str) -> bool:
        return any(p.cls == unit for p in machine.peaks)

    def machine(self, machine: Machine, types: Sequence[str]) -> Json:
        memory, cache = machine.main_memory, machine.last_cache
        return {
            "name": machine.name,
            "title": machine.title or machine.name,
            "source": machine.source,
            "memory": {
                "name": memory.name,
                "bandwidth": float(memory.bandwidth_bytes_per_s),
                "duplex": memory.duplex,
            },
            "cache": None if cache is None else {"name": cache.name, "size": cache.size_bytes},
            "caches": [{"name": c.name, "size": c.size_bytes} for c in machine.caches],
            "roofs": {t: {u: self.roofs(machine, t, u) for u in UNITS} for t in types},
        }

    @staticmethod
    def roofs(machine: Machine, type_name: str, unit: str) -> Json:
        units = (unit,) if machine.stated(type_name, unit) is not None else ()
        found = roofs_of(machine, (type_name,), units)
        return {
            "slopes": [{"label": s.label, "rate": s.bytes_per_s, "ceiling": s.is_ceiling} for s in found.slopes],
            "roofs": [{"label": r.label, "rate": r.rate_per_s, "ceiling": r.is_ceiling} for r in found.roofs],
        }

    # ---- kernels ----

    def kernel(self, kernel: Kernel, given: Mapping[str, int]) -> Json:
        self.progress(kernel.name)
        values = self.first_values(kernel, given)
        conventions = {m.name: memory_boundary(kernel, m, self.asked.traffic) for m in self.asked.machines}
        first = next(iter(conventions.values())).convention
        element: dict[Traffic, TrafficForms] = {}
        for convention in dict.fromkeys([first, *(b.convention for b in conventions.values())]):
            with budget.part(2):  # the page needs the forms of W as well
                derivation = derive(kernel, traffic=convention, any_cache=True, steps=convention == first)
            tiles = {n: given[n] for n in tile_names(kernel) if n in given}
            element[convention] = with_tiles(of_derivation(derivation), kernel, tiles)
            if convention == first:
                article = derivation_html(derivation)
        try:
            work = work_forms(kernel)
        except NoClosedForm as error:
            raise CommandError(
                f"the operations of kernel {kernel.name} have no closed form: {error}",
                "a page is made of closed forms; `roofdsl predict` gives values",
            ) from None
        # Before the variants, whose plateaus in lines may use up all the remaining time.
        with budget.part(2):
            expected = {m.name: self.expected(kernel, values, m) for m in self.asked.machines}
        variants = {}
        types = self.types_of(kernel, work)
        for k, type_name in enumerate(types):
            with budget.part(min(2, len(types)) if k == 0 else len(types) - k):
                variants[type_name] = self.variant(kernel, type_name, work, element)
        return {
            "name": kernel.name,
            "title": f"{kernel.name}({', '.join(p.name for p in kernel.parameters)})",
            "constants": ", ".join(f"{n} = {v}" for n, v in kernel.constants),
            "parameters": [self.slider(kernel, p.name, values[p.name], work) for p in kernel.parameters],
            "assume": self.number(truth(kernel.assumptions)),
            "assumed": [str(c) for c in kernel.assumptions],
            "multiples": [m for c in kernel.assumptions for m in _multiples(c)],
            "own": next(iter(variants)),
            "variants": variants,
            "contraction": is_contraction(kernel),
            "unit": kernel.unit or "",
            "convention": first,
            "source": source_html(kernel),
            "article": article,
            "expected": expected,
            "blocks": [m.name for m in self.asked.machines if _is_launched(kernel, values, m)],
        }

    def expected(self, kernel: Kernel, values: Mapping[str, int], machine: Machine) -> Json:
        """The expected times at the initial sizes and at those of the measurements."""
        own = [sizes_of(kernel, m) for m in self.asked.measurements if m.kernel == kernel.name]
        sizes = [{p.name: values[p.name] for p in kernel.parameters}, *(at for at in own if at is not None)]
        if not without_expected(machine):
            self.progress(f"{kernel.name}, expected times on {machine.name}")
        return expected_times(kernel, sizes, machine, self.asked.traffic)

    def first_values(self, kernel: Kernel, given: Mapping[str, int]) -> dict[str, int]:
        """An initial number for every parameter. Raises CommandError if they violate an assumption of the kernel."""
        tiles = tile_names(kernel)
        stated = {p.name: p.default for p in kernel.parameters if p.default is not None}
        guess = {p.name: FIRST_TILE if p.name in tiles else FIRST_SIZE for p in kernel.parameters}
        return numbers(kernel, {**guess, **stated, **given})

    def slider(self, kernel: Kernel, name: str, value: int, work: WorkForms) -> Json:
        tile = name in tile_names(kernel)
        form = work.total.form
        cases = form.cases if isinstance(form, Cases) else ()
        degree = max((c.value.degree(frozenset((name,))) for c in cases), default=0)
        most = MOST_TILE if tile else MOST.get(degree, MOST_OTHERWISE)
        while most < 4 * value:
            most *= 4
        return {"name": name, "value": value, "most": most, "tile": tile}

    def types_of(self, kernel: Kernel, work: WorkForms) -> list[str]:
        """The types in which the kernel is offered, its own first."""
        own = own_type(kernel)
        if own is None or any(t != own.name for t, _ in work.counts):
            return ["as written"]
        asked = self.asked.types
        if asked is None:
            there = {t for m in self.asked.machines for t in m.types}
            asked = tuple(t for t in ("f64", "f32", "f16", "bf16", "f8") if t in there)
        return list(dict.fromkeys([own.name, *asked]))

    def variant(self, kernel: Kernel, type_name: str, work: WorkForms, element: Mapping[Traffic, TrafficForms]) -> Json:
        """The kernel in one type: operations, traffic by machine, rates by machine and unit."""
        own = own_type(kernel)
        other = kernel
        counts = dict(work.counts)
        traffic = dict(element)
        if own is not None and type_name not in (own.name, "as written"):
            other = retyped(kernel, type_name)
            counts = {(type_name, cls): form for (_, cls), form in counts.items()}
            size = next(a.type.bytes for a in other.arrays) if other.arrays else own.bytes
            traffic = {c: f.scaled(Fraction(size, own.bytes)) for c, f in traffic.items()}
        # a kernel without operations is drawn below the roofs of the numbers that it moves
        moved = [a.type.component.name for a in other.arrays]
        keys = frozenset(counts)
        lines: dict[tuple[int, int, Traffic], Json] = {}
        by_machine = {}
        for machine in self.asked.machines:
            at = memory_boundary(kernel, machine, self.asked.traffic)
            forms = [self.traffic(traffic[at.convention])]
            if at.line_bytes is not None:
                key = (at.line_bytes, at.moved_bytes or at.line_bytes, at.convention)
                if key not in lines:
                    self.progress(f"{kernel.name} in {type_name}, lines of {at.line_bytes} B")
                    lines[key] = self.traffic(in_lines(other, at.convention, key[0], key[1]))
                forms.insert(0, lines[key])
            by_machine[machine.name] = {
                "forms": forms,
                "convention": at.convention,
                "because": at.because,
                "notes": list(at.assumptions),
                "rates": {u: self.rates(other, machine, keys, u, at.convention) for u in UNITS},
            }
        return {
            "types": list(dict.fromkeys([t for t, _ in counts] or moved)),
            "operation": "OP" if counts and all(operation(t) == "OP" for t, _ in counts) else "FLOP",
            "work": self.held(work.total),
            "counts": {f"{t} {cls}": self.held(form) for (t, cls), form in counts.items()},
            "machines": by_machine,
        }

    def rates(self, kernel: Kernel, machine: Machine, keys: frozenset[Key], unit: str, convention: Traffic) -> Json:
        """The time of a launch with memory as the only level, as the number of its function; or why there is none."""
        # Without a unit, the kernel's own. If no unit applies to it: {"same": ""}, the time on ordinary units.
        matrix = (unit or kernel.unit) if is_contraction(kernel) else None
        if unit and matrix is None:
            return {"same": ""}
        found = rates_of(machine, keys, matrix, {n: Fraction(v) for n, v in kernel.costs})
        if found.compute is None:
            return {"missing": found.missing}
        memory = machine.main_memory
        duplex = memory.duplex and convention != "once"
        level = (memory.name, level_seconds(memory.name, memory.bandwidth_bytes_per_s, duplex=duplex))
        terms = terms_of_a_launch(found.compute, (level,), machine)
        return {"seconds": self.number(seconds_function(terms)), "notes": list(found.assumptions), "missing": ""}

    # ---- forms ----

    def held(self, of: Held) -> Json:
        out: Json = {"f": self.number(_function(of.form))}
        if of.needs:
            out["needs"] = self.number(truth(of.needs))
            out["for"] = facts_text(of.needs)
        if any(isinstance(fact, RowsAligned) for fact in of.others):
            out["aligned"] = True
        if any(isinstance(fact, LeadingTerms) for fact in of.others):
            out["leading"] = True
        if more := facts_text(fact for fact in of.others if not isinstance(fact, RowsAligned)):
            out["stated"] = more
        if of.loads is not None and any(m.main_memory.duplex for m in self.asked.machines):
            out["loads"] = self.number(_function(of.loads))
        return out

    def traffic(self, of: TrafficForms) -> Json:
        return {
            "line": of.line_bytes,
            "grain": of.grain,
            "least": of.least_bytes,
            "exact": None if of.any_cache is None else self.held(of.any_cache),
            "compulsory": None if of.compulsory is None else self.held(of.compulsory),
            "lines": [self.held(h) for h in of.lines],
            "plateaus": [self.plateau(p) for p in of.plateaus],
            "large": self.number(truth(of.large)),
            "note": of.note,
            "rows": of.rows
            and {"aligned": self.number(truth(of.rows.aligned)), "steps": of.rows.steps and dict(of.rows.steps)},
            "every": None if of.every is None else self.held(of.every),
            "moved": of.moved_bytes,
            "smallest": of.smallest_bytes,
        }

    def plateau(self, of: PlateauForm) -> Json:
        return {
            "start": self.number(function(Cases((Case((), of.start),)))),
            "end": None if of.end is None else self.number(function(Cases((Case((), of.end),)))),
            "whole": self.held(of.whole),
            "text": _typeset(neat_text(of.leading)),
            **({} if of.where is None else {"where": self.number(truth((of.where,)))}),
        }


def _is_launched(kernel: Kernel, values: Mapping[str, int], machine: Machine) -> bool:
    """Whether `predict` counts by thread blocks or by several launches, while the page counts in loop order."""
    launches = launches_of_kernel(kernel, values, machine)
    first = launches.each[0]
    own = launches.count > 1 or first.kernel is not kernel
    return own or orders_of(kernel, values, machine, how=first.how).launch is not None


def _function(form: Cases | Terms) -> str:
    return function(form) if isinstance(form, Cases) else sum_function(form)


def _once(what: str, names: Sequence[str]) -> None:
    """Raise CommandError if a name occurs twice, since links refer to kernels and machines by name."""
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise CommandError(f"the {what} `{twice}` is given twice", "each can appear on a page only once")


_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _typeset(expression: str) -> str:
    """The text of an expression in a figure: `8 n³/b` for `8*n**3/b`."""
    return re.sub(r"\*\*(\d+)", lambda m: m[1].translate(_RAISED), expression).replace("*", " ")


def _multiples(condition: Condition) -> list[Json]:
    """A condition such as `n % b == 0` in the form in which the page can enforce it; empty for any other condition."""
    match condition:
        case Compare("==", Mod(Sym(name), Sym() | Const() as divisor), Const(0)):
            return [{"of": name, "by": divisor.name if isinstance(divisor, Sym) else divisor.value}]
    return []

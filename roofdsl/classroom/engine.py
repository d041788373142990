"""Questions of exercises to the engine: counts, traffic, plateaus, bounds, machines, predictions, simulations.

Every answer is a formula (`answer_language.Node`): in the kernel's parameters, or a number if sizes are set. Bytes,
seconds and operations are plain numbers in those units.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from typing import Any

from roofdsl.classroom.answer_language import Node, Number, parse
from roofdsl.classroom.forms_as_formulas import formula_of, number, ratio
from roofdsl.classroom.query import Query, kernel_of
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace
from roofdsl.lang.source import Source
from roofdsl.lang.units import UnitError, parse_size
from roofdsl.loops.load import load_file
from roofdsl.loops.sized import Sized
from roofdsl.loops.transform import apply
from roofdsl.machine.find import load_machine, shipped_model
from roofdsl.machine.find import machine_of as the_machine
from roofdsl.machine.model import Cache, ComputeCeiling, Machine, Memory
from roofdsl.predict.links import stream_rate
from roofdsl.sets.quasi import Quasi
from roofdsl.simulate.cache_levels import CacheLevel

MOST_ACCESSES = 20_000_000


@cache
def answer(query: Query) -> Node:
    """The engine's answer. Raises CommandError or KeyError for a query that makes no sense, InputError for a wrong
    kernel.
    """
    asked = _ASKS.get(query.ask)
    if asked is None:
        raise CommandError(f"there is no quantity `{query.ask}`", f"`ask` is one of {', '.join(_ASKS)}")
    return asked(query)


def size(text: str | int) -> int:
    """`24 KiB` or a plain number of bytes. Raises CommandError."""
    try:
        if isinstance(text, int) or text.isdigit():
            return int(text)
        return parse_size(text)
    except UnitError as error:
        raise CommandError(f"`{text}` is not a size: {error}") from None


# ---- counts ----


def _forms(query: Query, line: int | None) -> Any:
    return _closed_forms(query.source, line, query.kernel.constants)


@cache
def _closed_forms(source: str, line: int | None, constants: tuple[tuple[str, int], ...]) -> Any:
    from roofdsl.counts.closed_forms import ClosedForms

    return ClosedForms(kernel_of(source, dict(constants)), {}, line)


def _single(form: Any, query: Query) -> Quasi:
    """The polynomial that holds for all sizes or, if there are several cases, for large sizes."""
    from roofdsl.counts.growth import growth_of, large_case

    single = form.single
    found: Quasi = large_case(form, growth_of(query.kernel)).value if single is None else single
    return found


def _work(query: Query) -> Node:
    """W, or its operations of one class (add, mul, div, min, special)."""
    cls = query.which
    if query.sizes:
        from roofdsl.counts.work_at import work_at

        found = work_at(query.kernel, query.at)
        return number(sum(n for (_, c), n in found.operations.items() if not cls or c == cls))
    forms = _forms(query, None)

    def weight(s: Any) -> int:
        return sum(n for (_, c), n in s.operations.items() if not cls or c == cls)

    return formula_of(_single(forms.weighted(weight(s) for s in forms.operations), query))


def _pairs(query: Query) -> Node:
    """Fused pairs."""
    if query.sizes:
        from roofdsl.counts.work_at import work_at

        return number(sum(work_at(query.kernel, query.at).fused_pairs.values()))
    forms = _forms(query, None)
    weights = (sum(s.fused_pairs.values()) for s in forms.operations)
    return formula_of(_single(forms.weighted(weights), query))


def _convention(query: Query) -> Any:
    return query.traffic or query.kernel.traffic or "load_store"


def _traffic(query: Query) -> Node:
    """Q, its loads or its stores: compulsory, or of a cache."""
    which = {"Q": "bytes", "loads": "loads_bytes", "stores": "stores_bytes"}[query.ask]
    if query.sizes:
        from roofdsl.counts.traffic_at import traffic_at

        kernel = query.kernel
        found = traffic_at(kernel, query.at, query.cache, query.line, _convention(query))
        return number(getattr(found, which))
    forms = _forms(query, query.line)
    convention = _convention(query)
    made = forms.compulsory(convention) if query.cache is None else forms.at_cache(query.cache, convention)
    form = {"Q": made.total, "loads": made.loads, "stores": made.stores}[query.ask]
    return formula_of(_single(form, query))


def _intensity(query: Query) -> Node:
    """W/Q in lowest terms, where Q is the compulsory traffic; a number if sizes are set."""
    if query.sizes:
        counted = [_work(query), _traffic(replace(query, ask="Q", cache=None))]
        work, moved = (count.value for count in counted if isinstance(count, Number))
        return number(work / moved)
    forms = _forms(query, query.line)
    return ratio(_single(forms.work, query), _single(forms.compulsory(_convention(query)).total, query))


def _array(query: Query) -> Node:
    """The bytes of one array that are touched, each counted once."""
    return formula_of(_single(_forms(query, query.line).by_array()[query.which], query))


def _limit(query: Query) -> Node:
    """The limit of W/Q for large sizes, where Q is the compulsory traffic."""
    from roofdsl.counts.derived import Quantity, Ratio
    from roofdsl.counts.growth import growth_of
    from roofdsl.counts.readable_forms import limit_of

    forms = _forms(query, query.line)
    intensity = Ratio(Quantity(forms.work), Quantity(forms.compulsory(_convention(query)).total), of_work=True)
    found = limit_of(intensity, growth_of(query.kernel))
    if found is None:
        raise CommandError("the intensity of this kernel has no limit")
    return ratio(found.top, found.bottom)


@cache
def _plateaus(query: Query) -> tuple[Any, ...]:
    """The plateaus at the sizes that are set. Raises CommandError if they depend on the remainders of sizes that are
    not set.
    """
    found: tuple[Any, ...] = _forms(query, query.line).plateau_forms(_convention(query), query.sizes)
    if len({r.where for r in found}) > 1:
        classes = ", ".join(dict.fromkeys(str(r.where) for r in found))
        raise CommandError(
            f"the plateaus of this kernel differ by the remainders of its sizes: {classes}",
            "give its sizes with `set`, such as `set = { n = 1000 }`",
        )
    return found


def _plateau(query: Query) -> Node:
    """The cache at which plateau `number` (from 1) of Q(Z) begins, its traffic, or its intensity (leading terms)."""
    from roofdsl.counts.growth import growth_of, leading_of

    rows = _plateaus(replace(query, ask="plateau", number=0))
    if not 1 <= query.number <= len(rows):
        raise CommandError(f"there is no plateau {query.number}: Q(Z) has {len(rows)}")
    row = rows[query.number - 1]
    if query.ask == "plateau_from":
        return _at_sizes(row.from_bytes, None, query)
    order = growth_of(query.kernel)
    moved = order.leading(row.bytes)
    if query.ask == "plateau_bytes":
        return _at_sizes(moved, None, query)
    work = leading_of(_forms(query, None).work, order, query.sizes, row.where)
    if work is None:
        raise CommandError("the leading term of W differs by remainders of the sizes", "give the sizes with `set`")
    return _at_sizes(work, moved, query)


def _at_sizes(top: Quasi, bottom: Quasi | None, query: Query) -> Node:
    """top, or top / bottom: a formula, or a number if sizes are set."""
    sizes = query.sizes
    if not sizes:
        return formula_of(top) if bottom is None else ratio(top, bottom)
    missing = (top.names() | (frozenset() if bottom is None else bottom.names())) - sizes.keys()
    if missing:
        raise CommandError(f"{', '.join(sorted(missing))} has no value in `set`, although others have")
    below = Fraction(1) if bottom is None else bottom.evaluate(sizes)
    if not below:
        raise CommandError("a ratio of an exercise divides by zero")
    return number(top.evaluate(sizes) / below)


def _bound(query: Query) -> Node:
    """A lower bound on the loads of any order, in elements (docs/bound.md).

    With `number`, the bound for a cache of S = `number` elements. Otherwise, the leading term in S of the argument
    `which`, which may be omitted if the bound has a single argument.
    """
    from roofdsl.bounds.bound import bound

    found = bound(query.kernel)
    if query.number:
        return number(found.at(query.at, query.number)[0])
    terms = dict(zip((name for name, _ in found.arguments), found.leading(), strict=True))
    if len(terms) > 1 and not query.which:
        raise CommandError("this bound has several arguments", f"`which` is one of {', '.join(terms)}")
    if query.which and query.which not in terms:
        raise CommandError(f"this bound has no argument `{query.which}`", f"it has {', '.join(terms)}")
    term = terms[query.which] if query.which else next(iter(terms.values()))
    return parse(str(term), {str(symbol) for symbol in term.free_symbols})


def _simulated(query: Query) -> Node:
    """Bytes or misses of one set-associative cache; every access is simulated. `policy` may be the best one, "opt"."""
    from roofdsl.counts.traffic_at import access_count
    from roofdsl.simulate.hierarchy import simulate

    at = Sized(apply(query.kernel), query.at)
    if query.cache is None or query.line is None or access_count(at) > MOST_ACCESSES:
        raise CommandError("a simulation needs a cache and a line, and sizes that are not too large")
    miss: Any = "allocate" if _convention(query) == "write_allocate" else "claim"
    policy, bypass = query.option("policy", "lru"), query.option("bypass", False)
    level = CacheLevel("cache", query.cache, query.line, query.ways, policy, write_miss=miss, bypass=bypass)
    found = simulate(at.kernel, at.values, [level]).levels[0]
    return number({"bytes": (found.loads + found.stores) * query.line, "misses": found.misses}[query.which or "bytes"])


def _accesses(query: Query) -> Node:
    """The number of array accesses of one execution."""
    from roofdsl.counts.traffic_at import access_count

    return number(access_count(Sized(apply(query.kernel), query.at)))


# ---- machines ----


def machine_of(name: str) -> Machine:
    """A shipped machine, or the machine that a text defines. Raises CommandError, InputError."""
    if "\n" not in name:
        return load_machine(name)

    return the_machine(load_file(Source("exercise.roof", name)), None)


def _peak(query: Query) -> Node:
    """The rate of `which`: a type, or a type and a class: `f64`, `f64 fma`, `f64 unfused`, `bf16 tensor`."""
    type_name, _, cls = query.which.partition(" ")
    machine = machine_of(query.machine)
    return number(machine.rate(type_name, cls).per_s if cls else machine.peak(type_name).per_s)


def _level(query: Query) -> Node:
    """The bandwidth or the size in bytes of a level; of the main memory if no level is named."""
    machine = machine_of(query.machine)
    levels: dict[str, Cache | Memory] = {level.name: level for level in machine.caches}
    levels |= {memory.name: memory for memory in machine.memories}
    name = query.which or machine.main_memory.name
    if name not in levels:
        raise CommandError(f"machine {machine.name} has no level `{name}`", f"it has {', '.join(levels)}")
    level = levels[name]
    return number(level.bandwidth_bytes_per_s if query.ask == "bandwidth" else level.size_bytes)


def _instruction(query: Query) -> Node:
    """Cycles of an instruction: `which` is its class, type and width, as in `add f64 256`."""
    machine = machine_of(query.machine)
    found = {" ".join(x for x in (i.cls, i.type, str(i.bits)) if x): i for i in machine.instructions}.get(query.which)
    cycles = None if found is None else found.latency if query.ask == "latency" else found.throughput
    if cycles is None:
        raise CommandError(f"machine {machine.name} states no {query.ask} of `{query.which}`")
    return number(Fraction(cycles))


def _clock(query: Query) -> Node:
    """Cycles per second."""
    clock = machine_of(query.machine).clock_hz
    if clock is None:
        raise CommandError(f"machine {query.machine} states no clock")
    return number(clock)


def _launch(query: Query) -> Node:
    """The time of one launch."""
    launch = machine_of(query.machine).launch_s
    if launch is None:
        raise CommandError(f"machine {query.machine} does not define a launch time")
    return number(launch)


def _ceiling(query: Query) -> Node:
    """The rate of a named ceiling, in operations or bytes per second."""
    for found in machine_of(query.machine).ceilings:
        if found.name == query.which:
            return number(found.rate_per_s if isinstance(found, ComputeCeiling) else found.bandwidth_bytes_per_s)
    raise CommandError(f"machine {query.machine} has no ceiling `{query.which}`")


def _stream(query: Query) -> Node:
    """The rate of a stream over links: `from` and `to` are lists of memories."""
    rate = stream_rate(machine_of(query.machine), query.option("from", ()), query.option("to", ()))
    return number(rate.bytes_per_s)


# ---- predictions ----


@cache
def _prediction(query: Query) -> Any:
    from roofdsl.classroom.predicted import options_of
    from roofdsl.predict.kernel import predict
    from roofdsl.predict.program import predict_program

    options = options_of(query.traffic, query.option)
    machine = machine_of(query.machine)
    if query.source.startswith("shipped "):
        target = shipped_model(query.source.removeprefix("shipped ").strip())
        if target is not None and target.name is not None:
            checked = load_file(target.path)
            if target.name in checked.programs:
                return predict_program(checked, target.name, query.at, machine, options)
    return predict(query.kernel, query.at, machine, options)


def _predicted(query: Query) -> Node:
    """A value of a prediction: `which` is one of `classroom.predicted`'s names, or a level."""
    from roofdsl.classroom.predicted import value

    return number(value(_prediction(replace(query, which="")), query.which or "time"))


_ASKS: Mapping[str, Callable[[Query], Node]] = {
    "W": _work,
    "pairs": _pairs,
    "Q": _traffic,
    "loads": _traffic,
    "stores": _traffic,
    "intensity": _intensity,
    "array": _array,
    "limit": _limit,
    "plateau_from": _plateau,
    "plateau_bytes": _plateau,
    "plateau_intensity": _plateau,
    "bound": _bound,
    "simulate": _simulated,
    "accesses": _accesses,
    "peak": _peak,
    "bandwidth": _level,
    "size": _level,
    "launch": _launch,
    "latency": _instruction,
    "throughput": _instruction,
    "clock": _clock,
    "ceiling": _ceiling,
    "stream": _stream,
    "predict": _predicted,
}
"""The questions that a query may ask; the docstring of each function describes the answer."""

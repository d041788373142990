"""A characterized processor as a `.roof` machine: every number with its method of measurement and what it counts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from statistics import median

from roofdsl.lang.operation_classes import SPECIAL_FUNCTIONS
from roofdsl.lang.record import replace
from roofdsl.lang.source import Source
from roofdsl.loops.load import load_file
from roofdsl.machine.attribute_text import written
from roofdsl.machine.find import machine_of
from roofdsl.machine.model import ONE_CORE, STREAMED, Machine
from roofdsl.machine.quantities import show_bandwidth, show_power, show_rate, show_size, show_time
from roofdsl.measure.bandwidth_curve import Bandwidth, Beside, stores_per_s, written_rates
from roofdsl.measure.characterize_cpu import Characterization
from roofdsl.measure.core_facts import CoreFacts
from roofdsl.measure.instruction_lines import core_lines
from roofdsl.measure.levels_found import Level
from roofdsl.measure.microkernels import DIVIDE_EVERY
from roofdsl.measure.peaks import Peak
from roofdsl.store.atomic import write_whole

_PEAKS = ("fma", "min", "div", *SPECIAL_FUNCTIONS)  # measured classes that the language has

_ONE_BY_ONE = (
    "# `fill`, `strided`, `strided_stores`, `strided_odd`, `strided_odd_stores`, `crowded`, `crowded_stores`,",
    "# `buffers`, `stored_lines`, `gathered`, `random`, `random_stores`, `restart`, `pages`, `walk`: lines one by",
    "# one, for expected times: the rates of one core, times the number of cores.",
)
_PAST = "# `streamed`: stores that bypass the caches, of one core that loads nothing at the same time."


_ALLOCATED = (
    "# `write_allocate 0.25`: this share of the lines whose first access is a store is loaded first, as the times of",
    "# load, copy, triad and an update in place show together; the bandwidth counts these loads.",
)


def machine_text(found: Characterization, name: str | None = None) -> str:
    """The text of a file with one machine. It is in canonical layout, passes all checks and ends in a newline.

    `found.alone()` gives the machine of one core from the same run.
    """
    name = name or machine_name(found)
    cpu = found.cpu
    lines = [
        f"# Measured by `roofdsl characterize` on {found.when}, {'quickly' if found.quick else 'in full'}.",
        f"# {cpu.name}, {_cores(found.cores)} of {cpu.cores} usable{', virtual' if cpu.virtual else ''}; "
        + ", ".join(f"{k} {v}" for k, v in found.software.items() if v != "unknown")
        + ".",
        "#",
        "# Peaks: the median rate of loops on independent accumulators, for the best number of accumulators.",
        "# Bandwidths: the best median rate of load, copy, triad and updates, of one or more arrays, in f64, at the",
        "# best working set inside each level.",
        "# `no_write_allocate`: load, copy and triad agree if only loads and stores are counted.",
        "# `write_allocate`: a store first loads its line, which is counted, since copy and triad are slower by it.",
        "# `duplex`: loads and stores move at the same time, since an update in place takes only as long as its loads.",
        "# `beside`: the rate at which the hits of a cache add to the time of lines that pass through it from farther",
        "# levels; below the cache's bandwidth, it is only used for expected times. `beside_far`: beside lines",
        "# from behind the next level. `holds`: what a core keeps of a cache that others use too, for expected times.",
        "# `typical`: the median over working sets or streaming patterns. `stores`, `written`, `written_loads`: from",
        "# copies and updates, where stores are slower than loads. Both, and the `core` and `instruction` lines, which",
        "# loops in assembly measure, are for expected times.",
        *(_ALLOCATED if any(level.all_cores.allocated is not None for level in found.levels) else ()),
        *(_ONE_BY_ONE if found.walks is not None else ()),
        *([_PAST] if found.walks is not None and found.walks.past_per_s is not None else []),
        *(f"# Note: {note}." for note in found.notes),
        "",
        f'machine {name} "{plain_text(cpu.name)}, {_cores(found.cores)}, measured":',
        f'    source "roofdsl characterize, {found.when}"',
    ]
    lines += [f'    processor "{plain_text(cpu.name)}"']
    lines += ['    transfers overlap source "where no cache says `beside`"']
    lines += [f"    {line}" for line in (*_peaks(found), *_reduced(found), *_levels(found), *_ceilings(found))]
    lines += [f'    launch {show_time(found.call_s)} source "call of a compiled function of three arrays and a number"']
    lines += [f"    units {found.cores}", *(f"    {line}" for line in _power(found))]
    if found.facts is not None:
        lines += [f"    {line}" for line in core_lines(_with_pages(found))]
    return "\n".join(lines) + "\n"


def to_machine(found: Characterization, name: str | None = None) -> Machine:
    """The machine as predictions use it, read from the text that would be written."""
    return machine_of(load_file(Source("<characterized>", machine_text(found, name))), None)


def save_machine(path: Path, text: str) -> None:
    """Write a machine file in one step, after reading it back like any other file. Raises CommandError."""
    machine_of(load_file(Source(str(path), text)), None)
    write_whole(path, text)


def machine_name(found: Characterization) -> str:
    """`amd_epyc_7763_2_cores`, from the processor's name."""
    words = re.sub(r"\(R\)|\(TM\)|@.*$|\bCPU\b|\bProcessor\b|\b\d+-Core\b", " ", found.cpu.name)
    stem = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_") or "processor"
    return f"{'' if stem[0].isalpha() else 'cpu_'}{stem}_{found.cores}_core{'s' if found.cores > 1 else ''}"


def _cores(count: int) -> str:
    return f"{count} core{'s' if count > 1 else ''}"


def plain_text(words: str) -> str:
    """The words in a form that may stand between double quotes."""
    return " ".join(words.replace('"', "'").split())


def _peaks(found: Characterization) -> Iterator[str]:
    for type_name in dict.fromkeys(p.type for p in found.peaks):
        unit = "FLOP" if type_name.startswith("f") else "OP"
        unfused = _faster(found, type_name)
        for peak in found.peaks:
            if peak.type == type_name and peak.cls in _PEAKS:
                energy = _energy_of(found, type_name) if peak.cls == "fma" else ""
                note = plain_text(_core(peak))
                yield peak_line(type_name, peak.cls, peak.all_cores.per_s, unit, note, options=energy)
            elif unfused is not None and (peak.type, peak.cls) in {(type_name, "add"), (type_name, "mul")}:
                yield _unfused(found, unfused, unit)
                unfused = None
    if _two_pipes(found):
        note = "additions and multiplications together run as fast as each alone"
        if _three_pipes(found):
            note += ", and so do divisions beside multiplications"
        yield f'pipes separate add mul{" div" if _three_pipes(found) else ""} source "{note}"'
    elif found.facts is not None and any(i.p0 and i.cls == "fma" for i in found.facts.instructions):
        yield 'pipes units source "units of the `instruction` lines, found from pairs of instructions"'


def _two_pipes(found: Characterization) -> bool:
    """Whether additions and multiplications together run well above the rate of either alone, in every float type."""
    gains = []
    for type_name in dict.fromkeys(p.type for p in found.peaks if p.type.startswith("f")):
        both, alone = found.peak(type_name, "add and mul"), _faster(found, type_name)
        if both is not None and alone is not None:
            gains.append(both.all_cores.per_s / alone.all_cores.per_s)
    return bool(gains) and min(gains) > 1.5


def _three_pipes(found: Characterization) -> bool:
    """Whether divisions with simultaneous multiplications take less time than halfway between the longer of the two and
    their sum.
    """
    apart = []
    for type_name in dict.fromkeys(p.type for p in found.peaks if p.type.startswith("f")):
        mul, div, both = (found.peak(type_name, cls) for cls in ("mul", "div", "mul and div"))
        if mul is not None and div is not None and both is not None:
            times = (DIVIDE_EVERY / mul.all_cores.per_s, 1 / div.all_cores.per_s)
            apart.append((DIVIDE_EVERY + 1) / both.all_cores.per_s < (max(times) + sum(times)) / 2)
    return bool(apart) and all(apart)


def _reduced(found: Characterization) -> Iterator[str]:
    """Types that are only storage formats: computed in f32 at its rates; the conversions are not operations (W)."""
    for type_name in ("f16", "bf16", "tf32", "f8"):
        for cls in ("fma", "", *_PEAKS[1:]):
            peak = found.peak("f32", cls) if cls else _faster(found, "f32")
            if peak is not None:
                note = "computed in f32, at its rate; conversions take extra time"
                yield peak_line(type_name, cls, peak.all_cores.per_s, "FLOP", note)


def _unfused(found: Characterization, better: Peak, unit: str) -> str:
    """The rate without a class: the better one of additions and of multiplications alone."""
    measured = [found.peak(better.type, cls) for cls in ("add", "mul", "add and mul")]
    parts = [f"{p.cls} {show_rate(p.all_cores.per_s, unit)}" for p in measured if p]
    note = plain_text(f"alone, {_core(better)}: {', '.join(parts)}")
    return peak_line(better.type, "", better.all_cores.per_s, unit, note)


def _faster(found: Characterization, type_name: str) -> Peak | None:
    """Additions or multiplications alone, whichever is faster."""
    known = [p for cls in ("add", "mul") if (p := found.peak(type_name, cls)) is not None]
    return max(known, key=lambda p: p.all_cores.per_s, default=None)


def peak_line(type_name: str, cls: str, per_s: float, unit: str, note: str, *, options: str = "") -> str:
    return f'peak {type_name}{f" {cls}" if cls else ""} {show_rate(per_s, unit)}{options} source "{note}"'


def _energy_of(found: Characterization, type_name: str) -> str:
    """The option with the energy of an operation of a type, if it was measured."""
    energy = None if found.energy is None else found.energy.fit.energies_j.get(type_name)
    return written("peak", {"energy_j": energy or None})


def _power(found: Characterization) -> Iterator[str]:
    """The constant power, if it was measured, and how well its fit describes the measured powers."""
    if found.energy is not None and found.energy.fit.constant_w > 0:
        fit = found.energy.fit
        how = f"fit of the powers of {fit.points} loops, with the energies; mean error {fit.mean_error:.1%}"
        about = f"{found.energy.counter}; {how}; idle {show_power(found.energy.idle_w)}"
        yield f'constant_power {show_power(fit.constant_w)} source "{plain_text(about)}"'


def _core(peak: Peak) -> str:
    unit = "FLOP" if peak.type.startswith("f") else "OP"
    return f"one core {show_rate(peak.one_core.per_s, unit)}, spread {peak.all_cores.spread:.0%}"


def _levels(found: Characterization) -> Iterator[str]:
    for k, level in enumerate(found.levels[:-1]):
        behind = found.levels[k + 1].all_cores  # the traffic across this cache's far boundary
        beside, beside_far = level.all_cores.beside, level.all_cores.beside_far
        options: dict[str, object] = {}
        if level.reported is not None:
            copies = min(level.reported.copies, found.cores)
            options["line_bytes"] = level.reported.line_bytes or None
            options["ways"] = (level.reported.ways or None) if level.agrees is not False else None
            options["copies"] = copies if copies > 1 else None
        options["holds_bytes"] = level.holds_bytes
        options["duplex"] = level.all_cores.counts == "duplex"
        typical = level.typical or level.all_cores
        if typical.bytes_per_s < TYPICAL * level.all_cores.bytes_per_s:
            options["typical_bytes_per_s"] = typical.bytes_per_s
        if level.larger is not None:
            begin, larger = level.larger
            step = 1 << max(0, int(begin).bit_length() - 5)  # half an octave lies between two sizes of the curve
            options |= {"larger_from_bytes": int(begin) // step * step, "larger_bytes_per_s": larger.bytes_per_s}
        if k:
            options |= {"one_stream_bytes_per_s": typical.one_stream_per_s, "streams": typical.streams}
        options["stores_bytes_per_s"] = stores_per_s(typical) if k else None  # L1's are the core's own
        written_s, loads_s = written_rates(typical) if k else (None, None)
        options |= {"written_bytes_per_s": written_s, "written_loads_bytes_per_s": loads_s}
        options |= _besides(found, k, beside, beside_far)
        options |= _strided(found, level, first=not k) | _random(found, level)
        options["energy_j_per_byte"] = _energy_per_byte(found, level)
        options["write_allocate"] = behind.counts != "no_write_allocate"
        if behind.allocated is not None:
            options["write_allocate"] = Fraction(round(100 * behind.allocated), 100)
        head = f"cache {level.name} {show_size(level.capacity_bytes)}, {show_bandwidth(level.all_cores.bytes_per_s)}"
        note = f"{plain_text(_capacity(level))}; {about_bandwidth(level.all_cores)}"
        yield f'{head}{written("cache", options)} source "{note}"'
    memory = found.levels[-1]
    options = {"line_bytes": found.cpu.line_bytes or None, "duplex": memory.all_cores.counts == "duplex"}
    options["typical_bytes_per_s"] = _typical_of_patterns(memory.all_cores)
    options["stores_bytes_per_s"] = stores_per_s(memory.all_cores)
    options |= _strided(found, memory) | _random(found, memory)
    options["streamed_bytes_per_s"] = _past_caches(found)
    options["one_stream_bytes_per_s"] = memory.all_cores.one_stream_per_s
    options["streams"] = memory.all_cores.streams
    options["energy_j_per_byte"] = _energy_per_byte(found, memory)
    rate = show_bandwidth(memory.all_cores.bytes_per_s)
    head = f"memory DRAM {show_size(memory.capacity_bytes)}, {rate}"
    yield f'{head}{written("memory", options)} source "{about_bandwidth(memory.all_cores)}"'


TYPICAL = 0.97
"""A typical rate at this part of a level's bandwidth, or higher, counts as the bandwidth."""


def _typical_of_patterns(width: Bandwidth) -> float | None:
    """The median of what the patterns get from the memory, in bytes per second; None if that is nearly the bandwidth,
    or if slower stores or few streams explain the differences.
    """
    typical = median(rate for _, rate in width.by_pattern)
    if width.one_stream_per_s is not None or stores_per_s(width) is not None:
        return None
    return typical if typical < TYPICAL * width.bytes_per_s else None


def _besides(found: Characterization, place: int, near: Beside | None, far: Beside | None) -> dict[str, object]:
    """The rates of hits while lines of the next level, or of farther ones, pass through. For the first cache beside the
    second one, loads in assembly give the rate, which compiled loops of one stream do not reach.
    """
    rates = [None if b is None else b.measured_per_s for b in (near, far)]
    hits = found.walks.hits_per_s if found.walks is not None and not place else None
    if hits is not None:
        rates = [found.cores * hits, rates[1] if near is None or far is not None else rates[0]]
    updates = found.walks.updates_per_s if found.walks is not None and hits is not None else None
    return {
        "beside_bytes_per_s": rates[0],
        "beside_updates_bytes_per_s": None if updates is None else found.cores * updates,
        "beside_far_bytes_per_s": rates[1],
    }


def _energy_per_byte(found: Characterization, level: Level) -> float | None:
    return None if found.energy is None else found.energy.fit.energies_j.get(level.name) or None


def _past_caches(found: Characterization) -> float | None:
    """The rate of stores that bypass the caches, measured on one core and scaled to all, but not above the memory's
    bandwidth or the rate of one core.
    """
    one = None if found.walks is None else found.walks.past_per_s
    return None if one is None else min(found.cores * one, max(found.levels[-1].all_cores.bytes_per_s, one))


def _strided(found: Characterization, level: Level, *, first: bool = False) -> dict[str, object]:
    """The rates of strided walks, measured on one core, times the number of cores."""
    walks = found.walks
    if walks is None:
        return {}
    if first:
        fill = None if walks.fill_per_s is None else found.cores * walks.fill_per_s
        lines = {"buffers": walks.buffers, "stored_lines": walks.stored_lines}
        return {"fill_bytes_per_s": fill, **{name: number for name, number in lines.items() if number}}
    walked = walks.levels.get(level.name)
    if walked is None:
        return {}
    rates = {
        "strided_bytes_per_s": walked.loads_per_s,
        "strided_odd_bytes_per_s": walked.odd_loads_per_s,
        "gathered_bytes_per_s": walked.gathered_per_s,
        "crowded_bytes_per_s": walks.crowded_loads.get(level.name),
        "strided_stores_bytes_per_s": walked.stores_per_s,
        "strided_odd_stores_bytes_per_s": walked.odd_stores_per_s,
        "crowded_stores_bytes_per_s": walks.crowded_stores_per_s if level is found.levels[1] else None,
    }
    return {**_of_all_cores(found, rates), "restart_s": walked.restart_s}


def _of_all_cores(found: Characterization, rates: dict[str, float | None]) -> dict[str, object]:
    """Rates of one core times the number of cores, even where no level could deliver as much to all of them at once:
    predictions limit all cores together to the bandwidth.
    """
    return {name: found.cores * rate for name, rate in rates.items() if rate is not None}


def _random(found: Characterization, level: Level) -> dict[str, object]:
    """The rates of random accesses, measured on one core, times the number of cores."""
    rates = found.random.get(level.name)
    if rates is None:
        return {}
    measured = {"random_bytes_per_s": rates.loads_per_s, "random_stores_bytes_per_s": rates.stores_per_s}
    return _of_all_cores(found, measured)


def _with_pages(found: Characterization) -> CoreFacts:
    """The facts with the number of pages in the core's TLB and the cycles of a page walk."""
    assert found.facts is not None
    if found.walks is None or found.walks.pages is None:
        return found.facts
    core = replace(found.facts.core, pages=found.walks.pages, walk=found.walks.walk_cycles)
    return replace(found.facts, core=core)


def _capacity(level: Level) -> str:
    seen = (
        "no step of the curve"
        if level.seen_bytes is None
        else f"the curve falls at {approximate_size(level.seen_bytes)}"
    )
    reported = "not reported" if level.reported is None else f"{show_size(level.reported.size_bytes)} reported"
    return f"{reported}, {seen}"


def approximate_size(size: int) -> str:
    """A size that is not a round number: `716 KiB`, `28.4 MiB`."""
    return show_size(size >> 10 << 10) if size < 1 << 20 else f"{size / (1 << 20):.1f} MiB"


def about_bandwidth(width: Bandwidth) -> str:
    """The rate of each pattern, counted as at this level."""
    loads = "loads alone: " if width.counts == "duplex" else ""
    rates = dict(width.by_pattern)
    if width.update_per_s is not None:
        rates.setdefault("update", width.update_per_s)
    pairs = [b for b in (width.beside, width.beside_far) if b is not None]
    also = "".join(f"; beside {b.far} it adds {show_bandwidth(b.measured_per_s)}" for b in pairs)
    return loads + ", ".join(f"{name} {show_bandwidth(rate)}" for name, rate in rates.items()) + also


def _ceilings(found: Characterization) -> Iterator[str]:
    """The rates of slower streams from memory, of caches together with farther levels, and of one core."""
    for level in found.levels[:-1]:
        for beside in (level.all_cores.beside, level.all_cores.beside_far):
            if beside is not None and beside.measured_per_s < 0.97 * level.all_cores.bytes_per_s:
                name = f"{level.name} beside {beside.far}, measured"
                yield f'ceiling "{name}" {level.name} {show_bandwidth(beside.measured_per_s)}'
    memory = found.levels[-1]
    for name, rate in memory.all_cores.by_pattern:
        if rate < 0.97 * memory.all_cores.bytes_per_s:
            yield f'ceiling "{name}, measured" {memory.name} {show_bandwidth(rate)}'
    for type_name in ("f64", "f32"):
        fused = found.peak(type_name, "fma")
        if fused is not None and found.cores > 1:
            yield f'ceiling "one core, {type_name}" {type_name} {show_rate(fused.one_core.per_s)}'
    shared = [v for v in found.levels[:-1] if v.reported is not None and v.reported.copies < found.cores]
    for level in (*shared, memory) if found.cores > 1 else ():
        yield f'ceiling "{ONE_CORE.format(level=level.name)}" {level.name} {show_bandwidth(level.one_core.bytes_per_s)}'
    past = None if found.walks is None else found.walks.past_per_s
    if found.cores > 1 and past is not None:
        yield f'ceiling "{ONE_CORE.format(level=STREAMED)}" {memory.name} {show_bandwidth(past)}'

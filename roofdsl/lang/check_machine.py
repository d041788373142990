"""Resolves a machine block: units to plain numbers, classes, levels, options; reports what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from roofdsl.lang import tree
from roofdsl.lang.functions import SPECIAL_FUNCTIONS
from roofdsl.lang.report import Report, did_you_mean, listed
from roofdsl.lang.source import Source, Span
from roofdsl.lang.types import TYPES
from roofdsl.lang.units import Kind, UnitError, convert

PEAK_CLASSES = ("fma", "min", "div", "special", *SPECIAL_FUNCTIONS, "tensor", "tensor_sparse")
COST_CLASSES = ("add", "mul", "div", "min", "special", *SPECIAL_FUNCTIONS)
_ALLOCATE = ("write_allocate", "no_write_allocate")
_DUPLEX = "duplex"
_BESIDE = "beside"
_MULTIPROCESSOR = ("warp", "warps", "blocks", "block_threads", "registers", "shared", "schedulers")
_OPTIONS = {"cache": ("line", "sector", "ways", "copies", _DUPLEX, _BESIDE, *_ALLOCATE), "memory": ("line", _DUPLEX)}


def resolve_quantity(quantity: tree.Quantity, kind: Kind, report: Report) -> Fraction:
    """The plain number; reports a wrong one and gives 1."""
    try:
        return convert(quantity.number, quantity.unit, kind)
    except UnitError as error:
        report.error(error.code, error.message, quantity.span, error.help)
        return Fraction(1)


def resolve_count(quantity: tree.Quantity, report: Report) -> int:
    """A positive whole number without a unit; reports anything else and gives 1."""
    value = resolve_quantity(quantity, "count", report)
    if value.denominator != 1:
        report.error("quantity-whole", "this is a number of things, and whole", quantity.span)
        return 1
    return int(value)


def resolve_cost(line: tree.MachineLine, report: Report) -> tree.Cost:
    """`cost CLASS N`, of a machine or a file."""
    cls = line.names[0]
    if cls.text not in COST_CLASSES:
        help = did_you_mean(cls.text, COST_CLASSES, f"the classes are {listed(COST_CLASSES, 'and')}")
        report.error("class-unknown", f"there is no class of operations `{cls.text}`", cls.span, help)
    return tree.Cost(cls.text, resolve_quantity(line.quantities[0], "count", report), _note(line), line.span)


def resolve_machine(block: tree.MachineBlock, source: Source, report: Report) -> tree.Machine:
    """The machine with plain numbers. Link ends that are other machines are the file's to check."""
    return _Resolver(block, source, report).run()


def _note(line: tree.MachineLine) -> str:
    return line.source.text if line.source else ""


class _Level(NamedTuple):
    """What a line about a cache or a memory says; `values` has its options that are whole numbers, and `duplex`."""

    name: str
    size: int
    bandwidth: Fraction
    values: dict[str, int]
    allocate: bool | None
    beside: Fraction | None


class _Resolver:
    def __init__(self, block: tree.MachineBlock, source: Source, report: Report) -> None:
        self.block, self.source, self.report = block, source, report
        self.seen: dict[tuple[str, ...], Span] = {}
        self.levels: dict[str, str] = {
            line.names[0].text: line.keyword for line in block.lines if line.keyword in ("cache", "memory")
        }

    def run(self) -> tree.Machine:
        resolvers: dict[str, Callable[[tree.MachineLine], tree.Entry]] = {
            "peak": self._peak, "pipes": self._pipes, "cache": self._cache, "memory": self._memory,
            "ceiling": self._ceiling, "link": self._link, "launch": self._launch, "clock": self._clock,
            "units": self._units, "cost": self._cost, "multiprocessor": self._multiprocessor,
            "latency": self._latency,
        }  # fmt: skip
        lines = self.block.lines
        entries = tuple(resolvers[line.keyword](line) for line in lines if line.keyword != "source")
        sources = tuple(line.label.text for line in lines if line.keyword == "source" and line.label)
        name = self.block.name
        for entry, word, example in (
            (tree.Memory, "memory", "memory HBM 16 GiB, 900 GB/s"),
            (tree.Peak, "peak", "peak f64 fma 7 TFLOP/s"),
        ):
            if not any(isinstance(e, entry) for e in entries):
                message = f"the machine `{name.text}` has no {word}"
                self.report.error(f"machine-{word}", message, name.span, f"add a line such as `{example}`")
        self._unlinked(entries)
        title = self.block.title.text if self.block.title else ""
        return tree.Machine(name.text, title, entries, sources, self.source, self.block.span)

    def _once(self, line: tree.MachineLine, what: str, *key: str) -> None:
        before = self.seen.setdefault((what, *key), line.span)
        if before is not line.span:
            shown = " ".join(filter(None, (what, *key)))
            message = f"`{shown}` stands twice in this machine; it was given in line {before.line}"
            self.report.error("machine-twice", message, line.span)

    # ---- peaks ----

    def _type(self, name: tree.Name) -> Kind:
        type_ = TYPES.get(name.text)
        if type_ is None:
            help = did_you_mean(name.text, TYPES, f"the types are {listed(TYPES, 'and')}")
            self.report.error("type-unknown", f"there is no type `{name.text}`", name.span, help)
        elif type_.kind == "complex":
            message = f"rates are of real types; `{name.text}` counts as {type_.component}"
            self.report.error("type-complex", message, name.span, f"write `{type_.component}`")
        return "op_rate" if type_ is not None and type_.kind == "int" else "flop_rate"

    def _class(self, line: tree.MachineLine, at: int) -> str:
        if len(line.names) <= at:
            return ""
        cls = line.names[at]
        if cls.text not in PEAK_CLASSES:
            help = did_you_mean(cls.text, PEAK_CLASSES, f"the classes are {listed(PEAK_CLASSES, 'and')}")
            self.report.error("class-unknown", f"there is no class of rates `{cls.text}`", cls.span, help)
        return cls.text

    def _peak(self, line: tree.MachineLine) -> tree.Peak:
        kind = self._type(line.names[0])
        cls = self._class(line, 1)
        self._once(line, "peak", line.names[0].text, cls)
        rate = self._rate(line, line.names[0], kind)
        return tree.Peak(line.names[0].text, cls, rate, _note(line), line.span)

    def _rate(self, line: tree.MachineLine, type_: tree.Name, kind: Kind) -> Fraction:
        quantity = line.quantities[0]
        if type_.text not in TYPES and quantity.unit.endswith("/s"):
            return Fraction(1)  # of an unknown type there is no right unit
        return resolve_quantity(quantity, kind, self.report)

    def _pipes(self, line: tree.MachineLine) -> tree.Pipes:
        self._once(line, "pipes")
        words = [name.text for name in line.names]
        kinds = tuple(sorted(words[1:]))
        if words[:1] != ["separate"] or kinds not in (("add", "mul"), ("add", "div", "mul")):
            message = "the only statements about pipes are `pipes separate add mul` and `pipes separate add mul div`"
            self.report.error("machine-pipes", message, line.span)
            kinds = ("add", "mul")
        return tree.Pipes(kinds, _note(line), line.span)

    def _ceiling(self, line: tree.MachineLine) -> tree.Ceiling:
        label = line.label.text if line.label else ""
        self._once(line, "ceiling", f'"{label}"')
        target = line.names[0]
        is_level = target.text in self.levels
        if not is_level and target.text not in TYPES:
            known = [*self.levels, *TYPES]
            help = did_you_mean(target.text, known, "write a type such as `f64`, or a cache or memory of this machine")
            self.report.error("name-unknown", f"`{target.text}` is neither a type nor a level", target.span, help)
            rate = Fraction(1)
        elif is_level:
            rate = resolve_quantity(line.quantities[0], "bandwidth", self.report)
            if len(line.names) > 1:
                message = "a ceiling of a level has no class of operations"
                self.report.error("class-unknown", message, line.names[1].span)
        else:
            rate = resolve_quantity(line.quantities[0], self._type(target), self.report)
        cls = self._class(line, 1) if not is_level else ""
        return tree.Ceiling(label, target.text, cls, is_level, rate, _note(line), line.span)

    # ---- levels ----

    def _level(self, line: tree.MachineLine) -> _Level:
        name = line.names[0]
        before = self.seen.setdefault(("level", name.text), line.span)
        if before is not line.span:
            message = f"the level `{name.text}` stands twice in this machine; it was given in line {before.line}"
            self.report.error("machine-twice", message, line.span)
        if name.text in TYPES:
            self.report.error("name-kind", f"`{name.text}` is a type and cannot name a level", name.span)
        size = int(resolve_quantity(line.quantities[0], "size", self.report))
        bandwidth = resolve_quantity(line.quantities[1], "bandwidth", self.report)
        values: dict[str, int] = {}
        allocate: bool | None = None
        beside: Fraction | None = None
        for option in line.options:
            word = option.name.text
            if word not in _OPTIONS[line.keyword]:
                known = _OPTIONS[line.keyword]
                help = did_you_mean(word, known, f"a {line.keyword} has {listed(known, 'and')}")
                self.report.error("machine-option", f"a {line.keyword} has no `{word}`", option.span, help)
            elif word in values or (word in _ALLOCATE and allocate is not None) or (word == _BESIDE and beside):
                self.report.error("machine-option", f"`{word}` comes second here", option.span, "say it once")
            elif word in _ALLOCATE or word == _DUPLEX:
                if word == _DUPLEX:
                    values[word] = 1
                else:
                    allocate = word == "write_allocate"
                if option.quantity is not None:
                    self.report.error("machine-option", f"`{word}` takes no number", option.span)
            elif option.quantity is None:
                example = {"line": "64 B", "sector": "64 B", _BESIDE: "100 GB/s"}.get(word, "8")
                message = f"`{word}` needs a number"
                self.report.error("machine-option", message, option.span, f"write `{word} {example}`")
            elif word == _BESIDE:
                beside = resolve_quantity(option.quantity, "bandwidth", self.report)
            elif word in ("line", "sector"):
                values[word] = int(resolve_quantity(option.quantity, "size", self.report))
            else:
                values[word] = resolve_count(option.quantity, self.report)
        self._fit(line, size, values)
        return _Level(name.text, size, bandwidth, values, allocate, beside)

    def _fit(self, line: tree.MachineLine, size: int, values: dict[str, int]) -> None:
        length = values.get("line")
        if length is None:
            return
        if length > size:
            message = f"a line of {length} bytes does not fit into {size} bytes"
            self.report.error("machine-option", message, line.span)
        if length % values.get("sector", length):
            message = f"a line of {length} bytes is no whole number of sectors of {values['sector']}"
            self.report.error("machine-option", message, line.span)

    def _cache(self, line: tree.MachineLine) -> tree.Cache:
        name, size, bandwidth, values, allocate, beside = self._level(line)
        copies = values.get("copies", 1)
        return tree.Cache(
            name, size, bandwidth, values.get("line"), values.get("sector"), values.get("ways"), copies, allocate,
            _DUPLEX in values, beside, _note(line), line.span,
        )  # fmt: skip

    def _memory(self, line: tree.MachineLine) -> tree.Memory:
        name, size, bandwidth, values, _, _ = self._level(line)
        return tree.Memory(name, size, bandwidth, values.get("line"), _DUPLEX in values, _note(line), line.span)

    # ---- the rest ----

    def _link(self, line: tree.MachineLine) -> tree.Link:
        name, a, b = line.names
        self._once(line, "link", name.text)
        if a.text == b.text:
            self.report.error("link-end", f"the link `{name.text}` leads from `{a.text}` to itself", line.span)
        bandwidth = resolve_quantity(line.quantities[0], "bandwidth", self.report)
        return tree.Link(name.text, a.text, b.text, line.arrow == "<->", bandwidth, _note(line), line.span)

    def _launch(self, line: tree.MachineLine) -> tree.Launch:
        self._once(line, "launch")
        return tree.Launch(resolve_quantity(line.quantities[0], "time", self.report), _note(line), line.span)

    def _clock(self, line: tree.MachineLine) -> tree.Clock:
        self._once(line, "clock")
        return tree.Clock(resolve_quantity(line.quantities[0], "frequency", self.report), _note(line), line.span)

    def _units(self, line: tree.MachineLine) -> tree.Units:
        self._once(line, "units")
        return tree.Units(resolve_count(line.quantities[0], self.report), _note(line), line.span)

    def _multiprocessor(self, line: tree.MachineLine) -> tree.Multiprocessor:
        self._once(line, "multiprocessor")
        values: dict[str, int] = {}
        for option in line.options:
            word = option.name.text
            if word not in _MULTIPROCESSOR:
                help = did_you_mean(word, _MULTIPROCESSOR, f"it has {listed(_MULTIPROCESSOR, 'and')}")
                self.report.error("machine-option", f"a multiprocessor has no `{word}`", option.span, help)
            elif word in values:
                self.report.error("machine-option", f"`{word}` comes second here", option.span, "say it once")
            elif option.quantity is None:
                example = "shared 96 KiB" if word == "shared" else f"{word} 32"
                self.report.error("machine-option", f"`{word}` needs a number", option.span, f"write `{example}`")
            elif word == "shared":
                values[word] = int(resolve_quantity(option.quantity, "size", self.report))
            else:
                values[word] = resolve_count(option.quantity, self.report)
        if "warp" not in values:
            message = "a multiprocessor says how many threads execute together"
            self.report.error("machine-option", message, line.span, "begin with `warp 32`")
        warp = values.pop("warp", 32)
        return tree.Multiprocessor(warp, **values, source=_note(line), span=line.span)

    def _latency(self, line: tree.MachineLine) -> tree.Latency:
        level = line.names[0]
        self._once(line, "latency", level.text)
        if level.text not in self.levels:
            known = list(self.levels)
            help = did_you_mean(level.text, known, f"the levels are {listed(known, 'and')}" if known else "")
            self.report.error("name-unknown", f"this machine has no level `{level.text}`", level.span, help)
        time = resolve_quantity(line.quantities[0], "time", self.report)
        return tree.Latency(level.text, time, _note(line), line.span)

    def _cost(self, line: tree.MachineLine) -> tree.Cost:
        self._once(line, "cost", line.names[0].text)
        return resolve_cost(line, self.report)

    def _unlinked(self, entries: tuple[tree.Entry, ...]) -> None:
        memories = [e for e in entries if isinstance(e, tree.Memory)]
        ends = {end for e in entries if isinstance(e, tree.Link) for end in (e.a, e.b)}
        for memory in memories[1:]:
            if memory.name not in ends:
                message = f"the memory `{memory.name}` is not the machine's first, and no link reaches it"
                help = f"add a link such as `link bus: {memories[0].name} <-> {memory.name} 50 GB/s`"
                self.report.warning("memory-unlinked", message, memory.span, help)

"""Resolves a machine block: units to plain numbers, classes, levels, options; reports what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from roofdsl.lang import tree
from roofdsl.lang.attribute_row import Attribute
from roofdsl.lang.check_levels import check_level, check_one_core, check_order
from roofdsl.lang.checked import CheckedMachine, Entry
from roofdsl.lang.findings import Report, did_you_mean, listed
from roofdsl.lang.machine_attributes import SETTINGS, attributes
from roofdsl.lang.operation_classes import COST_CLASSES, INSTRUCTION_CLASSES, PEAK_CLASSES
from roofdsl.lang.source import Source, Span
from roofdsl.lang.syntax_hints import of_type
from roofdsl.lang.types import TYPES
from roofdsl.lang.units import Kind, UnitError, convert

Fields = dict[str, Any]
"""Fields of the machine model with their values."""

DIRECTIONS = ("read", "write", "mixed")
"""What crosses a level's boundary while a `sustained` bandwidth holds: loads, stores, or both at the same time."""

_PORTS = "name the vector units that execute it, among `p0` to `p3`"
_OPTIONS_WRITTEN_OTHERWISE = {
    ("instruction", "port"): _PORTS,
    ("instruction", "ports"): _PORTS,
    ("cache", "shared"): "a cache is shared unless the line says otherwise: `copies 8` for one in each of eight cores",
    ("cache", "private"): "write how many such caches there are: `copies 8` for one in each of eight cores",
}
"""Options that people write for something that the language says otherwise, by the line's keyword and the word."""


def resolve_quantity(quantity: tree.Quantity, kind: Kind, report: Report) -> Fraction:
    """The number in plain units; reports a wrong one and returns 1."""
    try:
        return convert(quantity.number, quantity.unit, kind)
    except UnitError as error:
        report.error(error.code, error.message, quantity.span, error.help)
        return Fraction(1)


def resolve_count(quantity: tree.Quantity, report: Report) -> int:
    """A positive whole number without a unit; reports anything else and returns 1."""
    value = resolve_quantity(quantity, "count", report)
    if value.denominator != 1:
        report.error("quantity-whole", "this count must be a whole number", quantity.span)
        return 1
    return int(value)


def resolve_cost(line: tree.MachineLine, report: Report) -> tuple[str, Fraction]:
    """The class and the number of `cost CLASS N`, of a machine or a file."""
    cls = line.names[0]
    if cls.text not in COST_CLASSES:
        help = did_you_mean(cls.text, COST_CLASSES, f"the classes are {listed(COST_CLASSES, 'and')}")
        report.error("class-unknown", f"there is no class of operations `{cls.text}`", cls.span, help)
    return cls.text, resolve_quantity(line.quantities[0], "count", report)


def resolve_machine(block: tree.MachineBlock, source: Source, report: Report) -> CheckedMachine:
    """The machine with numbers in plain units. Links that end at other machines are for the file's check."""
    return _Resolver(block, source, report).run()


class _Resolver:
    def __init__(self, block: tree.MachineBlock, source: Source, report: Report) -> None:
        self.block, self.source, self.report = block, source, report
        self.seen: dict[tuple[str, ...], Span] = {}
        self.levels: dict[str, str] = {
            line.names[0].text: line.keyword for line in block.lines if line.keyword in ("cache", "memory")
        }

    def run(self) -> CheckedMachine:
        resolvers: dict[str, Callable[[tree.MachineLine], Fields]] = {
            "processor": self._processor, "peak": self._peak, "pipes": self._pipes, "transfers": self._transfers,
            "cache": self._level, "memory": self._level,
            "ceiling": self._ceiling, "link": self._link, "cost": self._cost, "multiprocessor": self._multiprocessor,
            "latency": self._latency, "sustained": self._sustained, "core": self._core,
            "instruction": self._instruction,
            **dict.fromkeys(SETTINGS, self._setting),
        }  # fmt: skip
        lines = self.block.lines
        entries = tuple(
            Entry(line.keyword, resolvers[line.keyword](line), line.source.text if line.source else "", line)
            for line in lines
            if line.keyword != "source"
        )
        sources = tuple(line.label.text for line in lines if line.keyword == "source" and line.label)
        name = self.block.name
        for word, example in (("memory", "memory HBM 16 GiB, 900 GB/s"), ("peak", "peak f64 fma 7 TFLOP/s")):
            if not any(e.keyword == word for e in entries):
                message = f"the machine `{name.text}` has no {word}"
                self.report.error(f"machine-{word}", message, name.span, f"add a line such as `{example}`")
        title = self.block.title.text if self.block.title else ""
        found = CheckedMachine(name.text, title, entries, sources, self.source, self.block.span)
        self._unlinked(found)
        self._capped(found)
        check_order(found, self.report)
        return found

    def _once(self, line: tree.MachineLine, what: str, *key: str) -> None:
        before = self.seen.setdefault((what, *key), line.span)
        if before is not line.span:
            shown = " ".join(filter(None, (what, *key)))
            message = f"`{shown}` appears twice in this machine; it was first given on line {before.line}"
            self.report.error("machine-twice", message, line.span)

    def _processor(self, line: tree.MachineLine) -> Fields:
        self._once(line, "processor")
        return {"processor": line.label.text if line.label else ""}

    # ---- peaks ----

    def _type(self, name: tree.Name) -> Kind:
        type_ = TYPES.get(name.text)
        if type_ is None:
            self.report.error("type-unknown", f"there is no type `{name.text}`", name.span, of_type(name.text))
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

    def _peak(self, line: tree.MachineLine) -> Fields:
        type_ = line.names[0]
        kind = self._type(type_)
        cls = self._class(line, 1)
        self._once(line, "peak", type_.text, cls)
        options = self._options(line)
        for option in line.options:
            if option.quantity is not None:
                self._of_operation(option.quantity, kind)
        return {"type": type_.text, "cls": cls, "rate_per_s": self._rate(line, type_, kind), **options}

    def _of_operation(self, quantity: tree.Quantity, kind: Kind) -> None:
        """Report `pJ/OP` for a float type, and `pJ/FLOP` for an integer type."""
        unit, per = quantity.unit, "OP" if kind == "op_rate" else "FLOP"
        if unit.endswith(("J/FLOP", "J/OP")) and not unit.endswith(f"J/{per}"):
            meant = f"{unit.partition('/')[0]}/{per}"
            message = f"`{unit}` is not the unit of the energy of this type's operations, which are counted in {per}"
            self.report.error("unit-kind", message, quantity.span, f"write `{quantity.number} {meant}`")

    def _rate(self, line: tree.MachineLine, type_: tree.Name, kind: Kind) -> Fraction:
        quantity = line.quantities[0]
        if type_.text not in TYPES and quantity.unit.endswith("/s"):
            return Fraction(1)  # of an unknown type there is no right unit
        return resolve_quantity(quantity, kind, self.report)

    def _pipes(self, line: tree.MachineLine) -> Fields:
        self._once(line, "pipes")
        words = [name.text for name in line.names]
        if words == ["units"]:
            return {"pipes_by_unit": True}
        kinds = tuple(sorted(words[1:]))
        if words[:1] != ["separate"] or kinds not in (("add", "mul"), ("add", "div", "mul")):
            message = "`pipes` is followed by `separate add mul`, by `separate add mul div` or by `units`"
            self.report.error("machine-pipes", message, line.span)
            kinds = ("add", "mul")
        return {"pipes_separate": True, "divider_separate": "div" in kinds}

    def _transfers(self, line: tree.MachineLine) -> Fields:
        """`transfers serial` is an overlap of 0, `transfers overlap` one of 1, `transfers overlap 0.4` one in part."""
        self._once(line, "transfers")
        word = line.names[0].text
        overlap = Fraction(word == "overlap")
        if line.quantities and word == "overlap":
            overlap = resolve_quantity(line.quantities[0], "count", self.report)
        if word not in ("serial", "overlap") or (word == "serial" and line.quantities) or overlap > 1:
            message = "transfers are `serial`, `overlap`, or `overlap SHARE` with a share of at most 1"
            help = "`transfers overlap 0.4` if four tenths of what could overlap does"
            self.report.error("machine-transfers", message, line.span, help)
        return {"transfer_overlap": overlap}

    def _ceiling(self, line: tree.MachineLine) -> Fields:
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
        if is_level:
            check_one_core(line, self.levels, self.report)
            return {"name": label, "level": target.text, "bandwidth_bytes_per_s": rate}
        return {"name": label, "type": target.text, "rate_per_s": rate, "cls": self._class(line, 1)}

    # ---- levels ----

    def _level(self, line: tree.MachineLine) -> Fields:
        """A cache or a memory."""
        name = line.names[0]
        before = self.seen.setdefault(("level", name.text), line.span)
        if before is not line.span:
            message = f"the level `{name.text}` appears twice in this machine; it was first given on line {before.line}"
            self.report.error("machine-twice", message, line.span)
        if name.text in TYPES:
            self.report.error("name-kind", f"`{name.text}` is a type, so it cannot name a level", name.span)
        wrong = len(self.report.errors)
        size = int(resolve_quantity(line.quantities[0], "size", self.report))
        bandwidth = resolve_quantity(line.quantities[1], "bandwidth", self.report)
        are_known = len(self.report.errors) == wrong
        options = self._options(line)
        if are_known:
            check_level(line, size, bandwidth, options, self.report)
        return {"name": name.text, "size_bytes": size, "bandwidth_bytes_per_s": bandwidth, **options}

    def _options(self, line: tree.MachineLine) -> Fields:
        """The attributes that a line lists after commas."""
        known, values = attributes(line.keyword), Fields()
        for option in line.options:
            word = option.name.text
            attribute = known.get(word)
            if attribute is None:
                of = f"{'an' if line.keyword == 'instruction' else 'a'} {line.keyword}"
                help = _OPTIONS_WRITTEN_OTHERWISE.get((line.keyword, word), "")
                help = help or did_you_mean(word, known, f"{of} has {listed(known, 'and')}")
                self.report.error("machine-option", f"{of} has no `{word}`", option.span, help)
            elif attribute.field in values:
                self.report.error("machine-option", f"`{word}` is given twice", option.span, "say it once")
            elif attribute.kind is None:
                values[attribute.field] = attribute.value
                if option.quantity is not None and attribute.share:
                    values[attribute.field] = self._share(option.quantity, attribute)
                elif option.quantity is not None:
                    self.report.error("machine-option", f"`{word}` takes no number", option.span)
            elif option.quantity is None:
                example = attribute.example
                if attribute.kind == "operation_energy" and self._counts_integers(line):
                    example = example.replace("FLOP", "OP")
                help = f"write `{word} {example}`"
                self.report.error("machine-option", f"`{word}` needs a number", option.span, help)
            else:
                values[attribute.field] = self._number(option.quantity, attribute.kind)
        for attribute in known.values():
            if attribute.needed and attribute.field not in values:
                _, space, unit = attribute.example.partition(" ")
                help = f"add `{attribute.word} N{space}{unit}`, such as `{attribute.word} {attribute.example}`"
                self.report.error("machine-option", attribute.needed, line.span, help)
                values[attribute.field] = 1
        return values

    def _counts_integers(self, line: tree.MachineLine) -> bool:
        type_ = TYPES.get(line.names[0].text)
        return type_ is not None and type_.kind == "int"

    def _share(self, quantity: tree.Quantity, attribute: Attribute) -> object:
        """The share that follows a word; a share of 1 means the same as the word alone."""
        share = resolve_quantity(quantity, "number", self.report)
        if share > 1:
            help = f"write a number between 0 and 1, or `{attribute.word}` alone for 1"
            self.report.error("machine-option", f"`{attribute.word}` takes a share", quantity.span, help)
        return attribute.value if share >= 1 else share

    def _number(self, quantity: tree.Quantity, kind: Kind) -> Fraction | int:
        if kind == "count":
            return resolve_count(quantity, self.report)
        value = resolve_quantity(quantity, kind, self.report)
        return int(value) if kind == "size" else value

    # ---- the rest ----

    def _setting(self, line: tree.MachineLine) -> Fields:
        """A line with one quantity, such as `clock`."""
        self._once(line, line.keyword)
        attribute = attributes("machine")[line.keyword]
        assert attribute.kind is not None
        return {attribute.field: self._number(line.quantities[0], attribute.kind)}

    def _link(self, line: tree.MachineLine) -> Fields:
        name, a, b = (n.text for n in line.names)
        self._once(line, "link", name)
        if a == b:
            self.report.error("link-end", f"the link `{name}` leads from `{a}` to itself", line.span)
        bandwidth = resolve_quantity(line.quantities[0], "bandwidth", self.report)
        both_ways = line.arrow == "<->"
        return {"name": name, "start": a, "end": b, "bandwidth_bytes_per_s": bandwidth, "both_ways": both_ways}

    def _multiprocessor(self, line: tree.MachineLine) -> Fields:
        self._once(line, "multiprocessor")
        return self._options(line)

    def _core(self, line: tree.MachineLine) -> Fields:
        self._once(line, "core")
        return self._options(line)

    def _instruction(self, line: tree.MachineLine) -> Fields:
        """A class of instructions at one width; plain loads and stores of vectors have no type."""
        cls, *types = line.names
        if cls.text not in INSTRUCTION_CLASSES:
            help = did_you_mean(cls.text, INSTRUCTION_CLASSES, f"the classes are {listed(INSTRUCTION_CLASSES, 'and')}")
            message = f"there is no class of instructions `{cls.text}`"
            self.report.error("class-unknown", message, cls.span, help)
        for name in types:
            self._type(name)
        wrong = len(self.report.errors)
        bits = resolve_quantity(line.quantities[0], "bits", self.report)
        if bits.denominator != 1:
            self.report.error("quantity-whole", "the width must be a whole number of bits", line.quantities[0].span)
        elif bits % 8 and len(self.report.errors) == wrong:
            message = f"instructions work on whole bytes, but {bits} bits are not"
            self.report.error("quantity-whole", message, line.quantities[0].span, "such as `64 bits` or `256 bits`")
        type_name = types[0].text if types else ""
        self._once(line, "instruction", cls.text, *([type_name] if types else []), f"{int(bits)} bits")
        return {"cls": cls.text, "type": type_name, "bits": int(bits), **self._options(line)}

    def _latency(self, line: tree.MachineLine) -> Fields:
        level = self._level_of(line)
        self._once(line, "latency", level)
        return {"level": level, "time_s": resolve_quantity(line.quantities[0], "time", self.report)}

    def _sustained(self, line: tree.MachineLine) -> Fields:
        level, direction = self._level_of(line), line.names[1]
        self._once(line, "sustained", level, direction.text)
        if direction.text not in DIRECTIONS:
            help = did_you_mean(direction.text, DIRECTIONS, f"the directions are {listed(DIRECTIONS, 'and')}")
            self.report.error("name-unknown", f"there is no direction `{direction.text}`", direction.span, help)
        rate = resolve_quantity(line.quantities[0], "bandwidth", self.report)
        return {"level": level, "direction": direction.text, "bandwidth_bytes_per_s": rate, **self._options(line)}

    def _level_of(self, line: tree.MachineLine) -> str:
        """The level that a line is about; the line begins with its name."""
        level = line.names[0]
        if level.text not in self.levels:
            known = list(self.levels)
            help = did_you_mean(level.text, known, f"the levels are {listed(known, 'and')}" if known else "")
            self.report.error("name-unknown", f"this machine has no level `{level.text}`", level.span, help)
        return level.text

    def _cost(self, line: tree.MachineLine) -> Fields:
        self._once(line, "cost", line.names[0].text)
        cls, value = resolve_cost(line, self.report)
        return {"cls": cls, "value": value}

    def _capped(self, machine: CheckedMachine) -> None:
        """Report a cap that leaves no power to compute with."""
        for constant in machine.all_of("constant_power"):
            for cap in machine.all_of("power_cap"):
                if cap.fields["power_cap_w"] <= constant.fields["constant_power_w"]:
                    message = "the power cap must be above the constant power, or nothing can be executed"
                    self.report.error("machine-power", message, cap.line.span)

    def _unlinked(self, machine: CheckedMachine) -> None:
        ends = {link.fields[end] for link in machine.all_of("link") for end in ("start", "end")}
        memories = machine.all_of("memory")
        for memory in memories[1:]:
            first, name = memories[0].fields["name"], memory.fields["name"]
            if name not in ends and name != first:  # a second one of that name is an error already
                message = f"the memory `{name}` is not the machine's first, and no link reaches it"
                help = f"add a link such as `link bus: {first} <-> {name} 50 GB/s`"
                self.report.warning("memory-unlinked", message, memory.line.span, help)

"""Seeded random kernels as `.roof` text, with sizes small enough that enumeration takes milliseconds.

Every subscript is within bounds for all sizes the assumptions allow, because the arrays are declared as large as the
interval of each subscript requires. Arrays that are read and written are `inout`, or are filled first and `temp`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random


@dataclass(frozen=True)
class RandomKernel:
    """A kernel's text and sizes at which all its assumptions hold."""

    seed: int
    text: str
    sizes: tuple[dict[str, int], ...]


@dataclass(frozen=True)
class Linear:
    """`n * a + m * b + c` with a, b not negative: a bound of a subscript."""

    n: int = 0
    m: int = 0
    c: int = 0

    def __add__(self, other: Linear) -> Linear:
        return Linear(self.n + other.n, self.m + other.m, self.c + other.c)

    def scaled(self, k: int) -> Linear:
        return Linear(self.n * k, self.m * k, self.c * k)

    def above(self, other: Linear) -> Linear:
        """A bound that is at least both."""
        return Linear(max(self.n, other.n), max(self.m, other.m), max(self.c, other.c))

    def __str__(self) -> str:
        parts = [f"{k}*{p}" if k > 1 else p for k, p in ((self.n, "n"), (self.m, "m")) if k]
        if self.c or not parts:
            parts.append(str(self.c))
        return " + ".join(parts).replace("+ -", "- ")


@dataclass(frozen=True)
class Var:
    """A loop variable and the interval its values lie in."""

    name: str
    low: int
    high: Linear


@dataclass
class ArrayUse:
    name: str
    type: str
    column_major: bool
    top: list[Linear]  # the largest subscript of each dimension
    read: bool = False
    written: bool = False


@dataclass
class Maker:
    """The state of one generation."""

    rng: Random
    complex_types: bool
    has_m: bool
    has_b: bool
    arrays: list[ArrayUse] = field(default_factory=list)
    scalars: dict[str, str] = field(default_factory=dict)  # name -> intent
    lines: list[str] = field(default_factory=list)
    lets: int = 0
    loops: int = 0
    statements: int = 0

    def emit(self, depth: int, text: str) -> None:
        self.lines.append("    " * (depth + 1) + text)

    # ---- loops ----

    def loop(self, depth: int, scope: list[Var], max_depth: int) -> None:
        header, new = self.header(scope)
        self.loops += 1
        self.emit(depth, f"for {header}:")
        self.block(depth + 1, [*scope, *new], max_depth)

    def fresh(self, scope: list[Var], prefix: str = "") -> str:
        return next(prefix + v for v in "ijklpq" if prefix + v not in {s.name for s in scope})

    def header(self, scope: list[Var]) -> tuple[str, list[Var]]:
        """The text of a `for` and the variables it binds."""
        r = self.rng
        name = self.fresh(scope)
        size = Linear(n=1) if not self.has_m or r.random() < 0.6 else Linear(m=1)
        outer = r.choice(scope) if scope else None
        kinds = ["full"] * 4 + ["margin"] * 3 + ["step", "const"]
        if outer:
            kinds += ["upto", "from", "window", "minmax", "beyond"]
        if self.has_b and len(scope) < 3:
            kinds += ["blocks"] * 6
        if len(scope) < 3:
            kinds += ["literal_blocks"]
        kind = r.choice(kinds)
        last = size + Linear(c=-1)
        if kind == "margin":
            a, b = r.randint(0, 2), r.randint(0, 2)
            stop = str(size + Linear(c=-b))
            return f"{name} in range({a}, {stop})", [Var(name, a, size + Linear(c=-b - 1))]
        if kind == "step":
            a = r.randint(0, 1)
            return f"{name} in range({a}, {size}, {r.choice((2, 3))})", [Var(name, a, last)]
        if kind == "const":
            k = r.randint(1, 4)
            return f"{name} in range({k})", [Var(name, 0, Linear(c=k - 1))]
        if kind == "blocks":
            first = f"{name} in range({name}{name}, {name}{name} + b)"
            blocks = Var(name + name, 0, Linear(n=1, c=-1))
            return f"{name}{name} in range(0, n, b), {first}", [blocks, Var(name, 0, Linear(n=1, c=-1))]
        if kind == "literal_blocks":
            k = r.choice((2, 3, 4))
            inner = f"{name} in range({name}{name}, min({name}{name} + {k}, {size}))"
            return f"{name}{name} in range(0, {size}, {k}), {inner}", [Var(name + name, 0, last), Var(name, 0, last)]
        if outer and kind == "upto":
            k = r.randint(0, 2)
            bound = f"{outer.name} + {k}" if k else outer.name
            return f"{name} in range({bound})", [Var(name, 0, outer.high + Linear(c=k - 1))]
        if outer and kind == "from":
            return f"{name} in range({outer.name}, {size})", [Var(name, outer.low, last)]
        if outer and kind == "window":
            return f"{name} in range({outer.name}, {outer.name} + 3)", [Var(name, outer.low, outer.high + Linear(c=2))]
        if outer and kind == "beyond":
            return f"{name} in range({outer.name} + 1, {size})", [Var(name, outer.low + 1, last)]
        if outer and kind == "minmax":
            k = r.randint(1, 2)
            text = f"{name} in range(max(0, {outer.name} - {k}), min({size}, {outer.name} + {k + 1}))"
            return text, [Var(name, 0, last)]
        return f"{name} in range({size})", [Var(name, 0, last)]

    def block(self, depth: int, scope: list[Var], max_depth: int) -> None:
        """The body of a loop: at least one statement or loop."""
        r = self.rng
        names: list[str] = []
        deeper = len(scope) < max_depth and self.loops < 5
        before = len(self.lines)
        if not deeper or r.random() < 0.25:
            self.leaf(depth, scope, names)
        if deeper and r.random() < 0.85:
            self.loop(depth, scope, max_depth)
            if r.random() < 0.15 and self.loops < 5:
                self.loop(depth, scope, max_depth)
        if len(self.lines) == before or r.random() < 0.25:
            self.leaf(depth, scope, names)

    def leaf(self, depth: int, scope: list[Var], names: list[str]) -> None:
        r = self.rng
        for _ in range(r.choice((1, 1, 1, 2))):
            if r.random() < 0.2:
                self.emit(depth, f"if {self.condition(scope)}:")
                self.statement(depth + 1, scope, list(names))
                if r.random() < 0.5:
                    self.emit(depth, "else:")
                    self.statement(depth + 1, scope, list(names))
            else:
                self.statement(depth, scope, names)

    # ---- conditions, subscripts, expressions ----

    def condition(self, scope: list[Var]) -> str:
        r = self.rng
        v, w = r.choice(scope).name, r.choice(scope).name
        simple = [
            f"{v} % 2 == 0", f"{v} % 3 != 1", f"{v} < {w} + 1", f"{v} + {w} < n", f"{v} >= 2", f"{v} // 2 > 1",
            f"({v} + {w}) % 2 == 1", f"{v} != {w}", f"2*{v} <= {w} + 3", f"{v} // 2 == {w} // 2",
        ]  # fmt: skip
        a, b = r.sample(simple, 2)
        return r.choice([a, a, a, f"{a} and {b}", f"{a} or {b}", f"not ({a})", f"not ({a} and {b})"])

    def subscript(self, scope: list[Var]) -> tuple[str, Linear]:
        """The text of a subscript and its largest value; its smallest is at least 0."""
        r = self.rng
        v = r.choice(scope)
        kinds = ["plain"] * 6 + ["shift"] * 4 + ["stride"] * 2 + ["sum"] * 2
        kind = r.choice([*kinds, "div", "mod", "mirror", "const"])
        if kind == "shift":
            shift = r.randint(-v.low, 3)
            return (f"{v.name} + {shift}" if shift >= 0 else f"{v.name} - {-shift}"), v.high + Linear(c=shift)
        if kind == "stride":
            k, shift = r.choice((2, 3)), r.randint(0, 2)
            return f"{k}*{v.name} + {shift}", v.high.scaled(k) + Linear(c=shift)
        if kind == "sum":
            w, k = r.choice(scope), r.choice((1, 1, 2))
            return f"{v.name} + {k}*{w.name}", v.high + w.high.scaled(k)
        if kind == "div":
            return (f"{v.name} // 2" if r.random() < 0.5 else f"({v.name} + 2*{v.name}) // 3"), v.high
        if kind == "mod":
            k = r.choice((2, 3, 4))
            return f"{v.name} % {k}", Linear(c=k - 1)
        if kind == "mirror" and (v.high.n, v.high.m) in ((1, 0), (0, 1), (0, 0)):
            return f"{v.high} - {v.name}", v.high
        if kind == "const":
            k = r.randint(0, 2)
            return str(k), Linear(c=k)
        return v.name, v.high

    def element(self, scope: list[Var], write: bool) -> str:
        r = self.rng
        if not self.arrays or (len(self.arrays) < 4 and r.random() < 0.35):
            types = ("c128", "c64") if self.complex_types else ("f64", "f64", "f32", "f16")
            dims = min(r.choice((1, 1, 2, 2, 3)), len(scope) + 1)
            name = "ABCDEF"[len(self.arrays)]
            self.arrays.append(ArrayUse(name, r.choice(types), r.random() < 0.2, [Linear()] * dims))
        array = r.choice(self.arrays)
        texts = []
        for d in range(len(array.top)):
            text, high = self.subscript(scope)
            array.top[d] = array.top[d].above(high)
            texts.append(text)
        if write:
            array.written = True
        else:
            array.read = True
        return f"{array.name}[{', '.join(texts)}]"

    def scalar(self, intent: str) -> str:
        name = {"in": "alpha", "inout": "total"}[intent]
        self.scalars[name] = intent
        return name

    def expression(self, scope: list[Var], names: list[str], depth: int = 2) -> str:
        r = self.rng
        if depth == 0 or r.random() < 0.3:
            if names and r.random() < 0.4:
                return r.choice(names)
            kind = r.choice(["element"] * 4 + ["scalar", "number"])
            if kind == "element":
                return self.element(scope, write=False)
            return self.scalar("in") if kind == "scalar" else "0.5"
        a, b = self.expression(scope, names, depth - 1), self.expression(scope, names, depth - 1)
        kinds = ["+", "-", "*", "+", "*", "neg", "pow"]
        if not self.complex_types:
            kinds += ["min", "max", "select", "exp"]
        match r.choice(kinds):
            case "neg":
                return f"-({a})"
            case "pow":
                return f"({a})**{r.randint(2, 4)}"
            case "min":
                return f"min({a}, {b})"
            case "max":
                return f"max({a}, {b})"
            case "select":
                return f"select({a} < {b}, {self.expression(scope, names, 0)}, {b})"
            case "exp":
                return f"exp({a})"
            case op:
                return f"({a} {op} {b})"

    def statement(self, depth: int, scope: list[Var], names: list[str]) -> None:
        r = self.rng
        self.statements += 1
        value = self.expression(scope, names)
        roll = r.random()
        if roll < 0.12:
            self.lets += 1
            names.append(f"t{self.lets}")
            value = f"{self.element(scope, write=False)} * {value}"
            self.emit(depth, f"let t{self.lets} = {value}")
            value = self.expression(scope, names)
        elif roll < 0.2:
            self.emit(depth, f"count steps {r.choice(['1', scope[-1].name + ' + 1'])}")
        if r.random() < 0.1:
            self.emit(depth, f"{self.scalar('inout')} += {value}")
            return
        ops = ["=", "=", "=", "+=", "+=", "-=", "*="] + ([] if self.complex_types else ["min=", "max="])
        op = r.choice(ops)
        target = self.element(scope, write=True)
        if op != "=":
            name = target.split("[")[0]
            next(a for a in self.arrays if a.name == name).read = True
        self.emit(depth, f"{target} {op} {value}")


def random_kernel(seed: int, max_depth: int = 4) -> RandomKernel:
    """The kernel of this seed: up to four nested loops, several statements, guards, strides, several types."""
    rng = Random(seed)
    m = Maker(rng, complex_types=rng.random() < 0.1, has_m=rng.random() < 0.3, has_b=rng.random() < 0.3)
    top = rng.randint(1, max_depth)
    m.loop(0, [], top)
    if rng.random() < 0.2:
        m.loop(0, [], min(top, 2))
    declarations, prologue = _declarations(m)
    parameters = ["n", *(["m"] if m.has_m else []), *(["b"] if m.has_b else [])]
    assumptions = ["n >= 4", *(["m >= 4"] if m.has_m else []), *(["n % b == 0"] if m.has_b else [])]
    lines = [f"kernel random_{seed}({', '.join(parameters)}):", f"    assume {', '.join(assumptions)}"]
    text = "\n".join([*lines, *declarations, *prologue, *m.lines]) + "\n"
    return RandomKernel(seed, text, _sizes(rng, m))


def _sizes(rng: Random, m: Maker) -> tuple[dict[str, int], ...]:
    sizes = []
    many = m.loops >= 4
    for n in (4, 5, 6) if many else (4, 6, rng.choice((5, 7, 8))):
        size = {"n": n}
        if m.has_m:
            size["m"] = rng.randint(4, 5 if many else 7)
        if m.has_b:
            size["b"] = rng.choice([d for d in range(1, n + 1) if n % d == 0])
        sizes.append(size)
    return tuple(sizes)


def _declarations(m: Maker) -> tuple[list[str], list[str]]:
    """The declarations, and the loops that fill the arrays made `temp` or `out`."""
    lines, prologue = [], []
    scalar_type = "f64"
    for name, intent in m.scalars.items():
        lines.append(f"    {intent} {name}: {'c128' if m.complex_types and intent == 'inout' else scalar_type}")
    for a in m.arrays:
        dims = [high + Linear(c=1) for high in a.top]
        intent = "in" if not a.written else ("inout" if a.read else m.rng.choice(("out", "inout")))
        if intent == "inout" and len(m.lines) < 12 and m.rng.random() < 0.3:
            intent = m.rng.choice(("temp", "out"))
            names = ["uvw"[d] for d in range(len(dims))]
            loops = ", ".join(f"{v} in range({d})" for v, d in zip(names, dims, strict=True))
            prologue += [f"    for {loops}:", f"        {a.name}[{', '.join(names)}] = 0.0"]
        lines.append(f"    {intent} {a.name}: {a.type}[{', '.join(map(str, dims))}]{' col' if a.column_major else ''}")
    return lines, prologue

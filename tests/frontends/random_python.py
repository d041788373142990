"""Random Python functions on arrays: loops, slices, views, temporaries, branches and integers that go along."""

from __future__ import annotations

import random

ARRAYS = {"a": 1, "b": 1, "c": 1, "A": 2, "B": 2}
SHAPES = "a=n;b=n;c=n;A=n,n;B=n,n;k=int"
SIZES = {"n": 7, "k": 3}


class Writer:
    """Writes one function. Names that begin with `t` are local arrays of one dimension, with `s` scalars."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.counters: list[str] = []
        self.vectors = ["a", "b", "c"]
        self.matrices = ["A", "B"]
        self.scalars: list[str] = []
        self.new = 0

    def function(self) -> str:
        """The text of a file with the function `f`."""
        for _ in range(self.random.randint(2, 5)):
            self.statement(1)
        results = ", ".join(v for v in self.vectors if v not in ARRAYS) or "None"
        head = ["import numpy as np", "", "", "def f(a, b, c, A, B, k):", "    n = a.shape[0]"]
        return "\n".join([*head, *self.lines, f"    return {results}", ""])

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def write(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    # ---- values ----

    def index(self) -> str:
        """A subscript that stays in an array of 7."""
        if self.counters and self.random.random() < 0.7:
            i = self.random.choice(self.counters)
            return self.pick(i, i, f"{i} + 1", f"{i} - 1", f"6 - {i}", f"{i} // 2", f"n - 1 - {i}")
        return self.pick("0", "1", "-1", "-2", "n - 1", "k", "n // 2")

    def element(self) -> str:
        if self.random.random() < 0.6:
            return f"{self.random.choice(self.vectors)}[{self.index()}]"
        return f"{self.random.choice(self.matrices)}[{self.index()}, {self.index()}]"

    def number(self, depth: int = 0) -> str:
        """A scalar."""
        if depth > 1 or self.random.random() < 0.3:
            return self.pick("2.0", "0.5", "3", self.element(), self.element(), *self.scalars, *self.counters)
        a, b = self.number(depth + 1), self.number(depth + 1)
        return self.pick(
            f"({a} + {b})", f"({a} - {b})", f"{a} * {b}", f"max({a}, {b} + 0.5)", f"abs({a} - 1.5)",
            f"({a} if {self.element()} > {b} else {b})", f"-{self.element()}",
        )  # fmt: skip

    def section(self, left: int, right: int) -> str:
        """An array of n - left - right elements."""
        first = self.random.randint(0, left + right)
        stop = f"n - {left + right - first}" if left + right - first else "n"
        stop = self.pick(stop, f"-{left + right - first}" if left + right - first else "")
        part = f"{first or ''}:{stop}"
        name = self.random.choice(self.vectors)
        way = self.random.random()
        if way < 0.5:
            return f"{name}[{part}]"
        if way < 0.6:
            return f"np.flip({name}[{part}])"
        if way < 0.7 and left + right == 0:
            return f"{name}[::-1]"
        matrix, at = self.random.choice(self.matrices), self.index()
        return self.pick(f"{matrix}[{at}, {part}]", f"{matrix}[{part}, {at}]", f"{matrix}.T[{at}, {part}]")

    def vector(self, left: int, right: int, depth: int = 0) -> str:
        """A value of n - left - right elements."""
        if depth > 1 or self.random.random() < 0.3:
            return self.section(left, right)
        a = self.vector(left, right, depth + 1)
        b = self.vector(left, right, depth + 1) if self.random.random() < 0.6 else self.number(1)
        return self.pick(
            f"({a} + {b})", f"({a} - {b})", f"{a} * {b}", f"np.maximum({a}, {b})", f"np.where({a} > {b}, {b}, 2.0)",
            f"np.minimum({a}, 1.0) * {b}", f"np.abs({a})", f"({a} * 0.5)",
        )  # fmt: skip

    # ---- statements ----

    def statement(self, depth: int) -> None:
        kinds = ["section", "section", "element", "scalar", "matrix", "temporary", "augmented"]
        if depth < 4:
            kinds += ["loop", "loop", "branch", "choice", "counted"]
        getattr(self, f"_{self.random.choice(kinds)}")(depth)

    def _section(self, depth: int) -> None:
        left, right = self.random.randint(0, 2), self.random.randint(0, 2)
        stop = f"-{right}" if right else ""
        name = self.random.choice(self.vectors)
        part = f"{left or ''}:{stop}"
        target = self.pick(f"{name}[{part}]", f"{self.random.choice(self.matrices)}[{self.index()}, {part}]")
        self.write(depth, f"{target} {self.pick('=', '=', '+=', '*=', '-=')} {self.vector(left, right)}")

    def _augmented(self, depth: int) -> None:
        self.write(depth, f"{self.random.choice(self.vectors)} {self.pick('+=', '*=', '-=')} {self.vector(0, 0)}")

    def _element(self, depth: int) -> None:
        self.write(depth, f"{self.element()} {self.pick('=', '=', '+=', '*=')} {self.number()}")

    def _scalar(self, depth: int) -> None:
        if depth > 1 and self.scalars:
            name = self.random.choice(self.scalars)
            self.write(depth, f"{name} {self.pick('=', '+=', '*=')} {self.number()} * 0.5")
        elif depth == 1:
            name = f"s{self.new}"
            self.new += 1
            self.write(depth, f"{name} = {self.number()} + 0.25")
            self.scalars.append(name)

    def _matrix(self, depth: int) -> None:
        target, other = self.random.choice(self.matrices), self.random.choice(self.matrices)
        value = self.pick(
            f"{other} * 0.5", f"{other}.T + {target}", f"({self.vector(0, 0)})[:, None] - {other}",
            f"np.outer({self.vector(0, 0)}, {self.vector(0, 0)})", f"{other} + {self.vector(0, 0)}",
        )  # fmt: skip
        self.write(depth, f"{target}{self.pick('[:]', '[:, :]')} {self.pick('=', '+=')} {value}")

    def _temporary(self, depth: int) -> None:
        if depth == 1:
            name = f"t{self.new}"
            self.new += 1
            way = self.pick(f"{self.vector(0, 0)} * 1.0", f"{self.random.choice(self.vectors)}.copy()", "np.zeros(n)")
            self.write(depth, f"{name} = {way}")
            self.vectors.append(name)
        elif self.vectors[-1].startswith("t"):
            self.write(depth, f"{self.vectors[-1]} = {self.vectors[-1]} * 0.5 + {self.number()}")

    def _loop(self, depth: int) -> None:
        counter = "ijlp"[len(self.counters)]
        bounds = self.pick("1, n - 1", "1, 6", "2, n - 1", "n - 2, 0, -1", "1, n - 1, 2", "5, 1, -2", "1, k + 2")
        if self.counters and self.random.random() < 0.3:
            bounds = self.pick(f"1, {self.counters[-1]}", f"{self.counters[-1]}, n - 1")
        self.write(depth, f"for {counter} in range({bounds}):")
        self.counters.append(counter)
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth + 1)
        self.write(depth + 1, f"{self.element()} += 1.0")
        self.counters.pop()

    def _counted(self, depth: int) -> None:
        counter = "ijlp"[len(self.counters)]
        step = self.pick("1", "1", "2")
        self.write(depth, "q = 0")
        self.write(depth, f"for {counter} in range({self.pick('n - 4', '3', 'k')}):")
        self.write(depth + 1, f"{self.random.choice(self.vectors)}[q] += {self.number()}")
        self.write(depth + 1, f"q += {step}")
        self.write(depth, f"{self.random.choice(self.vectors)}[0] += q")

    def _branch(self, depth: int) -> None:
        if not self.counters:
            return self._loop(depth)
        i = self.random.choice(self.counters)
        self.write(depth, f"if {self.pick(f'{i} > 2', f'{i} % 2 == 0', f'1 < {i} < 4', f'{i} == k or {i} == 1')}:")
        self.statement(depth + 1)
        self.write(depth + 1, f"{self.element()} *= 0.5")
        if self.random.random() < 0.5:
            self.write(depth, "else:")
            self.write(depth + 1, f"{self.element()} -= {self.number()}")
        return None

    def _choice(self, depth: int) -> None:
        if not self.scalars:
            return self._scalar(depth)
        name = self.random.choice(self.scalars)
        self.write(depth, f"if {self.element()} > {name} and {self.element()} < 2.0:")
        self.write(depth + 1, f"{name} = {self.number()} * 0.25")
        if self.random.random() < 0.5:
            self.write(depth, "else:")
            self.write(depth + 1, f"{name} += {self.number()} * 0.125")
        return None

"""Random triangular kernels: rows, columns, reversed references, strides, odd rows, several statements."""

from __future__ import annotations

from random import Random

BOUNDS = ("0, {o}", "0, {o} + 1", "{o}, n", "{o} + 1, n", "0, n", "n - 1 - {o}, n", "n - {o}, n", "1, n - 1")


class _Maker:
    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.depth = self.rng.choice((2, 3, 3))
        self.lines: list[str] = []

    def bounds(self, d: int) -> str:
        choice = self.rng.choice
        if d == 0:
            return choice(("n", "1, n", "n - 1"))
        step = choice(("",) * 8 + (", 2", ", 3"))
        return choice(BOUNDS).format(o="ijk"[self.rng.randrange(d)]) + step

    def subscript(self, scope: str) -> str:
        v = self.rng.choice(scope)
        return self.rng.choice((v, v, v, v, v, f"n - 1 - {v}", f"{v} + 1"))

    def element(self, scope: str) -> str:
        kind = self.rng.random()
        if kind < 0.15:
            return f"x[{self.subscript(scope)}]"
        array = self.rng.choice("AAB")
        if kind < 0.25:
            return f"{array}[{self.subscript(scope)}, 2*{self.rng.choice(scope)}]"
        if kind < 0.3:
            return f"{array}[2*{self.rng.choice(scope)}, {self.subscript(scope)}]"
        return f"{array}[{self.subscript(scope)}, {self.subscript(scope)}]"

    def statement(self, scope: str) -> None:
        value = " + ".join(self.element(scope) for _ in range(self.rng.choice((1, 2, 2, 3))))
        operator = self.rng.choice(("=", "+=", "-="))
        self.lines.append("    " * (len(scope) + 1) + f"{self.element(scope)} {operator} {value}")

    def body(self, scope: str) -> None:
        d = len(scope)
        if d == self.depth:
            for _ in range(self.rng.choice((1, 1, 1, 2))):
                self.statement(scope)
            return
        if d and self.rng.random() < 0.3:
            self.statement(scope)
        for _ in range(self.rng.choice((1, 1, 1, 2)) if d else 1):
            self.lines.append("    " * (d + 1) + f"for {'ijk'[d]} in range({self.bounds(d)}):")
            self.body(scope + "ijk"[d])
        if d and self.rng.random() < 0.3:
            self.statement(scope)


def triangular_kernel(seed: int) -> str:
    """The text of the kernel of this seed, with one parameter n."""
    maker = _Maker(seed)
    maker.body("")
    rng = maker.rng
    kind, row, intent = rng.choice(("f64", "f32", "i32", "f64")), rng.choice(("n", "n + 1", "2*n")), "inout"
    if rng.random() < 0.5:
        intent = "temp"
        maker.lines[:0] = ["    for u in range(3*n), v in range(3*n):", "        B[u, v] = 0"]
    head = [
        f"kernel triangular_{seed}(n):",
        f"    inout A: {kind}[2*n + 2, {row} + n + 1], x: {kind}[2*n + 2]",
        f"    {intent} B: {kind}[3*n, 3*n]",
    ]
    return "\n".join([*head, *maker.lines]) + "\n"

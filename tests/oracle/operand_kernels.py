"""Random kernels in rectangular loops whose operands have loops in any order, or not all of them."""

from __future__ import annotations

from random import Random

from tests.oracle.uniform_kernels import UniformCase

TYPES = ("f32", "f64", "f64", "f64", "c128")
VARIABLES = ("i", "j", "k", "l")


class _Writer:
    def __init__(self, rng: Random, *, symbolic: bool) -> None:
        self.rng = rng
        self.symbolic = symbolic
        self.line_bytes = rng.choice((16, 32, 64, 64, 64, None))
        depth = rng.choice((1, 2, 2, 3, 3))
        whole = rng.choice((8, 8, 4, 1))
        # of each loop variable: how many elements of a dimension it runs along
        most = {1: 60, 2: 24, 3: 13}[depth]
        self.extents = [max(3, rng.randint(3, most) // whole * whole) for _ in range(depth)]
        if rng.random() < 0.5:
            self.extents = [self.extents[0]] * depth
        self.names = ["n"] * depth if len(set(self.extents)) == 1 else [f"n{d}" for d in range(depth)]
        self.reach = rng.choice((0, 0, 0, 1, 2))
        kind = rng.choice(TYPES)
        mixed = kind != "c128" and rng.random() < 0.4
        self.arrays: dict[str, tuple[str, list[int]]] = {}
        for name in ["A", "B", "C", "D"][: rng.randint(1, 4)]:
            dims = rng.sample(range(depth), rng.randint(0 if rng.random() < 0.2 else 1, depth))
            self.arrays[name] = (rng.choice(("f32", "f64")) if mixed else kind, dims)
        self.written: set[str] = set()
        self.read: set[str] = set()

    def element(self, name: str) -> str:
        """An element of an array, its dimensions run along by loops of equal extent."""
        rng, subscripts, used = self.rng, [], set[int]()
        for d in self.arrays[name][1]:
            same = [e for e in range(len(self.extents)) if self.extents[e] == self.extents[d] and e not in used]
            e = d if d in same and rng.random() < 0.7 else rng.choice([*same, -1]) if same else -1
            if e < 0 or rng.random() < 0.05:
                subscripts.append(str(rng.randrange(min(self.extents[d], 3))))
                continue
            used.add(e)
            offset = rng.randint(-self.reach, self.reach)
            subscripts.append(f"{VARIABLES[e]} {'+-'[offset < 0]} {abs(offset)}" if offset else VARIABLES[e])
        return f"{name}[{', '.join(subscripts)}]" if subscripts else f"{name}[0]"

    def statement(self) -> str:
        target = self.rng.choice(list(self.arrays))
        sources = [self.rng.choice(list(self.arrays)) for _ in range(self.rng.randint(1, 3))]
        self.written.add(target)
        self.read.update(sources)
        return f"{self.element(target)} {self.rng.choice(('=', '+='))} {' + '.join(map(self.element, sources))}"

    def nest(self, indent: int) -> list[str]:
        """Loops over all variables, in any order: statements stand where all their variables are known."""
        rng, lines = self.rng, []
        order = rng.sample(range(len(self.extents)), len(self.extents))
        for d in order:
            low, cut = self.reach + rng.choice((0, 0, 0, 1)), self.reach + rng.choice((0, 0, 0, 1))
            stop = f"{self.names[d]} - {cut}" if self.symbolic and cut else self.names[d]
            if not self.symbolic:
                stop = str(max(self.extents[d] - cut, low + 1))
            lines.append("    " * indent + f"for {VARIABLES[d]} in range({low}, {stop}):")
            indent += 1
        lines += ["    " * indent + self.statement() for _ in range(rng.choice((1, 1, 1, 2)))]
        return lines

    def kernel(self) -> str:
        rng = self.rng
        times = rng.choice((2, 3)) if rng.random() < 0.25 else 1
        body = []
        for _ in range(rng.choice((1, 1, 1, 2))):
            body += self.nest(1 + (times > 1))
        if times > 1:
            body.insert(0, f"    for t in range({times}):")
        head = []
        for name, (kind, dims) in self.arrays.items():
            if name in self.written | self.read:
                shape = [self.names[d] if self.symbolic else str(self.extents[d]) for d in dims] or ["1"]
                intent = "inout" if name in self.written else "in"
                head.append(f"    {intent} {name}: {kind}[{', '.join(shape)}]{' col' if rng.random() < 0.15 else ''}")
        parameters = dict.fromkeys(self.names) if self.symbolic else {}
        return "\n".join([f"kernel operands({', '.join(parameters)}):", *head, *body, ""])


def operand_case(seed: int, *, symbolic: bool = False) -> UniformCase:
    """One to three loops in one or two nests, some repeated; one to four arrays of any of the loops' dimensions.

    symbolic: with parameters for the extents, else without any.
    """
    writer = _Writer(Random(seed), symbolic=symbolic)
    text = writer.kernel()
    return UniformCase(text, writer.line_bytes, tuple(dict.fromkeys(writer.names)) if symbolic else ())

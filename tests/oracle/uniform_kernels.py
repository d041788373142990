"""Random kernels whose references are loop variables plus numbers: stencils of all kinds, small enough to walk."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from re import Match, sub

TYPES = ("f32", "f64", "f64", "c128")
VARIABLES = ("l", "k", "j", "i")


@dataclass(frozen=True)
class UniformCase:
    """A kernel, the line it is to be counted in (None: of each array's element), and its parameters."""

    text: str
    line_bytes: int | None
    parameters: tuple[str, ...] = ()


def uniform_case(seed: int, *, symbolic: bool = False, parts: bool = False) -> UniformCase:
    """One to four loops, one to three arrays, subscripts -2 .. 2 (along rows also -7 .. 7) beside the loop variables;
    some repeat in time.

    symbolic: with parameters for the extents, else without any. parts: arrays have one or two more dimensions in
    front, whose subscripts are numbers.
    """
    rng = Random(seed)
    depth = rng.choice((1, 2, 2, 2, 3, 3, 3, 4))
    extents = _extents(rng, depth)
    reach = [rng.choice((0, 1, 1, 2)) for _ in range(depth - 1)]
    reach.append(rng.choice((0, 1, 2, 7 if extents[-1] > 30 else 2)))
    same = rng.random() < 0.6
    names = ["A", "B", "C"][: rng.randint(1, 3)]
    kinds = {name: rng.choice(TYPES) for name in names}
    if rng.random() < 0.5 or "c128" in kinds.values():  # real arrays take no complex values
        kinds = dict.fromkeys(names, kinds["A"])
    kinds = {name: kind if kinds["A"] == "c128" else kind.replace("c128", "f64") for name, kind in kinds.items()}
    own = {a: extents if same else [e + rng.randint(0, 3) for e in extents] for a in names}
    times = rng.choice((1, 1, 1, 2, 3)) if rng.random() < 0.5 else 1
    letters = [rng.choice(("m", "n")) for _ in range(depth - 1)] + ["n"] if symbolic else []
    lines, pad = [], "    " * (times > 1)
    written: set[str] = set()
    read: set[str] = set()
    for _ in range(rng.choice((1, 1, 1, 2)) if times > 1 or rng.random() < 0.4 else 1):
        lines += [pad + line for line in _nest(rng, names, (extents, letters), reach, (written, read))]
    if times > 1:
        lines = [f"    for t in range({times}):", *lines]
    if parts:
        lines, counts = _in_parts(Random(~seed), names, lines)
    if symbolic:
        shapes = {a: [f"{s} + {e - x}" for s, e, x in zip(letters, own[a], extents, strict=True)] for a in names}
    else:
        shapes = {a: list(map(str, own[a])) for a in names}
    if parts:
        shapes = {a: [*map(str, counts[a]), *shapes[a]] for a in names}
    head = [
        f"    {'inout' if a in written else 'in'} {a}: {kinds[a]}[{', '.join(shapes[a])}]"
        for a in names
        if a in written | read
    ]
    line = rng.choice((16, 32, 64, 64, 128, None))
    parameters = tuple(dict.fromkeys(letters))
    return UniformCase("\n".join([f"kernel uniform({', '.join(parameters)}):", *head, *lines, ""]), line, parameters)


def _in_parts(rng: Random, names: list[str], lines: list[str]) -> tuple[list[str], dict[str, list[int]]]:
    """The lines of a kernel with numbers in front of all subscripts, and how many there are for each array."""
    counts = {a: [rng.randint(1, 3) for _ in range(rng.choice((1, 1, 2)))] for a in names}

    def fixed(found: Match[str]) -> str:
        return f"{found[1]}[{', '.join(str(rng.randrange(n)) for n in counts[found[1]])}, "

    return [sub(rf"\b({'|'.join(names)})\[", fixed, line) for line in lines], counts


def _extents(rng: Random, depth: int) -> list[int]:
    row = rng.choice((rng.randint(5, 40), rng.randint(20, 70), 8 * rng.randint(2, 8), 16 * rng.randint(1, 4)))
    if depth == 1:
        return [row]
    if depth == 2:
        return [rng.randint(5, 24), row]
    if depth == 3:
        return [rng.randint(5, 9), rng.randint(5, 10), min(row, 48)]
    return [rng.randint(5, 6), rng.randint(5, 6), rng.randint(5, 6), min(row, 20)]


def _nest(
    rng: Random,
    names: list[str],
    sizes: tuple[list[int], list[str]],
    reach: list[int],
    seen: tuple[set[str], set[str]],
) -> list[str]:
    """A perfect nest with one or two statements; notes in `seen` what it writes and reads. sizes: extents, and their
    names where they have any.
    """
    extents, letters = sizes
    variables = VARIABLES[-len(extents) :]
    lines = []
    for depth, (name, extent, beside) in enumerate(zip(variables, extents, reach, strict=True)):
        low, high = beside + rng.choice((0, 0, 0, 1)), extent - beside - rng.choice((0, 0, 0, 1, 2))
        stop = f"{letters[depth]} - {extent - high}" if letters else str(high)
        if rng.random() < 0.1:
            stop = str(min(high, low + rng.randint(1, 4)))
        lines.append("    " * (depth + 1) + f"for {name} in range({low}, {stop}):")

    def element(array: str) -> str:
        places = [rng.choice((0, rng.randint(-b, b))) for b in reach]
        subscripts = [f"{v} {'+-'[o < 0]} {abs(o)}" if o else v for v, o in zip(variables, places, strict=True)]
        return f"{array}[{', '.join(subscripts)}]"

    for _ in range(rng.choice((1, 1, 2))):
        target, sources = rng.choice(names), [rng.choice(names) for _ in range(rng.randint(1, 6))]
        seen[0].add(target)
        seen[1].update(sources)
        operator = rng.choice(("=", "=", "+="))
        inner = "    " * (len(extents) + 1)
        lines.append(f"{inner}{element(target)} {operator} {' + '.join(map(element, sources))}")
    return lines

"""What the emitters of all targets need from a kernel: its loops by position, arguments, heading comments, scalars."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePath

from roofdsl.codegen.clike import CLike
from roofdsl.codegen.computed_types import computed
from roofdsl.codegen.emitter import Emitter, plain
from roofdsl.codegen.generated import Argument
from roofdsl.codegen.syntax import Syntax, Text
from roofdsl.loops.accesses import LoopId, elements
from roofdsl.loops.integers import Const, Sym
from roofdsl.loops.model import Array, Assign, Element, For, If, Kernel, Let, Node


def positions(
    nodes: Sequence[Node], outer: LoopId = (), place: list[int] | None = None
) -> Iterator[tuple[LoopId, For]]:
    """Every loop with its position; the branches of an `if` are numbered consecutively, `then` before `else`."""
    place = [0] if place is None else place
    for node in nodes:
        if isinstance(node, If):
            yield from positions(node.then, outer, place)
            yield from positions(node.orelse, outer, place)
            continue
        here = (*outer, place[0])
        place[0] += 1
        if isinstance(node, For):
            yield here, node
            yield from positions(node.body, here)


def arguments(kernel: Kernel, temp: bool = False) -> tuple[Argument, ...]:
    """The arguments: arrays and scalars as declared, with `temp` arrays as work space, then the parameters.

    temp: make `temp` scalars arguments as well, because they outlive a single function.
    """
    found = []
    for a in kernel.arrays:
        written = a.intent != "in"
        if not a.is_scalar:
            found.append(Argument(a.name, "array", a.type, a.dims, a.column_major, written))
        elif a.intent == "in":
            found.append(Argument(a.name, "scalar_in", a.type))
        elif temp or a.intent != "temp":
            found.append(Argument(a.name, "scalar_out", a.type, written=True))
    return (*found, *(Argument(p.name, "parameter") for p in kernel.parameters))


def heading(kernel: Kernel, syntax: Syntax, what: str) -> list[str]:
    """The heading comments: the origin of the code, and the conditions on the sizes."""
    start = syntax.comment
    file = plain(PurePath(kernel.source.name).name)
    lines = [f"{start} Kernel {kernel.name} of {file}: {what}."]
    fixed = [f"{name} = {value}" for name, value in kernel.constants]
    if fixed:
        lines.append(f"{start} With {', '.join(fixed)}.")
    if kernel.assumptions:
        lines.append(f"{start} Assumes {', '.join(map(str, kernel.assumptions))}.")
    return lines


def described(array: Array) -> str:
    """`A: f64[n, m], in`."""
    dims = f"[{', '.join(map(str, array.dims))}]" if array.dims else ""
    order = " col" if array.column_major else ""
    return f"{array.name}: {array.type}{dims}{order}, {array.intent}"


def load_scalars(
    kernel: Kernel, emitter: Emitter, pointer: str, only: Collection[str] | None = None, temp: bool = False
) -> None:
    """Declares a register variable for each written scalar, and loads it; a `temp` that is not an argument starts at 0.

    only: the scalars that a function uses.
    """
    for a in kernel.arrays:
        if not a.is_scalar or a.intent == "in" or (only is not None and a.name not in only):
            continue
        name, kind = emitter.name(a.name), computed(a.type)
        if a.intent == "temp" and not temp:
            value = emitter.syntax.zero(kind)
        else:
            value = emitter.loaded(Text(pointer.format(f"{a.name}_out")), a)
        emitter.out.add(emitter.syntax.declare(name, kind, value, constant=False))


def store_scalars(
    kernel: Kernel, emitter: Emitter, pointer: str, only: Collection[str] | None = None, temp: bool = False
) -> None:
    """At the end of a function, store the scalars that `load_scalars` loaded, except a `temp` that is no argument."""
    for a in kernel.arrays:
        kept = a.intent in ("out", "inout") or (temp and a.intent == "temp")
        if a.is_scalar and kept and (only is None or a.name in only):
            value = emitter.syntax.stored(Text(emitter.name(a.name)), computed(a.type), a)
            emitter.out.add(emitter.syntax.end(f"{pointer.format(f'{a.name}_out')} = {value.text}"))


def name_extents(emitter: Emitter, nodes: Sequence[Node], integer: str) -> None:
    """Declare a name for each dimension that offsets multiply by, unless it is just a parameter or number."""
    arrays = {e.array.name: e.array for e in all_elements(nodes)}
    for array in arrays.values():
        last = len(array.dims) - 1
        for d, extent in enumerate(array.dims):
            multiplied = d != (last if array.column_major else 0)
            if multiplied and not isinstance(extent, Const | Sym) and extent not in emitter.extents:
                name = f"{emitter.name(array.name)}_dim{d}"
                emitter.out.add(emitter.syntax.end(f"const {integer} {name} = {emitter.integer(extent).text}"))
                emitter.extents[extent] = name


def all_elements(nodes: Sequence[Node]) -> Iterator[Element]:
    """Every array element that a block reads or writes."""
    for node in nodes:
        match node:
            case For(body=inner):
                yield from all_elements(inner)
            case If(_, then, orelse):
                yield from all_elements(then)
                yield from all_elements(orelse)
            case Let(value=value):
                yield from elements(value)
            case Assign(target, _, value):
                yield from elements(value)
                if isinstance(target, Element):
                    yield target


def wrapped(head: str, parameters: Sequence[str]) -> list[str]:
    """`head(parameters)` on as many lines as needed."""
    line = f"{head}({', '.join(parameters)})"
    if len(line) <= 110:
        return [line]
    whole = ", ".join(p.replace(" ", "\0") for p in parameters)  # lines break only between parameters
    lines = textwrap.wrap(whole, 106, break_long_words=False, initial_indent="    ", subsequent_indent="    ")
    return [f"{head}(", *(line.replace("\0", " ") for line in lines), ")"]


def signature(kernel: Kernel, syntax: CLike, names: Mapping[str, str], temp: bool = False) -> list[str]:
    """The arguments as C and CUDA declare them."""
    found = []
    types = {a.name: a for a in kernel.arrays}
    for a in arguments(kernel, temp):
        name = names.get(a.name, a.name)
        if a.role == "parameter":
            found.append(f"{syntax.integer_type} {name}")
        elif a.role == "scalar_in":
            found.append(f"{syntax.names[computed(types[a.name].type)]} {name}")
        else:
            shown = name if a.role == "array" else f"{a.name}_out"
            found.append(syntax.pointer(types[a.name].type, shown, a.written))
    return found

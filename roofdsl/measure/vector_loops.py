"""Arithmetic on whole vectors, and their loads and stores, in assembly: what the core does per second, whatever a
compiler makes of a loop.

Compiled loops often stay below a core's peak: the compiler does not vectorize them, or stores their accumulators. The
loops here keep all accumulators in vector registers, so they reach the peak of every class that is a single
instruction. Compiled streams often wait for their additions, while the loads and stores here wait for nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from typing import TypeVar

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record
from roofdsl.measure.assembled import Loop, features, is_known, loops
from roofdsl.measure.instruction_bench import ONE, REPEATS, ROTATED, operands
from roofdsl.measure.instruction_texts import register


class VectorLoop(Record):
    """loop: takes the address of a buffer of BUFFER_BYTES, and the number of rounds. amount: the operations of each
    round, or the bytes that it loads and stores.
    """

    loop: Loop
    amount: int


Key = TypeVar("Key", bound=Hashable)

BUFFER_BYTES = 8192
"""Arithmetic does not access the buffer."""


_FLOAT = {
    "fma": ("vfmadd231{t} {a}, {b}, {c}",),
    "add": ("vadd{t} {a}, {c}, {c}",),
    "mul": ("vmul{t} {a}, {c}, {c}",),
    "add and mul": ("vadd{t} {a}, {c}, {c}", "vmul{t} {a}, {c}, {c}"),
    "min": ("vmin{t} {a}, {c}, {c}", "vmax{t} {b}, {c}, {c}"),
}
_INTEGER = {
    "add": ("vpadd{t} {a}, {c}, {c}",),
    "mul": ("vpmull{t} {a}, {c}, {c}",),
    "min": ("vpmins{t} {a}, {c}, {c}", "vpmaxs{t} {b}, {c}, {c}"),
}
"""The instructions of a class, which take turns; each accumulator {c} is combined with a constant, {a} or {b}."""

_SUFFIX = {"f64": "pd", "f32": "ps", "i64": "q", "i32": "d", "i16": "w", "i8": "b"}


def _needs(type_name: str, cls: str, bits: int) -> str | None:
    """The feature that a processor needs for this class at this width; None if no processor has it."""
    if (type_name, cls) == ("i8", "mul"):
        return None
    if (type_name, cls) == ("i64", "mul"):
        return "avx512dq" if bits == 512 else "avx512vl"
    if (type_name, cls) == ("i64", "min"):
        return "avx512f" if bits == 512 else "avx512vl"
    if bits < 512:
        return "avx2"
    return "avx512bw" if type_name in ("i16", "i8") else "avx512f"


def _keys() -> list[tuple[str, str, int]]:
    """(type, class, bits) of all loops that this processor can run."""
    has = features()
    return [
        (type_name, cls, bits)
        for type_name in _SUFFIX
        for cls in (_FLOAT if type_name.startswith("f") else _INTEGER)
        for bits in (256, 512)
        if _needs(type_name, cls, bits) in has
    ]


def text(type_name: str, cls: str, bits: int) -> list[str]:
    """One round: the instructions of a class in turn, on more accumulators than any of them takes cycles."""
    turns = (_FLOAT if type_name.startswith("f") else _INTEGER)[cls]
    fixed = {"a": register(bits, 14), "b": register(bits, 15), "t": _SUFFIX[type_name]}
    return [turns[k % len(turns)].format(c=register(bits, 2 + k % ROTATED), **fixed) for k in range(2 * REPEATS)]


def _before(type_name: str, bits: int) -> Sequence[str]:
    """Sets all registers to ones, or to integers of any value: none of the loops leaves the range of its type, or
    meets numbers that take longer.
    """
    one = ONE["f32" if type_name == "f32" else "f64"]
    return operands(one, one, bits == 512)


def _assembled(texts: Mapping[Key, Sequence[str]], before: Mapping[Key, Sequence[str]]) -> dict[Key, Loop]:
    """The loops of these texts; none if this processor's instructions cannot be assembled."""
    names = {key: f"vectors_{k}" for k, key in enumerate(texts)}
    try:
        made = loops({names[k]: t for k, t in texts.items()}, {names[k]: b for k, b in before.items()})
    except CommandError:
        return {}
    return {key: made[name] for key, name in names.items()}


@cache
def _loops() -> dict[tuple[str, str, int], Loop]:
    """All loops, by type, class and width; none if this processor's instructions are not known."""
    keys = _keys() if is_known() else []
    return _assembled({key: text(*key) for key in keys}, {key: _before(key[0], key[2]) for key in keys})


def vector_loops(type_name: str, cls: str) -> list[VectorLoop]:
    """The loops of a class on one type, one for each width of vectors; none if the class is not an instruction here."""
    found = []
    for (of_type, of_class, bits), loop in _loops().items():
        if (of_type, of_class) == (type_name, cls):
            lanes = bits // int(type_name[1:])
            found.append(VectorLoop(loop, 2 * REPEATS * lanes * (2 if cls == "fma" else 1)))
    return found


# ---- loads and stores ----

MIXES = ((1, 0), (1, 1), (2, 1))
"""The loads and stores that follow each other; the first level's bandwidth is that of the fastest."""


def moves(loads: int, stores: int, bits: int) -> list[str]:
    """One round: vectors loaded from the lower half of a page, and stored to the upper half of the next one.

    A load never has the low address bits of a store: some processors would let it wait for that store.
    """
    size, half, page = bits // 8, 2048, 4096
    found = []
    for k in range(REPEATS):
        load = [(loads * k + j) * size % half for j in range(loads)]
        found += [f"vmovupd {at}(%rdi), {register(bits, (loads * k + j) % ROTATED)}" for j, at in enumerate(load)]
        found += [f"vmovupd {register(bits, 14)}, {page + half + k * size % half}(%rdi)"] * stores
    return found


@cache
def move_loops() -> tuple[VectorLoop, ...]:
    """Loops of all mixes at all widths of this processor; none if its instructions are not known."""
    if not is_known():
        return ()
    widths = (256, 512) if "avx512f" in features() else (256,)
    keys = [(*mix, bits) for mix in MIXES for bits in widths]
    made = _assembled({key: moves(*key) for key in keys}, {key: _before("f64", key[2]) for key in keys})
    return tuple(
        VectorLoop(loop, REPEATS * (loads + stores) * bits // 8) for (loads, stores, bits), loop in made.items()
    )

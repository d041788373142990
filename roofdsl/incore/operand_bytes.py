"""The bits of the integer operands of instructions, and the bytes that instructions load or store."""

from __future__ import annotations

import re

from roofdsl.incore.assembly import Instruction, Memory, Register

FLOAT = r"([sp])([sdh])$"
"""The suffix of arithmetic on floats: packed or scalar, and the type."""

SUFFIXES = {"b": 8, "w": 16, "l": 32, "q": 64}
"""The bits of an integer instruction, by its last letter."""

WORDS = frozenset((
    "mov", "movabs", "lea", "inc", "dec", "neg", "not", "cmp", "test", "imul", "mul", "mulx", "div", "idiv", "push",
    "pop",
    "adc", "sbb", "andn", "bt", "shlx", "shrx", "sarx", "popcnt", "tzcnt", "lzcnt", "blsr", "bzhi", "xchg", "rorx",
    "add", "sub", "and", "or", "xor", "shl", "sal", "shr", "sar", "rol", "ror",
))  # fmt: skip


def split_name(name: str) -> tuple[str, int]:
    """An integer instruction's name without its suffix, and the bits of its operands: `addq` is `add`, 64; 0 if it has
    none.
    """
    if name[:-1] in WORDS and name[-1] in SUFFIXES:
        return name[:-1], SUFFIXES[name[-1]]
    return name, 0


def bytes_moved(instruction: Instruction, memory: Memory) -> int:
    """Bytes loaded or stored."""
    name, ops = instruction.name, instruction.operands
    plain = name.removeprefix("v")
    registers = [o for o in ops if isinstance(o, Register)]
    bits = max((r.bits for r in registers), default=64)
    found = re.search(FLOAT, plain) if plain not in _PACKED_INTEGERS else None
    if memory.broadcast or plain.startswith(("broadcasts", "pbroadcast")):
        return _broadcast_bytes(plain)
    if plain.startswith("cvt"):
        return _converted_bytes(plain, bits, instruction.operands[-1] is memory)
    if plain.startswith(("ucomi", "comi")) or (found is not None and found[1] == "s"):
        return {"d": 8, "s": 4, "h": 2}[plain[-1]]
    if plain in ("movq", "movhpd", "movlpd", "movhps", "movlps", "movsd", "movddup") and any(
        r.is_vector for r in registers
    ):
        return 8
    if re.fullmatch(r"ps(?:ll|rl|ra)[wdq]", plain) and ops[0] is memory:
        return 16  # one count for all elements, in an xmm register or its place in memory, however wide the data
    if plain in ("movd", "movss", "insertps"):
        return 4
    if plain in ("movw", "pinsrw", "pextrw") and any(r.is_vector for r in registers):
        return 2
    return _packed_bytes(plain, name, bits)


_PACKED_INTEGERS = frozenset(("pabsd", "pmaxsd", "pminsd", "pdpbusd", "pdpwssd"))
"""Vectors of signed 32-bit integers, whose names end like those of scalar doubles (`addsd`)."""


def _broadcast_bytes(plain: str) -> int:
    """The bytes of the one element that an instruction repeats: `vaddps (%rdx){1to16}` loads 4."""
    conversion = _CONVERSION.fullmatch(plain)
    if conversion is not None:
        return _ELEMENTS[_element(conversion["source"])]
    if plain.startswith("shuf") and "x2" in plain:
        return 8  # `vshuff64x2`; `vshuff32x4` moves parts of 4-byte elements
    for ending, size in _BROADCAST_ENDINGS:
        if plain.endswith(ending):
            return size
    return 4


# `vaddpd` is on doubles, `vpaddd` on 32-bit integers. AVX-512 repeats no single bytes as operands of arithmetic.
_BROADCAST_ENDINGS = (
    ("pbroadcastb", 1), ("broadcastsd", 8), ("pd", 8), ("ph", 2), ("q", 8), ("w", 2),
)  # fmt: skip


_CONVERSION = re.compile(
    r"cvtt?(?:ne)?(?P<source>[sp][dsh]|u?dq|u?qq|u?w|u?si)2(?P<target>[sp][dsh]|u?dq|u?qq|u?w|u?si|bf16)(?P<rest>\w*)"
)
_ELEMENTS = {"d": 8, "s": 4, "h": 2, "dq": 4, "qq": 8, "w": 2, "si": 8, "bf16": 2}
_SOURCES = {"x": 16, "y": 32, "z": 64, "l": 4, "q": 8}


def _element(name: str) -> str:
    """The element type that `pd`, `ss` or `udq` stands for: one letter for floats, the integer without its sign."""
    return name[1] if name in ("pd", "ps", "ph", "sd", "ss", "sh") else name.removeprefix("u")


def _converted_bytes(plain: str, bits: int, stored: bool) -> int:
    """The bytes that a conversion loads or stores: those of one element, or of as many as fit into its register."""
    found = _CONVERSION.fullmatch(plain)
    if found is None:
        return bits // 8
    source, target, rest = found["source"], found["target"], found["rest"]
    if {source, target} == {"ps", "ph"}:
        rest = rest.removeprefix("x")  # `vcvtph2psx` of AVX512-FP16
    if rest in _SOURCES and not stored:
        return _SOURCES[rest]
    scalar = source[0] == "s" and source != "si"
    sizes = [_ELEMENTS[_element(name)] for name in (source, target)]
    if scalar or source.endswith("si"):
        return sizes[0]
    moved, kept = reversed(sizes) if stored else sizes
    return bits // 8 * moved // kept


_WIDTHS = {"b": 1, "w": 2, "d": 4, "q": 8}


def _packed_bytes(plain: str, name: str, bits: int) -> int:
    widened = re.fullmatch(r"pmov[sz]x([bwd])([wdq])", plain)
    if widened is not None:
        return bits // 8 * _WIDTHS[widened[1]] // _WIDTHS[widened[2]]
    narrowed = re.fullmatch(r"pmovu?s?([qdw])([bwd])", plain)
    if narrowed is not None:
        return bits // 8 * _WIDTHS[narrowed[2]] // _WIDTHS[narrowed[1]]
    across = re.match(r"(?:extract|insert|broadcast)[fi](\d+)", plain)
    if across is not None:
        lanes = re.search(r"x(\d)$", plain)
        return int(across[1]) * int(lanes[1]) // 8 if lanes else int(across[1]) // 8
    single = re.fullmatch(r"p(?:extr|insr)([bwdq])", plain)
    if single is not None:
        return _WIDTHS[single[1]]
    integer, width = split_name(name)
    if width:
        return width // 8
    if integer.startswith(("movz", "movs")) and len(integer) == 6:
        return {"b": 1, "w": 2, "l": 4}.get(integer[4], 8)
    if plain.startswith("set"):
        return 1
    return bits // 8

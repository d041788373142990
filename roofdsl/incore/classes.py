"""What an instruction asks of the core: its class, the registers it reads and writes, its loads and stores.

Classes are those that `characterize` measures (`instruction` lines of a machine). An instruction of a class that was
not measured costs what the nearest one does (`rates.py`).
"""

from __future__ import annotations

import re

from roofdsl.incore.assembly import Instruction, Memory, Operand, Register
from roofdsl.incore.operand_bytes import FLOAT, bytes_moved, split_name
from roofdsl.lang.record import Record, replace


class Kind(Record):
    """A class of instructions at one width: `fma` of f64 in 256 bits; scalars have the bits of their type.

    cls: "" for instructions that need no execution port (a copy between registers, a zeroed register, a plain load or
    store).
    """

    cls: str
    type: str
    bits: int


class Work(Record):
    """One instruction as the core sees it.

    reads, writes: families of registers, without those of addresses, which are in `address_reads`. load and store: the
    addresses, with the bytes moved; masked: a store that leaves some elements out, or an AVX load that does so without
    a mask register; lanes: the elements of a gather or scatter, otherwise 0. fused: merged with the previous
    instruction (a comparison and its jump). indexed: vector arithmetic on an address of two registers. general: a load
    or store of general registers, not of vectors.
    """

    kind: Kind
    reads: tuple[str, ...]
    writes: str
    address_reads: tuple[str, ...] = ()
    load: Memory | None = None
    store: Memory | None = None
    bytes: int = 0
    masked: bool = False
    lanes: int = 0
    jump: bool = False
    fused: bool = False
    indexed: bool = False
    general: bool = False


NONE = Kind("", "", 0)
_RULES: tuple[tuple[re.Pattern[str], str], ...] = tuple((re.compile(pattern), cls) for pattern, cls in (
    (r"fn?m(?:add|sub)(?:add|sub)?\d{3}" + FLOAT, "fma"),
    (r"(?:add|sub|addsub)" + FLOAT, "add"),
    (r"mul" + FLOAT, "mul"),
    (r"div" + FLOAT, "div"),
    (r"sqrt" + FLOAT, "sqrt"),
    (r"(?:max|min)" + FLOAT, "max"),
    (r"(?:cmp\w*|u?comi)" + FLOAT, "compare"),
    (r"(?:round|rndscale|reduce|getexp|getmant|scalef|range)" + FLOAT, "convert"),
    (r"(?:rcp|rsqrt)\d*" + FLOAT, "convert"),
    (r"h(?:add|sub)" + FLOAT, "horizontal"),
))  # fmt: skip
_LOGIC = re.compile(r"(?:p?(?:and|or|xor|andn))(?:ps|pd|q|d)?$|pternlog[dq]$")
_MOVES = re.compile(
    r"mov(?:u|a)p[sd]$|movdq[ua](?:8|16|32|64)?$|movnt(?:p[sd]|dqa?)$|lddqu$|mov(?:sd|ss|sh|q|d|h|w)$|broadcast\w*$"
    r"|pbroadcast\w*$"
)
_ACROSS = re.compile(
    r"perm(?:pd|ps|q|d|w|b|t2\w+|i2\w+|2f128|2i128)$|(?:extract|insert)[fi]\d+\w*$|shuf[fi]\d\w*$|pmov[sz]x\w+$"
    r"|pmovu?s?[qdw][bwd]$|p?broadcast\w*$|align[dq]$|p?compress\w*$|p?expand\w*$"
)
_WITHIN = re.compile(
    r"p?shuf\w*$|permil\w*$|p?unpck\w*$|pack\w*$|mov(?:ddup|s[hl]dup|hlps|lhps|[hl][sp][sd])$|palignr$|insertps$"
    r"|ps[lr]ldq$|extractps$"
)
_SHIFTS = re.compile(r"p(?:s(?:ll|rl|ra)v?|rolv?|rorv?|shld\w*|shrd\w*)[wdq]$")
_COMPARES = re.compile(r"pcmp\w+$|ptestn?m[bwdq]$|ptest$|testp[sd]$")
_INTEGERS = re.compile(r"p(?:add|sub|min|max|abs|avg|sign|sad)\w*$")
_PRODUCTS = re.compile(r"pm(?:ull|uldq|uludq|ulh|adds?)\w*$|pdp\w+$")
_IN_PLACE = frozenset((
    "add", "sub", "and", "or", "xor", "shl", "sal", "shr", "sar", "inc", "dec", "neg", "not", "imul", "rol", "ror",
    "cmp", "test", "bt",
))  # fmt: skip
_GENERAL_SHIFTS = frozenset(("shl", "sal", "shr", "sar", "rol", "ror", "shld", "shrd", "bt"))
_TWO_FLAGS = re.compile(r"cmov(?:n?[gl]e?|a|be|na|nbe)[wlq]?$")
"""Conditional moves whose condition depends on several flags, which take longer than others."""

_STORING = ("mov", "extract", "pextr", "cvtps2ph", "pmov", "scatter", "set", "compress", "vcompress", "st", "pop")


def work_of(instruction: Instruction, after: Instruction | None = None) -> Work:
    """The work of an instruction; `after`: the instruction before it, None at the start of a block."""
    name, ops = instruction.name, instruction.operands
    if name.startswith("j") and name != "jrcxz":
        return Work(NONE, (), "", jump=True, fused=after is not None and _fuses(after, name))
    if name.startswith(("call", "ret", "nop", "endbr", "prefetch", "vzero", "ud2", "sfence")):
        reads = _families(ops[:1]) if name.startswith("call") else ()
        return Work(NONE, reads, "")
    vector = any(isinstance(o, Register) and o.family[:1] in ("v", "k") for o in ops)
    kind = _vector_kind(name, ops) if vector else _general_kind(name, ops)
    return _moved(instruction, kind, vector)


def _fuses(before: Instruction, jump: str) -> bool:
    """Whether the decoder merges a comparison with the conditional jump after it."""
    name, _ = split_name(before.name)
    return jump != "jmp" and name in ("cmp", "test", "and", "add", "sub", "inc", "dec")


def _families(operands: tuple[Operand, ...]) -> tuple[str, ...]:
    found: list[str] = []
    for operand in operands:
        if isinstance(operand, Register):
            found.append(operand.family)
            if operand.mask:
                found.append(operand.mask)
        elif isinstance(operand, Memory):
            found += [r for r in (operand.base, operand.index) if r and r != "rip"]
            if operand.mask:
                found.append(operand.mask)
    return tuple(found)


# ---- kinds ----


def _bits(ops: tuple[Operand, ...]) -> int:
    return max((o.bits for o in ops if isinstance(o, Register) and o.is_vector), default=64)


_TYPES = {"d": "f64", "s": "f32", "h": "f16"}
_ELEMENTS = {"b": "i8", "w": "i16", "d": "i32", "q": "i64"}


def _vector_kind(name: str, ops: tuple[Operand, ...]) -> Kind:
    plain, bits = name.removeprefix("v"), _bits(ops)
    for rule, cls in _RULES:
        found = rule.match(plain)
        if found is not None and found.end() == len(plain):
            type_name = _TYPES[found[2]]
            return Kind(cls, type_name, bits if found[1] == "p" else int(type_name[1:]))
    if plain.startswith("cvt"):
        kind = _conversion(plain, bits)
        if plain.startswith("cvtph2ps") and isinstance(ops[0], Memory):
            return replace(kind, cls="widen")
        return replace(kind, cls="narrow") if plain.startswith("cvtps2ph") and isinstance(ops[-1], Memory) else kind
    if plain[0] == "k":
        return Kind("mask", "i64", 64)
    if plain.startswith(("gather", "pgather")):
        return Kind("gather", "f64" if plain.endswith(("pd", "dq", "qq")) else "f32", bits)
    if plain.startswith(("scatter", "pscatter")):
        return Kind("scatter", "f64" if plain.endswith(("pd", "dq", "qq")) else "f32", bits)
    return _data_movement(plain, ops, bits)


def _data_movement(plain: str, ops: tuple[Operand, ...], bits: int) -> Kind:
    """Moves, shuffles, and vectors of integers."""
    memory = any(isinstance(o, Memory) for o in ops)
    general = any(isinstance(o, Register) and o.family[0] not in "vk" for o in ops)
    masked = any(isinstance(o, Register) and o.mask for o in ops)
    if plain.startswith("pinsr") and memory:
        return Kind("shuffle", "f64", 128)
    if general or plain.startswith(("pextr", "pinsr")):  # between general registers and vectors
        return NONE if plain.startswith("mov") and memory else Kind("move", "i64", 64)
    if _is_masked_move(plain):
        return Kind("", "f32" if plain in ("maskmovps", "pmaskmovd") else "f64", bits)
    if _MOVES.match(plain):
        if memory:
            # A masked store leaves elements out as it writes; a masked load has to blend them with the register.
            return NONE if not masked or isinstance(ops[-1], Memory) else Kind("blend", "f64", bits)
        # Between registers, `movsd` replaces one element and keeps the other: unlike whole copies, which only rename
        # the register, that takes a port.
        if plain in ("movss", "movsd", "movsh"):
            return Kind("blend", "f64", 128)
        if "broadcast" not in plain:
            return NONE if not masked else Kind("blend", "f64", bits)
    if _LOGIC.match(plain):
        return Kind("logic", "f64", bits)
    if "blend" in plain:
        return Kind("blend", "f64", bits)
    if _ACROSS.match(plain):
        return Kind(_across(plain), "f32" if plain in ("permps", "permd") else "f64", bits)
    if _SHIFTS.match(plain):
        return Kind("shift_each" if "v" in plain else "shift", _ELEMENTS[plain[-1]], bits)
    if _WITHIN.match(plain):
        return Kind("shuffle", "f64", bits)
    if _COMPARES.match(plain):
        if isinstance(ops[-1], Register) and ops[-1].family[0] == "k":
            return Kind("compare", "f64", bits)
        # Cores compare integers in the units that add them, in one cycle. Only 64-bit `>` takes 3 on Intel's.
        return Kind("compare", "i64", bits) if plain == "pcmpgtq" else Kind("add", "i32", bits)
    if _INTEGERS.match(plain):
        return Kind("add", _ELEMENTS.get(plain[-1], "i32"), bits)
    if _PRODUCTS.match(plain):
        # Cores multiply 16 bits, or the digits of a float (`pmuludq`); longer products may take several such steps.
        last = plain[-1] if plain in ("pmullq", "pmulld") else "w"
        return Kind("mul", _ELEMENTS[last], bits)
    return Kind("shuffle", "f64", bits)


def _across(plain: str) -> str:
    """The class of an instruction that moves elements across the parts of a vector."""
    part = re.match(r"(extract|insert)[fi]\d", plain)
    if part is not None:
        return part[1]
    return "exchange" if plain.startswith("perm2") else "permute"


def _is_masked_move(plain: str) -> bool:
    """A load or store of AVX that leaves out elements, `vmaskmovpd` and its like."""
    return plain.startswith(("maskmovp", "pmaskmov"))


def _conversion(plain: str, bits: int) -> Kind:
    """Conversions by their operands: between floats, between integers and floats, and of halves."""
    scalar = any(s in plain for s in ("sd2", "ss2", "si2", "sh2", "2si", "2usi", "usi2"))
    if "ph" in plain or "sh" in plain or "bf16" in plain:
        loaded = {"ps2phxx": 128, "ps2phxy": 256}.get(plain.removeprefix("cvt"), bits)  # the width of a loaded source
        return Kind("convert", "f16", 32 if scalar else loaded)
    if "si" in plain:
        return Kind("convert", "i64", 64)
    if "dq" in plain or "qq" in plain:
        return Kind("convert", "f64" if "pd" in plain else "i32", bits)
    return Kind("convert", "f32" if scalar else "f64", 32 if scalar else bits)


def _general_kind(name: str, ops: tuple[Operand, ...]) -> Kind:
    """Instructions on general registers."""
    plain, _ = split_name(name)
    if name.startswith("mov") and len(ops) == 2:
        if isinstance(ops[0], Memory) or isinstance(ops[1], Memory):
            return NONE
        return NONE if plain == "mov" and isinstance(ops[0], Register) else Kind("add", "i64", 64)
    if plain in ("push", "pop"):
        return NONE
    if plain in ("imul", "mul", "mulx"):
        return Kind("mul", "i64", 64)
    if plain in ("div", "idiv"):
        return Kind("div", "i64", 64)
    if plain in _GENERAL_SHIFTS:
        return Kind("shift", "i64", 64)
    if _TWO_FLAGS.match(name):
        return Kind("blend", "i64", 64)
    return Kind("add", "i64", 64)


# ---- registers and memory ----


def _moved(instruction: Instruction, kind: Kind, vector: bool) -> Work:
    """The instruction with its reads, writes, loads and stores."""
    name, ops = instruction.name, instruction.operands
    plain, _ = split_name(name)
    memory = next((o for o in ops if isinstance(o, Memory)), None)
    if _zeroes(plain, ops):
        return Work(NONE, (), _written(instruction))
    if plain == "lea" or memory is None:
        reads = _families(ops[:-1])
        if plain == "lea" and memory is not None:
            reads = _families((memory,))
        return Work(kind, reads + _also_read(instruction), _written(instruction))
    addresses = tuple(r for r in (memory.base, memory.index) if r and r != "rip")
    masks = (memory.mask,) if memory.mask else ()
    size = bytes_moved(instruction, memory)
    last = ops[-1] is memory
    reads = _families(tuple(o for o in ops if o is not memory and o is not ops[-1])) + masks
    if last and (_leaves_memory(plain) or _is_long_product(plain, ops)):
        return Work(
            kind, reads + _implied(plain, ops), _written(instruction), addresses, load=memory, bytes=size,
            general=not vector,
        )  # fmt: skip
    if last:
        storing = vector or plain.startswith(_STORING)
        store_reads = _families(tuple(o for o in ops if o is not memory)) + masks
        lanes = _lanes(kind) if kind.cls == "scatter" else 0
        masked = bool(memory.mask) or _is_masked_move(plain.removeprefix("v"))
        return Work(
            kind, store_reads, "", addresses, None if storing else memory, memory, size, masked, lanes,
            general=not vector,
        )  # fmt: skip
    lanes = _lanes(kind) if kind.cls == "gather" else 0
    reads += _also_read(instruction)
    indexed = vector and bool(memory.index) and bool(kind.cls) and not lanes
    return Work(
        kind, reads, _written(instruction), addresses, load=memory, bytes=size,
        masked=_is_masked_move(plain.removeprefix("v")), lanes=lanes, indexed=indexed, general=not vector,
    )  # fmt: skip


def _zeroes(plain: str, ops: tuple[Operand, ...]) -> bool:
    """A register combined with itself to zero, which the core recognizes without waiting for it."""
    if "xor" not in plain and plain not in ("sub", "vpsubd", "vpsubq", "vpsubw", "vpsubb"):
        return False
    return len(ops) >= 2 and ops[0] == ops[1] and isinstance(ops[0], Register) and not ops[-1].mask  # type: ignore[union-attr]


_COMPARING = re.compile(r"(?:cmp|test|bt)$|v?(?:u?comi|ptest$|testp)|k(?:or)?test")
_SIGNS = {"cltq": "rax", "cwtl": "rax", "cbtw": "rax", "cqto": "rdx", "cltd": "rdx"}
"""The register that each of these fills with the sign of (a part of) rax."""

_OF_ONE_OPERAND = re.compile(
    r"mov(?!hlps|lhps|[hl]p[sd])|cvt(?!\w*2s[sd])|sqrtp|rcpp|rsqrtp|roundp|pabs|pmov[sz]x|pshuf(?!b)|lddqu|phminposuw"
)
"""Instructions of SSE on a whole register that depend on their source alone."""


def _compares(plain: str) -> bool:
    """Whether an instruction sets flags and leaves all of its operands as they are."""
    return _COMPARING.match(plain) is not None


def _replaces_part(name: str, ops: tuple[Operand, ...]) -> bool:
    """Whether an instruction of SSE keeps a part of its destination, or computes with it: `addpd %xmm0, %xmm1` adds to
    xmm1, `movhpd (%rdi), %xmm1` and `cvtsi2sd %eax, %xmm1` replace one half.
    """
    if name.startswith(("v", "k")):
        return False
    between = all(isinstance(o, Register) for o in ops)
    return _OF_ONE_OPERAND.match(name) is None or (name in ("movss", "movsd") and between)


def _is_long_product(plain: str, ops: tuple[Operand, ...]) -> bool:
    """Whether it is a product of rax and its only operand, which it keeps: `imul %rcx`, unlike `imul %rcx, %rdx`."""
    return plain == "mul" or (plain == "imul" and len(ops) == 1)


def _implied(plain: str, ops: tuple[Operand, ...]) -> tuple[str, ...]:
    """Registers that are read though the text does not name them: a division divides all of rdx:rax."""
    if _is_long_product(plain, ops) or plain in _SIGNS:
        return ("rax",)
    return ("rax", "rdx") if plain in ("div", "idiv") else ()


def _lanes(kind: Kind) -> int:
    return kind.bits // int(kind.type[1:])


def _leaves_memory(plain: str) -> bool:
    """Whether an instruction only reads its last operand, as comparisons, `push`, `mul` and divisions do."""
    return _compares(plain) or plain in ("mul", "div", "idiv", "push")


def _written(instruction: Instruction) -> str:
    """The one register that counts as written: `flags` for comparisons, `rax` for long products and quotients; empty
    for none.
    """
    plain, _ = split_name(instruction.name)
    last = instruction.operands[-1] if instruction.operands else None
    if _compares(plain):
        return "flags"
    if plain in _SIGNS:
        return _SIGNS[plain]
    if plain in ("div", "idiv") or _is_long_product(plain, instruction.operands):
        return "rax"
    return last.family if isinstance(last, Register) else ""


def _also_read(instruction: Instruction) -> tuple[str, ...]:
    """What is read besides the sources: flags, masks, and the destination if its old value counts (two-operand
    arithmetic, fused multiply-add, merging masks).
    """
    name, ops = instruction.name, instruction.operands
    last = ops[-1] if ops else None
    plain, _ = split_name(name)
    implied = _implied(plain, ops)
    if not isinstance(last, Register):
        return implied
    # A byte written by `set` is merged with the rest of its register, so the old value counts for it, too.
    if name.startswith(("set", "cmov", "adc", "sbb")):
        return ("flags", last.family)
    masks = (last.mask,) if last.mask else ()
    if last.is_vector or last.family[0] == "k":
        old = bool(re.match(r"vfn?m(?:add|sub)|vperm[it]2|vpternlog|vpdp", name)) or last.merging
        old = old or _compares(plain) or _replaces_part(name, ops)
        return ((last.family,) if old else ()) + masks
    if implied:
        return (last.family, *implied)
    in_place = plain in _IN_PLACE and not (plain == "imul" and len(ops) == 3)
    return (last.family,) if in_place else ()

"""Assembly text of one compiled function, read into instructions (x86-64 in AT&T syntax, as compilers print it).

Source operands come first. This module reads only the text: `integers.py` says what an instruction does to integers,
`classes.py` what it costs.
"""

from __future__ import annotations

import re

from roofdsl.incore.result import NoInCore
from roofdsl.lang.record import Record


class Register(Record):
    """A register. `family`: the name that all its parts share, as `rax` for `%al`, or `v3` for `%xmm3`; bits: 8 to 512.

    mask: the name of a mask register if only some elements are written; merging: the other elements keep their values.
    high: `%ah` and the like.
    """

    family: str
    bits: int
    mask: str = ""
    merging: bool = False
    high: bool = False

    @property
    def is_vector(self) -> bool:
        return self.family[0] == "v"


class Memory(Record):
    """An address: displacement + base + index * scale, plus that of `symbol` if there is one.

    mask: as for registers. broadcast: one element in memory stands for a whole vector, as in `{1to8}`. vector_index:
    the index is a vector register, as in a gather.
    """

    displacement: int
    base: str
    index: str
    scale: int
    symbol: str = ""
    mask: str = ""
    broadcast: bool = False
    vector_index: bool = False


class Immediate(Record):
    """A number, plus the address of `symbol` if there is one."""

    value: int
    symbol: str = ""


Operand = Register | Memory | Immediate


class Instruction(Record):
    """One instruction: its name without prefixes, and operands with the destination last."""

    name: str
    operands: tuple[Operand, ...]
    target: str = ""  # a label, of jumps and calls
    indirect: bool = False  # `jmpq *%rax`: the target is in the operand
    line: int = 0


class Code(Record):
    """The instructions of a text; `labels` give the index of the instruction that follows each.

    data: the bytes at each symbol of the data sections; addresses of symbols within them are zeros.
    """

    instructions: tuple[Instruction, ...]
    labels: dict[str, int]
    data: dict[str, bytes]


_LABEL = re.compile(r'^("[^"]*"|[.\w$@]+):')
_INSTRUCTION = re.compile(r"^\s+([a-z][a-z0-9]*)(?:\s+(.*))?$")
_SYMBOL = r'"[^"]*"|[.$@A-Za-z_][.$\w@]*'
_MEMORY = re.compile(
    rf"(?:(?P<symbol>{_SYMBOL})(?P<plus>[+-]\d+)?|(?P<number>-?(?:0x[0-9a-f]+|\d+)))?"
    r"(?:\((?P<base>%\w+)?(?:,(?P<index>%\w+)(?:,(?P<scale>[1248]))?)?\))?$"
)
_ADDRESS = re.compile(rf"({_SYMBOL})([+-]\d+)?$")
_SUFFIXES = re.compile(r"\{([^}]*)\}")
_COMMENT = re.compile(r"\s+(?:#|//).*$")
_PREFIXES = frozenset(("lock", "rep", "repe", "repne", "data16", "notrack", "bnd", "cs"))
_SIZES = {".byte": 1, ".short": 2, ".value": 2, ".2byte": 2, ".long": 4, ".4byte": 4, ".quad": 8, ".8byte": 8}

_PARTS = {"rax": "eax ax al", "rbx": "ebx bx bl", "rcx": "ecx cx cl", "rdx": "edx dx dl"}
_PARTS |= {"rsi": "esi si sil", "rdi": "edi di dil", "rbp": "ebp bp bpl", "rsp": "esp sp spl"}
REGISTERS: dict[str, Register] = {}
"""Every register by its name."""
for _family, _names in _PARTS.items():
    for _name, _bits in zip((_family, *_names.split()), (64, 32, 16, 8), strict=True):
        REGISTERS[_name] = Register(_family, _bits)
for _letter in "abcd":
    REGISTERS[f"{_letter}h"] = Register(f"r{_letter}x", 8, high=True)
for _k in range(8, 16):
    for _suffix, _bits in (("", 64), ("d", 32), ("w", 16), ("b", 8)):
        REGISTERS[f"r{_k}{_suffix}"] = Register(f"r{_k}", _bits)
for _k in range(32):
    for _letter, _bits in (("x", 128), ("y", 256), ("z", 512)):
        REGISTERS[f"{_letter}mm{_k}"] = Register(f"v{_k}", _bits)
for _k in range(8):
    REGISTERS[f"k{_k}"] = Register(f"k{_k}", 64)


def read(text: str) -> Code:
    """The instructions and data of an assembly text. Raises NoInCore for an operand that is not understood."""
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    data: dict[str, bytearray] = {}
    open_symbols: list[str] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = _COMMENT.sub("", raw.partition("\t#")[0]).rstrip()
        found = _LABEL.match(line)
        if found is not None:
            name = found[1].strip('"')
            labels.setdefault(name, len(instructions))
            data[name] = bytearray()
            open_symbols = [name]
            line = " " + line[found.end() :]
        if line.strip().startswith("."):
            for name in open_symbols:
                data[name] += _data(line.strip())
            continue
        found = _INSTRUCTION.match(line)
        if found is not None:
            instructions.append(_instruction(found[1], found[2] or "", number))
    held = {name: bytes(block) for name, block in data.items() if block}
    return Code(tuple(instructions), labels, held)


def _data(directive: str) -> bytes:
    """The bytes of a directive such as `.quad 5`; the address of a symbol becomes zeros (no decision depends on it)."""
    word, _, rest = directive.partition("\t") if "\t" in directive else directive.partition(" ")
    if word in _SIZES:
        size = _SIZES[word]
        values = [_number(part.strip()) or 0 for part in rest.split(",")]
        return b"".join((v % (1 << 8 * size)).to_bytes(size, "little") for v in values)
    if word in (".zero", ".skip") and (count := _number(rest.split(",")[0].strip())):
        return bytes(min(count, 1 << 16))
    return b""


def _number(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None


def _instruction(name: str, rest: str, line: int) -> Instruction:
    while name in _PREFIXES and rest:
        name, _, rest = rest.partition(" ") if " " in rest else rest.partition("\t")
        rest = rest.strip()
    if name.startswith(("j", "call")) or name == "xbegin":
        target = rest.strip()
        if target.startswith("*"):
            return Instruction(name, (_operand(target[1:], line),), indirect=True, line=line)
        return Instruction(name, (), target.removesuffix("@PLT").strip('"'), line=line)
    return Instruction(name, tuple(_operand(part, line) for part in _split(rest)), line=line)


def _split(text: str) -> list[str]:
    """The operands, split at the commas outside brackets."""
    parts, depth, start = [], 0, 0
    for k, character in enumerate(text):
        if character in "({":
            depth += 1
        elif character in ")}":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:k].strip())
            start = k + 1
    return [part for part in (*parts, text[start:].strip()) if part]


def _operand(text: str, line: int) -> Operand:
    suffixes = _SUFFIXES.findall(text)
    plain = _SUFFIXES.sub("", text).strip()
    mask = next((s[1:] for s in suffixes if s.startswith("%k")), "")
    if plain.startswith("%"):
        register = REGISTERS.get(plain[1:])
        if register is None:
            return Register(plain[1:], 64)  # segment and other special registers: nothing of ours depends on them
        merging = bool(mask) and "z" not in suffixes
        return Register(register.family, register.bits, mask, merging, register.high)
    if plain.startswith("$"):
        number, address = _number(plain[1:]), _ADDRESS.match(plain[1:])
        if number is not None:
            return Immediate(number)
        if address is None:
            return Immediate(0, plain[1:])  # a difference of symbols, such as that of a table: some address
        return Immediate(int(address[2] or 0), _symbol(address[1]))
    found = _MEMORY.fullmatch(plain.partition(":")[2] if plain.startswith("%fs:") else plain)
    if found is None:
        raise NoInCore(f"the operand `{text[:60]}` of line {line} of the assembly is not understood")
    base, index = (found[k][1:] if found[k] else "" for k in ("base", "index"))
    displacement = int(found["number"] or found["plus"] or "0", 0)
    broadcast = any(s.startswith("1to") for s in suffixes)
    families = [REGISTERS[r].family if r in REGISTERS else "" for r in (base, index)]
    symbol = _symbol(found["symbol"] or "")
    scale = int(found["scale"] or 1)
    return Memory(displacement, families[0], families[1], scale, symbol, mask, broadcast, families[1][:1] == "v")


def _symbol(text: str) -> str:
    """The name of a symbol, without quotation marks and without what says how it is found (`@GOTPCREL`)."""
    return text.strip('"') if text.startswith('"') else text.partition("@")[0]

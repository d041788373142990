"""The instructions with which a core is measured: one or two of each class, at every width, in AT&T syntax.

A template names registers by letters: {d} is written, {a} and {b} are read, {h} is the lower half of {a}'s register. In
chains, {c} is both read and written; {e} is its lower half.
"""

from __future__ import annotations

from roofdsl.lang.record import Record

LETTER = {128: "x", 256: "y", 512: "z"}
LOADS = {32: "movss", 64: "movsd", 128: "movupd", 256: "movupd", 512: "movupd"}
"""Moves between memory and registers, by width in bits."""


class Template(Record):
    """One class at one width.

    chain: instructions each of which needs the result of the previous one; empty if latency is measured otherwise.
    links: how many instructions of the class they count as. needs: the feature that the processor must have.
    """

    cls: str
    type: str
    bits: int
    text: str
    chain: tuple[str, ...] = ()
    links: float = 1.0
    needs: str = "avx2"

    @property
    def key(self) -> str:
        return f"{self.cls}_{self.type}_{self.bits}"


def register(bits: int, number: int) -> str:
    """The vector register of that number at a width; scalars are in the shortest ones."""
    return f"%{LETTER.get(bits, 'x')}mm{number}"


def templates() -> tuple[Template, ...]:
    """All classes on vector registers."""
    found: list[Template] = []
    for bits in (128, 256, 512):
        found += _packed(bits)
    for type_name, letter in (("f64", "d"), ("f32", "s")):
        found += _floats(type_name, f"s{letter}", int(type_name[1:]), "avx2")
    found.append(
        Template(
            "convert", "f32", 32, "vcvtss2sd {a}, {b}, {d}", ("vcvtss2sd {c}, {c}, {c}", "vcvtsd2ss {c}, {c}, {c}"), 2
        )
    )
    found.append(
        Template(
            "convert", "i64", 64, "vcvtsi2sd %rax, {b}, {d}", ("vcvtsi2sd %rax, {c}, {c}", "vcvttsd2si {c}, %rax"), 2
        )
    )
    half = Template("convert", "f16", 32, "vcvtsh2ss {a}, {b}, {d}", ("vcvtsh2ss {c}, {c}, {c}",), 1, "avx512fp16")
    found.append(half)
    found.append(Template("move", "i64", 64, "vmovq %rax, {d}", ("vmovq %rax, {c}", "vmovq {c}, %rax"), 2))
    return tuple(found)


def _floats(type_name: str, suffix: str, bits: int, needs: str) -> list[Template]:
    """Arithmetic on floats of one type, packed or scalar."""
    made = [
        Template(
            cls,
            type_name,
            bits,
            f"{name}{suffix} {{a}}, {{b}}, {{d}}",
            (f"{name}{suffix} {operands}",),
            1,
            needs,
        )
        for cls, name, operands in (
            ("add", "vadd", "{a}, {c}, {c}"),
            ("mul", "vmul", "{a}, {c}, {c}"),
            ("max", "vmax", "{a}, {c}, {c}"),
            ("div", "vdiv", "{c}, {a}, {c}"),  # c = a / c goes back and forth, and never becomes small or simple
        )
    ]
    made.append(
        Template(
            "fma",
            type_name,
            bits,
            f"vfmadd231{suffix} {{a}}, {{b}}, {{d}}",
            (f"vfmadd231{suffix} {{a}}, {{b}}, {{c}}",),
            1,
            needs,
        )
    )
    root = "{a}, {b}, {d}" if suffix[0] == "s" else "{a}, {d}"
    operands = "{c}, {c}, {c}" if suffix[0] == "s" else "{c}, {c}"
    # Roots of roots come to 1: the bits of b are added again, so that no root is simpler than the one before.
    chain = (f"vsqrt{suffix} {operands}", ("vporq" if bits == 512 else "vorpd") + " {b}, {c}, {c}")
    made.append(Template("sqrt", type_name, bits, f"vsqrt{suffix} {root}", chain, 1, needs))
    return made


def _packed(bits: int) -> list[Template]:
    needs = "avx512f" if bits == 512 else "avx2"
    made = _floats("f64", "pd", bits, needs) + _floats("f32", "ps", bits, needs)

    def add(cls: str, type_name: str, text: str, chain: tuple[str, ...], links: float = 1.0, *, also: str = "") -> None:
        made.append(Template(cls, type_name, bits, text, chain, links, also or needs))

    half = {128: "{a}", 256: "{h}", 512: "{h}"}[bits]
    halved = {128: "{c}", 256: "{e}", 512: "{e}"}[bits]
    narrow = "x" if bits == 128 else ""
    narrowed = f"vcvtpd2ps{narrow} {{c}}, {halved}"
    add("convert", "f64", f"vcvtps2pd {half}, {{d}}", (f"vcvtps2pd {halved}, {{c}}", narrowed), 2)
    add("convert", "i32", "vcvtdq2ps {a}, {d}", ("vcvtdq2ps {c}, {c}", "vcvtps2dq {c}, {c}"), 2)
    halves = (f"vcvtph2ps {halved}, {{c}}", f"vcvtps2ph $0, {{c}}, {halved}")
    add("convert", "f16", f"vcvtph2ps {half}, {{d}}", halves, 2)
    # From memory, where code has its halves: on some cores this takes longer than from a register.
    add("widen", "f16", "vcvtph2ps (%rdi), {d}", halves, 2)
    add("shuffle", "f64", "vshufpd $1, {a}, {b}, {d}", ("vshufpd $1, {c}, {c}, {c}",))
    if bits > 128:
        add("permute", "f64", "vpermpd $27, {a}, {d}", ("vpermpd $27, {c}, {c}",))
        add("permute", "f32", "vpermps {a}, {b}, {d}", ("vpermps {c}, {b}, {c}",))
        part = {256: "f128", 512: "f64x4"}[bits]
        add("extract", "f64", f"vextract{part} $1, {{a}}, {{e}}", (f"vextract{part} $1, {{c}}, {{e}}",))
        add("insert", "f64", f"vinsert{part} $1, {{h}}, {{b}}, {{d}}", (f"vinsert{part} $1, {{e}}, {{c}}, {{c}}",))
    if bits == 256:
        add("exchange", "f64", "vperm2f128 $49, {a}, {b}, {d}", ("vperm2f128 $1, {a}, {c}, {c}",))
    if bits < 512:
        add("horizontal", "f64", "vhaddpd {a}, {b}, {d}", ("vhaddpd {a}, {c}, {c}",))
        add("compare", "i64", "vpcmpgtq {a}, {b}, {d}", ("vpcmpgtq {a}, {c}, {c}",))
    logic = (
        ("vandpd {a}, {b}, {d}", "vandpd {a}, {c}, {c}")
        if bits < 512
        else ("vpandq {a}, {b}, {d}", "vpandq {a}, {c}, {c}")
    )
    add("logic", "f64", logic[0], (logic[1],))
    if bits == 512:
        add("blend", "f64", "vblendmpd {a}, {b}, {d} {{%k2}}", ("vblendmpd {a}, {c}, {c} {{%k2}}",))
    else:
        add("blend", "f64", "vblendpd $1, {a}, {b}, {d}", ("vblendpd $1, {a}, {c}, {c}",))
    add("add", "i32", "vpaddd {a}, {b}, {d}", ("vpaddd {a}, {c}, {c}",))
    add("mul", "i16", "vpmullw {a}, {b}, {d}", ("vpmullw {a}, {c}, {c}",))
    add("mul", "i32", "vpmulld {a}, {b}, {d}", ("vpmulld {a}, {c}, {c}",))
    add("mul", "i64", "vpmullq {a}, {b}, {d}", ("vpmullq {a}, {c}, {c}",), 1, also="avx512dq")
    add("shift", "i32", "vpslld $3, {a}, {d}", ("vpslld $3, {c}, {c}",))
    add("shift_each", "i32", "vpsllvd {a}, {b}, {d}", ("vpsllvd {a}, {c}, {c}",))
    # A comparison into a mask has no chain of its own: the latency is that of a comparison and a masked move after it.
    add(
        "compare",
        "f64",
        "vcmpltpd {a}, {b}, %k1",
        ("vcmpltpd {c}, {b}, %k1", "vblendmpd {a}, {c}, {c} {{%k1}}"),
        1,
        also="avx512dq",
    )
    return made


def filled(text: str, bits: int, number: int) -> str:
    """A template with registers: results go to register `number`; a chain goes through it."""
    names = {"a": 14, "b": 15, "d": number, "c": number}
    wide = {key: register(bits, n) for key, n in names.items()}
    lower = {"h": register(bits // 2, 14), "e": register(bits // 2, number)}
    return text.format(**wide, **lower)

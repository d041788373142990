"""The arguments of a bound, step by step, for students."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import sympy

from roofdsl.bounds.bottleneck import Bottleneck, Part
from roofdsl.bounds.bound import Bound
from roofdsl.bounds.flow import Flow
from roofdsl.bounds.intervals import FINISHED
from roofdsl.bounds.partition import Allowed, Partition
from roofdsl.bounds.pieces import Slot
from roofdsl.bounds.staggered import Staggered
from roofdsl.bounds.stencil import Stencil
from roofdsl.formulas.sympy_forms import expression
from roofdsl.formulas.sympy_text import readable

SOURCES = {
    "partition": "Hong, Kung 1981; Irony, Toledo, Tiskin 2004; Smith et al. 2019; Christ et al. 2013",
    "halves": "Beaumont, Eyraud-Dubois, Verite, Langou, SPAA 2022",
    "stencil": "isoperimetry as in Wang, Wang 1977, and Brunn-Minkowski; compare Elango et al. 2015",
    "staggered": "isoperimetry as in Wang, Wang 1977; compare Kwasniewski et al. 2021",
    "bottleneck": "Elango et al. 2014; Olivry et al. 2020, 2024",
}


def argument(b: Bound) -> Iterator[str]:
    """Lines of text: the compulsory loads, then every argument, with the complete formula that it gives."""
    yield "Compulsory loads"
    for name, count in b.compulsory.by_array:
        yield f"  {name}: {short(expression(count))} elements exist before the kernel runs and are read"
    if b.partition is not None and b.flow is not None:
        yield ""
        yield from _partition(b.partition, b.flow, b.size)
    if b.stencil is not None:
        yield ""
        if isinstance(b.stencil, Staggered):
            yield from _staggered(b.stencil, b.flow, b.size, b.registers)
        else:
            yield from _stencil(b.stencil, b.size, b.registers)
    for title, found in (("Bottleneck", b.bottleneck), ("Sweep", b.sweep)):
        if found is not None and b.flow is not None:
            yield ""
            yield f"{title} ({SOURCES['bottleneck']})"
            yield from _bottleneck(found, b.flow, b.size, b.registers)


def short(value: Any) -> str:
    """A sympy expression as text, in its shortest form."""
    return readable(_shortest(value))


def _shortest(value: Any) -> Any:
    return sympy.factor_terms(sympy.simplify(value))


def _text(flow: Flow, name: str) -> str:
    """A statement as it is in the kernel's text."""
    statement = next(s for s in flow.statements if s.name == name)
    span = statement.placed.statement.span
    return flow.kernel.source.text.splitlines()[span.line - 1].strip()


def _partition(p: Partition, flow: Flow, size: Any) -> Iterator[str]:
    yield f"Partition ({SOURCES['partition']})"
    yield "  1. Cut the run, in any order, into segments of T arrivals: loads, and values produced on chip."
    yield f"     A segment works with what is there ({size} elements, and {p.registers} in registers) and what arrives:"
    yield f"     at most X = {size} + {p.registers} + T objects."
    for number, a in enumerate(p.parts):
        yield from _allowed(a, flow, number + 2)
    segments = " + ".join(f"{_divisible(expression(a.piece.size))}/H(X)" for a in p.parts)
    yield f"  {len(p.parts) + 2}. So there are at least {segments} - 1 whole segments."
    yield f"     With T = {short(p.arrivals)}, the best: loads >= T*({segments} - 1) - produced on chip"
    yield f"       = {readable(p.value)}"
    yield f"     The leading term is {short(p.leading)}."


def _divisible(value: Any) -> str:
    """`value` as the numerator of a fraction, in brackets if it needs them and has none of its own."""
    value = _shortest(value)
    text = readable(value)
    return f"({text})" if re.search("[ /]", text) and not isinstance(value, sympy.Piecewise) else text


def _allowed(a: Allowed, flow: Flow, step: int) -> Iterator[str]:
    piece = a.piece
    quoted = "` and `".join(_text(flow, n) for n in piece.names)
    yield f"  {step}. `{quoted}`: {short(expression(piece.size))} executions. A set E of these needs at least"
    for slot, share in zip(piece.slots, a.exponents, strict=True):
        if not share:
            continue
        what = "running values" if slot.running else "values"
        others = [s.text for s in piece.slots if s.group == slot.group and s is not slot]
        perhaps = f"; they may be those of {' and '.join(others)}" if others else ""
        twice = "; each may stand for two points" if slot.factor == 2 else ""
        along = _along(slot, piece.loops)
        yield f"       as many {what} {slot.text} as E has points seen along {along}{perhaps}{twice}"
    if piece.halves:
        yield "     E and its mirror image are disjoint and need the same operands: |E| is half of what these allow"
        yield f"     ({SOURCES['halves']})."
    total = sum(a.exponents, Fraction(0))
    powers = ", ".join(map(str, a.exponents))
    yield f"     |E| is at most the product of these numbers to the powers {powers} (Loomis-Whitney, Brascamp-Lieb)."
    yield "     With X objects, the product is largest if they divide X in proportion to the powers:"
    yield f"     H(X) = {short(a.constant)}*X**({total})."
    made = [text for m in piece.made if (text := short(expression(m))) != "0"]
    if made:
        yield f"     Produced on chip, at most: {' + '.join(made)}."
    if piece.finished is not None:
        yield "     Operands and result are elements (i, k), (k, j), (i, j) of one array, i < k < j. An element that"
        yield "     serves on both sides gains nothing (docs/proofs.md), unless it is finished in the segment."
        yield f"     These, {short(expression(piece.finished))} in all, count as {FINISHED} arrivals each."
        yield f"     A cut can separate the arrivals of one element: X + {FINISHED - 1} objects."


def _along(slot: Slot, loops: tuple[str, ...]) -> str:
    """The directions that a projection loses: `j`, or `(1, -1)` if that is not a loop."""
    names = []
    for vector in slot.lost:
        terms = [v for v, c in zip(loops, vector, strict=True) if c]
        names.append(terms[0] if len(terms) == 1 else f"({', '.join(map(str, vector))})")
    return " and ".join(names)


def _stencil(s: Stencil, size: Any, registers: int) -> Iterator[str]:
    yield f"Stencil ({SOURCES['stencil']})"
    yield f"  1. A time step reads the previous step at the offsets {', '.join(map(_point, s.offsets))}."
    if s.inside:
        yield f"     It reads itself at {', '.join(_point(p) for p in s.inside if any(p))}."
    power = f"*|A|**({s.dimensions - 1}/{s.dimensions})" if s.dimensions > 1 else ""
    yield f"  2. A set A of its points needs at least |A| + c{power} points of the previous step,"
    yield f"     c = {short(s.growth * s.shared)}."
    if s.shared > 1:
        yield f"     A value of a statement in between can stand for {s.shared} of them: c/{s.shared} counts."
    yield f"  3. X = {size} + {registers} + T values, of T loads, allow H(X) = {short(s.constant)}*X**({s.power})."
    yield f"  4. There are {short(s.executions)} executions;"
    yield f"     reads at the edge count as free: {short(s.edge)}."
    arrivals = short(s.dimensions * (size + registers))
    yield f"     With T = {arrivals}, the best: loads >= T*(executions/H(X) - 1) - free reads"
    yield f"       = {readable(s.value)}"
    yield f"     The leading term is {short(s.leading)}."


def _staggered(s: Staggered, flow: Flow | None, size: Any, registers: int) -> Iterator[str]:
    yield f"Stencil, a staggered grid ({SOURCES['staggered']})"
    if flow is not None:
        yield f"  1. `{_text(flow, s.vertex)}`"
        yield "     computes the vertices of a grid from their previous values and from the edges that touch them;"
        yield f"     `{_text(flow, s.edges[0])}`"
        yield f"     `{_text(flow, s.edges[1])}`"
        yield "     compute its edges from their previous values and from their ends."
    yield "  2. a vertices computed at one time have at least sqrt(8*a) neighbors that are not. Each of these needs"
    yield "     a value, its own or that of an edge. A vertex also needs its own previous value when it is"
    yield "     first computed."
    yield f"  3. So X = {size} + {registers} + T values, of T loads, allow at most"
    yield "     H(X) = X**(3/2)/3 + 4*X executions (docs/proofs.md)."
    yield f"  4. There are {short(s.executions)} executions;"
    yield f"     reads at the edge count as free: {short(s.free)}."
    yield f"     With T = {short(2 * (size + registers))}: loads >= T*(executions/H(X) - 1) - free reads"
    yield f"       = {readable(s.value)}"
    yield f"     The leading term is {short(s.leading)}."


def _point(p: tuple[int, ...]) -> str:
    return str(p[0]) if len(p) == 1 else f"({', '.join(map(str, p))})"


def _bottleneck(b: Bottleneck, flow: Flow, size: Any, registers: int) -> Iterator[str]:
    for number, part in enumerate(b.parts, 1):
        yield from _moments(part, flow, number)
    yield f"  {len(b.parts) + 1}. {size} + {registers} values fit at each moment; the others are loaded after it."
    if b.inputs != 0:
        yield f"     First loads of inputs, not included above: {short(b.inputs)}."
        yield "     Loads of different values add up:"
    yield f"     loads >= {readable(b.value)}"
    yield f"     The leading term is {short(b.leading)}."


def _moments(part: Part, flow: Flow, step: int) -> Iterator[str]:
    m = part.found
    at = f"`{_text(flow, m.at)}`"
    if m.kind == "turn":
        yield f"  {step}. What uses the last value of {at}"
        yield f"     also uses {', '.join(m.what)}, which are computed or loaded before it."
        yield "     They are live at that moment, and each at only one such moment."
    elif m.kind == "rounds":
        yield f"  {step}. Each {at} depends on the one before."
        yield "     What must run between two of them uses values that existed before the first."
    elif m.kind == "sweep":
        yield f"  {step}. Every {at} of a round depends on"
        yield f"     every `{_text(flow, m.what[0])}` of it, along disjoint paths."
        yield "     Before the first one of a round, one value of each path is live."
    elif m.kind == "whole":
        (what,) = m.what
        first = f"element of {what.removeprefix('IN_')}" if what.startswith("IN_") else f"`{_text(flow, what)}`"
        yield f"  {step}. Every {at} depends on"
        yield f"     every {first}, along disjoint paths."
        yield "     Before the first one, one value of each path is live."
    else:
        one, other, *shared = m.what
        yield f"  {step}. {at} joins two chains that run towards each other:"
        yield f"     `{_text(flow, one)}`"
        yield f"     `{_text(flow, other)}`"
        yield "     When they meet, each place has the value of one chain and waits for that of the other."
        if shared:
            yield f"     The values that both chains use are live, too: {', '.join(shared)}."
    often = "one moment" if part.moments == 1 else f"{short(part.moments)} moments in all"
    yield f"     These are {short(part.live)} values, at {often}."

"""Operations counted by executing a kernel on values that remember where they came from.

Each executed multiplication makes a value that knows its uses; at the end an addition whose operand is a product used
by nothing else is a fused pair. Real types only, one type throughout, no guards between a `let` and its use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from roofdsl.loops.model import (
    Binary,
    Call,
    Count,
    DataCompare,
    Element,
    Expr,
    IntValue,
    Kernel,
    Let,
    LetRef,
    Number,
    ScalarRef,
    Select,
    Unary,
)
from tests.oracle.enumerate import run


@dataclass(eq=False)
class Datum:
    """A value: whether it depends on data, whether a multiplication made it, how often it was used."""

    data: bool = True
    product: bool = False
    uses: int = 0


@dataclass
class Tally:
    """What was executed."""

    operations: dict[str, int] = field(default_factory=dict)
    additions: list[tuple[Datum, Datum]] = field(default_factory=list)
    cmp: int = 0

    def add(self, name: str, n: int = 1) -> None:
        self.operations[name] = self.operations.get(name, 0) + n

    @property
    def pairs(self) -> int:
        return sum(any(d.product and d.uses == 1 for d in pair) for pair in self.additions)


def executed(kernel: Kernel, params: Mapping[str, int]) -> Tally:
    """Run the kernel and count."""
    tally, lets = Tally(), {}
    for e in run(kernel, params):
        if isinstance(e.statement, Count):
            continue
        value = _value(e.statement.value, tally, lets)
        if isinstance(e.statement, Let):
            lets[e.statement.name] = value
        elif e.statement.op != "=":
            _combine(e.statement.op[:-1], [Datum(), value], tally)
        else:
            value.uses += 1
    return tally


def _value(e: Expr | DataCompare, tally: Tally, lets: dict[str, Datum]) -> Datum:
    match e:
        case Number() | IntValue():
            return Datum(data=False)
        case Element() | ScalarRef():
            return Datum()
        case LetRef():
            return lets[e.name]
        case Unary():
            return _value(e.operand, tally, lets)
        case Binary(op="**"):
            base = _value(e.left, tally, lets)
            assert isinstance(e.right, Number)
            powers = {2: 1, 3: 2, 4: 2}[int(e.right.value)]
            for _ in range(powers):
                base.uses += 2
                if base.data:
                    tally.add("mul")
                    base = Datum(product=True)
            return base
        case Binary():
            return _combine(e.op, [_value(e.left, tally, lets), _value(e.right, tally, lets)], tally)
        case Call(function="min" | "max"):
            return _combine("min", [_value(a, tally, lets) for a in e.args], tally)
        case Call():
            (argument,) = (_value(a, tally, lets) for a in e.args)
            argument.uses += 1
            if argument.data and e.function != "abs":
                tally.add("special")
            return Datum(data=argument.data)
        case Select():
            left, right = _value(e.condition.left, tally, lets), _value(e.condition.right, tally, lets)
            arms = [_value(e.if_true, tally, lets), _value(e.if_false, tally, lets)]
            tally.cmp += left.data or right.data
            for d in (left, right, *arms):
                d.uses += 1
            return Datum(data=any(d.data for d in arms))
    raise TypeError(e)


def _combine(op: str, operands: list[Datum], tally: Tally) -> Datum:
    for d in operands:
        d.uses += 1
    if not any(d.data for d in operands):
        return Datum(data=False)
    tally.add({"+": "add", "-": "add", "*": "mul", "/": "div"}.get(op, "min"), len(operands) - 1)
    if op in "+-":
        tally.additions.append((operands[0], operands[1]))
    return Datum(product=op == "*")

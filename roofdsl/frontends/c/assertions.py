"""`assert(n % b == 0 && m >= n)`: what it says about sizes is assumed. Everything else in it is skipped."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from pycparser import c_ast

from roofdsl.frontends.c.conditions import is_null
from roofdsl.frontends.c.context import Again, Context, Known, Split
from roofdsl.frontends.c.effects import no_effects
from roofdsl.frontends.c.pointers import Peel
from roofdsl.frontends.c.rewritten_loops import opposite
from roofdsl.frontends.c.values import NeedsData, Values
from roofdsl.frontends.integer_facts import Facts
from roofdsl.frontends.poly import Poly
from roofdsl.frontends.refuse import Refused
from roofdsl.frontends.whole_steps import Steps, reduced


class Assertions:
    """Reads assertions."""

    def __init__(self, context: Context, values: Values) -> None:
        self.context, self.values = context, values

    def read(self, test: Any) -> None:
        """Assumes what an assertion says about sizes. Raises Again if the function has to be read again with that, and
        Refused for a side effect.
        """
        if isinstance(test, c_ast.BinaryOp) and test.op == "&&":
            self.read(test.left)
            self.read(test.right)
            return
        no_effects(test, calls=True)
        context = self.context
        if context.guarded or context.choosing:
            return  # it need not hold for every call
        parameters, accesses = set(context.parameters), len(context.accesses)
        with suppress(Refused, NeedsData, Peel, Split), context.collected():
            self._assume(test)
        del context.accesses[accesses:]
        context.only_asserted |= context.parameters.keys() - parameters

    def returns(self, node: Any) -> bool:
        """`if (n <= 0 || n % 4) return;` at the beginning of a function: the opposite is assumed, for calls that go on.
        Whether a pointer is null is skipped. Gives whether the statement is read. Raises Again.

        A call that returns later has done something before, which the kernel of the other calls does not count.
        """
        context = self.context
        begun = context.out or context.accesses
        if not leaves(node) or begun or context.guarded or context.choosing or context.facts.ranges or context.calls:
            return False
        return all(self._fails(part) for part in _alternatives(node.cond))

    def _fails(self, test: Any) -> bool:
        """Assumes that a condition on sizes does not hold."""
        if self._is_null(test):
            return True
        parameters = set(self.context.parameters)
        try:
            with self.context.collected():
                return self._assume(opposite(test))
        except (Refused, NeedsData, Peel, Split):
            return False
        finally:
            self.context.only_asserted |= self.context.parameters.keys() - parameters

    def _is_null(self, test: Any) -> bool:
        """Whether a condition asks if a pointer is null."""
        is_pointer = self.values.pointers.is_pointer
        match test:
            case c_ast.UnaryOp(op="!"):
                return is_pointer(test.expr)
            case c_ast.BinaryOp(op="=="):
                sides = (test.left, test.right)
                return any(is_pointer(s) for s in sides) and any(is_null(s) for s in sides)
        return False

    def _assume(self, test: Any) -> bool:
        """Gives whether a condition is one on sizes, which it assumes."""
        context = self.context
        steps = self._multiple(test)
        if steps is not None:
            known = all(map(context.is_size, steps)) and steps[0].names
            if known and steps not in context.learnt.whole_steps:
                context.learnt.whole_steps[steps] = test
                raise Again
            return bool(known)
        found = self.values.conditions.read(test)
        if not isinstance(found, Known) or found.value is False or not all(map(context.is_size, found.holds)):
            return False
        if not found.holds:  # `n != 0` is no difference that is >= 0, but it cannot fail
            return bool(found.value) or any(context.facts.not_negative(-d - 1) for d in found.fails)
        for difference in found.holds:
            if difference.names and not context.facts.not_negative(difference):
                context.assumed.setdefault(difference, test)
        context.facts = Facts(context.facts.ranges, tuple(context.assumed))
        return True

    def _multiple(self, test: Any) -> Steps | None:
        """The length and the step of `length % step == 0`, also if written `!(length % step)`."""
        match test:
            case c_ast.BinaryOp(op="==", left=c_ast.BinaryOp(op="%") as rest, right=zero):
                pass
            case c_ast.BinaryOp(op="==", left=zero, right=c_ast.BinaryOp(op="%") as rest):
                pass
            case c_ast.UnaryOp(op="!", expr=c_ast.BinaryOp(op="%") as rest):
                zero = None
            case _:
                return None
        if zero is not None and self.values.integer(zero, "a remainder") != Poly.number(0):
            return None
        length, step = (self.values.integer(part, "a size") for part in (rest.left, rest.right))
        return reduced(length, step)


_EXITS = ("exit", "abort")


def leaves(node: Any) -> bool:
    """Whether an `if` only leaves the function: `if (c) return;`, also after a message."""
    items = node.iftrue.block_items or () if isinstance(node.iftrue, c_ast.Compound) else (node.iftrue,)
    last = items[-1] if items and node.iffalse is None else None
    ends = isinstance(last, c_ast.FuncCall) and isinstance(last.name, c_ast.ID) and last.name.name in _EXITS
    return ends or isinstance(last, c_ast.Return)


def _alternatives(test: Any) -> list[Any]:
    if isinstance(test, c_ast.BinaryOp) and test.op == "||":
        return [*_alternatives(test.left), *_alternatives(test.right)]
    return [test]

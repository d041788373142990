"""Integer expressions as text mean what they are, by Python's own precedence."""

from __future__ import annotations

import ast
import random
from math import prod

import pytest

from roofdsl.loops.integers import (
    COMPARISONS,
    And,
    Compare,
    Condition,
    Const,
    FloorDiv,
    IntExpr,
    Max,
    Min,
    Mod,
    Not,
    Or,
    Product,
    Sum,
    Sym,
    add,
    fold,
    mul,
)

OPERATIONS = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}


def read(text: str, env: dict[str, int]) -> int:
    """The value of a text as Python would read it."""

    def value(node: ast.expr) -> int:
        match node:
            case ast.Constant(int(number)):
                return number
            case ast.Name(name):
                return env[name]
            case ast.UnaryOp(ast.USub(), operand):
                return -value(operand)
            case ast.BinOp(left, operator, right):
                return OPERATIONS[type(operator)](value(left), value(right))
        raise ValueError(ast.dump(node))

    return value(ast.parse(text, mode="eval").body)


def random_expression(source: random.Random, depth: int) -> IntExpr:
    if depth == 0 or source.random() < 0.2:
        return source.choice([Const(source.randint(-3, 9)), Sym("a"), Sym("b"), Sym("c")])
    one, other = random_expression(source, depth - 1), random_expression(source, depth - 1)
    match source.randint(0, 3):
        case 0:
            return add(one, other)
        case 1:
            return mul(one, other)
        case 2:
            return FloorDiv(one, source.choice([Const(source.randint(2, 5)), Sym("b")]))
    return Mod(one, Const(source.randint(2, 5)))


def test_a_text_has_the_value_of_its_expression() -> None:
    source = random.Random(5)
    for _ in range(2000):
        e = random_expression(source, 4)
        env = {n: source.randint(1, 20) for n in "abc"}
        assert read(str(e), env) == e.evaluate(env), str(e)


def test_a_quotient_in_a_product_keeps_its_brackets() -> None:
    assert str(mul(Sym("n"), FloorDiv(Sym("k"), Sym("p")), Sym("d"))) == "n*(k//p)*d"


def random_condition(source: random.Random, depth: int) -> Condition:
    if depth == 0:
        sides = [random_expression(source, 2) for _ in range(4)]
        return Compare(source.choice([*COMPARISONS]), Min(tuple(sides[:2])), Max(tuple(sides[2:])))
    one, other = random_condition(source, depth - 1), random_condition(source, depth - 1)
    return source.choice([And((one, other)), Or((one, other)), Not(one)])


PYTHON = {
    Const: lambda node: node.value,
    Sum: lambda _, *terms: sum(terms),
    Product: lambda _, *factors: prod(factors),
    Min: lambda _, *terms: min(terms),
    Max: lambda _, *terms: max(terms),
    FloorDiv: lambda _, a, b: a // b,
    Mod: lambda _, a, b: a % b,
    Compare: lambda node, a, b: COMPARISONS[node.op](a, b),
    And: lambda _, *parts: all(parts),
    Or: lambda _, *parts: any(parts),
    Not: lambda _, part: not part,
}


def test_a_table_of_pythons_own_operators_folds_to_the_value() -> None:
    source = random.Random(7)
    seen = set()
    for _ in range(500):
        condition = random_condition(source, 3)
        env = {n: source.randint(1, 20) for n in "abc"}
        seen.add(value := fold(condition, {**PYTHON, Sym: lambda node, env=env: env[node.name]}))
        assert value == condition.holds(env), str(condition)
    assert seen == {True, False}


def test_substituted_numbers_leave_the_value() -> None:
    source = random.Random(11)
    for _ in range(500):
        condition = random_condition(source, 2)
        env = {n: source.randint(1, 20) for n in "abc"}
        closed = condition.substitute({n: Const(v) for n, v in env.items()})
        assert not closed.symbols()
        assert closed.holds({}) == condition.holds(env), str(condition)


def test_a_walk_meets_every_node_and_a_fold_needs_a_row_for_each() -> None:
    condition = Not(Compare("<", Mod(Sym("n"), Const(4)), Sym("m")))
    kinds = [type(node) for node in condition.walk()]
    assert kinds == [Not, Compare, Mod, Sym, Const, Sym]
    assert condition.symbols() == {"n", "m"}
    with pytest.raises(KeyError):
        fold(condition, {kind: lambda *_: 0 for kind in kinds if kind is not Mod})

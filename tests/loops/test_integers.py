"""Integer expressions as text mean what they are, by Python's own precedence."""

from __future__ import annotations

import ast
import random

from roofdsl.loops.integers import Const, FloorDiv, IntExpr, Mod, Sym, add, mul

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

"""Are two formulas equal? Compares exact values at random points, then symbolically if needed.

Different rational formulas agree at POINTS random points with a probability below (degree / 192)**POINTS (the lemma
of Schwartz and Zippel; sizes in tiles take 192 values for each size of the tile, others 4000), so nothing is left to
prove. Other formulas, with functions, `//` or fractional powers, are also compared symbolically.

If floors occur, only whole sizes are compared. With floors, minima or maxima in either formula, sizes up to FAR are
compared too. If the right formula has any of these, so are sizes from 1 on; otherwise, it may be meant for large sizes
only.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import chain
from typing import Any, Literal

from roofdsl.classroom.answer_language import Binary, Call, Name, Negative, Node, Number, functions_in, names_in
from roofdsl.classroom.answer_units import value_of
from roofdsl.classroom.exact import evaluate, quotient, real, same
from roofdsl.classroom.formula_errors import FormulaError
from roofdsl.lang.record import Record

POINTS = 16
SMALL_POINTS = 32
LARGE, FAR = 4040, 10**12
"""The largest sizes at which formulas are compared: LARGE for all, FAR for those with floors, minima or maxima."""

SECONDS = 2.0
"""The processor time in seconds that the symbolic comparison may take."""

_STEPPED = frozenset(("floor", "ceil", "//"))
_BY_SIZE = _STEPPED | {"min", "max"}
_SEED = 20261121


class Symbol(Record):
    """A name that stands for any size: a positive whole number, which may have to be a multiple of another size."""

    name: str
    meaning: str = ""
    multiple_of: str = ""


Relation = Literal["proportional", "large", "leading", "different"]


def equal(answer: Node, right: Node, symbols: Mapping[str, Symbol], *, seconds: float = SECONDS) -> bool:
    """Whether two formulas have the same value for all sizes, or for large ones if `right` has no floors, minima or
    maxima.

    Raises FormulaError if `answer` has no value at a point at which `right` has one.
    """
    whole = bool(_STEPPED & (functions_in(answer) | functions_in(right)))
    small = _small_points(symbols) if _BY_SIZE & functions_in(right) else ()
    for env in chain(points(symbols, whole=whole), small, _far_points(answer, right, symbols)):
        try:
            expected = evaluate(right, env)
        except FormulaError:
            continue
        if not same(evaluate(answer, env), expected):
            return False
    if functions_in(answer) | functions_in(right):
        return not _proven_different(answer, right, symbols, seconds)
    return True


def relation(answer: Node, right: Node, symbols: Mapping[str, Symbol]) -> Relation:
    """How a wrong answer is related to the right one: as a constant multiple, as equal for large sizes, or as equal in
    the leading term.

    Raises FormulaError if `answer` has no value.
    """
    if not names_in(right):
        return "different"
    ratios = []
    for env in chain(points(symbols, whole=True), _far_points(answer, right, symbols)):
        expected = evaluate(right, env)
        if not expected:
            return "different"
        ratios.append(quotient(evaluate(answer, env), expected))
    if ratios[0] and all(same(r, ratios[0]) for r in ratios):
        return "large" if same(ratios[0], Fraction(1)) else "proportional"
    return "leading" if leading_equal(answer, right, symbols) else "different"


def leading_equal(answer: Node, right: Node, symbols: Mapping[str, Symbol]) -> bool:
    """Whether the ratio of two formulas tends to 1 for large sizes. Sizes that divide others grow more slowly, and no
    two sizes are equal, so that one cannot stand for another.

    The result is False for an answer that is out of range at such sizes.
    """
    tiles = {s.multiple_of for s in symbols.values() if s.multiple_of}
    apart = {name: 720720 * (3 * k + 1) for k, name in enumerate(symbols)}
    found = []
    for scale in (10**6, 10**8):
        env = {n: Fraction(scale if n in tiles else scale**3) * apart[n] for n in symbols}
        expected = evaluate(right, env)
        if not expected:
            return False
        try:
            found.append(abs(real(evaluate(answer, env)) / real(expected) - 1))
        except FormulaError:
            return False
    return bool(found[0] < 1e-3 and found[1] <= max(found[0] / 10, 1e-12))


def points(symbols: Mapping[str, Symbol], *, whole: bool) -> Iterator[dict[str, Any]]:
    """Random sizes: whole numbers that respect the multiples, and also fractions, unless `whole` is set."""
    rng = random.Random(_SEED)
    for k in range(POINTS if symbols else 1):
        if k % 2 and not whole:
            yield {n: Fraction(rng.randrange(1000, 5000), rng.randrange(1, 50)) for n in symbols}
            continue
        env: dict[str, Any] = {}
        for name, symbol in symbols.items():
            if not symbol.multiple_of:
                env[name] = Fraction(rng.randrange(40, LARGE))
        yield _in_tiles(env, symbols, rng, range(8, 200))


def _small_points(symbols: Mapping[str, Symbol]) -> Iterator[dict[str, Any]]:
    """Whole sizes from 1 on that respect the multiples: as many small ones as large ones, also side by side."""
    rng = random.Random(_SEED)
    for _ in range(SMALL_POINTS if symbols else 0):
        env: dict[str, Any] = {n: Fraction(int(2 ** rng.uniform(0, 12))) for n in symbols}
        yield _in_tiles(env, symbols, rng, range(1, 9))


def _in_tiles(env: dict[str, Any], symbols: Mapping[str, Symbol], rng: random.Random, tiles: range) -> dict[str, Any]:
    """`env`, with a random number of tiles, one of `tiles`, for each size that is a multiple of a tile."""
    for name, symbol in symbols.items():
        if symbol.multiple_of:
            env[name] = env[symbol.multiple_of] * rng.randrange(tiles.start, tiles.stop)
    return env


def _far_points(a: Node, b: Node, symbols: Mapping[str, Symbol]) -> Iterator[dict[str, Any]]:
    """Whole sizes of all magnitudes up to FAR that respect the multiples; none without floors, minima or maxima."""
    if not _BY_SIZE & (functions_in(a) | functions_in(b)):
        return
    rng = random.Random(_SEED)
    for k in range(POINTS if symbols else 0):
        most = LARGE * (FAR / LARGE) ** ((k + 1) / POINTS)
        env: dict[str, Any] = {n: Fraction(int(most * rng.uniform(0.5, 1)) + 1) for n in symbols}
        yield _in_tiles(env, symbols, rng, range(8, 200))


# ---- symbolically ----


def _proven_different(a: Node, b: Node, symbols: Mapping[str, Symbol], seconds: float) -> bool:
    """Whether it can be shown, within this processor time, that the difference is a nonzero number.

    This is unlikely, since the formulas agree at all points.
    """
    import sympy

    names = {n: sympy.Symbol(n, integer=True, positive=True) for n in symbols}

    def difference() -> bool:
        found = sympy.simplify(to_sympy(a, names) - to_sympy(b, names))
        return bool(found.is_number and found.is_zero is False)

    return _within(seconds, difference) or False


def _within(seconds: float, task: Any) -> Any:
    """The result of `task`; None if it takes longer than `seconds`, or if the system has no timers to stop it."""
    import signal
    import threading

    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        return None

    class Over(BaseException):
        """Raised when the time is over. It is not an Exception, so no handler of Exception catches it."""

    def stop(number: int, frame: Any) -> None:
        raise Over

    before = signal.signal(signal.SIGVTALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        try:
            return task()
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    except (Over, RecursionError, ArithmeticError, NotImplementedError, ValueError, TypeError):
        return None
    finally:
        signal.signal(signal.SIGVTALRM, before)


def to_sympy(node: Node, names: Mapping[str, Any]) -> Any:
    """The formula as a sympy expression in these symbols, built node by node."""
    import sympy

    match node:
        case Number(value, unit):
            exact = value * value_of(unit)[0]
            return sympy.Rational(exact.numerator, exact.denominator)
        case Name(text):
            return names[text]
        case Negative(operand):
            return -to_sympy(operand, names)
        case Binary(op, left, right):
            a, b = to_sympy(left, names), to_sympy(right, names)
            match op:
                case "+":
                    return a + b
                case "-":
                    return a - b
                case "*":
                    return a * b
                case "/":
                    return a / b
                case "//":
                    return sympy.floor(a / b)
            return a**b
        case Call(function, arguments):
            values = [to_sympy(x, names) for x in arguments]
            if function == "log2":
                return sympy.log(values[0]) / sympy.log(2)
            made = {"sqrt": "sqrt", "min": "Min", "max": "Max", "floor": "floor", "ceil": "ceiling"}[function]
            return getattr(sympy, made)(*values)
    raise TypeError(type(node).__name__)

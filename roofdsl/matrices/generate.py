"""Generated data: `banded:n=1000,w=3`, `random:n=1000,row=8,seed=1`, `powerlaw:n=1000,count=5000,seed=1`.

With `w` or `row`, the result is a matrix of n rows and m columns (n unless given). `row` is the number of draws in each
row; equal draws become one entry. `routing` draws different columns, such as the experts that serve a token. With
`count`, the result is a list of that many integers from 0 to n - 1. The draws are the doubles of numpy's PCG64 with the
seed, so that a text stands for the same data everywhere. Imports numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.findings import did_you_mean
from roofdsl.matrices.matrix import Ints, Matrix, matrix, require_memory

MOST = 1 << 28
"""The most draws, and the most rows and columns."""

_OPTIONS = {
    "banded": ("n", "m", "w"),
    "random": ("n", "m", "row", "count", "seed"),
    "powerlaw": ("n", "m", "row", "count", "seed", "exponent"),
    "routing": ("n", "m", "row", "seed", "exponent"),
}
EXAMPLES = {
    "banded": "banded:n=1000,w=3",
    "random": "random:n=1000,row=8,seed=1",
    "powerlaw": "powerlaw:n=1000,row=8,exponent=1.5,seed=1",
    "routing": "routing:n=512,m=16,row=2,seed=1",
}


def is_generated(text: str) -> bool:
    """Whether a source names a generator rather than a file."""
    return text.partition(":")[0] in _OPTIONS


def generated(text: str) -> Matrix | Ints:
    """The matrix, or the list of integers, that a text describes. Raises CommandError for what it does not allow."""
    kind, _, rest = text.partition(":")
    given = _options(kind, rest)
    n = _whole(text, given, "n")
    m = _whole(text, given, "m", n)
    for name, value in (("n", n), ("m", m)):
        if value > MOST:
            message = f"`{text}`: `{name}` is {value:,}, and the limit is {MOST:,}"
            raise CommandError(message, f"give a smaller `{name}`")
    if kind == "banded":
        return _banded(n, m, _whole(text, given, "w", least=0), text)
    seed = _whole(text, given, "seed", 0, least=0)
    draw = np.random.Generator(np.random.PCG64(seed)).random
    if "count" in given:
        if "row" in given or "m" in given:
            raise CommandError(f"`{text}`: `count` makes a list of integers, `row` and `m` are for matrices")
        return _chooser(text, given, n)(_numbers(text, _whole(text, given, "count")), draw)
    row = _whole(text, given, "row")
    if kind == "routing":
        return _routing(n, m, row, _exponent(text, given, "0"), draw, text)
    column = _chooser(text, given, m)(_numbers(text, n * row), draw)
    return matrix(n, m, np.repeat(np.arange(n, dtype=np.int64), row), column, text)


def _banded(n: int, m: int, w: int, text: str) -> Matrix:
    """Every column of row i from i - w to i + w."""
    _numbers(text, n * (2 * w + 1), "makes", "entries")
    row = np.repeat(np.arange(n, dtype=np.int64), 2 * w + 1)
    column = row + np.tile(np.arange(-w, w + 1, dtype=np.int64), n)
    inside = (column >= 0) & (column < m)
    return matrix(n, m, row[inside], column[inside], text)


def _chooser(text: str, given: Mapping[str, str], n: int) -> Callable[[int, Callable[[int], np.ndarray]], Ints]:
    """A function that makes integers below n from draws: equally likely, or k in proportion to (k + 1)**-exponent."""
    if not text.startswith("powerlaw"):
        return lambda number, draw: np.minimum((draw(number) * n).astype(np.int64), n - 1)
    exponent = _exponent(text, given, "1")
    require_memory(n, text)
    chance = np.cumsum(np.arange(1, n + 1, dtype=np.float64) ** -exponent)
    return lambda number, draw: np.minimum(np.searchsorted(chance, draw(number) * chance[-1], side="right"), n - 1)


def _exponent(text: str, given: Mapping[str, str], otherwise: str) -> float:
    try:
        exponent = float(given.get("exponent", otherwise))
    except ValueError:
        exponent = -1.0
    if not 0 <= exponent <= 100:
        raise CommandError(f"`{text}`: the exponent is a number from 0 to 100, such as exponent=1.5")
    return exponent


def _routing(  # noqa: PLR0917
    n: int, m: int, row: int, exponent: float, draw: Callable[[int], np.ndarray], text: str
) -> Matrix:
    """`row` different columns in each row: those of the largest u**(1 / w) for a draw u and the weight w of a column,
    which chooses without replacement (Efraimidis, Spirakis, "Weighted random sampling with a reservoir", 2006).
    """
    if row > m:
        raise CommandError(f"`{text}`: a row of {row} different columns does not fit into m={m} columns")
    _numbers(text, n * m)
    weights = np.arange(1, m + 1, dtype=np.float64) ** -exponent
    keys = np.log(draw(n * m).reshape(n, m)) / weights
    column = np.argpartition(-keys, row - 1, axis=1)[:, :row]
    return matrix(n, m, np.repeat(np.arange(n, dtype=np.int64), row), column.reshape(-1).astype(np.int64), text)


def _options(kind: str, rest: str) -> dict[str, str]:
    given = {}
    for part in rest.split(",") if rest else []:
        name, equals, value = (s.strip() for s in part.partition("="))
        if not equals or name not in _OPTIONS[kind]:
            help = did_you_mean(name, _OPTIONS[kind], f"write it like `{EXAMPLES[kind]}`")
            raise CommandError(f"`{kind}` has no option `{part.strip()}`", help)
        given[name] = value
    return given


def _whole(text: str, given: Mapping[str, str], name: str, otherwise: int | None = None, least: int = 1) -> int:
    value = given.get(name)
    if value is None and otherwise is not None:
        return otherwise
    if value is None:
        example = EXAMPLES[text.partition(":")[0]]
        raise CommandError(f"`{text}` does not say `{name}`", f"write it like `{example}`")
    digits = value.replace("_", "")
    if not (digits.isascii() and digits.isdigit()) or not least <= int(digits) <= 1 << 40:
        raise CommandError(f"`{text}`: `{name}` is an integer from {least} to 2**40, and `{value[:40]}` is not one")
    return int(digits)


def _numbers(text: str, number: int, verb: str = "takes", what: str = "draws") -> int:
    if number > MOST:
        raise CommandError(f"`{text}` {verb} {number:,} {what}, and the limit is {MOST:,}", "generate fewer entries")
    require_memory(number, text)
    return number

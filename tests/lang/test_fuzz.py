"""No text makes the front end do anything but succeed or raise InputError or CommandError, and quickly."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from roofdsl.lang.check import check
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.format import format_source
from roofdsl.lang.lexer import KEYWORDS, SIGNS
from roofdsl.lang.parse import parse
from roofdsl.lang.source import Source
from roofdsl.loops.accesses import accesses, statements
from roofdsl.loops.load import decode, kernels
from roofdsl.loops.model import Count
from roofdsl.loops.programs import program
from roofdsl.loops.transform import apply

HERE = Path(__file__).parent
GOOD = [p.read_text(encoding="utf-8") for p in sorted((HERE / "good").glob("*.roof"))]
BAD = [
    p.read_bytes().decode("utf-8", "replace") for p in sorted((HERE / "bad").glob("*.roof")) if p.stat().st_size < 4000
]
WORDS = [
    *KEYWORDS, *SIGNS, "i", "j", "n", "m", "A", "x", "y", "f64", "range", "min", "max", "select", "0", "1", "2", "64",
    "1.5", "1e999", "99999999999999999999", "range(n)", "+=", "min=", "==", "<", "->", "<->", '"t"', "GB/s", "GiB",
    "TFLOP/s", "# c", "\n", "\n    ", "\n        ", "\t", "\r\n", '"', "'", "é", "\0", "\\", ";", "{", "--", "**", "..",
]  # fmt: skip
LIMIT_S = 1.0


def load(path: str) -> str:
    return (HERE / "good" / Path(path).name).read_text(encoding="utf-8")


def run(data: bytes) -> str:
    """Takes bytes through the whole front end; what came of it."""
    try:
        source = decode(data, "fuzz.roof")
        checked = check(source, load)
        for kernel in kernels(checked, {"s": 3}).values():
            for placed in statements(apply(kernel).body):
                if not isinstance(placed.statement, Count):
                    accesses(placed.statement)
        for name in checked.own_programs:
            program(checked, name)
    except InputError as error:
        assert error.diagnostics and str(error)
        return "refused"
    except CommandError as error:
        assert error.message
        return "not carried out"
    formatted = format_source(source)
    assert parse(Source("fuzz.roof", formatted)) == parse(source)
    assert format_source(Source("fuzz.roof", formatted)) == formatted
    return "accepted"


def mutated(text: str, rng: random.Random) -> str:
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        lines = text.split("\n")
        at = rng.randrange(len(text) + 1)
        kind = rng.randrange(10)
        if kind == 0:
            text = text[:at] + text[at + rng.randrange(1, 4) :]
        elif kind == 1:
            text = text[:at] + rng.choice(WORDS) + text[at:]
        elif kind == 2:
            text = text[:at] + chr(rng.choice((rng.randrange(128), rng.randrange(0x3000)))) + text[at:]
        elif kind == 3:
            del lines[rng.randrange(len(lines))]
            text = "\n".join(lines)
        elif kind == 4:
            lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
            text = "\n".join(lines)
        elif kind == 5:
            i = rng.randrange(len(lines))
            lines[i] = " " * rng.randrange(13) + lines[i].strip()
            text = "\n".join(lines)
        elif kind == 6:
            words = text.split(" ")
            i, j = rng.randrange(len(words)), rng.randrange(len(words))
            words[i], words[j] = words[j], words[i]
            text = " ".join(words)
        elif kind == 7:
            other = rng.choice(GOOD + BAD).split("\n")
            i = rng.randrange(len(other))
            lines[rng.randrange(len(lines)) : 0] = other[i : i + rng.randrange(1, 6)]
            text = "\n".join(lines)
        elif kind == 8:
            end = at + rng.randrange(1, 30)
            text = text[:at] + text[at:end] * rng.randrange(2, 6) + text[end:]
        else:
            text = text[:at]
        text = text or " "
    return text


def an_input(rng: random.Random) -> bytes:
    kind = rng.randrange(20)
    if kind == 0:
        return rng.randbytes(rng.randrange(200))
    if kind == 1:
        return bytes(rng.choice(b' \n\t\r()[]:,=+-*/%<>."#abin0159_') for _ in range(rng.randrange(300)))
    if kind <= 4:
        start = rng.choice(("", "kernel k(n):\n    ", "machine m:\n    ", "program p(n):\n    "))
        return (start + " ".join(rng.choice(WORDS) for _ in range(rng.randrange(60)))).encode()
    text = mutated(rng.choice(GOOD if kind < 16 else BAD), rng)
    return text.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("text", GOOD)
def test_good_files_are_accepted(text: str) -> None:
    assert run(text.encode()) == "accepted"


def test_fuzz(request: pytest.FixtureRequest) -> None:
    count = request.config.getoption("--fuzz")
    seed = random.SystemRandom().randrange(2**32) if count != 3000 else 20_26
    results: dict[str, int] = {}
    for i in range(count):
        data = an_input(random.Random(f"{seed}/{i}"))
        start = time.perf_counter()
        try:
            result = run(data)
        except BaseException as error:
            raise AssertionError(f"seed {seed}, input {i}: {type(error).__name__}: {error}\n{data!r}") from error
        assert time.perf_counter() - start < LIMIT_S, f"seed {seed}, input {i} took too long:\n{data!r}"
        results[result] = results.get(result, 0) + 1
    print(f"seed {seed}: {results}")
    assert results.get("refused", 0) > 0

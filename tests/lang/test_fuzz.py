"""No text makes the front end do anything but succeed or raise InputError or CommandError, and quickly."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from roofdsl.checks.deep import deep_check
from roofdsl.lang.check import check
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.format import format_source
from roofdsl.lang.grammar import keywords
from roofdsl.lang.parse import parse
from roofdsl.lang.source import Source
from roofdsl.loops.accesses import accesses, statements
from roofdsl.loops.load import decode, kernels
from roofdsl.loops.model import Count
from roofdsl.loops.program_model import program
from roofdsl.loops.transform import apply

HERE = Path(__file__).parent
GOOD = [p.read_text(encoding="utf-8") for p in sorted((HERE / "good").glob("*.roof"))]
BAD = [
    p.read_bytes().decode("utf-8", "replace") for p in sorted((HERE / "bad").glob("*.roof")) if p.stat().st_size < 4000
]
KEYWORDS = sorted(keywords())
SIGNS = ["(", ")", "[", "]", ",", ":", "=", "+", "-", "*", "/", "//", "%", "**", "+=", "min=", "==", "<=", "<-", "->"]
WORDS = [
    *KEYWORDS, *SIGNS, "i", "j", "n", "m", "A", "x", "y", "f64", "range", "min", "max", "select", "0", "1", "2", "64",
    "1.5", "1e999", "99999999999999999999", "range(n)", "+=", "min=", "==", "<", "->", "<->", '"t"', "GB/s", "GiB",
    "TFLOP/s", "# c", "\n", "\n    ", "\n        ", "\t", "\r\n", '"', "'", "é", "\0", "\\", ";", "{", "--", "**", "..",
]  # fmt: skip
BASES = GOOD + [p.read_text(encoding="utf-8") for p in sorted((HERE.parents[1] / "models").glob("*/*.roof"))]
LIMIT_S = 3.0  # of processor time, so that a busy machine raises no alarm; `fmt` of 16 KiB parses them four times
DEEP_LIMIT_S = 60.0  # the operation limits of all kinds of deep checks together, with room for a slow machine
DEEP_SHARE = 100  # one deep check to so many inputs of the front end


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
    return "accepted"


def run_format(data: bytes) -> str:
    """Lays bytes out, as `fmt` does, also what has errors beyond syntax; what came of it."""
    try:
        source = decode(data, "fuzz.roof")
        file = parse(source)
    except InputError as error:
        assert error.diagnostics and str(error)
        return "refused"
    formatted = format_source(source)
    assert parse(Source("fuzz.roof", formatted)) == file
    assert format_source(Source("fuzz.roof", formatted)) == formatted
    return "laid out"


def run_deep(data: bytes) -> str:
    """Checks the kernels in bytes for all sizes; what came of it."""
    try:
        found = [d for k in kernels(check(decode(data, "fuzz.roof"), load), {"s": 3}).values() for d in deep_check(k)]
    except (InputError, CommandError):
        return "refused"
    assert all(d.code and d.message for d in found)
    return "findings" if found else "nothing found"


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
            other = rng.choice(BASES + BAD).split("\n")
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
    text = mutated(rng.choice(BASES if kind < 16 else BAD), rng)
    return text.encode("utf-8", "surrogatepass")


def tweaked(text: str, rng: random.Random) -> str:
    """One kernel of `text` with a few numbers, names or signs replaced, so that it mostly stays well formed."""
    parts = re.split(r"(?m)^(?=kernel )", text)
    head, found = parts[0], [p for p in parts[1:] if "for " in p] or [text]
    kernel = rng.choice(found)
    head = "".join(line for line in head.splitlines(keepends=True) if line.startswith(("traffic", "cost")))
    for _ in range(rng.randrange(1, 5)):
        words = list(re.finditer(r"(?<=[\[(,+*/%<>= -])(\d+|[a-z]\b|//|[+*%-]|min|max)(?=[\]), +*/%(-])", kernel))
        if not words:
            break
        at = rng.choice(words)
        word = at[0]
        if word.isdigit():
            new = rng.choice(("0", "1", "2", "3", "7", "16", "1000000007"))
        elif word in ("min", "max"):
            new = rng.choice(("min", "max"))
        elif word.isalpha():
            new = rng.choice([w[0] for w in words if w[0].isalpha() and len(w[0]) == 1])
        else:
            new = rng.choice(("+", "-", "*", "//", "%"))
        kernel = kernel[: at.start()] + new + kernel[at.end() :]
    return head + kernel


@pytest.mark.parametrize("text", GOOD)
def test_good_files_are_accepted(text: str) -> None:
    assert run(text.encode()) == "accepted"
    assert run_format(text.encode()) == "laid out"


def fuzz(
    request: pytest.FixtureRequest,
    count: int,
    *,
    make: Callable[[random.Random], bytes],
    runs: tuple[Callable[[bytes], str], ...],
    limit_s: float,
    latest: Path,
) -> dict[str, int]:
    """Takes `count` inputs through `runs` and prints what came of them; `latest` keeps an input that crashes Python."""
    seed = request.config.getoption("--fuzz-seed")
    results: dict[str, int] = {}
    slowest, at = 0.0, 0
    for i in range(count):
        data = make(random.Random(f"{seed}/{i}"))
        latest.write_bytes(data)
        for run in runs:
            start = time.process_time()
            try:
                result = run(data)
            except BaseException as error:
                raise AssertionError(f"seed {seed}, input {i}: {type(error).__name__}: {error}\n{data!r}") from error
            took = time.process_time() - start
            assert took < limit_s, f"seed {seed}, input {i}: {run.__name__} took {took:.1f} s:\n{data!r}"
            slowest, at = max((slowest, at), (took, i))
            results[result] = results.get(result, 0) + 1
    print(f"seed {seed}, {count} inputs: {results}, slowest {slowest:.3f} s (input {at})")
    return results


def test_fuzz(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    count = request.config.getoption("--fuzz")
    results = fuzz(
        request, count, make=an_input, runs=(run, run_format), limit_s=LIMIT_S, latest=tmp_path / "latest.roof"
    )
    assert results["refused"] > 0
    assert results["accepted"] > 0
    assert results["laid out"] > 0


def test_fuzz_deep(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    count = max(10, request.config.getoption("--fuzz") // DEEP_SHARE)
    results = fuzz(
        request,
        count,
        make=lambda rng: tweaked(rng.choice(BASES), rng).encode(),
        runs=(run_deep,),
        limit_s=DEEP_LIMIT_S,
        latest=tmp_path / "latest.roof",
    )
    assert set(results) & {"findings", "nothing found"}

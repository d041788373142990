"""The canonical layout: golden texts, and properties on generated files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roofdsl.lang.diagnostics import InputError
from roofdsl.lang.format import format_source
from roofdsl.lang.parse import parse
from roofdsl.lang.source import Source
from roofdsl.lang.write import written
from roofdsl.loops.load import load_file

HERE = Path(__file__).parent
GOOD = sorted((HERE / "good").glob("*.roof"))


def formatted(text: str) -> str:
    result = format_source(Source("t", text))
    assert parse(Source("t", result)) == parse(Source("t", text))
    assert format_source(Source("t", result)) == result
    return result


@pytest.mark.parametrize("path", GOOD, ids=lambda p: p.stem)
def test_golden(path: Path, golden: Callable[[Path, str], None]) -> None:
    text = path.read_text(encoding="utf-8")
    result = formatted(text)
    assert text.count("#") == result.count("#")
    golden(path.with_suffix(".formatted"), result)


def test_comments_stay_with_their_blocks() -> None:
    text = (
        "#top\nkernel k(n, # parameter\n  m):\n # first\n out y: f64[n]# d\n"
        " for i in range(n): # loop\n\n\n  y[i]=1\n  # end of loop\n # end of kernel\n#after\n\n"
        "machine m:\n  # rate\n  peak f64 1GFLOP/s\n  memory D 1GiB,1GB/s"
    )
    assert formatted(text) == (
        "# top\nkernel k(n, m):  # parameter\n    # first\n    out y: f64[n]  # d\n"
        "    for i in range(n):  # loop\n\n        y[i] = 1\n        # end of loop\n    # end of kernel\n\n"
        "# after\n\nmachine m:\n    # rate\n    peak f64 1 GFLOP/s\n    memory D 1 GiB, 1 GB/s\n"
    )


def test_long_lines_break_inside_brackets() -> None:
    terms = " + ".join(f"A[i + {d}, j - {d}]" for d in range(20))
    result = formatted(f"kernel k(n):\n    for i in range(n):\n        y[i] = c * ({terms})\n")
    assert max(map(len, result.split("\n"))) <= 100


def test_long_lines_break_after_a_comma_where_there_is_one() -> None:
    parameters = ", ".join(f"parameter_{k} = {k + 1}" for k in range(6))
    first, second, *_ = formatted(f"program p({parameters}):\n    run k(1)\n").split("\n")
    assert first.endswith(",")
    assert second.lstrip().startswith("parameter_")


def test_nothing_is_written_of_a_file_with_errors() -> None:
    with pytest.raises(InputError):
        format_source(Source("t", "kernel k(n):\n    y = \n"))


NAMES = st.sampled_from(["i", "j", "n", "A", "x", "tile", "order", "source"])
NUMBERS = st.sampled_from(["0", "1", "2.5", "1e-3", "1_000", "64"])
EXPRESSIONS = st.recursive(
    NAMES | NUMBERS,
    lambda e: st.one_of(
        st.tuples(e, st.sampled_from(["+", " -", "*", "/", " // ", "%", "**", " + "]), e).map("".join),
        e.map(lambda a: f"({a})"),
        e.map(lambda a: f"-{a}"),
        st.tuples(NAMES, st.lists(e, min_size=1, max_size=3)).map(lambda p: f"{p[0]}[{','.join(p[1])}]"),
        st.tuples(st.sampled_from(["min", "sqrt"]), st.lists(e, min_size=1, max_size=3)).map(
            lambda p: f"{p[0]}( {' ,'.join(p[1])} )"
        ),
        st.tuples(e, e).map(lambda p: f"select({p[0]}<{p[1]}, {p[1]},{p[0]})"),
    ),
    max_leaves=12,
)
CONDITIONS = st.recursive(
    st.tuples(EXPRESSIONS, st.sampled_from(["<", "<=", "==", "!="]), EXPRESSIONS).map("".join),
    lambda c: st.one_of(
        st.tuples(c, st.sampled_from([" and ", " or "]), c).map("".join),
        c.map(lambda a: f"not ({a})"),
        c.map("({})".format),
    ),
    max_leaves=4,
)
COMMENTS = st.sampled_from(["", "", "", " # c", "#d", "  #  e "])
STATEMENTS = st.one_of(
    st.tuples(NAMES, st.sampled_from(["=", "+=", " min= "]), EXPRESSIONS).map(lambda p: f"{p[0]}[i]{p[1]}{p[2]}"),
    EXPRESSIONS.map(lambda e: f"let t={e}"),
    EXPRESSIONS.map(lambda e: f"count c {e}"),
    CONDITIONS.map(lambda c: f"assume {c}"),
    EXPRESSIONS.map(lambda e: f"in A , B:f64[{e}] col"),
    st.just("tile i,j by 2 , b"),
).flatmap(lambda s: COMMENTS.map(lambda c: [s + c]))


def block(header: str, lines: list[str], indent: str) -> list[str]:
    return [header, *(indent + line for line in lines)]


BLOCKS = st.recursive(
    STATEMENTS,
    lambda b: st.one_of(
        st.lists(b, min_size=1, max_size=3).map(lambda parts: [line for part in parts for line in part]),
        st.tuples(EXPRESSIONS, b, COMMENTS, st.sampled_from(["  ", "    ", "\t"])).map(
            lambda p: block(f"for i in range({p[0]}) ,j in range(2):{p[2]}", p[1], p[3])
        ),
        st.tuples(CONDITIONS, b, b, st.sampled_from(["", "# own", "    # deep"])).map(
            lambda p: [*block(f"if {p[0]}:", [*p[1], p[3]], "  "), *block("else :", p[2], "   ")]
        ),
    ),
    max_leaves=6,
)


@pytest.mark.thorough
@given(st.lists(BLOCKS, min_size=1, max_size=3), st.sampled_from(["", "\n", "\n\n\n", "# top\n"]))
def test_formatting_keeps_the_tree_and_is_stable(kernels: list[list[str]], between: str) -> None:
    text = between.join("\n".join(block("kernel k( n=2 ):", lines, "  ")) + "\n" for lines in kernels)
    result = formatted(text)
    assert text.count("#") == result.count("#")
    assert not any(line != line.rstrip() for line in result.split("\n"))


@pytest.mark.parametrize("cost", ["12.3456789", "1e+20", "0.1", "7", "1234567.25", "3e-05"])
def test_a_kernel_written_out_keeps_every_digit_of_a_cost(cost: str) -> None:
    text = f"cost exp {cost}\nkernel k(n):\n    out A: f64[n]\n    for i in range(n): A[i] = exp(i)\n"
    again = written(load_file(Source("t.roof", text)).kernels["k"])
    assert again.startswith(f"cost exp {cost}\n")
    assert load_file(Source("t.roof", again)).kernels["k"].costs == (("exp", float(cost)),)


def test_a_nest_whose_line_is_too_long_is_written_with_a_loop_a_line() -> None:
    names = [f"index_{k}" for k in range(3)]
    loops = ", ".join(f"{name} in range(1, number_of_points - 1)" for name in names)
    text = (
        f"kernel k(number_of_points):\n    out A: f64[{', '.join(['number_of_points'] * 3)}]\n"
        f"    for {loops}:\n        A[{', '.join(names)}] = 1\n"
    )
    lines = written(load_file(Source("t.roof", text)).kernels["k"]).splitlines()
    headers = [line.strip() for line in lines if line.strip().startswith("for")]
    assert [line.count(" in range(") for line in headers] == [1, 2]
    assert max(map(len, lines)) <= 100

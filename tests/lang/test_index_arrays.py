"""Index arrays in the language: what is accepted, what is said of the rest, and that the formatter keeps it."""

from __future__ import annotations

import pytest

from roofdsl.checks.deep import deep_check
from roofdsl.lang.diagnostics import InputError
from roofdsl.lang.format import format_source
from roofdsl.lang.source import Source
from roofdsl.loops.enclosing import enclosing
from roofdsl.loops.indirect import index_arrays, is_indirect
from roofdsl.loops.load import kernel, load_file
from tests.oracle.loading import kernel_of

HEAD = """kernel k(n, m, nnz):
    in rowptr: i32[n + 1], col: i32[nnz] index(m), plain: i32[nnz], f: f64[nnz], x: f64[m], c: f64
    inout y: f64[n]
    assume rowptr rises from 0 to nnz
"""
BODY = """    for i in range(n):
        for k in range(rowptr[i], rowptr[i + 1]):
            y[i] += f[k] * x[col[k]] + plain[k] + c
"""


def errors(text: str) -> list[tuple[str, str, str]]:
    try:
        load_file(Source("<test>", text))
    except InputError as error:
        return [(d.code, d.message, d.help) for d in error.diagnostics]
    return []


def test_accepted() -> None:
    found = kernel_of(HEAD + BODY)
    assert is_indirect(found) and index_arrays(found) == ("rowptr", "col")
    assert format_source(Source("<test>", HEAD + BODY)) == HEAD + BODY
    facts = "    assume col takes 2 * n values\n    assume x has alpha 0.25\n"
    text = HEAD + facts + BODY
    assert format_source(Source("<test>", text)) == text
    assert [f.__class__.__name__ for f in kernel_of(text).facts] == ["Rises", "Takes", "HasAlpha"]


def test_words_are_names_elsewhere() -> None:
    words = ["index", "rises", "to", "takes", "values", "has", "alpha"]
    declared = ", ".join(f"{w}: f64" for w in words)
    loop = f"    for i in range(n):\n        y[i] = {' + '.join(words)}\n"
    text = f"kernel k(n):\n    in {declared}\n    out y: f64[n]\n{loop}"
    assert errors(text) == []
    assert errors("kernel k(to):\n    inout from: f64[to]\n    for i in range(to):\n        from[i] += 1\n") == []


@pytest.mark.parametrize(
    ("body", "code", "part"),
    [
        ("y[plain[i]] += 1", "subscript-indirect", "`in plain: i32[n] index(m)` if they are 0 to m - 1"),
        ("y[f[i]] += 1", "subscript-indirect", "arrays declared with `index(m)`"),
        ("y[c] += 1", "subscript-indirect", "arrays declared with `index(m)`"),
        ("y[col] += 1", "subscript-indirect", ""),
        ("y[col[i, 0]] += 1", "subscript-count", "declared on line 2"),
        ("y[col[i] * col[i]] += 1", "subscript-affine", "sums of variables times numbers"),
        ("if col[i] > 2: y[i] += 1", "subscript-indirect", "select"),
        ("count steps col[i]", "subscript-indirect", "average"),
        ("for k in range(plain[i]): y[k] += 1", "subscript-indirect", "`assume plain rises from 0 to m`"),
        ("for k in range(0, n, col[i]): y[k] += 1", "loop-step", ""),
        ("col[i] = 1", "intent-write", ""),
    ],
)
def test_said_of_statements(body: str, code: str, part: str) -> None:
    found = errors(f"{HEAD}    for i in range(n):\n        {body}\n{BODY}")
    assert [c for c, _, _ in found][:1] == [code], found
    assert part in found[0][2]


@pytest.mark.parametrize(
    ("line", "code", "part"),
    [
        ("in a: f64[n] index(m)", "index-array", "write `a: i32` or `i64`"),
        ("in a: i32 index(m)", "index-array", "give it dimensions"),
        ("inout a: i32[n] index(m)", "index-array", "declare it `in a`"),
        ("in a: i8[n] index(300)", "index-array", "i64"),
        ("in a: i32[n] index(0)", "index-array", "the number of elements"),
        ("in a: i32[n] index(q)", "name-unknown", ""),
        ("assume x rises from 0 to m", "index-fact", "declare `x` i32 or i64"),
        ("assume c rises from 0 to m", "index-fact", ""),
        ("assume plain takes 3 values", "index-fact", "index(m)"),
        ("assume x has alpha 0", "index-fact", "bytes"),
        ("assume rowptr rises from 0 to nnz", "directive-twice", ""),
        ("assume q takes 3 values", "name-unknown", ""),
        ("tile i by 4", "tile-loops", "write the loops"),
        ("assume rowptr rises to nnz", "syntax", ""),
    ],
)
def test_said_of_declarations(line: str, code: str, part: str) -> None:
    found = errors(f"{HEAD}    {line}\n{BODY}")
    assert code in [c for c, _, _ in found], found
    assert part in next(help for c, _, help in found if c == code)


def test_deep_checks_hold_for_all_data() -> None:
    assert deep_check(kernel_of(HEAD + BODY)) == []
    wide = HEAD.replace("x: f64[m]", "x: f64[n]") + BODY
    (found,) = deep_check(kernel_of(wide))
    assert found.code == "subscript-bounds" and "`x[col[k]]` leaves `x`" in found.message
    short = HEAD.replace("i32[n + 1]", "i32[n]") + BODY
    assert [d.code for d in deep_check(kernel_of(short))] == ["subscript-bounds"]
    scatter = """kernel k(n, m):
    in p: i32[n] index(m)
    inout y: f64[m]
    parallel for i in range(n):
        y[p[i]] += 1
"""
    (found,) = deep_check(kernel_of(scatter))
    assert (found.code, found.severity) == ("unchecked", "warning") and "p[i]" in found.message


def test_the_enclosing_kernel_is_affine() -> None:
    text = HEAD.replace("f64[m]", "f64[m]").replace("plain: i32[nnz]", "plain: i32[nnz] index(nnz)") + BODY.replace(
        "x[col[k]]", "x[col[plain[k]]]"
    )
    found = enclosing(kernel_of(text))
    assert not is_indirect(found.kernel)
    assert list(found.meaning.values()) == ["rowptr[i]", "rowptr[i + 1]", "plain[k]", "col[plain[k]]"]
    assert kernel(load_file(Source("<test>", text)), None) is not None

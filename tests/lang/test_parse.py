"""The parser: its table, what it accepts, how fast it loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

from roofdsl.lang import tree
from roofdsl.lang.diagnostics import InputError, render
from roofdsl.lang.parse import parse, parse_all
from roofdsl.lang.source import Source


def body_of(text: str) -> tuple[tree.Item, ...]:
    file = parse(Source("t", "kernel k(n):\n" + "".join(f"    {line}\n" for line in text.split("\n"))))
    kernel = file.items[0]
    assert isinstance(kernel, tree.Kernel)
    return kernel.body


def value_of(text: str) -> tree.Expr:
    item = body_of(f"y = {text}")[0]
    assert isinstance(item, tree.Assign)
    return item.value


def shown(e: tree.Expr) -> str:
    """An expression with all its parentheses."""
    match e:
        case tree.Number(text):
            return text
        case tree.Ref(name):
            return name
        case tree.Group(inner):
            return shown(inner)
        case tree.Unary(op, operand):
            return f"({op} {shown(operand)})"
        case tree.Binary(op, left, right) | tree.Logic(op, left, right):
            return f"({shown(left)} {op} {shown(right)})"
        case tree.Compare(first, rest):
            return "(" + shown(first) + "".join(f" {op} {shown(o)}" for op, o in rest) + ")"
        case tree.Index(name, args):
            return f"{name.text}[{', '.join(map(shown, args))}]"
        case tree.Call(name, args):
            return f"{name.text}({', '.join(map(shown, args))})"


def test_front_end_imports_nothing_heavy() -> None:
    code = "import sys, roofdsl.loops.load; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"sympy", "numpy", "islpy", "matplotlib", "click", "rich", "numba"} & set(modules)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("a + b * c", "(a + (b * c))"),
        ("a - b - c", "((a - b) - c)"),
        ("a / b * c", "((a / b) * c)"),
        ("-a**2", "(- (a ** 2))"),
        ("a**-b", "(a ** (- b))"),
        ("a**b**c", "(a ** (b ** c))"),
        ("-a * b", "((- a) * b)"),
        ("(a + b) * c", "((a + b) * c)"),
        ("a % b // c", "((a % b) // c)"),
        ("not a < b and c == d or e", "(((not (a < b)) and (c == d)) or e)"),
        ("0 <= a < b + 1", "(0 <= a < (b + 1))"),
        ("f(a, b)[", None),
        ("min(a, A[i, j + 1],)", "min(a, A[i, (j + 1)])"),
        ("1_000 + .5 + 2. + 1e-3", "(((1_000 + .5) + 2.) + 1e-3)"),
        ("- - a", "(- (- a))"),
        ("a +", None),
        ("* a", None),
        ("a b", None),
        ("(a", None),
        ("a[1:2]", None),
        ("a = b", None),
        ("0x10", None),
    ],
)
def test_expressions(text: str, meaning: str | None) -> None:
    if meaning is None:
        with pytest.raises(InputError):
            value_of(text)
    else:
        assert shown(value_of(text)) == meaning


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("indent", ["    ", "\t", "  "])
def test_line_ends_and_indentation(ending: str, indent: str) -> None:
    lines = [
        "",
        "kernel k(n):",
        "I# c",
        "Iout y: f64",
        "",
        "Ify = 1",
        "Ifor i in range(",
        "n, # c",
        "",
        " 2):",
        "IIy = 2",
    ]
    text = ending.join(lines).replace("If", "I").replace("Ior", "Ifor").replace("I", indent)
    kernel = parse(Source("t", text)).items[0]
    assert isinstance(kernel, tree.Kernel) and [type(i) for i in kernel.body] == [
        tree.Declaration,
        tree.Assign,
        tree.For,
    ]


def test_blocks_on_one_line() -> None:
    one = body_of("if n > 2: y = 1\nelif n > 1: y = 2\nelse: y = 3\nfor i in range(n): y = 4")
    more = body_of("if n > 2:\n    y = 1\nelif n > 1:\n    y = 2\nelse:\n    y = 3\nfor i in range(n):\n    y = 4")
    assert one == more


def test_soft_keywords_are_names_where_they_must_be() -> None:
    items = body_of("tile i by 4\ntile[i] = 1\norder = count + unit\ncount count 2\nlet source = by")
    assert [type(i) for i in items] == [tree.Tile, tree.Assign, tree.Assign, tree.Count, tree.Let]


def test_spans_point_at_the_text() -> None:
    source = Source("t", "kernel k(n):\n    out y: f64[n]\n    y[n - 1] += 2 * y[0]  # c\n")
    kernel = parse(source).items[0]
    assert isinstance(kernel, tree.Kernel)
    item = kernel.body[1]
    assert isinstance(item, tree.Assign)
    assert (item.span.line, item.span.column, item.span.end_line, item.span.end_column) == (3, 5, 3, 25)
    assert (item.value.span.column, item.value.span.end_column) == (17, 25)
    assert (kernel.span.line, kernel.span.end_line) == (1, 3)


def test_comments_are_kept() -> None:
    file = parse(Source("t", "# a\ntraffic once # b\n  # c\n"))
    assert [(c.text, c.own_line, c.span.line) for c in file.comments] == [
        ("# a", True, 1),
        ("# b", False, 2),
        ("# c", True, 3),
    ]


def test_equality_ignores_layout_and_comments() -> None:
    a = Source("a", "kernel k(n):\n  out y:f64[n]\n  y[0]=1 # c\n")
    b = Source("b", "\n\nkernel k( n ):\n\tout y : f64[ n ]\n\ty[0] = 1")
    assert parse(a) == parse(b)


def test_other_definitions_survive_a_damaged_one() -> None:
    text = "kernel a(n):\n    y = \n    z z\nkernel b(n):\n    y = 1\nmachine m:\n    peak\n    units 2\n"
    file, errors = parse_all(Source("t", text))
    assert [e.span.line for e in errors] == [2, 3, 7]
    assert [i.name.text for i in file.items if isinstance(i, tree.Kernel)] == ["b"]
    assert file.damaged == {"a", "m"}


def test_no_depth_makes_the_parser_recurse() -> None:
    for text in (
        "(" * 1500,
        "-" * 1500 + "1",
        "1 + " * 1500 + "1",
        "f(" * 1500,
        "not " * 1500 + "1",
        "2 ** " * 1500 + "1",
    ):
        with pytest.raises(InputError) as caught:
            value_of(text)
        assert {d.code for d in caught.value.diagnostics} <= {"limit-nesting", "bracket-unclosed"}
    blocks = "".join("\n" + " " * d + "if n > 0:" for d in range(1, 500))
    with pytest.raises(InputError, match="limit of 64"):
        parse(Source("t", "kernel k(n):" + blocks))


def test_nesting_up_to_the_limit_is_accepted() -> None:
    value_of("(" * 199 + "1" + ")" * 199)
    value_of("-" * 199 + "1")
    with pytest.raises(InputError, match="limit of 200"):
        value_of("-" * 200 + "1")


def test_file_size_limit() -> None:
    with pytest.raises(InputError, match=r"the limit is 1048576 \(1 MiB\)"):
        parse(Source("t", "#" * (1 << 20) + "\n"))


def test_render_is_safe_for_terminals_and_long_lines() -> None:
    source = Source("t", "kernel k(n):\n    y = A[" + "i, " * 2000 + "i] + \x1b[31m\n")
    with pytest.raises(InputError) as caught:
        parse(source)
    text = render(source, caught.value.diagnostics[0])
    assert "\x1b" not in text and max(map(len, text.split("\n"))) < 200
    line, underline = text.split("\n")[1:3]
    assert line[underline.index("^")] == "\ufffd"

"""The checker: used files, machines, what is accepted; what is refused has golden files."""

from __future__ import annotations

import ast
import re
from fractions import Fraction
from pathlib import Path

import pytest

from roofdsl.lang.check import check
from roofdsl.lang.checked import CheckedFile
from roofdsl.lang.codes import C_CODES, CODES, DEEP_CODES, PYTHON_CODES, RESULT_CODES
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.scope import tile_name
from roofdsl.lang.source import Source

ROOT = Path(__file__).parents[2]
AXPY = (
    "kernel axpy(n):\n    in a: f64, x: f64[n]\n    inout y: f64[n]\n    for i in range(n):\n        y[i] += a * x[i]\n"
)


def check_files(files: dict[str, str], main: str = "main.roof") -> CheckedFile:
    def load(path: str) -> str:
        if path not in files:
            raise FileNotFoundError(2, "No such file or directory")
        return files[path]

    return check(Source(main, files[main]), load)


def codes(files: dict[str, str] | str) -> list[str]:
    with pytest.raises(InputError) as caught:
        check_files({"main.roof": files} if isinstance(files, str) else files)
    return [d.code for d in caught.value.diagnostics if d.severity == "error"]


def kernel_with(*lines: str) -> str:
    return "kernel k(n):\n    in x: f64[n], c: f64\n    out y: f64[n]\n" + "".join(f"    {line}\n" for line in lines)


def test_used_names_come_with_their_own_file() -> None:
    files = {
        "a/main.roof": 'use "../lib/all.roof"\nprogram p(n):\n    run axpy(n)\n',
        "lib/all.roof": 'use "axpy.roof"\nuse "./axpy.roof"\n',
        "lib/axpy.roof": "traffic once\ncost div 3\n" + AXPY,
    }
    checked = check_files(files, "a/main.roof")
    assert checked.own == ("p",) and list(checked.kernels) == ["axpy"]
    kernel = checked.kernels["axpy"]
    assert (kernel.source.name, kernel.traffic, kernel.costs) == ("lib/axpy.roof", "once", (("div", 3.0),))
    assert checked.warnings == ()


def test_kernel_traffic_goes_before_the_file_s() -> None:
    checked = check_files({"main.roof": "traffic once\n" + kernel_with("traffic load_store", "y[0] = 1")})
    assert checked.kernels["k"].traffic == "load_store"


def test_use_errors() -> None:
    assert codes({"main.roof": 'use "b.roof"\n', "b.roof": 'use "main.roof"\n'}) == ["use-errors"]
    assert codes({"main.roof": 'use "main.roof"\n'}) == ["use-cycle"]
    assert codes({"main.roof": 'use "b.roof"\n', "b.roof": ""}) == ["use-errors"]
    assert codes({"main.roof": 'use "b.roof"\n'}) == ["use-missing"]
    chain = {f"f{i}.roof": f'use "f{i + 1}.roof"\n' for i in range(40)}
    assert codes({"main.roof": 'use "f0.roof"\n', **chain}) == ["use-errors"]


def test_a_missing_file_does_not_make_its_names_unknown() -> None:
    text = (
        'use "b.roof"\nprogram p(n):\n    run what(n)\nmachine m:\n    peak f64 1 GFLOP/s\n    memory D 1 GiB, 1 GB/s\n'
    )
    assert codes(text + "    link a: D -> there 1 GB/s\n") == ["use-missing"]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(13, "Permission denied"), "`b.roof` cannot be read: Permission denied"),
        (OSError("it is gone"), "`b.roof` cannot be read: it is gone"),
        (CommandError("it is a directory"), "it is a directory"),
        (ValueError("embedded null byte"), "`b.roof` cannot be read: embedded null byte"),
    ],
)
def test_loader_failures_are_diagnostics(error: Exception, message: str) -> None:
    def load(path: str) -> str:
        raise error

    with pytest.raises(InputError) as caught:
        check(Source("main.roof", 'use "b.roof"\n'), load)
    assert (caught.value.diagnostics[0].code, caught.value.diagnostics[0].message) == ("use-missing", message)


def test_a_text_without_a_file_finds_no_other_files() -> None:
    with pytest.raises(InputError, match=r"`b\.roof` cannot be read: No such file or directory"):
        check(Source("main.roof", 'use "b.roof"\n'))


def test_unused_use_is_a_warning() -> None:
    checked = check_files({"main.roof": 'use "b.roof"\n' + kernel_with("y[0] = 1"), "b.roof": AXPY})
    assert [w.code for w in checked.warnings] == ["use-unused", "unused", "unused"]


def test_machines_are_resolved_exactly() -> None:
    text = (ROOT / "tests/lang/good/everything.roof").read_text(encoding="utf-8")
    other = (ROOT / "tests/lang/good/language_page.roof").read_text(encoding="utf-8")
    checked = check_files({"main.roof": text, "language_page.roof": other})
    machine = checked.machines["m1"]
    assert machine.sources == ("a data sheet", "a paper")
    rate, level, link = "rate_per_s", "bandwidth_bytes_per_s", {"start": "HBM", "end": "host", "both_ways": True}
    assert [(e.keyword, e.fields) for e in machine.entries] == [
        ("peak", {"type": "f64", "cls": "fma", rate: 15 * 10**12}),
        ("peak", {"type": "f64", "cls": "min", rate: 4 * 10**12}),
        ("peak", {"type": "f16", "cls": "tensor", rate: 125 * 10**12}),
        ("peak", {"type": "i8", "cls": "", rate: 5 * 10**11}),
        ("pipes", {"pipes_separate": True, "divider_separate": False}),
        ("cache", {"name": "L1", "size_bytes": 32768, level: 10**12, "line_bytes": 64, "sector_bytes": 32, "ways": 8,
                   "copies": 80, "write_allocate": False}),
        ("cache", {"name": "L2", "size_bytes": 6 << 20, level: 244 * 10**10, "write_allocate": True}),
        ("memory", {"name": "HBM", "size_bytes": 16 << 30, level: 9 * 10**11, "line_bytes": 64}),
        ("memory", {"name": "host", "size_bytes": 64 * 10**9, level: 505 * 10**8}),
        ("ceiling", {"name": "no SIMD", "type": "f64", "cls": "", rate: 10**12}),
        ("ceiling", {"name": "no FMA", "type": "f64", "cls": "fma", rate: 10**12}),
        ("ceiling", {"name": "one NUMA node", "level": "HBM", level: 10**11}),
        ("link", {"name": "bus", level: 16 * 10**9, **link}),
        ("link", {"name": "net", level: 12 * 10**9, "start": "host", "end": "v100_deck", "both_ways": False}),
        ("launch", {"launch_s": Fraction(42, 10**7)}),
        ("clock", {"clock_hz": 138 * 10**7}),
        ("units", {"units": 80}),
        ("cost", {"cls": "div", "value": 10}),
    ]  # fmt: skip
    assert [(e.keyword, e.source) for e in machine.entries if e.source] == [
        ("peak", "here"),
        ("cache", "x"),
        ("link", "y"),
    ]
    assert checked.kernels["everything"].costs == (("special", 12.0), ("div", 4.0))
    assert checked.own_programs == ("both",)


@pytest.mark.parametrize(
    "lines",
    [
        ("for i in range(n // 2): y[2 * i + 1] = x[i % 3]",),
        ("for i in range(max(0, n - 4), min(n, 64)): y[i] = x[i]",),
        ("for i in range(0, n, n): y[i] = x[i]",),
        ("for i in range(n): y[i] = 2 * n * i * x[i] + i / n",),
        ("for i in range(n): y[i] = select(i < 2, x[i], -x[i])",),
        ("for i in range(n): y[i] = i // 2 + n % i_if",),
        ("y[0] = 1", "y[0] += c"),
        (
            "for i in range(n):",
            "    let t = x[i]",
            "    y[i] = t * t",
            "for i in range(n):",
            "    let t = c",
            "    y[i] = t",
        ),
        ("if 0 < n <= 4 and not n == 2: y[0] = 1",),
        ("for i in range(n): count updates i * i + n // 2", "y[0] = 1"),
        ("tile i by n", "for i in range(n): y[i] = 1"),
    ],
)
def test_accepted(lines: tuple[str, ...]) -> None:
    check_files({"main.roof": kernel_with(*(line.replace("i_if", "3") for line in lines))})


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (("for i in range(n): y[i] = n // i",), "divisor"),
        (("for i in range(n): y[i * n] = 1",), "subscript-affine"),
        (("for i in range(n): y[(n - 1) * (i + 2)] = 1",), "subscript-affine"),
        (("y = 1",), "subscript-count"),
        (("x[0] = 1", "y[0] = 1"), "intent-write"),
        (("y[0] += 1",), "intent-read"),
        (("for i in range(n): y[c] = 1",), "subscript-indirect"),
    ],
)
def test_refused(lines: tuple[str, ...], code: str) -> None:
    assert codes(kernel_with(*lines)) == [code]


MACHINE = "machine m:\n    peak f64 7 TFLOP/s\n    memory D 1 GiB, 1 GB/s\n"
ADD = "instruction add f64 256 bits, latency 4 cycles"


@pytest.mark.parametrize(
    ("wrong", "right", "help"),
    [
        ("assume n\n    y[0] = 1", "assume n > 4\n    y[0] = 1", "`n > 4`"),
        ("y[0] += c", "y[0] = 0\n    y[0] += c", "such as `y[i] = 0`"),
        ("x[0] += 1", "y[0] = 1", "declare it `inout` on line 2"),
        ("y[0] = sqr(c)", "y[0] = c**2", "powers are written `x**2`"),
        ("compute tf32\n    y[0] = 1", "y[0] = 1", "leave it out"),
        (
            "for i in range(n, 0, -1):\n        y[i - 1] = i",
            "for i in range(n):\n        y[n - i - 1] = n - i",
            "run the loop forwards over `range(n)`, and write `n - i` for `i`",
        ),
        (
            "for i in range(n - 1, -1, -3):\n        y[i] = 1",
            "for i in range(0, n, 3):\n        y[n - 1 - i] = 1",
            "run the loop forwards over `range(0, n, 3)`, and write `n - 1 - i` for `i`",
        ),
    ],
)
def test_what_the_help_says_is_accepted(wrong: str, right: str, help: str) -> None:
    with pytest.raises(InputError) as caught:
        check_files({"main.roof": kernel_with(wrong)})
    assert help in next(d for d in caught.value.diagnostics if d.severity == "error").help
    check_files({"main.roof": kernel_with(right)})


@pytest.mark.parametrize(
    ("wrong", "right", "help"),
    [
        ("core window 512, waiting 97", "core window 512, waiting 97, dispatch 6", "such as `dispatch 6`"),
        (ADD, f"{ADD}, throughput 0.5 cycles", "add `throughput N cycles`, such as `throughput 0.5 cycles`"),
        (f"{ADD}, throughput 1 cycle, port 0", f"{ADD}, throughput 1 cycle, p0", "among `p0` to `p3`"),
        ("peak i8 1 TOP/s, energy", "peak i8 1 TOP/s, energy 20 pJ/OP", "write `energy 20 pJ/OP`"),
    ],
)
def test_what_the_help_says_of_a_machine_is_accepted(wrong: str, right: str, help: str) -> None:
    with pytest.raises(InputError) as caught:
        check_files({"main.roof": f"{MACHINE}    {wrong}\n"})
    assert help in caught.value.diagnostics[0].help
    check_files({"main.roof": f"{MACHINE}    {right}\n"})


@pytest.mark.parametrize("start", ["n", "n - 1", "n + 2", "2 * n"])
@pytest.mark.parametrize("stop", ["0", "-1", "2", "n - 3", "-n"])
@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_loop_forwards_has_the_same_values(start: str, stop: str, step: int) -> None:
    """What the help says about a loop that counts down, for sizes with and without iterations."""
    with pytest.raises(InputError) as caught:
        check_files({"main.roof": kernel_with(f"for i in range({start}, {stop}, -{step}):\n        y[0] = i")})
    said = re.search(r"over `(range.*)`, and write `(.*)` for `i`", caught.value.diagnostics[0].help)
    assert said is not None
    for n in range(1, 9):
        forwards = eval(f"[{said[2]} for i in {said[1]}]", {"n": n})
        assert forwards == list(eval(f"range({start}, {stop}, -{step})", {"n": n}))


def test_const_parameters_make_products_affine() -> None:
    text = "kernel k(n, const s):\n    in x: f64[s * n]\n    out y: f64[n]\n    for i in range(n):\n"
    check_files({"main.roof": text + "        y[i] = x[s * i + i // s + i % (s + 1)]\n"})
    assert codes(text.replace("const ", "") + "        y[i] = x[s * i]\n") == ["subscript-affine"]


def test_syntax_and_other_errors_come_together_in_order() -> None:
    text = kernel_with("y[0] = ", "y[1] = 2") + "\n" + kernel_with("y[0] = zz").replace("kernel k", "kernel l")
    assert codes(text) == ["syntax", "name-unknown"]


def test_a_damaged_kernel_is_not_unknown() -> None:
    assert codes(kernel_with("y[0] = ") + "program p(n):\n    run k(n)\n    run l(n)\n") == ["syntax", "name-unknown"]


def test_a_long_sum_is_reported_once() -> None:
    assert codes(kernel_with("y[0] = " + "+".join("1" * 5000), "y[0] = " + "-" * 900 + "1")) == ["limit-nesting"] * 2


def test_many_errors_are_capped() -> None:
    found = codes('use "b.txt"\n' * 3000)
    assert len(found) == 1001 and found[-1] == "more"


def test_many_warnings_are_capped_and_make_no_file_wrong() -> None:
    arrays = "".join(f"    in x{i}: f64[n]\n" for i in range(1002))
    unused = f"kernel k(n):\n{arrays}    out y: f64[n]\n    y[0] = 1\n"
    warnings = check_files({"main.roof": unused}).warnings
    assert (len(warnings), warnings[-1].message) == (1001, "more than 1000 warnings; the others are not shown")
    wrong = unused + 'use "b.txt"\n'
    assert codes(wrong) == codes('use "b.txt"\n' + kernel_with("y[0] = 1"))


def test_every_code_is_tested_or_used() -> None:
    golden = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "tests/lang/bad").glob("*.txt"))
    shown = set(re.findall(r"(?:error|warning)\[([a-z-]+)\]", golden))
    elsewhere = {"limit-file", "limit-use", "use-unused", "unused", "more", "syntax-more"}
    assert set(CODES) - shown == elsewhere


def test_every_code_is_documented() -> None:
    page = (ROOT / "docs/language.md").read_text(encoding="utf-8")
    section = page[page.index("\n## Diagnostics\n") :]
    assert re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", section, re.MULTILINE) == [
        *CODES.items(),
        *DEEP_CODES.items(),
        *RESULT_CODES.items(),
    ]


@pytest.mark.thorough
def test_no_other_code_is_reported() -> None:
    """Every code that stands in a call that makes a diagnostic, wherever in the package, is one of the table's."""
    named = set()
    for path in (ROOT / "roofdsl").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Constant):
                of = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
                if of in ("Diagnostic", "error", "_error", "warning", "_warning") and "-" in str(call.args[0].value):
                    named.add(call.args[0].value)
    assert len(named) > 50
    assert named <= CODES.keys() | DEEP_CODES.keys() | RESULT_CODES.keys() | C_CODES.keys() | PYTHON_CODES.keys()


def test_tile_names() -> None:
    assert tile_name("i", set()) == "ii"
    assert tile_name("i", {"ii", "iii"}) == "iiii"


def test_the_examples_of_the_language_page_are_right() -> None:
    page = (ROOT / "docs/language.md").read_text(encoding="utf-8")
    examples = re.findall(r"```roof\n(.*?)```", page, re.DOTALL)
    assert len(examples) == 8
    kernels = "kernel gates(B, F):\n    out y: f64[B]\n    y[0] = F\n"
    kernels += kernels.replace("gates", "activate")
    for example in examples:
        text = example + (kernels if "program" in example else "")
        assert check(Source("page.roof", text)).warnings == ()


def test_the_message_shown_on_the_language_page_is_what_is_printed() -> None:
    page = (ROOT / "docs/language.md").read_text(encoding="utf-8")
    text = "kernel k(n):\n    in A, B: f64[n, n]\n    inout C: f64[n, n]\n"
    text += "    for i in range(n), j in range(n), k in range(n):\n"
    with pytest.raises(InputError) as caught:
        check(Source("matmul.roof", text + "        C[i, j] += AA[i, k] * B[k, j]\n"))
    assert str(caught.value) in page

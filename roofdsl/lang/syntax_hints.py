"""What to write instead of habits from other languages, found from the text of the line, not from the parser's state.

Each hint is a pattern of the line and what to say; the first that fits is given. `syntax_errors` asks for it, and has
hints of its own that follow from what the parser expects. A hint quotes the line's own words if the result is short.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from roofdsl.lang.findings import did_you_mean, listed
from roofdsl.lang.machine_attributes import SETTINGS
from roofdsl.lang.types import TYPES, Kind

_Say = str | Callable[[re.Match[str]], str]

TYPE_NAMES = {
    **{name: name for name in TYPES},
    "double": "f64", "float64": "f64", "fp64": "f64", "real": "f64", "float": "f32", "single": "f32",
    "float32": "f32", "fp32": "f32", "half": "f16", "float16": "f16", "fp16": "f16", "bfloat16": "bf16",
    "int8": "i8", "fp8": "f8", "int16": "i16", "int": "i32", "integer": "i32",
    "int32": "i32", "int64": "i64", "long": "i64", "size_t": "i64", "short": "i16",
    "char": "i8", "complex": "c128", "complex128": "c128", "complex64": "c64",
}  # fmt: skip
"""The type that a name of other languages stands for."""

_TYPE = "|".join(sorted(map(re.escape, TYPE_NAMES), key=len, reverse=True))
_LOOP = "loops are written `for i in range(n):`"
_NO_SLICE = "there are no slices: write a loop over the elements"
_SELECT = "a value that depends on a condition is written `select(a < b, x, y)`"
_COMMENT = "a comment begins with `#`"
_NOT_PRINTED = "a kernel prints nothing; it stores its results in `out` or `inout` arrays and scalars"
_ONE_STATEMENT = "write one statement per line"
_STORES = "a statement stores a value: `y[i] = ...`; a kernel is run in a `program`: `run k(n)`"
_CORE = "a core is written `core dispatch 6, window 512, waiting 97`"
_NO_ATTRIBUTE = "the language has no attributes; sizes are parameters, and a transposed array is read as `A[j, i]`"
MOST_QUOTED = 60


def _write(text: str, otherwise: str) -> str:
    return f"write `{text}`" if len(text) <= MOST_QUOTED else otherwise


def _element(m: re.Match[str]) -> str:
    otherwise = "elements are written with brackets: `A[i, j]`"
    return otherwise if "(" in m[2] or "[" in m[2] else _write(f"{m[1]}[{m[2]}]", otherwise)


def _select(m: re.Match[str]) -> str:
    return _write(f"{m['left']} select({m['c'].strip()}, {m['a'].strip()}, {m['b'].strip()})", _SELECT)


def _declared(m: re.Match[str]) -> str:
    return _write(f"{m[1]} {m[3]}: {TYPE_NAMES[m[2].lower()]}{m[4].replace(' ', '')}", "write `in A: f64[n]`")


def _typed_first(m: re.Match[str]) -> str:
    if m["rest"].startswith("="):
        return f"name a value in a register with `let {m['name']} = ...`"
    own = TYPE_NAMES[m["type"].lower()]
    dims = re.match(r"\[[^\]]*\]", m["rest"])
    return f"declare it by how it is used: `in {m['name']}: {own}{dims[0] if dims else ''}`, or `out`, `inout`, `temp`"


_LINES: list[tuple[str, _Say]] = [
    # declarations
    (r"input\s+\w", "write `in`: an array that is only read is declared `in A: f64[n]`"),
    (r"output\s+\w", "write `out`: an array that is only written is declared `out A: f64[n]`"),
    (r"(read|readonly|intent)\s*[\w(]", "an array that is only read is declared `in A: f64[n]`"),
    (r"(write|writeonly)\s+\w+\s*:", "an array that is only written is declared `out A: f64[n]`"),
    (rf"(in|out|inout|temp)\s+(?i:({_TYPE}))\s+(\w+)\s*((?:\[[^\]]*\])?)", _declared),
    (r"(in|out|inout|temp)\s+\w+\s*:\s*\[", "the type comes before the brackets: `A: f64[n, n]`"),
    (r"(in|out|inout|temp)\s+\w+\s*(\[|$)", "a declaration has a type: `in A: f64[n]`, or `in a: f64` for a scalar"),
    (rf"(?i:(?P<type>{_TYPE}))\s+(?P<name>\w+)\s*(?P<rest>.*)", _typed_first),
    (rf"(kernel|program)\s+\w+\s*\(.*\b(?i:{_TYPE})\s+\w", "a parameter is a positive integer and has no type: `n`"),
    (r"(kernel|program)\s+\w+\s*\([^)]*\[", "parameters are sizes; arrays are declared inside: `in A: f64[n, n]`"),
    (rf"(?P<name>\w+)\s*:\s*(?i:(?P<type>{_TYPE}))\b\s*(?P<rest>.*)", _typed_first),
    (r"(in|out|inout|temp)\b.*,\s*(in|out|inout|temp)\s", "`in`, `out`, `inout` and `temp` begin a line each"),
    # loops
    (r"for\b.*,\s*(parallel\s+)?for\b", "several loops: `for i in range(n), j in range(n):`"),
    (r"for\s*\(", _LOOP),
    (r"(do|loop|foreach)\s+\w", _LOOP),
    (r"for\s+\w+\s*,\s*\w+\s+in\b", "several loops: `for i in range(n), j in range(n):`"),
    (r"parallel\s+\w+\s+in\b", "write `parallel for i in range(n):`"),
    (r"end\w*\b(\s+\w+)?\s*$", "a block ends with its indentation; there is no `end`"),
    (r"(break|continue)\s*$", "a loop runs through all its iterations; put conditional statements into an `if`"),
    # statements that are calls, and Fortran's elements
    (r"(print|printf|println|echo|puts|cout|write|display)\s*[\w(<\"']", _NOT_PRINTED),
    (r"(swap|exchange)\s*\(", "exchange two values with three statements: `let t = x`, `x = y`, `y = t`"),
    (r"(\w+)\s*\(([^()]*)\)\s*([-+*/]|min|max)?=(?!=)", _element),
    (r"(assert|require)\s*[\w(]", "write conditions on parameters as `assume n >= 4`"),
    (r"(call\s+)?\w+\s*\(.*\)\s*$", _STORES),
    # values
    (r"(?P<left>.+?[^=<>!]=)\s+(?P<a>[^=]+?)\s+if\s+(?P<c>.+?)\s+else\s+(?P<b>.+)$", _select),
    (r"(?P<left>.+?[^=<>!]=)\s+(?P<c>[^?]+)\?(?P<a>[^:]+):(?P<b>.+)$", _select),
    # machines
    (r"peak\s+[\d.]", "a peak has a type: `peak f64 10 GFLOP/s`"),
    (rf"peak\s.*,\s*({_TYPE})\b", "each type and class has a line of its own: `peak f32 fma 10 GFLOP/s`"),
    (rf"(peak|cost|{'|'.join(SETTINGS)})\b[^=]*=", "there is no `=` here: `peak f64 10 GFLOP/s`, `clock 1.5 GHz`"),
    (r"(memory|cache)\s+\w+\s*[:=]", "the name is followed by size and bandwidth: `memory DRAM 16 GiB, 100 GB/s`"),
    (r"memory\s+\w+\s+[\d.]+\s*\w+/s\s*$", "a memory has a size, too: `memory DRAM 16 GiB, 100 GB/s`"),
    (r"bandwidth\s", "give a bandwidth with its level: `memory DRAM 16 GiB, 100 GB/s`"),
    (r"multiprocessor\s+warps?\s+of\b", "write `multiprocessor warp 32, warps 64, ...`"),
    (r"core\s+([\d.]+\s*[kMGT]?Hz)", lambda m: f"write `clock {m[1]}`; {_CORE}"),
    (r"core\s+[\d.]", _CORE),
    (r"(?i:ram|dram|hbm\d?|ddr\d?|vram)\s", "write `memory NAME SIZE, BANDWIDTH`: `memory DRAM 16 GiB, 100 GB/s`"),
    (r"(?i:flops?|gflops|performance|compute)\s+[\d.]", "write `peak f64 10 GFLOP/s`"),
]  # fmt: skip

_CHARACTERS: dict[str, list[tuple[str, _Say]]] = {
    "@": [
        (r"\s*$", "the language has no decorators"),
        (r".", "a matrix product is written as loops: `C[i, j] += A[i, k] * B[k, j]`"),
    ],
    ".": [
        (r".*\b(np|numpy|math|cmath|torch|jnp|xp|std)$", "functions are written without a module: `sqrt(x)`"),
        (r".*\b\w+$", _NO_ATTRIBUTE),
        (r".*\[\s*$", _NO_SLICE),
        (r".*\.$", "a range is written `range(start, stop)`"),
    ],
    "?": [(r"", _SELECT)],
    "/": [(r"", _COMMENT)],
}  # fmt: skip


def of_line(text: str) -> str:
    """What to write instead of the line, as far as its text shows; empty if nothing is known."""
    return _said(_LINES, text.split("#", 1)[0].strip())


def of_token(text: str, column: int) -> str:
    """What to write instead of the token at `column` (from 1), if the line alone does not show it."""
    rest = text[column - 1 :]
    if (rest.startswith(("//", "/*")) and not rest.startswith("//=")) or text.strip().startswith(("//", "/*")):
        return _COMMENT
    if rest.startswith(",") and re.search(r"[^=<>!]=[^=].*,[^=]*=", text):
        return _ONE_STATEMENT
    return ""


def of_character(text: str, position: int) -> str:
    """What to write instead of the character at `position` (from 0), which is not part of the language."""
    character = text[position]
    if character == "?":
        found = of_line(text)
        if found:
            return found
    return _said(_CHARACTERS.get(character, []), text[:position])


_KINDS: dict[str, tuple[str, Kind]] = {
    "f": ("floating-point types", "float"),
    "i": ("integer types", "int"),
    "u": ("integer types", "int"),
    "c": ("complex types", "complex"),
}


def of_type(word: str) -> str:
    """What to write instead of a type that does not exist: one of the same kind, such as `f64` for `f128`."""
    if other := TYPE_NAMES.get(word.lower()):
        return f"write `{other}`"
    if re.fullmatch(r"[fiuc]\d+", word):
        what, kind = _KINDS[word[0]]
        return f"the {what} are {listed([t.name for t in TYPES.values() if t.kind == kind], 'and')}"
    return did_you_mean(word, TYPES, f"the types are {listed(TYPES, 'and')}")


def _said(table: list[tuple[str, _Say]], text: str) -> str:
    if len(text) > 400:
        return ""
    for pattern, say in table:
        found = re.match(pattern, text)
        if found is not None:
            return say if isinstance(say, str) else say(found)
    return ""

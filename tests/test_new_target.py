"""A target of code generation is one file of `roofdsl/codegen/targets/`: one more in a copy of the package is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from roofdsl.codegen.registry import target_names, target_of
from tests.copied import run_in_copy

LISTS = '''
"""Plain Python as a target: nested lists, loops that count by hand, and no libraries."""

from __future__ import annotations

import keyword

from roofdsl.codegen.function_parts import arguments, heading, load_scalars, store_scalars
from roofdsl.codegen.syntax import CHOICE, PRODUCT, SUM, UNARY, Text, words
from roofdsl.codegen.target import OneFunction
from roofdsl.lang.functions import Spelling


class Lists(OneFunction):
    name = "lists"
    variants = ("loops",)
    comment = "#"
    empty = "pass"
    scoped = False
    logic = {"and": "and", "or": "or"}
    reserved = frozenset(keyword.kwlist) | words("sorted float int lists")
    functions = {
        "sqrt": Spelling("({x}) ** 0.5"),
        "max": Spelling("sorted([{x}])[-1]"),
        "sigmoid": Spelling("1 / (1 + 2.718281828459045 ** -{x})", helper=True),
    }

    def floor_div(self, a, b):
        return Text(f"{a.at(PRODUCT)} // {b.at(UNARY)}", PRODUCT)

    def mod(self, a, b):
        return Text(f"{a.at(PRODUCT)} % {b.at(UNARY)}", PRODUCT)

    def extremum(self, function, terms):
        return Text(f"sorted([{', '.join(t.text for t in terms)}])[{'0' if function == 'min' else '-1'}]")

    def negation(self, condition):
        return Text(f"not ({condition.text})")

    def literal(self, value, kind):
        return Text(repr(value), UNARY if value < 0 else 7)

    def convert(self, value, source, to):
        return value

    def from_index(self, value, to):
        return Text(f"float({value.text})")

    def choice(self, condition, a, b):
        return Text(f"{a.at(SUM)} if {condition.at(SUM)} else {b.at(SUM)}", CHOICE)

    def quotient(self, a, b):
        return Text(f"int({a.at(PRODUCT)} / {b.at(UNARY)})")

    def element(self, array, name, subscripts, dims):
        return Text(name + "".join(f"[{s.text}]" for s in subscripts))

    def open(self, out, header):
        out.add(f"{header}:")
        out.depth += 1

    def close(self, out):
        out.depth -= 1

    def otherwise(self, out):
        self.close(out)
        self.open(out, "else")

    def loop(self, out, var, start, stop, step):
        self.open(out, f"for {var} in range({start.text}, {stop.text}, {step.text})")

    def condition(self, out, text):
        self.open(out, f"if {text}")

    def declare(self, name, kind, value, constant):
        return f"{name} = {value.text}"

    def source(self, kernel, emitter, function, variant):
        out = emitter.out
        names = [f"{a.name}_out" if a.role == "scalar_out" else emitter.name(a.name) for a in arguments(kernel)]
        self.open(out, f"def {function}({', '.join(names)})")
        load_scalars(kernel, emitter, "{}[0]")
        emitter.block(kernel.body)
        store_scalars(kernel, emitter, "{}[0]")
        helpers = []
        for name in self.helpers:
            body = self.spelling(name.rpartition("_")[0], "f64").text.format(x="x")
            helpers += [f"def {name}(x):", f"    return {body}"]
        return "\\n".join([*heading(kernel, self, "Python with lists"), *helpers, *out.lines]) + "\\n"


TARGET = Lists
'''

PROGRAM = '''
import json
from pathlib import Path

import numpy as np
from click.testing import CliRunner

import roofdsl
from roofdsl.cli.emit import emit
from roofdsl.codegen.generate import generate
from roofdsl.codegen.registry import target_names
from roofdsl.lang.diagnostics import CommandError
from tests.codegen.running import Case
from tests.codegen.shipped import shipped
from tests.oracle.loading import kernel_of

KERNEL = """
kernel k(n):
    in x: f64[n, 3], scale: f64
    out y: f64[n]
    inout total: f64
    for i in range(n):
        if i % 2 == 0 and i < n - 1:
            let largest = max(x[i, 0], x[i, 1], scale)
            y[i] = sqrt(largest) / (i + 1)
        else:
            y[i] = sigmoid(x[i // 2, 2]) - 2
    for sorted in range(min(n, 4)):
        total += y[sorted]
"""


def run(code, arrays, params):
    names = {}
    exec(code.source, names)
    given = []
    for a in code.arguments:
        if a.role == "parameter":
            given.append(params[a.name])
        else:
            given.append(arrays[a.name].tolist()[0] if a.role == "scalar_in" else arrays[a.name].tolist())
    names[code.function](*given)
    for a, value in zip(code.arguments, given, strict=True):
        if a.written:
            arrays[a.name][...] = np.asarray(value).reshape(arrays[a.name].shape)


def told(*args):
    result = CliRunner().invoke(emit, args)
    assert result.exception is None, result.output
    return result.output


checked = []
for kernel, sizes in ((kernel_of(KERNEL), {"n": 7}), (shipped()["gemv"], {"n": 5, "m": 6})):
    Case(kernel, sizes).check(run, generate(kernel, "lists"))
    checked.append(kernel.name)
Path("k.roof").write_text(KERNEL)
try:
    generate(kernel_of("kernel k(n):\\n    inout x: f64[n]\\n    x[0] = tanh(x[0])\\n"), "lists")
except CommandError as error:
    refused = str(error)
print(json.dumps({
    "package": roofdsl.__file__,
    "names": target_names(),
    "checked": checked,
    "help": told("--help"),
    "emitted": told("k.roof", "--to", "lists"),
    "json": json.loads(told("k.roof", "--to", "lists", "--json")),
    "refused": refused,
}))
'''


@pytest.mark.thorough
def test_one_more_file(tmp_path: Path) -> None:
    found = run_in_copy(tmp_path, PROGRAM, added={"codegen/targets/lists.py": LISTS})
    assert found["names"] == ["c", "cuda", "lists", "python"]
    assert found["checked"] == ["k", "gemv"]
    assert "--to [c|cuda|lists|python]" in found["help"]
    told = " ".join(found["help"].split())
    several = "c and python: loops (default), parallel, grouped; cuda: naive (default), tiled"
    assert f"{several}; lists: loops (default)." in told
    assert "def k(x, scale, y, total_out, n):\n" in found["emitted"]
    assert "def sigmoid_f64(x):\n    return 1 / (1 + 2.718281828459045 ** -x)\n" in found["emitted"]
    # a name that the text uses for something else is written with an underscore, in this language alone
    assert "for sorted_ in range(0, sorted([n, 4])[0], 1):" in found["emitted"]
    assert found["emitted"] == found["json"]["source"]
    assert (found["json"]["target"], found["json"]["variant"]) == ("lists", "loops")
    assert "launches" not in found["json"]
    assert "no text in lists for `tanh` of f64" in found["refused"]


def test_the_name_of_a_target_is_that_of_its_file() -> None:
    assert target_names() == ("c", "cuda", "python")
    assert [target_of(name).name for name in target_names()] == list(target_names())

"""The functions of the language: one row each, which has everything that roofdsl knows about the function.

The checker, the counts, the emitters, the reference evaluation, the characterization of machines, the editors and the
tests take what they need from here, so a new function is one new row (and the golden files that list the functions).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from roofdsl.lang.record import Record

Language = Literal["python", "c", "cuda"]
"""The languages that the rows have texts for; a target of code generation may take those of one of them."""

Group = Literal["float", "int", "complex", "f32"]
"""Groups of types that share a text; for f32, a text of its own takes precedence over that of `float`."""

MANY = -2
"""`Function.arguments` of a function that takes two arguments or more."""

_GROUPS: dict[str, Group] = {
    "f64": "float", "f32": "float", "i64": "int", "i32": "int", "c128": "complex", "c64": "complex",
}  # fmt: skip


class Spelling(Record):
    """How a call is written in a target, as a template.

    `{x}` is the arguments. `{operand}` is the argument, in parentheses if it is more than a factor; `{atom}` is the
    argument, in parentheses if it is more than a name; `{a}` and `{b}` are the two arguments of a helper of a function
    of MANY. `{one}` is the number 1 in the type computed in, `{f}` the suffix of C's names in single precision, `{ll}`
    C's prefix in 64-bit integers, and `{T}` the type.

    helper: the text is the body of a small function, which is defined before the kernel and called in it.
    quotient: the outermost operator of the text is a division, so it may need parentheses around it.
    """

    text: str
    helper: bool = False
    quotient: bool = False


Spellings = Spelling | Mapping[Group, Spelling]


class Function(Record):
    """One function. The defaults are those of a special function of one real value, counted under its name.

    python, c, cuda: how it is written there, for all types or for each group of types; CUDA writes what C does where
    nothing is stated.
    numpy: takes the numpy module and returns its function of arrays, with which the reference evaluates.
    arguments: how many, or MANY.
    cls: the class that it is counted in (rule 1), empty where it costs nothing.
    gives: the type of the result: the arguments' widest type, that type's real component, or a fraction (which for
    integer arguments is f64).
    takes_complex: whether complex arguments are allowed. of_complex: the operations that a complex argument costs, by
    class or special function; additions are fused (rule 4). of_real: what is emitted for a real argument: a call, the
    argument itself, or zero.
    positive: whether random inputs to it have to be positive. about: what it is, for the page of the language.
    units: how many units of rounding a result may be wrong by. slope and spread: the steepest slope, and the distance
    of the smallest from the largest value, of a function that is not monotonic. pole: whether it jumps to infinity at
    zero; away from zero, a function without `slope` is monotonic.
    argument, step: how a characterization repeats the function so that no value leaves its range: `argument` is what it
    is called with, and `step` makes the next `a` from its value `{y}`; `{term}`, `{shift}` and `{factor}` are numbers
    near 1.
    """

    name: str
    python: Spellings
    c: Spellings
    numpy: Callable[[Any], Any]
    cuda: Spellings | None = None
    arguments: int = 1
    cls: Literal["special", "min", ""] = "special"
    gives: Literal["widest", "component", "fraction"] = "fraction"
    takes_complex: bool = False
    of_complex: tuple[tuple[str, int], ...] = ()
    of_real: Literal["call", "argument", "zero"] = "call"
    positive: bool = False
    about: str = ""
    units: float = 8.0  # CUDA's in single precision are within 4
    slope: float | None = None
    spread: float = 0.0
    pole: bool = False
    argument: str = "a"
    step: str = "{y} + {term}"

    def spelling(self, language: Language, kind: str) -> Spelling:
        """How a call on values computed in the type `kind` is written. Raises KeyError where it cannot be called."""
        stated = self.cuda if language == "cuda" else None
        found = spelled(stated, kind) or spelled(self.python if language == "python" else self.c, kind)
        if found is None:
            raise KeyError(f"{self.name} of {kind}")
        return found


def spelled(spellings: Spellings | None, kind: str) -> Spelling | None:
    """The one for values computed in the type `kind`."""
    if isinstance(spellings, Spelling | None):
        return spellings
    single: Group = "f32" if kind == "f32" else _GROUPS[kind]
    return spellings.get(single) or spellings.get(_GROUPS[kind])


def _helper(text: str) -> Spelling:
    return Spelling(text, helper=True)


def _of_math(name: str) -> dict[str, Any]:
    """The texts and the numpy function of what has the same name in Python's `math`, in C and in numpy."""
    return {
        "name": name,
        "python": Spelling(f"math.{name}({{x}})"),
        "c": Spelling(f"{name}{{f}}({{x}})"),
        "numpy": lambda np: getattr(np, name),
    }


def _extremum(name: str, sign: str) -> Function:
    return Function(
        name,
        python=Spelling(f"{name}({{x}})"),
        c=_helper(f"{{a}} {sign} {{b}} ? {{a}} : {{b}}"),
        # one instruction in f32 alone: in f64, GPUs compare and select, and fmin has to look for NaN besides
        cuda={"f32": Spelling(f"f{name}f({{x}})")},
        numpy=lambda np: getattr(np, f"{name}imum"),
        arguments=MANY,
        cls="min",
        gives="widest",
    )


_ROWS = (
    _extremum("min", "<"),
    _extremum("max", ">"),
    # has a node of its own in the tree: every target writes a choice in its own way
    Function("select", {}, {}, lambda np: np.where, arguments=3, cls="", gives="widest", takes_complex=True),
    Function(
        "abs",
        python=Spelling("abs({x})"),
        c={"float": Spelling("fabs{f}({x})"), "int": Spelling("{ll}abs({x})"), "complex": _helper("cabs{f}({x})")},
        cuda={"complex": _helper("hypot{f}({x}.re, {x}.im)")},
        numpy=lambda np: np.abs,
        cls="",
        gives="component",
        takes_complex=True,
        of_complex=(("mul", 2), ("add", 1), ("sqrt", 1)),
    ),
    Function(**_of_math("sqrt"), positive=True),
    Function(
        "rsqrt",
        python=_helper("{one} / math.sqrt({x})"),
        c=_helper("{one} / sqrt{f}({x})"),
        cuda=Spelling("rsqrt{f}({x})"),
        numpy=lambda np: lambda x: 1 / np.sqrt(x),
        positive=True,
        about="1 / sqrt",
    ),
    Function(
        "rcp",
        python=Spelling("{one} / {operand}", quotient=True),
        c=Spelling("{one} / {operand}", quotient=True),
        numpy=lambda np: lambda x: 1 / x,
        positive=True,
        about="1 / a",
        pole=True,
    ),
    Function(**_of_math("exp"), argument="-a", step="{y} * {factor}"),
    Function(**_of_math("log"), positive=True, argument="a + {shift}"),
    Function(**_of_math("tanh")),
    Function(
        "sigmoid",
        python=_helper("{one} / ({one} + math.exp(-{x}))"),
        c=_helper("{one} / ({one} + exp{f}(-{x}))"),
        numpy=lambda np: lambda x: 1 / (1 + np.exp(-x)),
    ),
    Function(**_of_math("sin"), slope=1.0, spread=2.0),
    Function(**_of_math("cos"), slope=1.0, spread=2.0),
    Function(
        "conj",
        python={"complex": Spelling("{atom}.conjugate()")},
        c={"complex": _helper("conj{f}({x})")},
        cuda={"complex": _helper("{T}({x}.re, -{x}.im)")},
        numpy=lambda np: np.conj,
        cls="",
        gives="widest",
        takes_complex=True,
        of_real="argument",
    ),
    Function(
        "real",
        python={"complex": Spelling("{atom}.real")},
        c={"complex": _helper("creal{f}({x})")},
        cuda={"complex": _helper("{x}.re")},
        numpy=lambda np: np.real,
        cls="",
        gives="component",
        takes_complex=True,
        of_real="argument",
    ),
    Function(
        "imag",
        python={"complex": Spelling("{atom}.imag")},
        c={"complex": _helper("cimag{f}({x})")},
        cuda={"complex": _helper("{x}.im")},
        numpy=lambda np: np.imag,
        cls="",
        gives="component",
        takes_complex=True,
        of_real="zero",
    ),
)

FUNCTIONS: dict[str, Function] = {row.name: row for row in _ROWS}


def repeated(function: Function, language: Language, one: str, operands: Mapping[str, str], suffix: str = "") -> str:
    """The statement by which a characterization repeats a special function on the variable `a`.

    one: the number 1 in the type of `a`; operands: the variables that `step` and `argument` call term, shift and
    factor; suffix: of C's functions.
    """
    argument = function.argument.format(**operands)
    alone = argument if argument.isidentifier() else f"({argument})"
    spelling = function.spelling(language, "f64")
    # in parentheses unless the call itself puts some around it
    x = alone if spelling.helper else argument
    text = spelling.text.format(x=x, operand=alone, one=one, f=suffix)
    value = f"({text})" if spelling.helper else text
    return f"a = {function.step.format(y=value, **operands)}"

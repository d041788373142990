"""Kernels of code in other languages, as functions of the Python interface."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel as lowered
from roofdsl.loops.load import read_source
from roofdsl.loops.model import Kernel


def einsum(text: str, type: str = "f64") -> Kernel:
    """The kernel of an einsum such as "bik,bkj->bij"; the size of `i` is the parameter `n_i`.

    Raises InputError for a text that is not an einsum, CommandError for an unknown type.
    """
    from roofdsl.frontends.einsum import kernel_of

    return lowered(kernel_of(text, type), None)


def from_python(
    source: str | Path, name: str | None = None, shapes: Mapping[str, str] | None = None, *, fused: bool = False
) -> Kernel:
    """The kernel of a function of a Python file, or of a text, which is parsed and not executed.

    shapes: types and shapes of the arguments without annotations, as in {"A": "n,m:f64", "alpha": ":f32", "steps":
    "int"}. fused: with loops fused and temporaries kept in scalars, as a compiler could do. Raises InputError for
    unsupported code, CommandError for a file or function that does not exist.
    """
    from roofdsl.frontends.python.read import read_text
    from roofdsl.frontends.python.signature import given_of

    text = str(source)
    given = {argument: given_of(of, argument) for argument, of in (shapes or {}).items()}
    file = Source("<text>", text) if "\n" in text else read_source(text)
    return lowered(read_text(file, name, given, fuse=fused), None)

"""Runs a user's own Python function beside the kernel that it is read as. This executes the file: only on request."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

from roofdsl.frontends.poly import Poly
from roofdsl.frontends.python.signature import Given
from roofdsl.frontends.python.types import NUMPY
from roofdsl.lang import tree
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record
from roofdsl.lang.types import TYPES


class Argument(Record):
    """An argument of a function. kind: `size`, `array`, `number` (of Python) or `scalar` (of numpy).

    array: its name in the kernel; empty for a size. value: a size that can only be this number. dims: of an array.
    type: that of the kernel's array.
    """

    name: str
    kind: str
    array: str = ""
    value: int | None = None
    dims: tuple[Poly, ...] = ()
    type: str = ""


class Returned(Record):
    """A value that a function returns. axes: its axes in the order of the array's, with those of one element last.

    array is None for None and for a part of an array.
    """

    array: str | None
    axes: tuple[int, ...] = ()


class Reading(Record):
    """A function as it was read. exact: whether numpy computes in the same order, with the same rounding of every
    operation.
    """

    function: str
    tree: tree.Kernel
    arguments: tuple[Argument, ...]
    returned: tuple[Returned, ...]
    exact: bool


def function_of(path: str, name: str) -> Callable[..., Any]:
    """The function of a file, which is executed to get it. Raises CommandError if the file or the function fails."""
    spec = importlib.util.spec_from_file_location(f"_roofdsl_user_{Path(path).stem}", path)
    if spec is None or spec.loader is None:
        raise CommandError(f"`{path}` cannot be executed")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        found = getattr(module, name)
    except Exception as error:
        raise CommandError(f"`{path}` cannot be executed: {type(error).__name__}: {error}") from None
    return found  # type: ignore[no-any-return]


def sizes_in(reading: Reading, values: Mapping[str, Any]) -> dict[str, int]:
    """The sizes of example arguments, by the kernel's parameters. Raises CommandError if they do not fit."""
    found: dict[str, int] = {}
    for argument in reading.arguments:
        value = values[argument.name]
        if argument.kind == "size":
            found[argument.name] = int(value)
        for dim, extent in zip(argument.dims, getattr(value, "shape", ()), strict=argument.kind == "array"):
            if len(dim.terms) == 1 and dim == Poly.name(min(dim.names, default="")):
                name = min(dim.names)
                if found.setdefault(name, extent) != extent:
                    message = f"`{name}` is {found[name]} and, in `{argument.name}`, {extent}"
                    raise CommandError(message, "give arrays that fit together")
    return found


def given_like(value: Any) -> Given:
    """The type and dimensions of an argument that an example shows. Raises CommandError."""
    if isinstance(value, bool) or not hasattr(value, "dtype"):
        kinds: dict[type, Given] = {
            int: Given(None, "i64", size=True),
            float: Given((), "f64", weak=True),
            complex: Given((), "c128", weak=True),
        }
        if type(value) not in kinds:
            raise CommandError(f"a {type(value).__name__} is not an example of an argument", "give arrays and numbers")
        return kinds[type(value)]
    type_ = NUMPY.get(value.dtype.name)
    if type_ is None or type_ == "bool":
        raise CommandError(f"there is no type `{value.dtype}`", f"the types are {', '.join(TYPES)}")
    return Given(tuple("1" if extent == 1 else ":" for extent in value.shape), type_)


def run_user(
    function: Callable[..., Any],
    arguments: Sequence[Argument],
    returned: Sequence[Returned],
    arrays: Mapping[str, Any],
    sizes: Mapping[str, int],
) -> dict[str, Any]:
    """The results of a function, by the names of the kernel's arrays; the arguments are not changed.

    arrays: numpy arrays by the kernel's names; a scalar has the shape (1,). sizes: values of the parameters. Raises
    CommandError if the function does not accept them.
    """
    given: dict[str, Any] = {}
    for argument in arguments:
        if argument.kind == "size":
            given[argument.name] = argument.value or sizes.get(argument.name, 1)
        elif argument.array not in arrays:  # nothing reads it
            given[argument.name] = 1
        elif argument.kind == "array":
            given[argument.name] = arrays[argument.array].copy()
        else:
            value = arrays[argument.array].reshape(-1)[0]
            given[argument.name] = value.item() if argument.kind == "number" else value
    try:
        first = [p.name for p in signature(function).parameters.values() if p.kind is p.POSITIONAL_ONLY]
        result = function(*(given[n] for n in first), **{n: v for n, v in given.items() if n not in first})
    except Exception as error:
        raise CommandError(f"the function fails: {type(error).__name__}: {error}") from None
    found = {a.array: given[a.name] for a in arguments if a.kind == "array" and a.array in arrays}
    results = result if isinstance(result, tuple) else (result,)
    for what, value in zip(returned, results, strict=True):
        if what.array is not None:
            found[what.array] = value.transpose(what.axes) if what.axes else value
    return found

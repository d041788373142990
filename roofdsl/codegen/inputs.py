"""Random inputs on which a kernel's result can be verified, and outputs filled with poison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roofdsl.codegen.generated import Argument
from roofdsl.codegen.storage import STORAGE, encode, poison
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.functions import FUNCTIONS
from roofdsl.loops.accesses import elements
from roofdsl.loops.indirect import index_arrays
from roofdsl.loops.model import (
    Array,
    Assign,
    Binary,
    Call,
    Element,
    Expr,
    For,
    If,
    Kernel,
    Let,
    LetRef,
    Node,
    Rises,
    ScalarRef,
    Select,
    Unary,
)
from roofdsl.loops.parameter_values import check_complete


def all_parameters(kernel: Kernel, params: Mapping[str, int]) -> dict[str, int]:
    """A number for every parameter. Raises CommandError if one is missing or an assumption does not hold."""
    values = {p.name: params.get(p.name, p.default) for p in kernel.parameters}
    known = {name: value for name, value in values.items() if value is not None}
    check_complete(f"kernel {kernel.name}", values, known)
    for condition in kernel.assumptions:
        if not condition.holds(known):
            raise CommandError(f"kernel {kernel.name} assumes {condition}, which does not hold at {known}")
    return known


def random_inputs(
    kernel: Kernel,
    params: Mapping[str, int],
    seed: int = 0,
    *,
    exact: bool = False,
    positive: bool = False,
    uneven: bool = False,
) -> dict[str, NDArray[Any]]:
    """One array for every array and scalar of a kernel, as it is stored (`storage`); scalars have shape (1,).

    Inputs are random values between -1 and 1 (integers: 1 to 9; with 8 and 16 bits, in which sums soon overflow: -2,
    -1, 1 and 2). With `positive` they are positive, so that no sum cancels (except for imaginary parts, and for arrays
    with a large diagonal). An array that the kernel divides by, or takes the root or logarithm of, is positive; if it
    does so only at equal subscripts, the array has a large diagonal instead (so that a triangular system or a
    factorization is well conditioned). The types f16, bf16 and f8, and all types with `exact`, get few bits, so that
    sums of products are exact and a missing term shows. `out` and `temp` are poisoned. With `uneven`, the magnitudes of
    numbers in f32, f64 and the corresponding complex types differ by up to 2**12 (unless a diagonal has to be large),
    so that each array decides some minimum or maximum. Index arrays hold the kernel's data at the sizes of these, and
    at other sizes random values that their declarations allow.

    Raises CommandError for missing sizes, sizes that an assumption excludes, or arrays too large for memory.
    """
    values = all_parameters(kernel, params)
    rng = np.random.default_rng(seed)
    special = _denominators(kernel)
    otherwise = "positive" if positive else None
    try:
        indices = _index_values(kernel, values, rng)
        return {
            a.name: indices[a.name]
            if a.name in indices
            else _filled(a, values, rng, special.get(a.name, otherwise), exact, uneven=uneven)
            for a in kernel.arrays
        }
    except (MemoryError, ValueError) as error:
        raise CommandError(f"the arrays of kernel {kernel.name} do not fit in memory: {error}") from None


def _index_values(kernel: Kernel, params: Mapping[str, int], rng: np.random.Generator) -> dict[str, NDArray[Any]]:
    """The values of a kernel's index arrays. Random ones need not take as many values as an `assume` line states."""
    names = index_arrays(kernel)
    shapes = {a.name: tuple(d.evaluate(params) for d in a.dims) for a in kernel.arrays if a.name in names}
    rises = {f.array: f for f in kernel.facts if isinstance(f, Rises)}
    given = kernel.data.values if kernel.data is not None else {}
    below = {a.name: a.below.evaluate(params) for a in kernel.arrays if a.name in names and a.below is not None}
    # The kernel's own data are for one size. At others, numbers at random keep what the kernel states about them: below
    # a limit, and rising from the first to the last (row starts of a sparse matrix).
    fit = all(n in given and given[n].shape == shapes[n] for n in names)
    fit = fit and all(given[n].max(initial=-1) < most for n, most in below.items())
    fit = fit and all(given[n][-1] == f.last.evaluate(params) for n, f in rises.items() if n in given)
    if fit:
        values = {n: given[n] for n in names}
    else:
        values = {}
        for a in kernel.arrays:
            if a.name in rises and a.name in names:
                first, last = rises[a.name].first.evaluate(params), rises[a.name].last.evaluate(params)
                rising = np.sort(rng.integers(first, last + 1, shapes[a.name]))
                rising[0], rising[-1] = first, last
                values[a.name] = rising
            elif a.name in below:
                values[a.name] = rng.integers(0, below[a.name], shapes[a.name])
    orders: dict[str, Any] = {a.name: "F" if a.column_major else "C" for a in kernel.arrays}
    types = {a.name: STORAGE[a.type.name] for a in kernel.arrays}
    return {n: np.asarray(v, dtype=types[n], order=orders[n]) for n, v in values.items()}


class Block(NamedTuple):
    """The repeated contents of an array of `shape`: a flat array of elements as they are stored."""

    shape: tuple[int, ...]
    order: Literal["C", "F"]
    numbers: NDArray[Any]

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.numbers.dtype.itemsize


BLOCK = 1_000_003
"""The most random numbers of a block: a prime, so that a number usually returns in a different column of a row."""


def random_blocks(kernel: Kernel, params: Mapping[str, int], seed: int = 0, most: int = BLOCK) -> dict[str, Block]:
    """Like `random_inputs`, for arrays that are timed and not compared.

    At most `most` numbers of each array are drawn and then repeated, so that large arrays can be filled where they are
    used. Reduced types get numbers with all their bits, since the power that arithmetic takes depends on them. An array
    with a large diagonal is whole. Raises CommandError for missing sizes, or sizes that an assumption excludes.
    """
    values = all_parameters(kernel, params)
    rng = np.random.default_rng(seed)
    special = _denominators(kernel)
    found = {}
    for a in kernel.arrays:
        shape = tuple(d.evaluate(values) for d in a.dims) or (1,)
        order: Literal["C", "F"] = "F" if a.column_major else "C"
        if a.intent in ("out", "temp"):
            numbers = np.full(1, poison(a.type.name), STORAGE[a.type.name])
        elif special.get(a.name) == "diagonal":
            whole = _filled(a, values, rng, "diagonal", False, uneven=False)
            numbers = np.ravel(whole, order="K")
        else:
            count = (min(prod(shape), most),)
            real: Any = _numbers(a, count, rng, special.get(a.name), False)
            if a.type.kind == "complex":
                real = real + 1j * _numbers(a, count, rng, None, False)
            numbers = encode(real, a.type.name)
        found[a.name] = Block(shape, order, numbers)
    return found


def poisoned(kernel: Kernel, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Copies to run on: arrays that the kernel only writes are filled with poison, the others are copied."""
    copies = {name: array.copy(order="K") for name, array in arrays.items()}
    for a in kernel.arrays:
        if a.intent in ("out", "temp"):
            copies[a.name].fill(poison(a.type.name))
    return copies


def work_space(argument: Argument, params: Mapping[str, int]) -> NDArray[Any]:
    """Memory for the copies that threads make of an array (`Argument.work_bytes`)."""
    assert argument.type is not None
    return np.full(argument.shape(params), poison(argument.type.name), STORAGE[argument.type.name])


def _filled(
    array: Array,
    params: Mapping[str, int],
    rng: np.random.Generator,
    special: str | None,
    exact: bool,
    *,
    uneven: bool,
) -> NDArray[Any]:
    shape = tuple(d.evaluate(params) for d in array.dims) or (1,)
    order: Any = "F" if array.column_major else "C"
    if array.intent in ("out", "temp"):
        return np.full(shape, poison(array.type.name), STORAGE[array.type.name], order=order)
    few = exact or array.type.name in ("f16", "bf16", "f8")
    real = _numbers(array, shape, rng, special, few)
    if array.type.kind == "complex":
        real = real + 1j * _numbers(array, shape, rng, None, few)
    if special == "diagonal":
        diagonal = np.zeros(shape)
        along = np.arange(min(shape))
        diagonal[(along,) * len(shape)] = 2.0 ** np.ceil(np.log2(max(shape) + 1))
        real = real + (diagonal.astype(np.int64) if array.type.kind == "int" else diagonal)
    if uneven and special != "diagonal" and array.type.name in ("f32", "f64", "c64", "c128"):
        real = real * 2.0 ** rng.integers(-6, 7, shape)
    return np.asarray(encode(real, array.type.name), order=order)


def _numbers(
    array: Array, shape: tuple[int, ...], rng: np.random.Generator, special: str | None, few: bool
) -> NDArray[Any]:
    if array.type.name in ("i8", "i16"):
        return rng.choice(np.array([1, 2] if special else [-2, -1, 1, 2]), shape)
    if array.type.kind == "int":
        return rng.integers(1, 10, shape)
    if few:
        choices = [0.5, 1.0, 2.0] if special == "positive" else [-1.0, -0.5, 0.5, 1.0]
        return rng.choice(np.array(choices), shape)
    return rng.uniform(0.5, 1.5, shape) if special == "positive" else rng.uniform(-1.0, 1.0, shape)


def _denominators(kernel: Kernel) -> dict[str, str]:
    """`positive` or `diagonal` for arrays and scalars that a kernel divides by or takes the root or logarithm of."""
    found: dict[str, str] = {}
    for e in _divisors(kernel.body, {}):
        if isinstance(e, ScalarRef):
            found[e.array.name] = "positive"
        else:
            diagonal = len(set(e.subscripts)) < len(e.subscripts)
            found[e.array.name] = "diagonal" if diagonal and found.get(e.array.name) != "positive" else "positive"
    return found


def _divisors(nodes: Sequence[Node], lets: dict[str, Expr]) -> Iterator[Element | ScalarRef]:
    for node in nodes:
        match node:
            case For(body=body):
                yield from _divisors(body, lets)
            case If(_, then, orelse):
                yield from _divisors(then, lets)
                yield from _divisors(orelse, lets)
            case Let(name=name, value=value):
                lets[name] = value
                yield from _in(value, lets)
            case Assign(_, op, value):
                yield from _in(value, lets)
                if op == "/=":
                    yield from _operands(value, lets, 0)


def _in(e: Expr, lets: Mapping[str, Expr]) -> Iterator[Element | ScalarRef]:
    match e:
        case Unary(_, operand):
            yield from _in(operand, lets)
        case Binary(op, left, right):
            yield from _in(left, lets)
            yield from _in(right, lets)
            if op == "/":
                yield from _operands(right, lets, 0)
        case Call(function, args):
            for a in args:
                yield from _in(a, lets)
                if FUNCTIONS[function].positive:
                    yield from _operands(a, lets, 0)
        case Select(condition, if_true, if_false):
            for part in (condition.left, condition.right, if_true, if_false):
                yield from _in(part, lets)


def _operands(e: Expr, lets: Mapping[str, Expr], depth: int) -> Iterator[Element | ScalarRef]:
    """The operands that a divisor is computed from, through `let`s."""
    match e:
        case ScalarRef():
            yield e
        case LetRef(name):
            if name in lets and depth < 16:
                yield from _operands(lets[name], lets, depth + 1)
        case Unary(_, operand):
            yield from _operands(operand, lets, depth)
        case Binary(_, left, right):
            yield from _operands(left, lets, depth)
            yield from _operands(right, lets, depth)
        case Call(_, args):
            for a in args:
                yield from _operands(a, lets, depth)
        case _:
            yield from elements(e)

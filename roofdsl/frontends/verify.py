"""Whether a kernel computes what the user's own function does: both executed on the same random data.

A front end gives a way to run the user's function and one to run the generated code of the kernel that it has read; the
sizes, the data and the comparison are chosen here. Both follow the same order of operations, so the results are the
same in every bit, unless the front end says that an operation is rounded otherwise (C's `fma`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record
from roofdsl.loops.indirect import index_arrays
from roofdsl.loops.integers import Const, IntExpr
from roofdsl.loops.model import Array, Assign, Element, For, If, Kernel, Let, Read

Arrays = Mapping[str, Any]
"""numpy arrays by the kernel's names; scalars have one element, stored as `roofdsl.codegen.storage` says."""


class Case(Record):
    """One execution: the values of the parameters, and the data that both functions begin with."""

    sizes: Mapping[str, int]
    arrays: Arrays


class Outcome(Record):
    """The results of both: `ours`, and `theirs` by how the user's function was run (`gcc -O2`)."""

    ours: Arrays
    theirs: Mapping[str, Arrays]


class Verified(Record):
    """The result of `--verify` for one kernel. `ways`: how the user's function was run; `exact`: whether the results
    agree in every bit.
    """

    kernel: str
    sizes: tuple[tuple[tuple[str, int], ...], ...]
    ways: tuple[str, ...]
    compared: tuple[str, ...]
    exact: bool

    def __str__(self) -> str:
        at = "; ".join(", ".join(f"{n} = {v}" for n, v in sizes) or "its sizes" for sizes in self.sizes)
        how = "bitwise identical to" if self.exact else "the same up to rounding as"
        what = ", ".join(self.compared)
        return f"{self.kernel}: verified: {what} {how} your function's ({' and '.join(self.ways)}), at {at}"


Execute = Callable[[Sequence[Case]], Sequence[Outcome]]
"""Runs the user's function and the generated code on each case. Raises CommandError where one does not run."""

_SIZES = (
    (6, 4, 5, 7, 3), (1, 1, 1, 1, 1), (9, 13, 11, 8, 10), (2, 3, 2, 3, 2), (24, 8, 4, 2, 2), (4, 8, 16, 32, 32),
    (16, 16, 16, 16, 16), (40, 24, 32, 56, 48), (64, 64, 64, 64, 64), (128, 64, 32, 16, 8),
)  # fmt: skip
"""Values of the parameters that are tried in this order: unequal ones first, then some that divide each other."""

_MOST_CASES = 3
_MOST_STEPS = 300_000
_MOST_BYTES = 2**31
_TOLERANCE = 64
"""Units in the last place of the largest number, where operations are not rounded alike."""


def verify(kernel: Kernel, execute: Execute, *, exact: bool = True) -> Verified:
    """Compares the kernel with the user's function at some small sizes.

    Raises CommandError if a result differs, with the first element that does, and if no sizes can be chosen.
    """
    chosen = sizes_of(kernel)
    cases = [Case(sizes, data(kernel, sizes, seed)) for seed, sizes in enumerate(chosen)]
    outcomes = execute(cases)
    for case, outcome in zip(cases, outcomes, strict=True):
        for way, theirs in outcome.theirs.items():
            for array in (a for a in kernel.arrays if a.intent != "temp" and a.name in theirs):
                found = _difference(array, outcome.ours, theirs, exact)
                if found is not None:
                    raise _differs(found, case, way, narrow=way == "Python" and _is_narrow(kernel))
    compared = tuple(a.name for a in kernel.arrays if a.intent in ("out", "inout"))
    return Verified(kernel.name, tuple(tuple(s.items()) for s in chosen), tuple(outcomes[0].theirs), compared, exact)


class _Difference(Record):
    """The first element that differs, as text."""

    element: str
    ours: str
    theirs: str


def _difference(array: Array, ours: Arrays, theirs: Arrays, exact: bool) -> _Difference | None:
    import numpy as np

    from roofdsl.codegen.storage import UNIT, decode

    type_ = array.type.name
    mine, other = decode(ours[array.name], type_), decode(theirs[array.name], type_)
    same = (mine == other) | (np.isnan(mine) & np.isnan(other))
    if not exact and type_ in UNIT:
        largest = np.max(np.abs(other), where=~np.isnan(other), initial=0)
        same |= np.abs(mine - other) <= _TOLERANCE * UNIT[type_] * (largest + 1)
    if same.all():
        return None
    place = tuple(int(k) for k in np.argwhere(~same)[0])
    element = f"{array.name}[{', '.join(map(str, place))}]" if array.dims else array.name
    return _Difference(element, str(mine[place]), str(other[place]))


def _is_narrow(kernel: Kernel) -> bool:
    return any(array.type.name in ("f32", "f16") for array in kernel.arrays)


def _differs(found: _Difference, case: Case, way: str, *, narrow: bool) -> CommandError:
    at = ", ".join(f"{n} = {v}" for n, v in case.sizes.items())
    where = f" at {at}" if at else ""
    message = f"`{found.element}` is {found.theirs} in your function by {way}, and {found.ours} in the kernel{where}"
    why = "pointers that overlap and sizes that are not positive do this"
    if narrow:
        why = "numba computes `0.1 * x[i]` of an f32 array in f64, unlike numpy: write `np.float32(0.1)`"
    return CommandError(message, f"{why}; otherwise this is a bug in roofdsl, please report it")


# ---- sizes ----


def sizes_of(kernel: Kernel) -> list[dict[str, int]]:
    """Up to _MOST_CASES small values of the parameters for which assumptions hold and no subscript leaves its array in
    the first _MOST_STEPS statements and iterations.

    Raises CommandError if none of the values tried are such, and for arrays that are too large.
    """
    found: list[dict[str, int]] = []
    for values in _SIZES:
        sizes = {p.name: values[k % len(values)] for k, p in enumerate(kernel.parameters)}
        if sizes not in found and len(found) < _MOST_CASES and _fits(kernel, sizes):
            found.append(sizes)
        if not kernel.parameters:
            break
    if not found:
        help = "it needs sizes at which every assumption holds and every subscript stays in its array"
        raise CommandError(f"no small sizes were found at which kernel {kernel.name} can be executed", help)
    return found


def _fits(kernel: Kernel, sizes: Mapping[str, int]) -> bool:
    if not all(condition.holds(sizes) for condition in kernel.assumptions):
        return False
    total = 0
    for array in kernel.arrays:
        elements = 1
        for dim in array.dims:
            extent = dim.evaluate(sizes)
            if extent < 1:
                return False
            elements *= extent
        total += elements * array.type.bytes
    if total > _MOST_BYTES:
        raise CommandError(
            f"kernel {kernel.name} has {total / 2**30:.3g} GiB of arrays, too much to execute it here",
            "define smaller sizes, such as -D N=40",
        )
    return _Walk(sizes, _indices(kernel, sizes)).stays(kernel.body)


def _indices(kernel: Kernel, sizes: Mapping[str, int]) -> Arrays:
    """Values of the index arrays that the declarations allow."""
    names = index_arrays(kernel)
    if not names:
        return {}
    from roofdsl.codegen.inputs import random_inputs

    return {name: values for name, values in random_inputs(kernel, sizes).items() if name in names}


class _Walk:
    """Walks through an execution until a subscript leaves its array, or until enough of it has been seen."""

    def __init__(self, sizes: Mapping[str, int], indices: Arrays) -> None:
        self.env, self.indices = dict(sizes), indices
        self.steps = 0

    def stays(self, nodes: Sequence[Any]) -> bool:
        return all(self._node(node) for node in nodes)

    def _node(self, node: Any) -> bool:
        self.steps += 1
        if self.steps > _MOST_STEPS:
            return True
        match node:
            case For(var, start, stop, step):
                for value in range(self._value(start), self._value(stop), self._value(step)):
                    self.env[var] = value
                    if not self.stays(node.body):
                        return False
                    if self.steps > _MOST_STEPS:
                        return True
                return True
            case If():
                taken = node.then if node.condition.holds(self.env) else node.orelse
                return self.stays(taken)
            case Assign() | Let():
                return self._elements(node)
            case _:
                return True

    def _value(self, e: IntExpr) -> int:
        if not self.indices:
            return e.evaluate(self.env)
        parts = tuple(map(self._value, e.args()))
        if isinstance(e, Read):
            return int(self.indices[e.element.array.name][parts])
        return e.rebuild(tuple(map(Const, parts))).evaluate(self.env)

    def _elements(self, statement: Any) -> bool:
        from roofdsl.loops.accesses import elements

        parts: list[Any] = [statement.value]
        if isinstance(statement, Assign) and isinstance(statement.target, Element):
            parts.append(statement.target)
        for element in (e for part in parts for e in elements(part)):
            for subscript, extent in zip(element.subscripts, element.array.dims, strict=True):
                if not 0 <= self._value(subscript) < extent.evaluate(self.env):
                    return False
        return True


# ---- data ----


def data(kernel: Kernel, sizes: Mapping[str, int], seed: int) -> dict[str, Any]:
    """Random data for every array and scalar, including those that are only written: elements that are not written stay
    as they are.
    """
    import numpy as np

    from roofdsl.codegen.inputs import random_inputs
    from roofdsl.codegen.storage import encode

    found = dict(random_inputs(kernel, sizes, seed, uneven=seed > 0))
    rng = np.random.default_rng(seed)
    indices = index_arrays(kernel)
    for array in kernel.arrays:
        if array.name in indices:
            continue
        whole = array.type.kind == "int"
        if array.intent in ("out", "temp") or (whole and seed > 0):
            shape = found[array.name].shape
            numbers = rng.integers(-9, 10, shape) if whole else rng.uniform(-2, 2, shape)
            found[array.name] = encode(np.asarray(numbers), array.type.name)
    return found

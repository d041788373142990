"""Does a student's kernel compute what the reference does? The two are compared on random data that nobody knows
beforehand.

The permitted difference depends only on the reference, on the bound on its rounding errors. The student's kernel runs
in higher precision than its types have, so its own rounding cannot hide a difference. A separate condition is that in
its own types, it would not round much worse than the reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Array, Assign, Binary, Call, Expr, For, If, Kernel, Let, Node, Select, Unary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from roofdsl.codegen.reference import Outcome

SECONDS = 20.0
"""The time limit in seconds for one run of a student's kernel."""

_ROUNDINGS = 8
"""The difference that is permitted beyond four times the reference's error bound, for another order of operations: this
many roundings of the array's largest value.
"""

_MOST_LOST = 1000
"""The permitted ratio of the student's rounding bound to the permitted difference. It allows sums in another order, but
not types of less precision."""

_MOST_RELATIVE_ERROR = 1e-3
"""An element is compared only if the reference's error bound is at most this share of the array's largest value."""

_FEW_BITS = ("f16", "bf16", "f8", "tf32")
"""The types whose random data have so few bits that sums of them are exact (`codegen.inputs`)."""


class Differs(Exception):
    """Raised with the reason why a kernel does not pass; the message is for the student."""


def same_results(kernel: Kernel, reference: Kernel, at: Mapping[str, int], seed: int) -> None:
    """Compare both on the same data. If values are chosen (`min`, `max`, `select`), compare them also on data of uneven
    magnitude, in which each array is decisive somewhere. Raises Differs for the first difference.

    Raises CommandError if no result in one of the reference's arrays is accurate enough to decide.
    """
    from roofdsl.codegen.inputs import random_inputs
    from roofdsl.codegen.reference import TakesTooLong
    from roofdsl.codegen.reference import reference as run
    from roofdsl.loops.transform import apply

    kernel = apply(kernel)  # in the order in which it is counted
    own = {p.name: at[p.name] for p in kernel.parameters}
    sizes = tuple((p.name, at[p.name]) for p in reference.parameters)
    for uneven in (False, True) if decides(reference.body) or decides(kernel.body) else (False,):
        inputs, want = expected(reference, sizes, seed, uneven=uneven)
        try:
            given = random_inputs(kernel, own, seed)
        except CommandError as error:  # the reference's arrays fit in memory, so the student's are larger
            raise Differs(f"It cannot be run: {error.message}.") from None
        given |= {a.name: inputs[a.name] for a in kernel.arrays if a.intent in ("in", "inout")}
        try:
            got = run(kernel, own, given, limit_s=SECONDS)
        except TakesTooLong:
            raise Differs("It takes too long to run: its loops do far more than the original kernel.") from None
        except IndexError as error:
            raise Differs(f"{str(error)[:1].upper()}{str(error)[1:]}.") from None
        for a in reference.arrays:
            if a.intent in ("out", "inout"):
                before = inputs[a.name] if a.intent == "inout" else None
                _same_array(a, want, got, before)


def decides(nodes: Sequence[Node]) -> bool:
    """Whether statements contain minima, maxima or a choice between values."""
    for node in nodes:
        match node:
            case For(body=body):
                found = decides(body)
            case If(_, then, orelse):
                found = decides(then) or decides(orelse)
            case Assign(_, op, value):
                found = op in ("min=", "max=") or _chooses(value)
            case Let(value=value):
                found = _chooses(value)
            case _:
                found = False
        if found:
            return True
    return False


def _chooses(e: Expr) -> bool:
    match e:
        case Select():
            return True
        case Call(function, args):
            return function in ("min", "max") or any(map(_chooses, args))
        case Unary(_, operand):
            return _chooses(operand)
        case Binary(_, left, right):
            return _chooses(left) or _chooses(right)
    return False


def _same_array(array: Array, want: Outcome, got: Outcome, before: NDArray[Any] | None) -> None:
    """Raises Differs if an array of the student's kernel differs from the reference's."""
    import numpy as np

    from roofdsl.codegen.storage import decode

    name, type_name = array.name, array.type.name
    right, written = np.asarray(want.values[name]), np.asarray(want.written[name])
    found, touched = np.asarray(got.values[name]), np.asarray(got.written[name])
    if before is not None:
        kept = np.reshape(decode(before, type_name), right.shape)
        changed = touched & ~written & ~_equal(found, kept)
    else:
        changed = touched & ~written
    if changed.any():
        raise Differs(f"It changes {name}{_place(changed)}, which the original kernel leaves unchanged.")
    room, told = allowed(want, name, type_name)
    if before is None and (missed := written & ~touched).any():
        raise Differs(f"It does not compute the same result: {name}{_place(missed)} is never written.")
    with np.errstate(all="ignore"):
        near = (np.abs(found - right) <= room) | _equal(found, right)
        coarse = ~(np.asarray(got.errors[name]) <= _MOST_LOST * room)
    wrong = ~near & written & told
    if wrong.any():
        raise Differs(f"It does not compute the same result: {name}{_place(wrong)} differs on random data.")
    lost = coarse & written & told
    if lost.any():
        raise Differs(f"It loses accuracy: {name}{_place(lost)} is rounded far more than in the original kernel.")


def _equal(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    import numpy as np

    return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)))


def _place(where: NDArray[np.bool_]) -> str:
    import numpy as np

    return "".join(f"[{', '.join(map(str, k))}]" for k in np.argwhere(where)[:1]) if where.ndim else ""


def allowed(want: Outcome, name: str, type_name: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The permitted difference of each element, and a mask of the elements whose reference is accurate enough."""
    import numpy as np

    from roofdsl.codegen.storage import UNIT

    right, error = np.asarray(want.values[name]), np.asarray(want.errors[name])
    with np.errstate(all="ignore"):
        known = np.isfinite(error) & np.isfinite(right)
        largest = np.max(np.abs(right), initial=0.0, where=known & np.asarray(want.written[name]))
        few_bits = type_name in _FEW_BITS
        room = 4 * error + (0.0 if few_bits else _ROUNDINGS * UNIT.get(type_name, 0.0) * largest)
        told = known & ((error == 0) | (error <= _MOST_RELATIVE_ERROR * largest) | few_bits)
    return np.where(known, room, 0.0), np.asarray(told)


@cache
def expected(
    reference: Kernel, at: tuple[tuple[str, int], ...], seed: int, *, uneven: bool
) -> tuple[Mapping[str, Any], Outcome]:
    """The random data on which kernels are compared, and the reference's results for them.

    Raises CommandError if, because of rounding, none of the results in one of the reference's arrays can be compared.
    """
    from roofdsl.codegen.inputs import random_inputs
    from roofdsl.codegen.reference import reference as run

    inputs = random_inputs(reference, dict(at), seed, uneven=uneven)
    found = run(reference, dict(at), inputs)
    for a in reference.arrays:
        if not uneven and a.intent in ("out", "inout") and found.written[a.name].any():
            _, told = allowed(found, a.name, a.type.name)
            if not (told & found.written[a.name]).any():
                raise CommandError(
                    f"kernel {reference.name}: rounding may change {a.name} so much that nothing can be compared",
                    "let the exercise's reference do less, or use a type with more digits",
                )
    return inputs, found

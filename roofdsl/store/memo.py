"""`recall`: return a stored result, or compute it now and keep it for later."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from roofdsl import __version__, reproducibility
from roofdsl.lang.cache_folder import folder, is_off
from roofdsl.lang.record import Record
from roofdsl.store import entries
from roofdsl.store.codec import Damaged, NotStorable, meaning, read, write

T = TypeVar("T")

LEAST_S = 0.05
"""Results that took less processor time are not kept."""

STAGES = ("lang", "loops", "matrices", "sets", "formulas", "checks", "counts", "bounds", "simulate", "store")
"""The packages whose source determines the results. How a result is presented (`tell`) is not among them."""

FOR_MACHINES = ("machine", "codegen", "incore", "predict", "advise", "sol")
"""The packages whose source determines a result for a machine, in addition."""

MOST_MEANINGS = 32
"""The number of kernels whose meanings are remembered."""

LIBRARIES = ("islpy_barvinok", "islpy", "sympy", "numba", "numpy")
"""The libraries whose versions are part of every key: another version may give another result."""

CLOCK_S = 24 * 3600
"""How long a result is kept if a time limit decided it: there may be more time on another day."""


def recall(what: str, kernel: Record, options: tuple[object, ...], compute: Callable[[], T]) -> T:
    """The value of `compute`, which depends only on the meaning of `kernel` and on `options`; from the cache if
    possible.

    what: the name of the function. Results are records, exact numbers and plain containers (`store.codec`); `kernel`
    itself may occur in them and is then this very object. Other results are computed every time, and so are results
    that took little time, ended in an exception or depended on chance (`reproducibility`). Raises what `compute`
    raises.
    """
    asked = question(what, kernel, options)
    if asked is None:
        return compute()
    found = find(asked)
    if found is not None:
        return found[0]  # type: ignore[return-value]
    begun, before = spent_s(), reproducibility.seen()
    result = compute()
    decided = reproducibility.since(before)
    if spent_s() - begun >= LEAST_S and not decided.chance:
        keep(asked, result, for_a_day=bool(decided.clock))
    return result


class Question(NamedTuple):
    """What an entry answers: where it is, and everything that decides the answer."""

    root: Path
    key: str
    meant: str
    kernel: Record


def question(what: str, kernel: Record, options: tuple[object, ...], further: tuple[str, ...] = ()) -> Question | None:
    """The question that `recall` asks; None if the cache is off or has no folder, if our source is not in plain files,
    or if the question cannot be written down.

    further: the packages outside STAGES whose source determines the answer, too.
    """
    root = None if is_off() else folder()
    made_by = None if root is None else environment()
    if made_by is not None and further:
        more = environment(further)
        made_by = None if more is None else f"{made_by}\n{more}"
    if root is None or made_by is None:
        return None
    try:
        meant = "\n".join((made_by, what, meaning(options), meaning_of(kernel)))
    except (NotStorable, RecursionError):
        return None
    return Question(root, _key(meant), meant, kernel)


def find(asked: Question) -> tuple[object] | None:
    """The stored answer, in a tuple; None if there is none."""
    return _found(entries.get(asked.root, asked.key), asked.meant, {"kernel": asked.kernel})


def keep(asked: Question, result: object, *, for_a_day: bool) -> None:
    """Keep an answer, unless it cannot be written."""
    until = time.time() + CLOCK_S if for_a_day else None
    _keep(asked.root, asked.key, {"meaning": asked.meant, "until": until}, result, {"kernel": asked.kernel})


_meant: dict[int, tuple[Record, str]] = {}
"""The meanings of the last kernels, by their identity; the kernels are kept alive, so that no other gets the same
identity.
"""


def meaning_of(kernel: Record) -> str:
    """`meaning`, written once for the same object: a command asks for several results of one kernel."""
    found = _meant.get(id(kernel))
    if found is None:
        if len(_meant) >= MOST_MEANINGS:
            del _meant[next(iter(_meant))]
        found = _meant[id(kernel)] = kernel, meaning(kernel)
    return found[1]


def _found(content: object, meant: str, known: dict[str, object]) -> tuple[object] | None:
    """The result in an entry, in a tuple; None if there is none, or it has another meaning or has expired."""
    if not isinstance(content, dict) or content.get("meaning") != meant:
        return None
    until = content.get("until")
    if until is not None and not (isinstance(until, float) and time.time() < until <= time.time() + CLOCK_S):
        return None
    try:
        found = read(content.get("result"), known)
    except Damaged:
        return None
    if until is not None:
        reproducibility.decided_by_clock()  # what is derived from it depends on the clock, too
    return (found,)


def _keep(root: Path, key: str, about: dict[str, object], result: object, known: dict[str, object]) -> None:
    try:
        table = write(result, known)
        if write(read(table, known), known) != table:  # a class whose objects are not determined by its fields
            return
    except (NotStorable, Damaged, RecursionError):
        return
    entries.put(root, key, {**about, "result": table})


def _key(text: str) -> str:
    from hashlib import sha256

    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def spent_s() -> float:
    """Processor time of this process and of its children that have ended."""
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system


@cache
def environment(stages: tuple[str, ...] = STAGES) -> str | None:
    """Everything that results depend on besides their input: the source of our stages, Python and the libraries; None
    if our source is not in plain files.
    """
    from hashlib import sha256

    package = Path(__file__).parent.parent
    digest = sha256()
    try:
        for stage in stages:
            for path in _sources(package / stage):
                digest.update(f"{path.relative_to(package).as_posix()}\n".encode())
                with path.open("rb", buffering=0) as file:
                    digest.update(sha256(file.readall()).digest())
    except OSError:
        return None
    versions = ", ".join(map(_version, LIBRARIES))
    return f"roofdsl {__version__} {digest.hexdigest()}\npython {sys.version}\n{versions}"


def _sources(folder: Path) -> Iterator[Path]:
    """The Python files in a folder and its subfolders, in an order that is always the same. Raises OSError."""
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            yield folder / name
        elif "." not in name and name != "__pycache__":
            yield from _sources(folder / name)


def _version(library: str) -> str:
    """The name and version of an installed library from its metadata folder; importlib.metadata would take 70 ms."""
    for place in sys.path:
        found = _metadata(place).get(library)
        if found is not None:
            return found
    return f"{library} is not installed"


@cache
def _metadata(place: str) -> dict[str, str]:
    """name -> `name-2.0.dist-info`, for the metadata folders in a folder of libraries."""
    try:
        listing = os.listdir(place or ".")
    except OSError:
        return {}
    return {each.partition("-")[0]: each for each in listing if each.endswith(".dist-info")}

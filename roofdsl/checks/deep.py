"""The checks of `check --deep`, which need integer sets, for all sizes that a kernel's assumptions allow.

They test that subscripts are within bounds, that `tile`, `order` and `parallel for` are legal, that stores which bypass
the caches are next to each other, and that intents match actual use (docs/language.md, "Diagnostics"). An error that
names sizes is confirmed by evaluating the kernel's own expressions at these sizes. Whatever the analysis cannot decide
is a warning, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from roofdsl import budget
from roofdsl.lang.diagnostics import Diagnostic, InputError
from roofdsl.loops.enclosing import enclosing
from roofdsl.loops.indirect import is_indirect
from roofdsl.loops.model import Kernel
from roofdsl.store.in_process import in_process
from roofdsl.store.memo import recall

THOROUGH = 100_000_000
"""Integer-set operations for one kind of check of `deep_check`: as many as a command's budget has time for, or about a
minute's worth without a budget (`sets.library`).
"""

QUICK = 20_000_000
"""Integer-set operations (about ten seconds) for one kind of check of `require_legal`."""

KEPT = 256
"""The maximum number of legal kernels that a long-running process remembers."""


def deep_check(kernel: Kernel) -> list[Diagnostic]:
    """Every finding about a kernel as written, directives not yet applied, in the order of the text."""
    return _findings(kernel, THOROUGH)


def require_legal(kernel: Kernel) -> None:
    """Raises InputError with the errors of a kernel, if it has any. What cannot be decided quickly is accepted."""
    _is_legal(kernel)


@in_process(KEPT)
def _is_legal(kernel: Kernel) -> None:
    """`require_legal`, once for all sizes that a process asks about."""
    recall("legal", kernel, (), lambda: _require_legal(kernel))


def _require_legal(kernel: Kernel) -> None:
    with budget.part(4):  # numbers and forms come after it
        errors = [d for d in _findings(kernel, QUICK) if d.severity == "error"]
    if errors:
        raise InputError(kernel.source, errors)


def _findings(kernel: Kernel, operations: int) -> list[Diagnostic]:
    if is_indirect(kernel):
        return _for_any_data(kernel, operations)
    from roofdsl.checks.intents import check_intents
    from roofdsl.checks.legality import check_directives, check_parallel
    from roofdsl.checks.streams import check_streams
    from roofdsl.checks.subscripts import check_bounds

    checks: tuple[tuple[str, Callable[[Kernel], list[Diagnostic]]], ...] = (
        ("subscripts", check_bounds),
        ("directives", check_directives),
        ("parallel loops", check_parallel),
        ("stores that bypass the caches", check_streams),
        ("intents", check_intents),
    )
    found: list[Diagnostic] = []
    for k, (what, check) in enumerate(checks):
        with budget.part(len(checks) - k):
            found += _guarded(kernel, what, check, operations)
    return sorted(dict.fromkeys(found), key=lambda d: (d.span.line, d.span.column))


def _for_any_data(kernel: Kernel, operations: int) -> list[Diagnostic]:
    """The findings about a kernel with index arrays, whatever their data.

    An element outside its array is an error if some data that the declarations allow lead to it. Whether two accesses
    meet depends on the data, so other errors become warnings. Unused intents are not reported.
    """
    affine = enclosing(kernel)
    found = []
    for d in _findings(affine.kernel, operations):
        message = d.message
        for name, meaning in affine.meaning.items():
            message = re.sub(rf"\b{name}\b", meaning, message)
        if d.severity == "error" and d.code != "subscript-bounds":
            found.append(Diagnostic("unchecked", f"the data decide whether {message}", d.span, "", "warning"))
        elif d.code != "intent-unused":
            help = "declare the index array with a smaller `index(...)`, or the array with a larger dimension"
            element = d.message.partition(" leaves ")[0]
            data = any(re.search(rf"\b{name}\b", element) for name in affine.meaning)
            found.append(Diagnostic(d.code, message, d.span, help if data else d.help, d.severity))
    return found


def _guarded(
    kernel: Kernel, what: str, check: Callable[[Kernel], list[Diagnostic]], operations: int
) -> list[Diagnostic]:
    from roofdsl.sets.library import LibraryFailure, TooHard, limited

    try:
        with limited(f"the check of the {what} of kernel {kernel.name}", operations):
            return check(kernel)
    except InputError as error:  # directives that do not fit the loops
        return error.diagnostics
    except (LibraryFailure, TooHard, RecursionError) as error:
        reason = str(error).split("\n", maxsplit=1)[0]
        message = f"the {what} of kernel `{kernel.name}` are not checked: {reason}"
        return [Diagnostic("unchecked", message, kernel.span, "", "warning")]

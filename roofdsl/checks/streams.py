"""Whether stores that bypass the caches fill whole lines: only then does the memory get each line at once."""

from __future__ import annotations

from roofdsl.lang.diagnostics import Diagnostic
from roofdsl.loops.model import Kernel
from roofdsl.loops.streams import apart, has_streams
from roofdsl.loops.transform import apply


def check_streams(kernel: Kernel) -> list[Diagnostic]:
    """An error at each `stream` whose stores are not neighbors along the innermost loop, with directives applied."""
    if not has_streams(kernel):
        return []
    help = "leave out `stream`, or let the innermost loop run along neighboring elements and store each of them"
    return [
        Diagnostic("stream-apart", f"the stores to `{a.target.array.name}` fill no lines: {a.why}", a.target.span, help)
        for a in apart(apply(kernel))
    ]

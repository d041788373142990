"""All accesses of a kernel in order, as numbers of lines: for replacement that knows the future."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from roofdsl.simulate.compiled_kernel import Program, compile_kernel
from roofdsl.simulate.lru_traffic import DEFAULT_MEMORY_BYTES, Progress, check_inside

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CHUNK = 1 << 20
BYTES_PER_ACCESS = 9
"""Four for the line, four for its next use, and one for the set of next uses, which holds far fewer than all."""

MOST_KEPT = DEFAULT_MEMORY_BYTES // BYTES_PER_ACCESS

MOST_LINES = 1 << 30


@dataclass(frozen=True)
class Trace:
    """The accesses of one execution, those of each set together, each set in its order.

    accesses: twice the line's number, plus 1 for a write. next_use: where the line is accessed next, `NEVER` of
    `compiled_best` if not again. starts: where the accesses of each set begin, and the end. register_bytes: of all
    accesses, at their elements' sizes.
    """

    program: Program
    accesses: NDArray[np.int32]
    next_use: NDArray[np.int32]
    starts: NDArray[np.int64]
    register_bytes: int

    @property
    def lines(self) -> int:
        return self.program.lines

    def temporary(self) -> NDArray[np.bool_]:
        """Whether each line belongs to a `temp` array."""
        import numpy as np

        layouts = self.program.layouts
        is_temporary = np.array([a.array.intent == "temp" for a in layouts], dtype=np.bool_)  # also without arrays
        return np.repeat(is_temporary, [a.count for a in layouts])


def trace_of(
    kernel: Kernel,
    params: Mapping[str, int],
    line_bytes: int,
    *,
    sets: int = 1,
    bytes_per_line: int = 0,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    progress: Progress | None = None,
) -> Trace:
    """The accesses of `kernel`, with its directives applied, at `params`; arrays stand one after another.

    A line's set is its number modulo `sets`. `bytes_per_line`: the memory that the caller needs for each line.
    `progress` is called with the number of accesses so far. Raises CommandError for what `compile_kernel` refuses, an
    access outside its array, and a trace that needs more than `memory_bytes`.
    """
    import numpy as np

    from roofdsl.simulate.compiled_best import NEVER, find_next_uses, sort_by_set
    from roofdsl.simulate.walk import first_call

    program = compile_kernel(kernel, params, line_bytes)
    tables = program.lines * (bytes_per_line + 4)
    if program.lines > MOST_LINES or tables > memory_bytes:
        raise CommandError(
            f"the arrays of kernel {kernel.name} have {program.lines:,} lines, too many for the best replacement",
            f"its tables may take {memory_bytes:,} B; use smaller sizes or longer lines",
        )
    most = (memory_bytes - tables) // BYTES_PER_ACCESS
    accesses, register_bytes = accesses_in_order(program, kernel.name, most, progress)
    starts = np.zeros(sets + 2, dtype=np.int64)
    if sets == 1:
        starts[1:] = len(accesses)
    else:
        together = np.empty_like(accesses)
        with first_call(sort_by_set):
            sort_by_set(accesses, sets, starts, together)
        accesses = together
    next_use = np.empty_like(accesses)
    last = np.full(program.lines, NEVER, dtype=np.int32)
    with first_call(find_next_uses):
        find_next_uses(accesses, last, next_use)
    return Trace(program, accesses, next_use, starts[: sets + 1], register_bytes)


def too_many_to_keep(many: str) -> CommandError:
    """The error for a kernel with more accesses than the memory holds; `many` says how many."""
    what = f"{many}, and the best replacement keeps all of them in memory, since it looks ahead"
    return CommandError(what, "use smaller sizes")


def accesses_in_order(
    program: Program, name: str, most: int, progress: Progress | None = None
) -> tuple[NDArray[np.int32], int]:
    """(accesses as in `Trace`, as executed; their bytes). Raises CommandError beyond `most` accesses."""
    import numpy as np

    from roofdsl.simulate.compiled_best import write_trace
    from roofdsl.simulate.walk import RUNNING, STATUS, cursor_of, first_call, tables_of

    tables = tables_of(program, [a.first for a in program.layouts], [a.per_line for a in program.layouts])
    cursor = cursor_of(program)
    sizes = np.array([a.array.type.bytes for a in program.layouts], dtype=np.int64)
    room = max(CHUNK, 4 * max((count for _, count in program.groups), default=0))
    chunks: list[Any] = []
    total = volume = 0
    while cursor[7][STATUS] == RUNNING:
        chunk = np.empty(room, dtype=np.int32)
        with first_call(write_trace):
            made, moved = write_trace(tables, cursor, chunk, sizes)
        chunks.append(chunk[:made].copy() if made < room // 2 else chunk[:made])
        total, volume = total + made, volume + moved
        if total > most:
            raise too_many_to_keep(f"kernel {name} makes more than {most:,} accesses at these sizes")
        if progress is not None:
            progress(total)
    check_inside(cursor, program, name)
    return (np.concatenate(chunks) if chunks else np.empty(0, dtype=np.int32)), volume

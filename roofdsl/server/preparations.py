"""What a server prepares while nobody asks: imports, shipped files, one example of an answer.

The processes that answer calls are forked, and share what was prepared before the fork.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

EXAMPLE = "matmul", {"n": 20}, "v100"
"""A kernel, its sizes and a machine. Answering a question about them imports what the analyses import only at run time.
"""


def preparations() -> Iterator[bool]:
    """At each `next`, executes one step of at most about a second, and yields True."""
    for step in _steps():
        with suppress(Exception):  # a call that needs this will report what is wrong
            step()
        gc.freeze()  # searching these objects for garbage would copy their pages in the process of every call
        yield True


def _steps() -> Iterator[Callable[[], object]]:
    from roofdsl.machine.find import checked_file, shipped

    yield _import_analyses
    yield _load_simulator
    yield _import_growth
    yield _answer_example
    for kind in ("machines", "kernels", "polybench"):
        for path in shipped(kind).values():
            yield partial(checked_file, str(path))


def _import_analyses() -> None:
    import roofdsl.advise.advise
    import roofdsl.bounds.bound
    import roofdsl.checks.deep
    import roofdsl.counts.traffic_at
    import roofdsl.sol.answer
    import roofdsl.tell.sol  # noqa: F401
    from roofdsl.store.memo import FOR_MACHINES, environment

    environment()
    environment(FOR_MACHINES)


def _load_simulator() -> None:
    """Loads the simulator's compiled code from numba's cache."""
    from roofdsl.loops.load import kernel
    from roofdsl.machine.find import checked_file, find_model
    from roofdsl.simulate.lru_traffic import simulate_lru

    target = find_model(EXAMPLE[0])
    simulate_lru(kernel(checked_file(target.path), target.name), EXAMPLE[1], 1024, 64)


def _import_growth() -> None:
    """Rewrites the simulator's functions for blocks that grow, which long executions need: a third of a second."""
    import roofdsl.simulate.segment_growth  # noqa: F401


def _answer_example() -> None:
    from roofdsl.loops.load import kernel
    from roofdsl.machine.find import checked_file, find_model, load_machine
    from roofdsl.sol.answer import speed_of_light

    target = find_model(EXAMPLE[0])
    speed_of_light(kernel(checked_file(target.path), target.name), EXAMPLE[1], load_machine(EXAMPLE[2]))

"""A program that is executed repeatedly: the data that each of its launches still finds in the caches.

Each kernel has one set of arrays for each size. Between two launches on the same arrays, the other launches touch their
own. If they touch more than a strict LRU cache holds, nothing of the arrays is left. If nothing came in between, the
launch is like that of a kernel launched repeatedly (`Options.warm`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache, reduce
from operator import add

from roofdsl.lang.record import replace
from roofdsl.loops.model import Kernel
from roofdsl.loops.program_at_sizes import ProgramAt
from roofdsl.machine.model import Machine
from roofdsl.predict.energy import with_energy
from roofdsl.predict.expected_on_cores import timed_on_all_cores
from roofdsl.predict.kernel import composed_again, is_timed_by_core, predict
from roofdsl.predict.levels_in_turn import in_turn
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import Prediction

NOTE = "executed repeatedly: caches keep the data that the launches in between do not evict"


def steady_parts(
    at: ProgramAt,
    cold: Sequence[Prediction],
    machine: Machine,
    options: Options,
    unit_of: Callable[[Kernel], str | None],
) -> tuple[Prediction, ...]:
    """The sums over the launches of each of `at.launched`, if the program has been executed before.

    `cold`: the predictions of single launches with empty caches.
    """

    @cache
    def warm_launch(place: int, machine: Machine) -> Prediction:
        return launch(place, machine, warm=True)

    def launch(place: int, machine: Machine, *, warm: bool) -> Prediction:
        part = at.launched[place]
        asked = replace(options, warm=warm, unit=unit_of(part.kernel))
        return predict(part.kernel, dict(part.arguments), machine, asked)

    touched = [p.footprint_bytes or 0 for p in cold]
    holders = (*machine.caches, *(() if options.data is None else (machine.main_memory,)))
    holding: list[Counter[tuple[str, ...]]] = [Counter() for _ in at.launched]
    for place, between in gaps(at.order(), touched):
        holding[place][tuple(part.name for part in holders if between <= part.size_bytes)] += 1

    def mixed(place: int, names: tuple[str, ...]) -> Prediction:
        if len(names) == len(holders):
            warm = warm_launch(place, machine)
            return replace(warm, assumptions=(*warm.assumptions, NOTE))
        found = mixed_on(machine, place, names, cold[place])
        return with_energy(found, machine) if options.energy else found

    def mixed_on(machine: Machine, place: int, names: tuple[str, ...], cold: Prediction) -> Prediction:
        found, part = _mixed(cold, warm_launch(place, machine), set(names), machine), at.launched[place]
        if found.expected is None or found.expected.core is None:
            return found
        compiled = options.accesses == "compiled"
        if is_timed_by_core(machine, options):

            def by_one(one: Machine) -> Prediction:
                return mixed_on(one, place, names, launch(place, one, warm=False))

            values = dict(part.arguments)
            return timed_on_all_cores(found, part.kernel, values, machine, as_compiled=compiled, predicted=by_one)
        own = replace(options, warm=True, unit=unit_of(part.kernel))

        def held(cold: Prediction, warm: Prediction) -> Prediction:
            return _mixed(cold, warm, set(names), machine)

        return composed_again(found, part.kernel, dict(part.arguments), machine, own, held)

    parts = []
    for place in range(len(at.launched)):
        kinds = [(mixed(place, names) if names else cold[place]) * times for names, times in holding[place].items()]
        parts.append(reduce(add, kinds))
    return tuple(parts)


def gaps(order: Iterable[int], touched: Sequence[int]) -> Iterable[tuple[int, int]]:
    """(place, bytes touched since the last launch of this place), for each launch of one execution.

    The previous execution was the same, so the first launch of a place looks back into it. The bytes of launches of the
    same place count once.
    """
    again = list(order)
    recent = list(dict.fromkeys(reversed(again)))[::-1]  # places by their last launch, the latest at the end
    for place in again:
        since = recent[recent.index(place) + 1 :]
        yield place, sum(touched[other] for other in since)
        recent.remove(place)
        recent.append(place)


def _mixed(cold: Prediction, warm: Prediction, held_by: set[str], machine: Machine) -> Prediction:
    """The cold launch, but with the warm launch's bytes behind those levels that still hold its arrays. Its expected
    time is still that of the cold launch.
    """
    found = {level.name: level for level in warm.levels}
    levels = tuple(
        found[level.name] if level.nearer in held_by and level.name in found else level for level in cold.levels
    )
    mixed = replace(cold, levels=levels, in_turn=in_turn(levels, machine), assumptions=(*cold.assumptions, NOTE))
    single = (mixed.compute_s, *(level.time_s for level in levels), mixed.launch_s)
    return replace(mixed, bound_s=max(time for _, time in mixed.terms), no_overlap_s=sum(single[1:], single[0]))

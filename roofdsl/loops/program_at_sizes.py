"""A program at given sizes: its launches that differ, how often each runs, and the order in which they do.

`program_model` has programs in their parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from roofdsl.lang import tree
from roofdsl.lang.checked import CheckedFile, CheckedProgram
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.lang.source import Source
from roofdsl.loops.model import Kernel
from roofdsl.loops.parameter_values import check_complete, check_names
from roofdsl.loops.program_model import Exchange, LoweredProgram, Repeated, Step, program, require_launches


class Launched(Record):
    """`times` launches of a kernel at one size; `arguments` are the numbers of its parameters, in their order."""

    kernel: Kernel
    arguments: tuple[tuple[str, int], ...]
    times: int

    @property
    def parameters(self) -> tuple[tuple[str, int], ...]:
        """The values of all its parameters, `const` ones first, as predictions and measurements list them."""
        return (*self.kernel.constants, *self.arguments)


class Exchanged(Record):
    """`times` collectives of one array of `size_bytes` among `devices`."""

    step: tree.Collective
    source: Source
    size_bytes: int
    devices: int
    times: int

    @property
    def label(self) -> str:
        """`all_reduce Y`."""
        return f"{self.step.kind.text} {self.step.array.text}"


class ProgramAt(Record):
    """A program whose parameters are all numbers.

    launched: kernels with their sizes, each once, in the order of their first launch. steps: indices into `launched` in
    the order in which the launches run, with their repetitions. texts: the program and those it runs. exchanges: its
    collectives, in the order of their lines.
    """

    name: str
    parameters: tuple[tuple[str, int], ...]
    launched: tuple[Launched, ...]
    steps: tuple[int | RepeatedAt, ...]
    texts: tuple[CheckedProgram, ...]
    exchanges: tuple[Exchanged, ...] = ()

    @property
    def launches(self) -> int:
        return sum(part.times for part in self.launched)

    def order(self) -> Iterator[int]:
        """Indices into `launched`, launch by launch."""
        return _unrolled(self.steps)


class ProgramOf:
    """A program of a file, without sizes so far."""

    def __init__(self, checked: CheckedFile, name: str) -> None:
        self.checked, self.name = checked, name

    def at(self, settings: Mapping[str, int]) -> ProgramAt:
        """The program at these values of its parameters, and defaults; raises as `program_at`."""
        return program_at(self.checked, self.name, settings)


class RepeatedAt(Record):
    """Steps repeated `times` times."""

    times: int
    steps: tuple[int | RepeatedAt, ...]


def _unrolled(steps: Sequence[int | RepeatedAt]) -> Iterator[int]:
    for step in steps:
        if isinstance(step, int):
            yield step
        else:
            for _ in range(step.times):
                yield from _unrolled(step.steps)


def program_at(checked: CheckedFile, name: str, settings: Mapping[str, int]) -> ProgramAt:
    """The program of that name at `settings` and defaults.

    Raises CommandError for a parameter that is missing or unknown, a launch or collective with a number that is not
    positive, and a program that launches nothing; also what `program` raises.
    """
    lowered = program(checked, name, settings)
    sizes = program_sizes(checked, lowered, settings)
    places: dict[tuple[object, ...], int] = {}
    found: list[Launched] = []
    place_of: list[int] = []
    for launch in lowered.launches:
        arguments = {n: e.evaluate(sizes) for n, e in launch.arguments}
        wrong = next((n for n, v in arguments.items() if v < 1), None)
        times = launch.times.evaluate(sizes)
        if wrong is not None or times < 1:
            what = f"{wrong} = {arguments[wrong]}" if wrong is not None else f"{times} repetitions"
            raise CommandError(f"program {name} runs {launch.kernel.name} with {what} at these sizes")
        key = (launch.kernel.name, launch.kernel.constants, tuple(arguments.items()))
        # Launches that differ only in their place in the program have the same counts, so they are one with their sum.
        place = places.setdefault(key, len(found))
        if place == len(found):
            found.append(Launched(launch.kernel, tuple(arguments.items()), times))
        else:
            found[place] = replace(found[place], times=found[place].times + times)
        place_of.append(place)
    require_launches(lowered)

    def numbered(steps: Sequence[Step]) -> tuple[int | RepeatedAt, ...]:
        return tuple(
            RepeatedAt(s.times.evaluate(sizes), numbered(s.steps)) if isinstance(s, Repeated) else place_of[s]
            for s in steps
        )

    given = tuple((n, v) for n, v in settings.items() if n not in sizes)  # numbers of `const` parameters
    texts = tuple(checked.programs[n] for n in _programs(checked, name))
    exchanges = tuple(_exchanged(name, e, sizes) for e in lowered.exchanges)
    return ProgramAt(name, (*sizes.items(), *given), tuple(found), numbered(lowered.steps), texts, exchanges)


def _exchanged(name: str, e: Exchange, sizes: Mapping[str, int]) -> Exchanged:
    dims = [d.evaluate(sizes) for d in e.dims]
    devices, times = e.devices.evaluate(sizes), e.times.evaluate(sizes)
    wrong = next((what for what, value in (("devices", devices), ("repetitions", times)) if value < 1), None)
    if wrong is None and min(dims) >= 1:
        return Exchanged(e.step, e.source, prod(dims) * e.type.bytes, devices, times)
    count = devices if wrong == "devices" else times
    what = f"{count} {wrong}" if wrong else f"a dimension of {min(dims)}"
    raise CommandError(f"program {name} has a collective of {e.step.array.text} with {what} at these sizes")


def program_sizes(
    checked: CheckedFile, lowered: LoweredProgram, settings: Mapping[str, int], free: str | None = None
) -> dict[str, int]:
    """The values of all parameters except `free`. Raises CommandError for one that is missing or unknown."""
    whose = f"program {lowered.name}"
    check_names(whose, [*settings, *([free] if free is not None else [])], checked.programs[lowered.name].names)
    values = {p.name: settings.get(p.name, p.default) for p in lowered.parameters if p.name != free}
    known = {n: v for n, v in values.items() if v is not None}
    check_complete(whose, values, known)
    return known


def _programs(checked: CheckedFile, name: str) -> list[str]:
    """The program and all those it runs, each once."""
    found = [name]
    for each in found:
        body: Sequence[tree.Step] = checked.programs[each].tree.body
        found += dict.fromkeys(
            step.kernel.text
            for step in tree.runs(body)
            if step.kernel.text in checked.programs and step.kernel.text not in found
        )
    return found

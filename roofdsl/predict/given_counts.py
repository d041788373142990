"""The prediction for given counts of operations and bytes: times from the machine's rates, under its ceilings."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from roofdsl.counts.work_record import WorkAt
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.findings import closest
from roofdsl.machine.model import BandwidthCeiling, ComputeCeiling, Machine
from roofdsl.predict.compute import compute_time
from roofdsl.predict.levels_in_turn import in_turn
from roofdsl.predict.occupancy import LatencyCeiling
from roofdsl.predict.prediction import LevelTime, Prediction
from roofdsl.predict.time_model import LAUNCHES, capped_bandwidth, launch_seconds


def predict_counts(
    name: str,
    parameters: Mapping[str, int],
    work: WorkAt,
    memory: LevelTime | int,
    machine: Machine,
    *,
    unit: str | None = None,
    costs: Mapping[str, Fraction] | None = None,
    ceilings: tuple[str, ...] = (),
    launches: int = 1,
    nearer: tuple[LevelTime, ...] = (),
    beyond: tuple[LevelTime, ...] = (),
    latency: tuple[LatencyCeiling, ...] = (),
) -> Prediction:
    """The prediction for given counts: `memory` is Q at its boundary, in bytes of all `launches`, or the level.

    `nearer` and `beyond` are the levels on both sides of the memory; `latency` caps the levels that it limits. The time
    is max(T_comp, all T_level, T_launch), and without overlap their sum (rule 15). Levels that take turns according to
    the machine are added (`predict.levels_in_turn`). Raises CommandError for a type that the machine lacks and for a
    ceiling that it does not name.
    """
    if isinstance(memory, int):
        memory = LevelTime(machine.main_memory.name, memory, machine.main_memory.bandwidth_bytes_per_s)
    levels = (*nearer, memory, *beyond)
    compute_caps, bandwidth_caps, warnings = _ceilings(machine, ceilings, work, {level.name for level in levels})
    compute = compute_time(work, machine, unit=unit, costs=costs, ceilings=compute_caps)
    bandwidth_caps += tuple(found.ceiling() for found in latency if found.binds)
    levels = tuple(_capped(level, bandwidth_caps) for level in levels)
    launch_s = launch_seconds(machine).at({LAUNCHES: launches})
    terms = (compute.time_s, *(level.time_s for level in levels), launch_s)
    turns = in_turn(levels, machine)
    return Prediction(
        kernel=name,
        machine=machine.name,
        parameters=tuple(parameters.items()),
        work=work.total,
        type=compute.type,
        compute_s=compute.time_s,
        levels=levels,
        launches=launches,
        launch_s=launch_s,
        bound_s=max(*terms, sum((time for _, time in turns), Fraction(0))),
        no_overlap_s=sum(terms, Fraction(0)),
        machine_peak_per_s=compute.peak_per_s,
        unit=unit,
        assumptions=(*compute.assumptions, *(f'under the ceiling "{name}"' for name in ceilings)),
        warnings=warnings,
        parts=compute.parts,
        latency=latency,
        in_turn=turns,
    )


def _capped(level: LevelTime, ceilings: tuple[BandwidthCeiling, ...]) -> LevelTime:
    rate = capped_bandwidth(level.name, level.bandwidth_bytes_per_s, ceilings)
    return level.at_bandwidth(rate)


def _ceilings(
    machine: Machine, names: tuple[str, ...], work: WorkAt, shown: set[str]
) -> tuple[tuple[ComputeCeiling, ...], tuple[BandwidthCeiling, ...], tuple[str, ...]]:
    """The machine's ceilings of these names, on compute and on the levels shown, and warnings. Raises CommandError."""
    compute: list[ComputeCeiling] = []
    bandwidth: list[BandwidthCeiling] = []
    warnings = []
    for name in names:
        found = [c for c in machine.ceilings if c.name == name]
        if not found:
            raise no_ceiling(machine, name)
        caps = [c for c in found if isinstance(c, ComputeCeiling) and work.by_type.get(c.type)]
        levels = [c for c in found if isinstance(c, BandwidthCeiling) and c.level in shown]
        if not caps and not levels:
            warnings.append(f'ceiling "{name}" of {machine.name} limits neither a type of this kernel nor a level')
        compute += caps
        bandwidth += levels
    return tuple(compute), tuple(bandwidth), tuple(warnings)


def no_ceiling(machine: Machine, name: str) -> CommandError:
    """The error for a ceiling that the machine does not name."""
    known = list(dict.fromkeys(c.name for c in machine.ceilings))
    close = closest(name, known, 0.5)
    if close is not None:
        help = f'did you mean "{close}"?'
    else:
        help = "it has " + ", ".join(f'"{k}"' for k in known) if known else "it has no named ceilings"
    return CommandError(f'machine {machine.name} has no ceiling named "{name}"', help)

"""What would help a program: fewer launches, matrix units, and which of its kernels to improve."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from roofdsl.advise.advise import Advice, Advised, gain_of, lifts_of
from roofdsl.advise.candidate import Candidate, Refused
from roofdsl.advise.evaluate import Estimate
from roofdsl.advise.outcomes import LEAST_GAIN
from roofdsl.lang.checked import CheckedFile
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace
from roofdsl.machine.model import Machine
from roofdsl.predict.options import DEFAULTS, Options
from roofdsl.predict.prediction import Prediction
from roofdsl.predict.program import ProgramPrediction, predict_launches
from roofdsl.predict.time_model import LAUNCH


def advise_program(
    checked: CheckedFile,
    name: str,
    settings: Mapping[str, int],
    machine: Machine,
    options: Options = DEFAULTS,
    *,
    keep_rounding: bool = False,
) -> tuple[Advised, ProgramPrediction]:
    """Find changes of the whole program `name`, and predict each of its kernels as it is.

    Raises what `predict_launches` raises.
    """
    found = predict_launches(checked, name, settings, machine, options)
    now = Estimate(found.total)
    good: list[Advice] = []
    refused: list[Refused] = []
    changes = [_one_launch(found, machine), _on_matrix_units(checked, name, settings, machine, options)]
    for change in changes:
        if isinstance(change, Refused):
            refused.append(change)
            continue
        if change is None:
            continue
        candidate, prediction = change
        then = Estimate(prediction)
        gain = gain_of(now, then)
        if candidate.rounding and keep_rounding:
            refused.append(Refused(candidate.kind, candidate.what, "it changes rounding"))
        elif gain < LEAST_GAIN:
            refused.append(Refused(candidate.kind, candidate.what, f"no gain: the bound stays {now.prediction.bound}"))
        else:
            good.append(Advice((candidate,), then, gain, tuple(lifts_of(now.prediction, then))))
    return Advised(name, now, tuple(sorted(good, key=lambda a: -a.gain)), tuple(refused)), found


def _one_launch(found: ProgramPrediction, machine: Machine) -> tuple[Candidate, Prediction] | None:
    """All launches fused into one, with barriers that cost nothing between the kernels.

    The time is that of one launch, or the sum over all launches of the largest term other than the launch, if that is
    longer.
    """
    total = found.total
    if machine.launch_s is None or total.launches < 2:
        return None
    busy = sum((max(t for name, t in part.terms if name != LAUNCH) for part in found.parts), Fraction(0))
    candidate = Candidate(
        "launches",
        f"one launch in place of {total.launches:,}",
        "",
        "the same kernels in the same order, with a grid-wide barrier between them (a persistent kernel)",
    )
    own = replace(
        total,
        launches=1,
        launch_s=machine.launch_s,
        bound_s=max(busy, machine.launch_s),
        no_overlap_s=total.no_overlap_s - total.launch_s + machine.launch_s,
    )
    return candidate, own


def _on_matrix_units(
    checked: CheckedFile, name: str, settings: Mapping[str, int], machine: Machine, options: Options
) -> tuple[Candidate, Prediction] | Refused | None:
    if options.unit is not None or not any(p.cls == "tensor" for p in machine.peaks):
        return None
    try:
        then = predict_launches(checked, name, settings, machine, replace(options, unit="tensor"))
    except CommandError as error:
        return Refused("tensor", "matrix units", error.message + (f": {error.help}" if error.help else ""))
    because = "the same sums of products, in the same types; changes rounding"
    return Candidate("tensor", "matrix units where they apply (--unit tensor)", "", because, rounding=True), then.total

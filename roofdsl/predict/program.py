"""The prediction of a program: the sum over its launches, each of them cold (counting_and_time.md, rule 18)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import add

from roofdsl.lang.checked import CheckedFile
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace
from roofdsl.machine.model import Machine
from roofdsl.predict.kernel import DEFAULTS, Options, predict
from roofdsl.predict.time import Prediction


def predict_program(
    checked: CheckedFile, name: str, settings: Mapping[str, int], machine: Machine, options: Options = DEFAULTS
) -> Prediction:
    """All launches of program `name` one after the other on `machine`.

    Expected times add, and so do W, Q, launches and each term of the time. Raises CommandError for a parameter
    that is missing or unknown, and what `predict` raises.
    """
    from roofdsl.loops.programs import program

    lowered = program(checked, name, settings)
    known = {p.name.text for p in checked.programs[name].tree.parameters}
    unknown = sorted(set(settings) - known)
    if unknown:
        have = f"its parameters are {', '.join(sorted(known))}" if known else "it has none"
        raise CommandError(f"program {name} has no parameter `{unknown[0]}`", have)
    values = {p.name: settings.get(p.name, p.default) for p in lowered.parameters}
    missing = [n for n, v in values.items() if v is None]
    if missing:
        give = ",".join(f"{n}=..." for n in missing)
        raise CommandError(f"program {name} needs a number for {', '.join(missing)}", f"give it with --set {give}")
    sizes = {n: v for n, v in values.items() if v is not None}
    launched: dict[tuple[object, ...], Prediction] = {}
    parts = []
    for launch in lowered.launches:
        arguments = {n: e.evaluate(sizes) for n, e in launch.arguments}
        wrong = next((n for n, v in arguments.items() if v < 1), None)
        times = launch.times.evaluate(sizes)
        if wrong is not None or times < 1:
            what = f"{wrong} = {arguments[wrong]}" if wrong is not None else f"{times} repetitions"
            raise CommandError(f"program {name} runs {launch.kernel.name} with {what} at these sizes")
        key = (launch.kernel.name, launch.kernel.constants, tuple(arguments.items()))
        if key not in launched:
            launched[key] = predict(launch.kernel, arguments, machine, options)
        parts.append(launched[key] * times)
    if not parts:
        raise CommandError(f"program {name} launches nothing")
    return replace(reduce(add, parts), kernel=name, parameters=tuple(sizes.items()))

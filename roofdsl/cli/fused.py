"""What `--fused` would change for a function of a Python file: a command that can gain by it says so."""

from __future__ import annotations

from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.record import replace
from roofdsl.loops.load import kernel
from roofdsl.machine.find import checked_file, find_model
from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import show_number, show_time
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import Prediction
from roofdsl.reading_options import current, use


def fused_sentence(file: str, now: Prediction, machine: Machine, options: Options) -> str:
    """How fast the function of FILE is that `now` predicts if its loops are fused; empty if that is no gain, or if they
    are fused.
    """
    given, target = current(), find_model(file)
    if given.fused or not target.path.endswith(".py"):
        return ""
    use(replace(given, fused=True))
    try:
        fused = kernel(checked_file(target.path, now.kernel), now.kernel)
        found = predict(fused, dict(now.parameters), machine, options)
    except (CommandError, InputError):
        return ""
    finally:
        use(given)
    if found.bound_s >= now.bound_s:
        return ""
    gain = show_number(now.bound_s / found.bound_s, 3)
    return f"with fused loops, as a compiler may make them: {show_time(found.bound_s)}, {gain}x (`--fused` reads it so)"

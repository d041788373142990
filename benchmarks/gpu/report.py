"""The report of a run on a GPU: every measurement beside its prediction, what ncu counted beside the bytes predicted,
what the checkers found. It needs no GPU.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks import validation_figure, validation_report
from benchmarks.gpu.plan import SIZES, planned
from benchmarks.kernel_class import class_of
from benchmarks.kernels import fresh, shipped
from benchmarks.measure import markdown
from benchmarks.validation_runs import Ran, Refusal, Report
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.machine.find import load_machine
from roofdsl.measure.measurement import load
from roofdsl.store.atomic import write_whole
from roofdsl.validate.compare import Comparison
from roofdsl.validate.run import compare_all, stale


def write_report(folder: Path, late: Callable[[], bool] = lambda: False) -> None:
    """README.md and the figures. Raises CommandError where nothing was measured."""
    from roofdsl.plot.board import save_figure
    from roofdsl.plot.kinds.roofline import draw_roofline
    from roofdsl.plot.roofline_points import overlay
    from roofdsl.plot.roofs import roofs_of

    machine = load_machine(str(folder / "machine.roof"))
    every = {name: fresh(checked, name) for name, checked in shipped().items()}
    compared: list[Comparison] = []
    refused = [Refusal(r.kernel, r.variant, r.reason) for r in planned().refused]
    for path in sorted((folder / "kernels").glob("*.json")):
        name = path.name.split(".")[0]
        if path.name.endswith(".refused.json"):
            refused += [_refusal(name, one) for one in json.loads(path.read_text(encoding="utf-8"))]
            continue
        if late():
            print("out of time: the report needs no GPU, and can be made anywhere")
            return
        try:
            measured = load(path)
        except (CommandError, InputError) as error:
            refused.append(Refusal(name, "", f"no comparison: {first_line(error)}"))
            continue
        for warning in stale(list(every.values()), measured):
            print(f"warning: {warning}")
        for one in measured:
            try:
                with at_most(PREDICTION_S):
                    compared += compare_all([every[name]], [one], machine)
            except (CommandError, InputError, KeyError) as error:
                at = ", ".join(f"{n}={v}" for n, v in one.parameters)
                refused.append(Refusal(name, f"{one.variant} {at}", f"no comparison: {first_line(error)}"))
    if not compared:
        raise CommandError(f"`{folder}` holds no measurements", "run the part `kernels` first")
    runs = tuple(Ran(c, class_of(every[c.prediction.kernel])) for c in compared)
    found = Report(machine, runs, tuple(refused))
    validation_figure.draw(found, folder / "ratios.svg")
    named = [c for c in compared if c.prediction.kernel in SIZES]
    types = tuple(dict.fromkeys(c.prediction.type for c in named if c.prediction.type is not None))
    pictures = ["![Ratios](ratios.svg)"]
    if named:
        points = [p for c in named for p in overlay(c)]  # every size and variant, the library's too
        save_figure(folder / "overlay.svg", draw_roofline([roofs_of(machine, types)], points))
        pictures.insert(0, "![Measured on predicted](overlay.svg)")
    title = f"# {machine.title}, {date.today().isoformat()}"
    parts = [title, "\n\n".join(pictures), validation_report.section(found, "GPU"), *_tools(folder, compared)]
    write_whole(folder / "README.md", "\n\n".join(parts) + "\n")


PREDICTION_S = 20.0
"""Of one prediction: exact traffic at the sizes of a GPU may take hours, and one run less is no loss."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raises CommandError in what takes longer; for the main thread."""

    def stop(number: int, frame: object) -> None:
        raise CommandError(f"its prediction takes longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def first_line(error: Exception) -> str:
    return str(error).split("\n", maxsplit=1)[0]


def _refusal(name: str, one: Mapping[str, Any]) -> Refusal:
    sizes = ", ".join(f"{n}={v}" for n, v in one["sizes"].items())
    return Refusal(name, sizes, f"{one['variant']}: {one['reason']}")


def _tools(folder: Path, compared: Sequence[Comparison]) -> list[str]:
    """Sections on what ncu and the checkers said, where they were run."""
    parts = []
    counted = _list(folder / "traffic.json")
    if counted:
        parts += ["### Bytes of memory, counted by ncu", _traffic(counted, compared)]
    for tool in ("memcheck", "racecheck"):
        found = _list(folder / f"{tool}.json")
        if found:
            parts += [f"### compute-sanitizer, {tool}", _checked(found)]
    return parts


def _list(path: Path) -> list[Any]:
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return found if isinstance(found, list) else []


def _traffic(counted: Sequence[Mapping[str, Any]], compared: Sequence[Comparison]) -> str:
    predicted = {_key(c.measurement.kernel, c.measurement.variant, c.measurement.parameters): c for c in compared}
    rows = []
    for one in counted:
        at = ", ".join(f"{n}={v}" for n, v in one["sizes"].items())
        metrics = one.get("metrics")
        if metrics is None:
            rows.append([one["kernel"], one["variant"], at, "", "", "", one["reason"]])
            continue
        moved = metrics.get("dram__bytes_read.sum", 0) + metrics.get("dram__bytes_write.sum", 0)
        c = predicted.get(_key(one["kernel"], one["variant"], one["sizes"].items()))
        bytes_ = None if c is None else float(c.prediction.memory.bytes)
        ratio = f"{moved / bytes_:.2f}" if bytes_ else ""
        l2 = 32 * metrics.get("lts__t_sectors_srcunit_tex.sum", 0)
        rows.append(
            [one["kernel"], one["variant"], at, f"{moved:.4g}", f"{bytes_:.4g}" if bytes_ else "", ratio, f"{l2:.4g}"]
        )
    head = ["kernel", "variant", "sizes", "counted, B", "predicted, B", "ratio", "L2, B"]
    return markdown(head, rows)


def _key(kernel: str, variant: str, sizes: Any) -> tuple[str, str, tuple[tuple[str, int], ...]]:
    return kernel, variant, tuple(sorted((n, v) for n, v in sizes))


def _checked(found: Sequence[Mapping[str, Any]]) -> str:
    ran = [one for one in found if "errors" in one]
    wrong = [one for one in ran if one["errors"]]
    text = f"{len(ran)} executions checked, {len(wrong)} with errors, {len(found) - len(ran)} not run."
    lines = [f"- {o['kernel']} {o['variant']} {o['sizes']}: {o['errors']} errors, first: {o['first']}" for o in wrong]
    lines += [f"- {o['kernel']} {o['variant']}: {o['reason']}" for o in found if "errors" not in o]
    return "\n".join([text, "", *lines]) if lines else text

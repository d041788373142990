"""The Python interface: kernels and machines by name, file or text, and what the commands make of them, as objects.

    from roofdsl.api import derive, predict, roofline

    derive("gemv", cache="32 KiB", n=4096)           # a Derivation; shows itself in a notebook
    p = predict("gemv", "v100_deck", n=4096)         # a Prediction
    roofline(p, path="gemv.svg")

Sizes are keyword arguments by the names of the kernel's parameters. Whatever is asked, the modules behind give more
(docs/python.md says which). Errors are InputError for text that is wrong, with the place in it, and CommandError for
what cannot be done; both print as the command line tells them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.source import Source
from roofdsl.lang.units import UnitError, parse_size
from roofdsl.loops.load import load_file
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.machine.find import checked_file, find_model, load_machine, machine_of
from roofdsl.machine.model import Machine
from roofdsl.predict.kernel import Options
from roofdsl.predict.time import Prediction

if TYPE_CHECKING:
    from roofdsl.analysis.at import TrafficAt
    from roofdsl.analysis.derived import Derivation
    from roofdsl.lang.checked import CheckedFile
    from roofdsl.measure.results import Measurement
    from roofdsl.validate.compare import Comparison

__all__ = [
    "CommandError",
    "InputError",
    "Kernel",
    "Machine",
    "Prediction",
    "compare",
    "derive",
    "kernel",
    "machine",
    "measure",
    "predict",
    "roofline",
    "traffic_at",
    "traffic_figure",
]


def kernel(source: str | Path, name: str | None = None, **constants: int) -> Kernel:
    """A checked kernel: of a shipped model's name ("gemv", "polybench/lu"), a file ("mine.roof", "mine.roof:axpy"), or
    the text of a file (anything with a line break in it).

    name: which kernel, where there are several. constants: numbers of its `const` parameters.
    Raises InputError for a text with errors, CommandError for a kernel that is not there.
    """
    from roofdsl.loops.load import kernel as lowered

    checked, found = _checked(source)
    return lowered(checked, name or found, constants)


def machine(source: str | Path) -> Machine:
    """A machine: of a shipped one's name ("v100_deck"), a file ("mine.roof", "mine.roof:laptop") or the text of one.

    Raises InputError for a text with errors, CommandError for a machine that is not there.
    """
    text = str(source)
    return machine_of(load_file(Source("<text>", text)), None) if "\n" in text else load_machine(text)


def derive(
    source: Kernel | str | Path,
    *,
    cache: int | str | None = None,
    line: int | str | None = None,
    traffic: Traffic | None = None,
    steps: bool = False,
    **sizes: int,
) -> Derivation:
    """W, Q, Q(Z) and I in closed form, with values where `sizes` give all parameters; what `roofdsl derive` prints.

    cache, line: bytes, or a text with a unit ("32 KiB"); cache "Z" derives Q(Z) with Z a symbol. steps: the argument.
    """
    from roofdsl.analysis.derive import derive as derived

    own = _kernel(source, sizes)
    any_cache = cache == "Z"
    return derived(
        own,
        _parameters(own, sizes),
        traffic=traffic,
        cache_bytes=None if any_cache else _bytes(cache),
        line_bytes=_bytes(line),
        steps=steps,
        any_cache=any_cache,
    )


def traffic_at(
    source: Kernel | str | Path,
    cache: int | str | None = None,
    *,
    line: int | str | None = None,
    traffic: Traffic | None = None,
    **sizes: int,
) -> TrafficAt:
    """Loads, stores and bytes through a cache at given sizes, exact, without any closed form; quicker than `derive`."""
    from roofdsl.analysis.at import traffic_at as found
    from roofdsl.analysis.deep import require_legal

    own = _kernel(source, sizes)
    require_legal(own)
    convention = traffic or own.traffic or "load_store"
    return found(own, _parameters(own, sizes), _bytes(cache), _bytes(line), convention)


def predict(
    source: Kernel | str | Path, on: Machine | str | Path, options: Options | None = None, **sizes: int
) -> Prediction:
    """The time of one launch on a machine, or of a program's launches, and what bounds it (`roofdsl predict`)."""
    from roofdsl.predict.kernel import predict as predicted
    from roofdsl.predict.program import predict_program

    where = on if isinstance(on, Machine) else machine(on)
    how = options or Options()
    if not isinstance(source, Kernel):
        checked, name = _checked(source)
        if name is not None and name in checked.programs:
            return predict_program(checked, name, sizes, where, how)
    own = _kernel(source, sizes)
    return predicted(own, _parameters(own, sizes), where, how)


def measure(source: Kernel | str | Path, variant: str = "loops", *, cold: bool = False, **sizes: int) -> Measurement:
    """The kernel generated, verified and timed on this processor (`roofdsl measure`): loops, parallel or library."""
    from roofdsl.measure.cpu import CpuOptions, measure_cpu

    own = _kernel(source, sizes)
    return measure_cpu(own, _parameters(own, sizes), CpuOptions(variant, cold=cold))


def compare(source: Kernel | str | Path, measured: Measurement, on: Machine | str | Path) -> Comparison:
    """A measurement beside its prediction, with the verdict (`roofdsl validate`)."""
    from roofdsl.validate.run import compare_all

    where = on if isinstance(on, Machine) else machine(on)
    return compare_all([_kernel(source, {})], [measured], where)[0]


def roofline(
    *points: Prediction | Comparison,
    on: Sequence[Machine | str | Path] = (),
    path: str | Path | None = None,
    title: str | None = None,
) -> Any:
    """The matplotlib Figure of a roofline: predictions, and comparisons with their measurements, under their machines.

    on: the machines; by default those predicted for, which then have to be shipped ones. path: where to save it too,
    as svg, png or pdf.
    """
    from roofdsl.plot.content import explained_point, overlay, roofs_of
    from roofdsl.plot.roofline import draw_roofline, save_roofline

    predictions = [p if isinstance(p, Prediction) else p.prediction for p in points]
    names = dict.fromkeys(p.machine for p in predictions)
    machines = [m if isinstance(m, Machine) else machine(m) for m in on or names]
    types = tuple(dict.fromkeys(p.type for p in predictions if p.type is not None))
    units = tuple(dict.fromkeys(p.unit for p in predictions if p.unit is not None))
    roofs = [roofs_of(m, types, units) for m in machines]
    drawn = [q for p in points for q in ((explained_point(p),) if isinstance(p, Prediction) else overlay(p))]
    if path is not None:
        save_roofline(Path(path), roofs, drawn, title)
    return draw_roofline(roofs, drawn, title)


def traffic_figure(
    source: Kernel | str | Path,
    *,
    line: int | str | None = None,
    traffic: Traffic | None = None,
    on: Machine | str | Path | None = None,
    path: str | Path | None = None,
    **sizes: int,
) -> Any:
    """The matplotlib Figure of Q(Z) at given sizes: every step, its plateaus, simulated points, a machine's caches.

    path: where to save it too, as svg, png or pdf.
    """
    from roofdsl.analysis.setting import numbers
    from roofdsl.plot.traffic import draw_traffic, save_traffic
    from roofdsl.plot.traffic_content import traffic_content

    own = _kernel(source, sizes)
    where = on if on is None or isinstance(on, Machine) else machine(on)
    values = numbers(own, _parameters(own, sizes))
    content = traffic_content(own, values, traffic or own.traffic or "load_store", _bytes(line), machine=where)
    if path is not None:
        save_traffic(Path(path), content)
    return draw_traffic(content)


# ---- what is spoken of ----


def _checked(source: str | Path) -> tuple[CheckedFile, str | None]:
    """The file, and the name that is picked in it."""
    text = str(source)
    if "\n" in text:
        return load_file(Source("<text>", text)), None
    target = find_model(text)
    return checked_file(target.path), target.name


def _kernel(source: Kernel | str | Path, sizes: dict[str, int]) -> Kernel:
    """The kernel; of `sizes` those of its `const` parameters are taken."""
    return source if isinstance(source, Kernel) else kernel(source, None, **sizes)


def _parameters(own: Kernel, sizes: dict[str, int]) -> dict[str, int]:
    """The sizes that are parameters; numbers of constants are in the kernel. Unknown ones are refused where used."""
    constants = {name for name, _ in own.constants}
    return {name: value for name, value in sizes.items() if name not in constants}


def _bytes(size: int | str | None) -> int | None:
    if not isinstance(size, str):
        return size
    try:
        return parse_size(size)
    except UnitError as error:
        raise CommandError(error.message, error.help) from None

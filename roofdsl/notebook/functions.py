"""The commands as functions for a notebook, with names where the command line has texts, and rich results.

Kernels are those of a `%%roof` cell, or a text as on the command line (a shipped name, FILE, FILE:KERNEL); machines
likewise. Sizes are keywords: `predict(gemv, "v100_deck", n=4096)`; for a parameter with the name of an option, or a
size that is kept in a variable, `sizes={"cache": 3}`. All raise InputError for a wrong file, CommandError for what
cannot be done, as the commands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.units import UnitError, parse_size
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.machine.model import Machine
from roofdsl.notebook.magic import Program
from roofdsl.notebook.pictures import Figure, Page

if TYPE_CHECKING:
    from roofdsl.analysis.derived import Derivation
    from roofdsl.predict.program import ProgramPrediction
    from roofdsl.predict.time import Prediction
    from roofdsl.simulate.lru import SimulatedTraffic

Size = int | str
Sizes = Mapping[str, int]
KernelLike = Kernel | str
MachineLike = Machine | str


def machine(of: MachineLike) -> Machine:
    """A machine: as it is, or by its shipped name, FILE or FILE:NAME."""
    from roofdsl.machine.find import load_machine

    return of if isinstance(of, Machine) else load_machine(of)


def _kernel(of: KernelLike, sizes: Sizes) -> tuple[Kernel, dict[str, int]]:
    """The kernel, and those sizes that are its parameters. Raises CommandError for others."""
    if isinstance(of, Kernel):
        return of, dict(sizes)
    from roofdsl.cli.options import choose, kernels_of

    found = kernels_of(choose(of), sizes)
    if len(found) != 1:
        names = ", ".join(k.name for k, _ in found[:8]) or "programs only"
        raise CommandError(f"`{of}` is not one kernel", f"pick one by {of}:NAME (it has {names})")
    return found[0]


def _several(kernels: Sequence[KernelLike], given: Sizes) -> Iterator[tuple[Kernel, dict[str, int]]]:
    """Kernels, each with those sizes that are its parameters. Raises CommandError for sizes that are of none."""
    from roofdsl.cli.options import choose_all, kernels_of

    named = [k for k in kernels if isinstance(k, str)]
    texts = dict(zip(named, choose_all(named, given), strict=True))
    unknown = set(given)
    for kernel in kernels:
        found = (
            [(kernel, dict(given))] if isinstance(kernel, Kernel) else kernels_of(texts[kernel][0], texts[kernel][1][0])
        )
        for each, _ in found:
            names = {p.name for p in each.parameters}
            unknown -= names | {n for n, _ in each.constants}
            yield each, {n: v for n, v in given.items() if n in names}
    if unknown:
        raise CommandError(f"none of the kernels has a parameter `{min(unknown)}`")


def _bytes(size: Size | None, what: str) -> int | None:
    if size is None or isinstance(size, int):
        return size
    try:
        return parse_size(size)
    except UnitError as error:
        raise CommandError(f"{what}: {error}") from None


def derive(
    kernel: KernelLike,
    *,
    traffic: Traffic | None = None,
    cache: Size | None = None,
    line: Size | None = None,
    steps: bool = False,
    sizes: Sizes | None = None,
    **more: int,
) -> Derivation:
    """W, Q, Q(Z) and I in closed form, with values where all sizes are given; `cache="Z"` adds Q(Z) in all cases."""
    from roofdsl.analysis.derive import derive as derive_kernel

    found, own = _kernel(kernel, {**(sizes or {}), **more})
    return derive_kernel(
        found,
        {n: v for n, v in own.items() if n not in dict(found.constants)},
        traffic=traffic,
        cache_bytes=None if cache == "Z" else _bytes(cache, "cache"),
        line_bytes=_bytes(line, "line"),
        steps=steps,
        any_cache=cache == "Z",
    )


def predict(
    kernel: KernelLike | Program,
    on: MachineLike,
    *,
    traffic: Traffic | None = None,
    unit: str | None = None,
    ceilings: Sequence[str] = (),
    warm: bool = False,
    sizes: Sizes | None = None,
    **more: int,
) -> Prediction | ProgramPrediction:
    """The time of one launch of a kernel, or of a program, on a machine, and what bounds it."""
    from roofdsl.predict.kernel import Options
    from roofdsl.predict.kernel import predict as predict_kernel
    from roofdsl.predict.program import predict_launches

    options = Options(traffic, unit, tuple(ceilings), warm=warm)
    given = {**(sizes or {}), **more}
    if isinstance(kernel, Program):
        return predict_launches(kernel.checked, kernel.name, given, machine(on), options)
    found, own = _kernel(kernel, given)
    return predict_kernel(found, own, machine(on), options)


def simulate(
    kernel: KernelLike, *, cache: Size | None = None, line: Size | None = None, sizes: Sizes | None = None, **more: int
) -> SimulatedTraffic:
    """Every access through one fully associative LRU cache; without `cache`, one without bound."""
    from roofdsl.analysis.setting import numbers
    from roofdsl.loops.transform import apply
    from roofdsl.simulate.lru import simulate_lru

    found, own = _kernel(kernel, {**(sizes or {}), **more})
    return simulate_lru(apply(found), numbers(found, own), _bytes(cache, "cache"), _bytes(line, "line"))


# ---- figures ----


def _figure(save: Any, *given: Any) -> Figure:
    """What a function that saves a figure into a file makes, as SVG."""
    with TemporaryDirectory(prefix="roofdsl-") as folder:
        path = Path(folder) / "figure.svg"
        save(path, *given)
        return Figure(path.read_text(encoding="utf-8"))


def roofline(*predictions: Prediction, on: MachineLike | None = None, title: str | None = None) -> Figure:
    """Predictions under the roofs of their machine; `on` is needed for a machine that is not shipped.

    Without predictions, the roofs of `on` alone.
    """
    from roofdsl.plot.content import explained_point, roofs_of
    from roofdsl.plot.roofline import save_roofline
    from roofdsl.predict.time import Prediction as Predicted

    for p in predictions:
        if not isinstance(p, Predicted):
            raise CommandError(f"a {type(p).__name__} is no prediction", "roofline(predict(...), predict(...))")
    names = list(dict.fromkeys(p.machine for p in predictions))
    if on is None and not names:
        raise CommandError("there is nothing to draw", 'give predictions, or on="v100_deck"')
    machines = [machine(on)] if on is not None else [machine(name) for name in names]
    other = next((n for n in names if n not in {m.name for m in machines}), None)
    if other is not None:
        raise CommandError(f"a prediction is for {other}, and the figure is of {machines[0].name}")
    types = tuple(dict.fromkeys(p.type for p in predictions if p.type is not None))
    units = tuple(dict.fromkeys(p.unit for p in predictions if p.unit is not None))
    roofs = [roofs_of(m, types, units) for m in machines]
    return _figure(save_roofline, roofs, [explained_point(p) for p in predictions], title)


def traffic(
    kernel: KernelLike,
    *,
    traffic: Traffic | None = None,
    line: Size | None = None,
    on: MachineLike | None = None,
    sizes: Sizes | None = None,
    **more: int,
) -> Figure:
    """Q(Z) of a kernel: every step, its plateaus in closed form, simulated points, the caches of a machine."""
    from roofdsl.analysis.setting import numbers
    from roofdsl.plot.traffic import save_traffic
    from roofdsl.plot.traffic_content import traffic_content

    found, own = _kernel(kernel, {**(sizes or {}), **more})
    convention = traffic or found.traffic or "load_store"
    where = None if on is None else machine(on)
    content = traffic_content(found, numbers(found, own), convention, _bytes(line, "line"), machine=where)
    return _figure(save_traffic, content)


def explore(
    *kernels: KernelLike,
    on: MachineLike | Sequence[MachineLike],
    traffic: Traffic | None = None,
    unit: str | None = None,
    title: str | None = None,
    sizes: Sizes | None = None,
    **more: int,
) -> Page:
    """The interactive page of kernels and machines, in the notebook; `.save("page.html")` writes it."""
    from roofdsl.explore.assemble import to_page
    from roofdsl.explore.content import Asked, content_of

    chosen = list(_several(kernels, {**(sizes or {}), **more}))
    machines = (on,) if isinstance(on, (str, Machine)) else tuple(on)
    name = title or " and ".join(k.name for k, _ in chosen)
    asked = Asked(name, tuple(chosen), tuple(map(machine, machines)), traffic, unit)
    return Page(to_page(content_of(asked)))

"""The Python interface: the commands as functions on kernels and machines by name, file or text; results are objects.

    from roofdsl.api import derive, predict, roofline

    derive("gemv", cache="32 KiB", n=4096)           # a Derivation; shows itself in a notebook
    p = predict("gemv", "v100_deck", n=4096)         # a Prediction
    roofline(p, path="gemv.svg")

Sizes are keyword arguments, named after the kernel's parameters. If a parameter has the same name as an option, or if
the sizes are in a variable, use `sizes={"cache": 3}`. The modules behind these functions offer more (docs/python.md).
Errors are InputError for invalid text, with the place in it, and CommandError for something that cannot be done; both
print as on the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import roofdsl.frontends  # noqa: F401 registers what reads files of other languages
from roofdsl.frontends.kernels_of_code import einsum, from_python
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.record import replace
from roofdsl.lang.source import Source
from roofdsl.lang.units import UnitError, parse_size
from roofdsl.loops.load import load_file
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.loops.parameter_values import numbers
from roofdsl.loops.program_at_sizes import ProgramOf
from roofdsl.loops.transform import apply
from roofdsl.machine.find import load_machine, machine_of
from roofdsl.machine.kernel_sources import (
    KernelLike,
    Program,
    ProgramLike,
    Sizes,
    is_program,
    kernel,
    kernel_and_sizes,
    program,
    several,
)
from roofdsl.machine.model import Machine
from roofdsl.plot.traffic_content import traffic_content
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.kernel import predict as predicted
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import Prediction
from roofdsl.predict.program import predict_launches
from roofdsl.store.atomic import write_whole

if TYPE_CHECKING:
    from roofdsl.counts.derived import Derivation
    from roofdsl.counts.traffic_at import TrafficAt
    from roofdsl.frontends.tensors.program import TensorProgram
    from roofdsl.loops.program_at_sizes import ProgramOf
    from roofdsl.measure.measurement import Measurement
    from roofdsl.predict.program import ProgramPrediction
    from roofdsl.simulate.lru_traffic import SimulatedTraffic
    from roofdsl.validate.compare import Comparison

__all__ = [
    "CommandError",
    "InputError",
    "Kernel",
    "Machine",
    "Options",
    "Prediction",
    "Program",
    "compare",
    "derive",
    "einsum",
    "explore",
    "from_jax",
    "from_python",
    "from_torch",
    "kernel",
    "launches",
    "machine",
    "measure",
    "predict",
    "program",
    "roofline",
    "simulate",
    "traffic_at",
    "traffic_figure",
    "with_data",
]

MachineLike = Machine | str | Path
Size = int | str
"""Bytes, or a text with a unit: "32 KiB"."""


def machine(source: MachineLike) -> Machine:
    """A machine: as it is, or from a shipped name ("v100_deck"), a file ("mine.roof", "mine.roof:laptop") or source
    text.

    Raises InputError for a text with errors, CommandError for an unknown machine.
    """
    if isinstance(source, Machine):
        return source
    text = str(source)
    return machine_of(load_file(Source("<text>", text)), None) if "\n" in text else load_machine(text)


def derive(
    source: KernelLike,
    *,
    cache: Size | None = None,
    line: Size | None = None,
    traffic: Traffic | None = None,
    steps: bool = False,
    sizes: Sizes | None = None,
    **more: int,
) -> Derivation:
    """W, Q, Q(Z) and I in closed form, with values if all sizes are given (`roofdsl derive`).

    cache "Z" derives Q(Z) with a symbolic Z. steps: also derive the argument.
    """
    import roofdsl.tell.display  # noqa: F401  it sets up how derivations are printed
    from roofdsl.counts.derive import derive as derived

    own, values = kernel_and_sizes(source, sizes, more)
    any_cache = cache == "Z"
    return derived(
        own,
        values,
        traffic=traffic,
        cache_bytes=None if any_cache else _bytes(cache, "cache"),
        line_bytes=_bytes(line, "line"),
        steps=steps,
        any_cache=any_cache,
    )


def with_data(source: KernelLike, *data: str, sizes: Sizes | None = None, **more: int) -> tuple[Kernel, dict[str, int]]:
    """A kernel with the values of its index arrays, and the sizes that follow from these; see docs/sparse.md.

        csr, at = with_data("spmv_csr", "rowptr,col=A.mtx")
        simulate(csr, cache="1 MiB", line=64, sizes=at)

    Raises CommandError for data that do not fit the kernel.
    """
    from roofdsl.matrices.attach import with_data as attached

    own, values = kernel_and_sizes(source, sizes, more)
    return attached(own, data, values)


def from_torch(module: Any, *inputs: Any, fused: bool = False) -> TensorProgram:
    """The program of kernels for a PyTorch module, in its current mode, for inputs of these shapes.

    `torch.export` traces the module; its data are not read. fused: elementwise operators share a kernel where possible.
    The result is a program for `predict`; `text` is its `.roof` file, `unknown` names operators that are not supported.
    Raises CommandError if torch is not installed or cannot export the module.
    """
    from roofdsl.frontends.tensors.program import tensor_program
    from roofdsl.frontends.tensors.torch_graph import torch_graph

    return tensor_program(torch_graph(module, inputs), fused=fused, about="Read by torch.export.")


def from_jax(function: Callable[..., Any], *inputs: Any, fused: bool = False) -> TensorProgram:
    """The program of kernels for a function of JAX, for inputs of these shapes (arrays or `ShapeDtypeStruct`s).

    Like `from_torch`, from the function's jaxpr. Raises CommandError if jax is not installed or cannot trace it.
    """
    from roofdsl.frontends.tensors.jax_graph import jax_graph
    from roofdsl.frontends.tensors.program import tensor_program

    return tensor_program(jax_graph(function, inputs), fused=fused, about="Read from a jaxpr.")


def traffic_at(
    source: KernelLike,
    cache: Size | None = None,
    *,
    line: Size | None = None,
    traffic: Traffic | None = None,
    sizes: Sizes | None = None,
    **more: int,
) -> TrafficAt:
    """The exact loads, stores and bytes through a cache at given sizes, without closed forms; faster than `derive`."""
    from roofdsl.checks.deep import require_legal
    from roofdsl.counts.traffic_at import traffic_at as found

    own, values = kernel_and_sizes(source, sizes, more)
    require_legal(own)
    convention = traffic or own.traffic or "load_store"
    return found(own, values, _bytes(cache, "cache"), _bytes(line, "line"), convention)


def simulate(
    source: KernelLike, *, cache: Size | None = None, line: Size | None = None, sizes: Sizes | None = None, **more: int
) -> SimulatedTraffic:
    """Simulate every access through one fully associative LRU cache; without `cache`, an unbounded one."""
    from roofdsl.simulate.lru_traffic import simulate_lru

    own, values = kernel_and_sizes(source, sizes, more)
    return simulate_lru(apply(own), numbers(own, values), _bytes(cache, "cache"), _bytes(line, "line"))


def predict(
    source: KernelLike | Program,
    on: MachineLike,
    options: Options | None = None,
    *,
    traffic: Traffic | None = None,
    unit: str | None = None,
    ceilings: Sequence[str] = (),
    warm: bool = False,
    sizes: Sizes | None = None,
    **more: int,
) -> Prediction:
    """The time of one launch on a machine, or of all launches of a program, and what bounds it (`roofdsl predict`).

    On a CPU whose instructions are known, also the time that the code is expected to take (`.expected`); with
    `Options(code=Code("none"))` only the bound. traffic, unit, ceilings, warm: as in Options; they override those of
    `options`.
    """
    how = _with_code(_options(options, traffic, unit, ceilings, warm))
    if not isinstance(source, Kernel) and (isinstance(source, Program) or is_program(source)):
        return _launches(source, on, how, {**(sizes or {}), **more}).total
    own, values = kernel_and_sizes(source, sizes, more)
    return predicted(own, values, machine(on), how)


def launches(
    source: ProgramLike,
    on: MachineLike,
    options: Options | None = None,
    *,
    traffic: Traffic | None = None,
    unit: str | None = None,
    ceilings: Sequence[str] = (),
    warm: bool = False,
    sizes: Sizes | None = None,
    **more: int,
) -> ProgramPrediction:
    """As `predict` for a program, launch by launch: `.parts`, `.by_kernel`, and `.total`, which `predict` returns."""
    how = _with_code(_options(options, traffic, unit, ceilings, warm))
    return _launches(source, on, how, {**(sizes or {}), **more})


def _launches(source: ProgramLike, on: MachineLike, options: Options, sizes: Sizes) -> ProgramPrediction:
    found = source if isinstance(source, Program) else program(source)
    return predict_launches(found.checked, found.name, sizes, machine(on), options)


def measure(
    source: KernelLike | Program, variant: str = "loops", *, cold: bool = False, sizes: Sizes | None = None, **more: int
) -> Measurement:
    """Generate, verify and time a kernel, or the launches of a program, on this processor (`roofdsl measure`).

    variant: loops, grouped, parallel or library; kernels of a program without this variant run as loops.
    """
    from roofdsl.measure.cpu import CpuOptions, measure_cpu

    if not isinstance(source, Kernel) and (isinstance(source, Program) or is_program(source)):
        from roofdsl.measure.program_cpu import measure_program_cpu

        at = _program_of(source).at({**(sizes or {}), **more})
        return measure_program_cpu(at, CpuOptions(variant, cold=cold))
    own, values = kernel_and_sizes(source, sizes, more)
    return measure_cpu(own, values, CpuOptions(variant, cold=cold))


def compare(source: KernelLike | Program, measured: Measurement, on: MachineLike) -> Comparison:
    """Compare a measurement with its prediction, with a verdict (`roofdsl validate`)."""
    from roofdsl.validate.run import compare_all

    if not isinstance(source, Kernel) and (isinstance(source, Program) or is_program(source)):
        return compare_all([_program_of(source)], [measured], machine(on))[0]
    return compare_all([kernel_and_sizes(source, None, {})[0]], [measured], machine(on))[0]


def roofline(
    *points: Prediction | Comparison,
    on: MachineLike | Sequence[MachineLike] = (),
    path: str | Path | None = None,
    title: str | None = None,
) -> Any:
    """The matplotlib Figure of a roofline with predictions, or comparisons with measurements, and their machines.

    on: the machines; by default those of the predictions, which must then be shipped ones. path: where to save the
    figure, as svg, png or pdf. Without points, only the roofs are drawn.
    """
    from roofdsl.plot.board import save_figure
    from roofdsl.plot.kinds.roofline import draw_roofline
    from roofdsl.plot.roofline_points import explained_point, overlay
    from roofdsl.plot.roofs import roofs_of
    from roofdsl.validate.compare import Comparison as Compared

    for p in points:
        if not isinstance(p, (Prediction, Compared)):
            raise CommandError(f"a {type(p).__name__} is not a prediction", "roofline(predict(...), predict(...))")
    predictions = [p if isinstance(p, Prediction) else p.prediction for p in points]
    names = dict.fromkeys(p.machine for p in predictions)
    machines = [machine(m) for m in (_listed(on) or names)]
    if not machines:
        raise CommandError("there is nothing to draw", 'give predictions, or on="v100_deck"')
    other = next((n for n in names if n not in {m.name for m in machines}), None)
    if other is not None:
        raise CommandError(f"a prediction is for {other}, but the figure is for {machines[0].name}")
    types = tuple(dict.fromkeys(p.type for p in predictions if p.type is not None))
    units = tuple(dict.fromkeys(p.unit for p in predictions if p.unit is not None))
    roofs = [roofs_of(m, types, units) for m in machines]
    drawn = [q for p in points for q in ((explained_point(p),) if isinstance(p, Prediction) else overlay(p))]
    figure = draw_roofline(roofs, drawn, title)
    if path is not None:
        save_figure(Path(path), figure)
    return figure


def traffic_figure(
    source: KernelLike,
    *,
    line: Size | None = None,
    traffic: Traffic | None = None,
    on: MachineLike | None = None,
    path: str | Path | None = None,
    sizes: Sizes | None = None,
    **more: int,
) -> Any:
    """The matplotlib Figure of Q(Z) at given sizes: every step, its plateaus, simulated points, a machine's caches.

    path: where to save the figure, as svg, png or pdf.
    """
    from roofdsl.plot.board import save_figure
    from roofdsl.plot.kinds.traffic import draw_traffic

    own, values = kernel_and_sizes(source, sizes, more)
    where = None if on is None else machine(on)
    convention = traffic or own.traffic or "load_store"
    content = traffic_content(own, numbers(own, values), convention, _bytes(line, "line"), machine=where)
    figure = draw_traffic(content)
    if path is not None:
        save_figure(Path(path), figure)
    return figure


def explore(
    *sources: KernelLike,
    on: MachineLike | Sequence[MachineLike],
    traffic: Traffic | None = None,
    unit: str | None = None,
    title: str | None = None,
    path: str | Path | None = None,
    sizes: Sizes | None = None,
    **more: int,
) -> str:
    """The interactive page of kernels and machines as HTML, in one offline file (`roofdsl explore`).

    A file without a chosen kernel stands for all kernels it defines. Each kernel gets the sizes that are its
    parameters. path: where to save the page.
    """
    from roofdsl.page.assemble import to_page
    from roofdsl.page.content import Asked, content_of

    chosen = several(sources, {**(sizes or {}), **more})
    name = title or " and ".join(k.name for k, _ in chosen)
    page = to_page(content_of(Asked(name, tuple(chosen), tuple(map(machine, _listed(on))), traffic, unit)))
    if path is not None:
        write_whole(Path(path), page)
    return page


# ---- what the arguments refer to ----


def _program_of(source: ProgramLike) -> ProgramOf:
    found = source if isinstance(source, Program) else program(source)
    return ProgramOf(found.checked, found.name)


def _listed(on: MachineLike | Sequence[MachineLike]) -> Sequence[MachineLike]:
    return (on,) if isinstance(on, (str, Path, Machine)) else on


def _options(
    options: Options | None, traffic: Traffic | None, unit: str | None, ceilings: Sequence[str], warm: bool
) -> Options:
    asked = {"traffic": traffic, "unit": unit, "ceilings": tuple(ceilings), "warm": warm}
    return replace(options or Options(), **{name: value for name, value in asked.items() if value})


def _with_code(options: Options) -> Options:
    """The options with the code whose expected time is wanted: if none is given, the code that `measure` runs here."""
    return options if options.code is not None else replace(options, code=Code())


def _bytes(size: Size | None, what: str) -> int | None:
    if not isinstance(size, str):
        return size
    try:
        return parse_size(size)
    except UnitError as error:
        raise CommandError(f"{what}: {error.message}", error.help) from None

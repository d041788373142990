"""The functions of `roofdsl.api` in a notebook: the same, with figures and pages as results of cells.

Kernels and machines are those of a `%%roof` cell, or texts as on the command line. All raise InputError for a wrong
file, CommandError for what cannot be done.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from roofdsl import api
from roofdsl.api import (
    MachineLike,
    Prediction,
    Program,
    derive,
    launches,
    machine,
    simulate,
)
from roofdsl.machine.kernel_sources import KernelLike
from roofdsl.notebook.pictures import Figure, Page
from roofdsl.predict.program import ProgramPrediction
from roofdsl.validate.compare import Comparison

__all__ = ["derive", "explore", "machine", "predict", "roofline", "simulate", "traffic"]


def predict(source: KernelLike | Program, on: MachineLike, *args: Any, **more: Any) -> Prediction | ProgramPrediction:
    """`api.predict`; a program of a cell is shown launch by launch, as `api.launches` gives it."""
    if isinstance(source, Program):
        return launches(source, on, *args, **more)
    return api.predict(source, on, *args, **more)


def roofline(
    *points: Prediction | Comparison, on: MachineLike | Sequence[MachineLike] = (), title: str | None = None
) -> Figure:
    """`api.roofline` as a figure in the notebook."""
    return _figure(api.roofline(*points, on=on, title=title))


def traffic(source: KernelLike, **more: Any) -> Figure:
    """`api.traffic_figure` as a figure in the notebook."""
    return _figure(api.traffic_figure(source, **more))


def explore(*sources: KernelLike, **more: Any) -> Page:
    """`api.explore` as a page in the notebook; `.save("page.html")` writes it."""
    return Page(api.explore(*sources, **more))


def _figure(drawn: Any) -> Figure:
    """A matplotlib Figure as SVG, the same for the same figure."""
    from roofdsl.plot.board import save_figure

    with TemporaryDirectory(prefix="roofdsl-") as folder:
        path = Path(folder) / "figure.svg"
        save_figure(path, drawn)
        return Figure(path.read_text(encoding="utf-8"))

"""roofdsl: exact work, traffic and intensity of loop kernels, and predicted times on a machine."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # importing typing takes ten times as long as all else here
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`roofdsl.kernel`, and the types of annotations such as `roofdsl.f64`: imported when they are asked for."""
    if name == "kernel":
        return import_module("roofdsl.decorator").kernel
    types = import_module("roofdsl.annotations").TYPES
    if name in types:
        return types[name]
    raise AttributeError(f"module 'roofdsl' has no attribute '{name}'")


def load_ipython_extension(shell: object) -> None:
    """`%load_ext roofdsl` in Jupyter and IPython: the cell magic `%%roof`, rich results, errors without tracebacks."""
    _extension().load(shell)


def unload_ipython_extension(shell: object) -> None:
    """`%unload_ext roofdsl`."""
    _extension().unload(shell)


def _extension() -> Any:
    """The module that implements these functions. It is imported by name: the package itself depends on no part."""
    return import_module("roofdsl.notebook.extension")

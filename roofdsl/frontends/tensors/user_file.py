"""Files with `Model`, `get_inputs` and `get_init_inputs`, as KernelBench has them. Reading one runs its Python."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

from roofdsl.frontends.tensors.graph import Graph
from roofdsl.frontends.tensors.torch_graph import torch_graph
from roofdsl.lang.diagnostics import CommandError

_NEEDED = ("Model", "get_inputs", "get_init_inputs")


def graph_of_file(path: str) -> Graph:
    """The graph of the module of a file. RUNS the file: its Python code may do anything that the user may.

    Parameters and inputs have shapes and no data, so that large ones need no memory. Raises CommandError if the file
    does not run, lacks one of the three names, or cannot be exported.
    """
    try:
        from torch._subclasses.fake_tensor import FakeTensorMode
    except ImportError:
        raise CommandError("PyTorch is not installed", "install it with `pip install torch`") from None
    import torch

    module = _run(path)
    try:
        with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
            model = module.Model(*module.get_init_inputs())
            inputs = module.get_inputs()
            name = os.path.splitext(os.path.basename(path))[0]
            return torch_graph(model, inputs, name)
    except CommandError:
        raise
    except Exception as error:
        raise CommandError(f"`{path}` fails: {_said(error)}", "run it in PyTorch first") from None


def _run(path: str) -> Any:
    if not os.path.isfile(path):
        raise CommandError(f"there is no file `{path}`")
    spec = importlib.util.spec_from_file_location("roofdsl_users_model", path)
    if spec is None or spec.loader is None:
        raise CommandError(f"`{path}` is not a Python file", "give a file that ends in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise CommandError(f"`{path}` does not run: {_said(error)}", "run it in Python first") from None
    missing = [name for name in _NEEDED if not hasattr(module, name)]
    if missing:
        help = "`--torch` reads a class `Model` and the functions `get_inputs` and `get_init_inputs`"
        raise CommandError(f"`{path}` has no `{missing[0]}`", help)
    return module


def _said(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__

"""`@roofdsl.kernel`: a Python function that stays callable and has methods for its counts, times and measurements.

    import numpy as np
    import roofdsl
    from roofdsl import f64

    @roofdsl.kernel
    def gemv(A: f64["n", "m"], x: f64["m"], y: f64["n"]):
        y += A @ x

    gemv.derive()                     # W, Q and I in closed form
    gemv.predict("v100", n=4096, m=4096)

The text of the function is read from its file or notebook cell. Code that cannot be read raises InputError only in
these methods, so the function itself can always be called.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from roofdsl import api
from roofdsl.frontends.python.context import Module
from roofdsl.frontends.python.read import module_of, read_function
from roofdsl.frontends.python.signature import Given, given_of
from roofdsl.frontends.python.user_functions import Reading, given_like, sizes_in
from roofdsl.lang.checked import CheckedKernel
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace
from roofdsl.lang.source import Source
from roofdsl.lang.write import written
from roofdsl.loops.lower import lower
from roofdsl.loops.model import Kernel


class PythonKernel:
    """A function and its translation to a kernel.

    Methods take example arguments, which state types and sizes, or sizes by name: `f.derive(A, x, y)` or
    `f.derive(n=100)`.
    """

    def __init__(self, function: Callable[..., Any], shapes: Mapping[str, Given]) -> None:
        functools.update_wrapper(self, function)
        self.function, self.shapes = function, shapes
        self._readings: dict[Any, Reading] = {}

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The function itself."""
        return self.function(*args, **named)

    def __repr__(self) -> str:
        return f"<kernel {self.function.__name__}{inspect.signature(self.function)}>"

    # ---- what it is read as ----

    def reading(self, *examples: Any) -> Reading:
        """The translation of the function. Raises InputError for unsupported code, CommandError if the text of the
        function is unknown or the examples do not fit.
        """
        shapes = dict(self.shapes) | {n: given_like(v) for n, v in self._named(examples).items()}
        key = tuple(sorted(shapes.items(), key=lambda item: item[0]))
        if key not in self._readings:
            self._readings[key] = read_function(self._module, self._node, shapes)[0]
        return self._readings[key]

    @property
    def kernel(self) -> Kernel:
        """The kernel, for the functions of `roofdsl.api`."""
        return self._kernel(self.reading())

    @property
    def source(self) -> str:
        """The kernel as the text of a `.roof` file."""
        return written(CheckedKernel(self.reading().tree, self._module.source, None, ()))

    def like(self, *examples: Any) -> PythonKernel:
        """The same with the types and dimensions of example arguments, for a function without annotations."""
        found = {n: given_like(v) for n, v in self._named(examples).items()}
        return PythonKernel(self.function, {**self.shapes, **found})

    # ---- what it does ----

    def derive(self, *examples: Any, **options: Any) -> Any:
        """W, Q, Q(Z) and I, as `roofdsl.api.derive`."""
        own = self._at(examples, options)
        return api.derive(own, **options)

    def predict(self, on: Any, *examples: Any, **options: Any) -> Any:
        """The time on a machine, as `roofdsl.api.predict`."""
        own = self._at(examples, options)
        return api.predict(own, on, **options)

    def measure(self, *examples: Any, **options: Any) -> Any:
        """The measured time of generated code on this processor, as `roofdsl.api.measure`."""
        own = self._at(examples, options)
        return api.measure(own, **options)

    def _at(self, examples: tuple[Any, ...], options: dict[str, Any]) -> Kernel:
        """The kernel; the sizes of examples are added to the options."""
        reading = self.reading(*examples)
        if examples:
            known = {p.name.text for p in reading.tree.parameters}
            sizes = {n: v for n, v in sizes_in(reading, self._named(examples)).items() if n in known}
            options["sizes"] = {**sizes, **(options.get("sizes") or {})}
        return self._kernel(reading)

    def _kernel(self, reading: Reading) -> Kernel:
        return lower(CheckedKernel(reading.tree, self._module.source, None, ()), {})

    def _named(self, examples: tuple[Any, ...]) -> dict[str, Any]:
        if not examples:
            return {}
        try:
            bound = inspect.signature(self.function).bind(*examples)
        except TypeError as error:
            raise CommandError(f"these are not the arguments of `{self.function.__name__}`: {error}") from None
        bound.apply_defaults()
        return dict(bound.arguments)

    # ---- its text ----

    @functools.cached_property
    def _parsed(self) -> tuple[Module, ast.FunctionDef]:
        function = inspect.unwrap(self.function)
        code = function.__code__
        text = "".join(linecache.getlines(code.co_filename, function.__globals__))
        if not text:
            raise CommandError(f"the text of `{function.__name__}` is not known", "define it in a file or a notebook")
        module = module_of(Source(code.co_filename, text))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.name == function.__name__:
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                if first == code.co_firstlineno:
                    known = _with_globals(module, node, function.__globals__)
                    return _without(known, code.co_freevars), node
        raise CommandError(f"the text of `{function.__name__}` has changed since it was defined", "define it again")

    @property
    def _module(self) -> Module:
        return self._parsed[0]

    @property
    def _node(self) -> ast.FunctionDef:
        return self._parsed[1]


def kernel(function: Callable[..., Any] | None = None, **shapes: str) -> Any:
    """`@roofdsl.kernel`, or `@roofdsl.kernel(A="n,m:f64", x="m")` for a function without annotations."""
    given = {name: given_of(text, name) for name, text in shapes.items()}
    if function is None:
        return lambda own: PythonKernel(own, given)
    return PythonKernel(function, given)


def _without(module: Module, names: Sequence[str]) -> Module:
    """The module without names that are variables of a surrounding function."""
    functions = {n: f for n, f in module.functions.items() if n not in names}
    imported = {n: f for n, f in module.imported.items() if n not in names}
    constants = {n: v for n, v in module.constants.items() if n not in names}
    return Module(module.source, functions, imported, constants, module.unclear.union(names))


def _with_globals(module: Module, node: ast.FunctionDef, names: Mapping[str, Any]) -> Module:
    """The module with the modules, numbers and numpy functions that other cells of a notebook have defined."""
    used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    used -= {*module.functions, *module.imported, *module.constants}
    imported, constants = dict(module.imported), dict(module.constants)
    for name in used & names.keys():
        value = names[name]
        if isinstance(value, ModuleType):
            imported[name] = value.__name__
        elif isinstance(value, int | float) and not isinstance(value, bool):
            constants[name] = value
        elif type(value).__name__ == "ufunc" or getattr(value, "__module__", "") == "numpy":
            imported[name] = f"numpy.{value.__name__}"
    return replace(module, imported=imported, constants=constants)

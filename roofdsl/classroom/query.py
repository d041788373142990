"""Queries of exercises, and the kernels that they are about."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel as lowered
from roofdsl.loops.load import load_file
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import shipped_model


class Query(Record):
    """A question to the engine, with all templates filled in. `source` is the kernel's text or `shipped NAME`."""

    ask: str
    source: str = ""
    machine: str = ""
    settings: tuple[tuple[str, int], ...] = ()
    traffic: str = ""
    cache: int | None = None
    line: int | None = None
    ways: int | None = None
    number: int = 0
    which: str = ""
    more: tuple[tuple[str, Any], ...] = ()

    @property
    def at(self) -> dict[str, int]:
        return dict(self.settings)

    @property
    def kernel(self) -> Kernel:
        """The kernel, its `const` parameters set. Raises CommandError, InputError."""
        return kernel_of(self.source, self.at)

    @property
    def sizes(self) -> dict[str, int]:
        """The settings of parameters that are not `const`. Without any, the answer is a formula."""
        constants = dict(self.kernel.constants)
        return {name: value for name, value in self.settings if name not in constants}

    def option(self, name: str, default: Any = None) -> Any:
        """The value of an additional key of the query."""
        return dict(self.more).get(name, default)


def kernel_of(text: str, settings: Mapping[str, int] | None = None, name: str = "exercise") -> Kernel:
    """The kernel of a text, or of `shipped NAME`. Raises CommandError, InputError."""
    return _kernel(text, tuple((settings or {}).items()), name)


@cache
def _kernel(text: str, settings: tuple[tuple[str, int], ...], name: str) -> Kernel:
    if text.startswith("shipped "):
        target = shipped_model(text.removeprefix("shipped ").strip())
        if target is None:
            raise CommandError(f"there is no shipped kernel `{text.removeprefix('shipped ')}`")
        return lowered(load_file(target.path), target.name, dict(settings))
    checked = load_file(Source(f"{name}.roof", text))
    if len(checked.own_kernels) > 1:
        found = ", ".join(checked.own_kernels)
        help = "write each kernel on its own, or into a file of its own"
        raise CommandError(f"a kernel of an exercise is a single one, but this text has {found}", help)
    return lowered(checked, None, dict(settings))

"""The targets of code generation, one for each file in `roofdsl/codegen/targets/`: a new file there is a new target."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import TYPE_CHECKING

from roofdsl.codegen import targets
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.findings import listed

if TYPE_CHECKING:
    from roofdsl.codegen.target import Target


def target_names() -> tuple[str, ...]:
    """The names of all targets, sorted, without importing them."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(targets.__path__)))


def target_of(name: str) -> type[Target]:
    """The target in the file `name`.py. Raises CommandError if there is none."""
    if name not in target_names():
        raise CommandError(f"there is no target `{name}`", f"there are {listed(target_names(), 'and')}")
    found: type[Target] = import_module(f"{targets.__name__}.{name}").TARGET
    return found

"""The kinds of figures: every file in this folder is one, with the file's name, and has a `KIND` (`plot.kind.Kind`)."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from roofdsl.plot.kind import Kind


def names() -> list[str]:
    """The names of the kinds, without reading their files."""
    return sorted(module.name.replace("_", "-") for module in iter_modules(__path__))


def kind(name: str) -> Kind:
    """The kind of this name, one of `names`."""
    found = import_module(f"{__name__}.{name.replace('-', '_')}").KIND
    assert isinstance(found, Kind)
    return found

"""Integer sets: counting their points, and which accesses reuse what."""

from __future__ import annotations

import sys
from types import ModuleType


def _load_islpy() -> None:
    """Imports islpy without the query for its own version, which takes longer than the rest of the import.

    islpy asks importlib.metadata, which loads email, zipfile and csv and searches all installed packages: 25 ms, a
    sixth of `roofdsl predict`. Here, islpy finds a stand-in instead; `islpy.version` and `islpy.__version__` are
    computed on first use. If another version of islpy needs more of that module, it gets the real one.
    """
    name = "islpy.version"
    if "islpy" in sys.modules or name in sys.modules:
        return
    stand_in = ModuleType(name)
    stand_in.VERSION, stand_in.VERSION_TEXT = (), ""  # type: ignore[attr-defined]
    sys.modules[name] = stand_in
    try:
        import islpy
    except ImportError:
        del sys.modules[name]
        return
    del sys.modules[name], islpy.__version__

    def version(attribute: str) -> str:
        if attribute != "__version__":
            raise AttributeError(f"module 'islpy' has no attribute {attribute!r}")
        from islpy.version import VERSION_TEXT

        return str(VERSION_TEXT)

    islpy.__getattr__ = version


_load_islpy()

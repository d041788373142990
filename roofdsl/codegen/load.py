"""Generated Python as a function that numba compiles when it is called."""

from __future__ import annotations

import linecache
from typing import Any

from roofdsl.codegen.generated import Generated


def load_python(generated: Generated) -> Any:
    """The function of a generated text, which comes from a checked kernel; no code of a user is executed."""
    name = f"<{generated.kernel}, {generated.variant}>"
    names: dict[str, Any] = {}
    linecache.cache[name] = (len(generated.source), None, generated.source.splitlines(True), name)
    exec(compile(generated.source, name, "exec"), names)
    return names[generated.function]

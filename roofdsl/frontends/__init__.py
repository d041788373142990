"""Other ways in than `.roof` files: each front end reads a file of its language into the same checked tree.

Importing this package registers those of C and Python; each is imported when the first of its files is read.
"""

from __future__ import annotations

from roofdsl.lang.checked import CheckedFile
from roofdsl.loops import load


def _c(path: str, name: str | None) -> CheckedFile:
    from roofdsl.frontends.c.read import read

    return read(path, name)


def _python(path: str, name: str | None) -> CheckedFile:
    from roofdsl.frontends.python.read import read

    return read(path, name)


load.READERS[".c"] = _c
load.READERS[".py"] = _python

"""What commands do to start quickly must not be seen by anything else in the process."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

VERSIONS = """
import sys
import roofdsl.sets.library
import islpy
assert "importlib.metadata" not in sys.modules
print(islpy.__version__)
import islpy.version
print(islpy.version.VERSION_TEXT, isinstance(islpy.version.VERSION, tuple) and islpy.version.VERSION[0] >= 2025)
print(hasattr(islpy, "nothing_of_that_name"))
"""


def test_islpy_still_knows_its_version() -> None:
    done = subprocess.run([sys.executable, "-c", VERSIONS], capture_output=True, text=True, check=True)
    version = metadata.version("islpy-barvinok").split(".post", maxsplit=1)[0]
    assert done.stdout.split() == [version, version, "True", "False"]


def test_an_islpy_that_is_there_already_is_left_alone() -> None:
    program = "import islpy; v = islpy.__dict__['__version__']; import roofdsl.sets; assert islpy.__version__ is v"
    subprocess.run([sys.executable, "-c", program], check=True)

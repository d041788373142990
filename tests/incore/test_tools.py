"""llvm-mca and OSACA as processes: what they say is read, and why they say nothing is told."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest

from roofdsl.incore import tools
from roofdsl.incore.result import NoInCore
from roofdsl.incore.tools import in_core_by, osaca_cycles
from tests.incore.machines import MACHINE
from tests.incore.test_walk import _kernel, pytestmark  # noqa: F401 the mark is of the whole module

# The end of OSACA 0.7.1's answer to a loop of a load, a fused pair and a store.
OSACA = """
     |  0   - 0DV  |  1   - 1DV  |  2   |  3   |  4   ||  CP  | LCD  |
---------------------------------------------------------------------
   1 | 0.50        | 0.50        | 0.33 | 0.33 |      ||  4.0 |      |   vfmadd213pd (%rcx,%r9,8), %ymm1, %ymm2
   4 | 0.10        | 0.10        |      |      |      ||      |  1.0 |   addq $4, %r9

       0.60          0.60          0.67   0.33   0.50      9.0    {carried}

"""


@pytest.mark.parametrize(("carried", "expected"), [("1.0", 1.0), ("0.1", 0.67), ("4.0", 4.0)])
def test_osaca_is_the_busiest_port_or_the_chain(carried: str, expected: float) -> None:
    assert osaca_cycles(OSACA.replace("{carried}", carried)) == expected


def test_osaca_that_says_something_else() -> None:
    with pytest.raises(NoInCore, match="no line of sums"):
        osaca_cycles("nothing of the kind\n")


def test_a_tool_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoInCore, match="`llvm-mca` is not installed"):
        in_core_by("llvm-mca", _kernel("triad"), {"n": 100}, MACHINE)


def test_a_tool_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "llvm-mca"
    fake.write_text("#!/bin/sh\necho 'error: no such processor' >&2\nexit 1\n", encoding="utf-8")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(NoInCore, match="`llvm-mca` fails: error: no such processor"):
        in_core_by("llvm-mca", _kernel("triad"), {"n": 100}, MACHINE)


@pytest.mark.parametrize(("host", "asked", "said"), [("znver4", "ZEN4", ()), ("znver5", "ZEN4", ("stands in",))])
def test_osacas_nearest_model_is_told(
    host: str, asked: str, said: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "osaca"
    answer = OSACA.replace("{carried}", "4.0")
    fake.write_text(f"#!/bin/sh\necho \"$@\" >> {tmp_path}/asked\ncat <<'E'\n{answer}\nE\n", encoding="utf-8")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(tools, "_host", lambda: host)
    found = in_core_by("osaca", _kernel("triad"), {"n": 2000}, MACHINE)
    assert f"--arch {asked} " in (tmp_path / "asked").read_text(encoding="utf-8")
    told = [a for a in found.assumptions if "OSACA" in a]
    assert len(told) == len(said) and all(word in line for word, line in zip(said, told, strict=True))


@pytest.mark.skipif(shutil.which("llvm-mca") is None, reason="llvm-mca is not installed")
def test_llvm_mca_on_a_chain() -> None:
    """A strict chain of divisions: no processor of the last ten years takes less than 4 or more than 50 cycles."""
    try:
        found = in_core_by("llvm-mca", _kernel("solve"), {"n": 200}, MACHINE)
    except NoInCore as error:
        if "does not know all instructions of this processor" in str(error):
            pytest.skip(str(error))  # a processor that is younger than the tool
        raise
    assert found.model.startswith("llvm-mca ") and len(found.steps) == 1
    assert found.steps[0].overlapping_s > 0


def test_a_processor_younger_than_the_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "llvm-mca"
    says = "echo 'LLVM version 14.0.6'; [ \"$1\" = --version ] && exit 0; "
    says += "echo 'error: found an unsupported instruction in the input assembly sequence.' >&2; exit 1"
    fake.write_text(f"#!/bin/sh\n{says}\n", encoding="utf-8")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(NoInCore, match=r"llvm-mca 14\.0\.6 does not know all instructions of this processor; try a n"):
        in_core_by("llvm-mca", _kernel("solve"), {"n": 200}, MACHINE)

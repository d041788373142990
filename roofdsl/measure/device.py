"""The device that runs the code: the processor, its caches as the system reports them, and the software. Measures
nothing.
"""

from __future__ import annotations

import os
import platform
import re
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from roofdsl import __version__
from roofdsl.machine.processor import name_in
from roofdsl.measure.timing import usable_cores

SYSTEM = Path("/")


@dataclass(frozen=True)
class ReportedCache:
    """One data or unified cache as the system reports it. `copies`: how many of them the usable cores have."""

    level: int
    size_bytes: int
    line_bytes: int | None
    ways: int | None
    copies: int


@dataclass(frozen=True)
class Cpu:
    """The processor that this process may use. `cores` are those of its affinity mask, not of the machine.

    memory_bytes: the machine's memory, or the control group's limit if that is less. clock_hz: the current clock as
    reported, None if it is not reported; it is not a peak frequency.
    """

    name: str
    architecture: str
    cores: int
    caches: tuple[ReportedCache, ...]
    memory_bytes: int | None
    clock_hz: int | None
    virtual: bool

    @property
    def last_cache_bytes(self) -> int | None:
        """The size of one copy of the largest cache."""
        return max((c.size_bytes for c in self.caches), default=None)

    @property
    def line_bytes(self) -> int | None:
        return next((c.line_bytes for c in self.caches if c.line_bytes), None)

    def to_json(self) -> dict[str, Any]:
        """Plain values for a result file, with the kind of device."""
        return {"kind": "cpu", **asdict(self), "caches": [asdict(c) for c in self.caches]}


def describe_cpu(root: Path = SYSTEM) -> Cpu:
    """This machine's processor; what the system does not report is None. `root` stands for / (in tests, a copy)."""
    info = _read(root / "proc/cpuinfo")
    return Cpu(
        name=name_in(info),
        architecture=platform.machine() or "unknown",
        cores=len(usable_cores()),
        caches=_caches(root),
        memory_bytes=_memory(root),
        clock_hz=_clock(info),
        virtual=bool(re.search(r"^flags\s*:.*\bhypervisor\b", info, re.MULTILINE)),
    )


def software() -> dict[str, str]:
    """Names and versions of the software that influences the numbers."""
    found = {"roofdsl": __version__, "python": platform.python_version()}
    found["system"] = f"{platform.system()} {platform.release()}"
    for name in ("numpy", "numba", "llvmlite"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "unknown"
    return found


def blas() -> str:
    """The BLAS that numpy calls, from numpy's build information: `openblas 0.3.27`."""
    import numpy as np

    built: Any = np.show_config(mode="dicts")  # type: ignore[call-overload,unused-ignore]
    entry = built.get("Build Dependencies", {}).get("blas", {})
    return f"{entry.get('name', 'unknown')} {entry.get('version', '')}".strip()


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _clock(info: str) -> int | None:
    found = [float(x) for x in re.findall(r"^cpu MHz\s*:\s*([0-9.]+)$", info, re.MULTILINE)]
    return round(max(found) * 1e6) if found else None


def _caches(root: Path) -> tuple[ReportedCache, ...]:
    """The data and unified caches of all usable cores; equal ones that serve the same cores are one copy."""
    sharing: dict[tuple[int, int, int | None, int | None], set[str]] = {}
    for core in usable_cores():
        for index in sorted((root / f"sys/devices/system/cpu/cpu{core}/cache").glob("index*")):
            size = _size(_read(index / "size"))
            if _read(index / "type") not in ("Data", "Unified") or not size:
                continue
            key = (
                _whole(_read(index / "level")) or 0,
                size,
                _whole(_read(index / "coherency_line_size")),
                _whole(_read(index / "ways_of_associativity")),
            )
            sharing.setdefault(key, set()).add(_read(index / "shared_cpu_list") or str(core))
    if sharing:
        return tuple(ReportedCache(*key, copies=len(sharing[key])) for key in sorted(sharing, key=lambda k: k[:2]))
    return _caches_of_libc()


def _caches_of_libc() -> tuple[ReportedCache, ...]:
    """The caches that the C library reports if /sys has none; it does not know copies, so 1 is stated."""
    names = getattr(os, "sysconf_names", {})
    found = []
    for level, stem in ((1, "SC_LEVEL1_DCACHE"), (2, "SC_LEVEL2_CACHE"), (3, "SC_LEVEL3_CACHE")):
        if f"{stem}_SIZE" not in names:
            continue
        size = os.sysconf(f"{stem}_SIZE")
        if size > 0:
            line, ways = os.sysconf(f"{stem}_LINESIZE"), os.sysconf(f"{stem}_ASSOC")
            found.append(ReportedCache(level, size, line if line > 0 else None, ways if ways > 0 else None, 1))
    return tuple(found)


def _size(text: str) -> int | None:
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    return int(match[1]) * {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[match[2]] if match else None


def _whole(text: str) -> int | None:
    return int(text) if text.isdigit() and int(text) > 0 else None


def _memory(root: Path) -> int | None:
    try:
        total: int | None = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        total = None
    limits = [
        _whole(_read(root / p)) for p in ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes")
    ]
    known = [x for x in (total, *limits) if x]
    return min(known) if known else None

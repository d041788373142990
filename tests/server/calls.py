"""Calls of the service: one of every tool that is answered, and calls that are wrong in one way or another."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

KERNEL = """\
kernel scale(n):
    in a: f64[n]
    out b: f64[n]
    for i in range(n):
        b[i] = 2 * a[i]
"""
CALLS: dict[str, dict[str, Any]] = {
    "check": {"text": KERNEL, "deep": True},
    "derive": {"text": KERNEL, "cache": "32KiB", "line": "64B", "set": {"n": 4096}},
    "predict": {"file": "gemv", "machine": "v100", "set": {"n": 4096}},
    "sol": {"text": KERNEL, "machine": "v100", "set": {"n": 1 << 20}},
    "validate_claim": {"text": KERNEL, "machine": "v100", "set": {"n": 1 << 20}, "time": "1us"},
    "bound": {"file": "gemv", "cache": "32KiB", "set": {"n": 100}},
    "advise": {"text": KERNEL, "machine": "v100_textbook", "set": {"n": 4096}},
    "simulate": {"text": KERNEL, "cache": "1KiB", "line": "64B", "ways": 4, "set": {"n": 1000}},
}
"""A call of every tool that is answered."""


def hostile(draw: random.Random, root: Path) -> tuple[str, dict[str, Any]]:
    """A call that is wrong in one way or another: of any tool, or of none."""
    name = draw.choice([*CALLS, *CALLS, "exec", "", "predict\x00", "__class__", "x" * 500])
    given = dict(CALLS.get(name, {}))
    depth = draw.choice([10, 300, 20_000])
    deep = "(" * depth + "n" + ")" * draw.choice([0, depth])
    file = draw.choice([
        "/dev/zero", "/proc/self/mem", "/dev/stdin", "../" * 40 + "etc/passwd", "~", "\x00", str(root), "a/" * 3000,
        ".",
        "file:///etc/passwd", "link.roof", "..\\..\\secret.roof", "scale.roof/../../secret.roof",
    ])  # fmt: skip
    size = draw.choice([0, -1, 10**9, 2**62, 10**30, 10**400])
    way: dict[str, Any] = draw.choice([
        {"text": "kernel " * draw.choice([1, 1000, 100_000])}, {"text": KERNEL.replace("2 * a[i]", f"{deep} * a[i]")},
        {"text": KERNEL.replace("range(n)", f"range({'n*' * 300}n)")}, {"text": "\x00\ud800"}, {"text": 3},
        {"text": KERNEL.replace("b[i] =", "for j in range(n), k in range(n), l in range(n):\n            b[i] =")},
        {"text": KERNEL * draw.choice([2, 3000])}, {"text": f'use "{file}"\n'.replace("\x00", "")},
        {"text": KERNEL.replace("n]", f"{size}]")}, {"text": "".join(f"kernel k{k}(n):\n" for k in range(20_000))},
        {"text": None}, {"text": KERNEL, "set": {"n": size}}, {"set": {"n": "4"}}, {"set": {"n": True}},
        {"set": [1]}, {"set": {"__init__": 1}}, {"set": {f"p{k}": 1 for k in range(5000)}}, {"file": file},
        {"name": "a; rm -rf /"}, {"name": "--help"}, {"machine": "/etc/shadow"}, {"machine": "-x"},
        {"machine": "v100:../../x"}, {"machine": file}, {"cache": "-1"}, {"cache": "9" * 5000 + "GiB"}, {"line": "0B"},
        {"ways": -1}, {"ways": 10**40}, {"time": "1e400s"}, {"time": "--json"}, {"time": "$(touch ran)s"},
        {"unknown": 1}, {"deep": "yes"}, {"warm": 1}, {"x" * 100_000: 1},
    ])  # fmt: skip
    return name, {**given, **way}

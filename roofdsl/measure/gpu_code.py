"""Code that is ready to run on a GPU: generated CUDA or a library call, as gpu.py verifies and times it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from roofdsl.measure.gpu_driver import Call


@dataclass(frozen=True)
class GpuCode:
    """bind(arrays on the device, sizes) gives a call that starts all launches. `details` are for the record."""

    text: str
    compiler: str
    bind: Callable[[Mapping[str, Any], Mapping[str, int]], Call]
    details: Callable[[Mapping[str, int]], dict[str, Any]]

"""Emptying the processor's caches before a cold measurement (`--cold`)."""

from __future__ import annotations

import numpy as np


class CacheFlusher:
    """Empties the caches by writing more than they hold."""

    def __init__(self, cache_bytes: int) -> None:
        self.block = np.ones(max(2 * cache_bytes, 1 << 20) // 8)

    def __call__(self) -> None:
        self.block += 1.0

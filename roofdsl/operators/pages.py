"""What products over long rows wait for addresses: the first TLB of a multiprocessor holds only a few pages.

A product's operands lie in rows. While a tile is computed, its threads walk along all of its rows at the same time, so
the pages of all these rows are in use: few if the rows are short, one for each row if they are longer than a page. The
tiles of the blocks resident on a multiprocessor share its TLB. Where they use more pages than it holds, requests wait
for addresses. Rows of a power of two of bytes are aligned to pages, and touch fewer of them.
"""

from __future__ import annotations

from math import gcd

from roofdsl.machine.model import Machine
from roofdsl.operators.launch import multiprocessors

PAGE_BYTES = 2 << 20
"""Of the GPU's memory, as CUDA allocates it."""

REQUEST_BYTES = 512
"""Of a warp whose threads load 16 B each."""

IN_STEP = 2
"""Rounds of blocks after which half of them are no longer in step. The blocks of the first round start together and
find the addresses that their neighbors have just asked for."""


def pages_of(rows: int, row_bytes: int) -> float:
    """The pages that `rows` consecutive rows of a matrix lie in, averaged over the places where a tile may begin.

    A tile begins at a multiple of its own bytes, the matrix at a page.
    """
    tile_bytes = rows * row_bytes
    return 1 + (tile_bytes - gcd(tile_bytes, PAGE_BYTES)) / PAGE_BYTES


def waiting_s(machine: Machine, tile_pages: float, tile_bytes: float, resident: int, rounds: float) -> float:
    """Seconds that a block waits for addresses while it loads `tile_bytes` in all; 0 where no TLB is stated.

    tile_pages: in use at a time by one block, of `resident` ones. rounds: how many blocks a place runs in turn.
    """
    _, own = multiprocessors(machine)
    if own.tlb_bytes is None or own.tlb_miss_s is None:
        return 0.0
    held = own.tlb_bytes / PAGE_BYTES
    missed = max(0.0, 1 - held / (resident * tile_pages))
    return tile_bytes / REQUEST_BYTES * missed * float(own.tlb_miss_s) * rounds / (rounds + IN_STEP)

"""The time that products over long rows wait for addresses: a multiprocessor's first TLB holds only a few pages.

A product's operands lie in rows. While a tile is computed, its threads walk along all of its rows at the same time, so
the pages of all these rows are in use: few if the rows are short, one for each row if they are longer than a page. The
tiles of all blocks resident on a multiprocessor share its TLB. If they use more pages than it holds, requests wait for
address translation. Tiles whose size in bytes is a power of two are aligned with pages, and touch fewer of them.
"""

from __future__ import annotations

from math import gcd

from roofdsl.machine.model import Machine
from roofdsl.operators.launch import multiprocessors

PAGE_BYTES = 2 << 20
"""The size of a page of the GPU's memory, as CUDA allocates it."""

REQUEST_BYTES = 512
"""The bytes of one request: of a warp whose threads load 16 B each."""

IN_STEP = 2
"""The number of rounds of blocks after which half of the blocks are no longer in step. The blocks of the first round
start together, and find the addresses that their neighbors have just requested."""


def pages_of(rows: int, row_bytes: int) -> float:
    """The number of pages that `rows` consecutive rows of a matrix touch, averaged over the possible tiles.

    The matrix begins at a page boundary, and a tile at a multiple of its own size in bytes.
    """
    tile_bytes = rows * row_bytes
    return 1 + (tile_bytes - gcd(tile_bytes, PAGE_BYTES)) / PAGE_BYTES


def waiting_s(machine: Machine, tile_pages: float, tile_bytes: float, resident: int, rounds: float) -> float:
    """Seconds that a block waits for addresses while it loads `tile_bytes` in total; 0 if the machine states no TLB.

    tile_pages: the pages that one block uses at a time. resident: blocks on a multiprocessor at a time. rounds: the
    blocks that run in the same place one after another.
    """
    _, own = multiprocessors(machine)
    if own.tlb_bytes is None or own.tlb_miss_s is None:
        return 0.0
    held = own.tlb_bytes / PAGE_BYTES
    missed = max(0.0, 1 - held / (resident * tile_pages))
    return tile_bytes / REQUEST_BYTES * missed * float(own.tlb_miss_s) * rounds / (rounds + IN_STEP)

"""A sparse matrix by its nonzero places, and the formats that kernels read it in. Imports numpy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roofdsl import budget
from roofdsl.lang.diagnostics import CommandError

Ints = NDArray[np.int64]

MOST = 1 << 28
"""The most rows, and the most columns: so few that all places have numbers and tables of rows fit in memory."""


@dataclass(frozen=True, eq=False)
class Matrix:
    """The places of a matrix's entries, each once, sorted by row and within a row by column; their values do not
    matter.

    row, column: i64 arrays of the same length, counted from 0. about: where it is from, in words.
    """

    rows: int
    columns: int
    row: Ints
    column: Ints
    about: str

    @property
    def entries(self) -> int:
        return len(self.row)

    def offsets(self) -> Ints:
        """Where each row begins among the entries, and at the end the number of entries: rows + 1 numbers."""
        return np.concatenate([[0], np.cumsum(np.bincount(self.row, minlength=self.rows))]).astype(np.int64)


BYTES_PER_ENTRY = 48
"""The most memory that is taken for each entry while a matrix is made: six numbers of 8 bytes."""


def require_memory(entries: int, what: str) -> None:
    """Raises CommandError if this many entries take more memory than is available."""
    needed, there = entries * BYTES_PER_ENTRY, budget.available_bytes()
    if needed > there:
        sizes = f"{needed / 2**30:.3g} GiB of memory, and {there / 2**30:.3g} GiB are available"
        help = "use fewer entries, or, if this computer has more memory, allow it: `--budget 10min,32GiB`"
        raise CommandError(f"the {entries:,} entries of `{what}` need {sizes}", help)


def matrix(rows: int, columns: int, row: Ints, column: Ints, about: str) -> Matrix:
    """The matrix with entries at these places, in any order; places that occur twice become one entry.

    Raises CommandError for a matrix of more than MOST rows or columns.
    """
    if max(rows, columns) > MOST:
        raise CommandError(f"a matrix of {rows:,} x {columns:,} is too large; the limit is {MOST:,} rows and columns")
    place = row * columns
    place += column
    if not is_rising(place):
        place = different(place)
    row = place // columns
    place -= row * columns
    return Matrix(rows, columns, row, place, about)


def is_rising(values: Ints) -> bool:
    """Whether each value is above the one before."""
    return bool((values[1:] > values[:-1]).all())


def different(values: Ints) -> Ints:
    """The different values in rising order, by sorting `values` in place; `np.unique` hashes integers, which takes
    ten times as long for millions of them.
    """
    values.sort()
    kept = np.ones(len(values), dtype=np.bool_)
    np.not_equal(values[1:], values[:-1], out=kept[1:])
    return values[kept]


def transposed(of: Matrix) -> Matrix:
    """Rows as columns and columns as rows."""
    order = np.lexsort((of.row, of.column))
    return Matrix(of.columns, of.rows, of.column[order], of.row[order], of.about)


def ell(of: Matrix) -> Ints:
    """The columns in ELLPACK: rows x the longest row; shorter rows repeat their last column, empty ones take 0."""
    offsets = of.offsets()
    return _padded(of, offsets[:-1], np.diff(offsets))


def sell(of: Matrix, chunk: int, sigma: int = 1) -> tuple[Ints, Ints]:
    """SELL-C-sigma (Kreutzer et al., SIAM J. Sci. Comput. 36(5), 2014): (chunk offsets, columns).

    Rows are sorted by falling length inside windows of `sigma`, then cut into chunks of `chunk` rows, each as wide as
    its longest row and stored column by column: columns[offsets[c] + j, r] is entry j of row r of chunk c. Padding is
    that of `ell`; the last chunk is filled up with empty rows.
    """
    begins = of.offsets()
    lengths = np.diff(begins)
    order = np.arange(of.rows)
    order = order[np.lexsort((order, -lengths, order // sigma))]
    chunks = -(-of.rows // chunk)
    by_chunk = np.zeros(chunks * chunk, dtype=np.int64)
    by_chunk[: of.rows] = lengths[order]
    widths = by_chunk.reshape(chunks, chunk).max(axis=1)
    offsets = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    columns = np.zeros((int(offsets[-1]), chunk), dtype=np.int64)
    for c in range(chunks):
        own = order[c * chunk : (c + 1) * chunk]
        columns[offsets[c] : offsets[c + 1], : len(own)] = _padded(of, begins[own], lengths[own], int(widths[c])).T
    return offsets, columns


def _padded(of: Matrix, begins: Ints, lengths: Ints, width: int | None = None) -> Ints:
    """The columns of rows that begin at these entries, each filled up to `width` (None: the longest) with its last."""
    wide = int(lengths.max(initial=0)) if width is None else width
    place = np.minimum(np.arange(wide)[None, :], np.maximum(lengths[:, None] - 1, 0)) + begins[:, None]
    filled = of.column[np.minimum(place, max(0, of.entries - 1))] if of.entries else np.zeros_like(place)
    return np.where(lengths[:, None] > 0, filled, 0).astype(np.int64)

"""Matrices and integers from files: Matrix Market (`.mtx`), numpy (`.npy`, `.npz`) and scipy's sparse `.npz`.

Nothing in a file is executed: numpy reads without pickle. Imports numpy.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from roofdsl.lang.diagnostics import CommandError
from roofdsl.matrices.matrix import Ints, Matrix, matrix, require_memory

MOST_BYTES = 1 << 32
"""The largest file."""


def read_file(path: Path, array: str) -> Matrix | Ints:
    """The matrix in a file, or its integers; `array` is the name to look for in an `.npz` of several.

    Raises CommandError for a file that is missing, too large, damaged, or of another kind.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise CommandError(f"`{path}` is larger than the limit of {MOST_BYTES >> 30} GiB")
        match path.suffix:
            case ".mtx":
                with path.open(encoding="utf-8", errors="replace") as file:
                    return _matrix_market(file, path)
            case ".npy":
                require_memory(path.stat().st_size // 8, path.name)
                return _integers(np.load(path, allow_pickle=False), path)
            case ".npz":
                with zipfile.ZipFile(path) as parts:
                    require_memory(sum(part.file_size for part in parts.infolist()) // 8, path.name)
                with np.load(path, allow_pickle=False) as arrays:
                    return _of_arrays(arrays, path, array)
    except OSError as error:
        raise CommandError(f"`{path}` cannot be read: {error.strerror or error}") from None
    except (ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise CommandError(f"`{path}` is damaged: {error}") from None
    help = "or generate data: random:n=1000,row=8,seed=1"
    raise CommandError(f"`{path}` is of no known kind: files end in .mtx, .npz or .npy", help)


def _matrix_market(file: TextIO, path: Path) -> Matrix:
    """A sparse matrix in the exchange format (Boisvert, Pozo, Remington, NISTIR 5935, 1996); values are not kept."""
    words = file.readline().lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise CommandError(f"`{path}` does not begin with `%%MatrixMarket matrix`")
    _, _, layout, _, symmetry = words
    if layout != "coordinate":
        raise CommandError(f"`{path}` is a dense matrix (`{layout}`)", "a sparse one begins with `matrix coordinate`")
    line = next((line for line in file if line.strip() and not line.startswith("%")), "")
    rows, columns, entries = (int(word) for word in line.split())
    if rows < 1 or columns < 1 or entries < 0:
        raise ValueError("it has no rows or no columns")
    if symmetry != "general" and rows != columns:
        raise ValueError(f"a {symmetry} matrix is square, and this one has {rows} rows and {columns} columns")
    require_memory(entries if symmetry == "general" else 2 * entries, path.name)
    empty = np.zeros((0, 2), dtype=np.int64)
    places = np.loadtxt(file, dtype=np.int64, usecols=(0, 1), comments="%", ndmin=2) if entries else empty
    if len(places) != entries:
        raise ValueError(f"it announces {entries} entries and has {len(places)}")
    row, column = places[:, 0] - 1, places[:, 1] - 1
    if entries and not (row.min() >= 0 and column.min() >= 0 and row.max() < rows and column.max() < columns):
        raise ValueError(f"an entry lies outside its {rows} rows and {columns} columns")
    # Symmetric, skew-symmetric and hermitian matrices give one triangle. Both places of a diagonal entry are the same,
    # which `matrix` keeps once.
    if symmetry != "general":
        row, column = np.concatenate([row, column]), np.concatenate([column, row])
    return matrix(rows, columns, row, column, path.name)


def _of_arrays(arrays: Any, path: Path, array: str) -> Matrix | Ints:
    names = set(arrays.files)
    if {"indptr", "indices", "shape"} <= names:  # scipy.sparse.save_npz
        rows, columns = (int(x) for x in arrays["shape"])
        if str(np.asarray(arrays["format"]).astype("U").item() if "format" in names else "csr") != "csr":
            raise CommandError(f"`{path}` holds a sparse matrix that is not CSR", "save it with `A.tocsr()`")
        indptr, indices = (_integers(arrays[n], path) for n in ("indptr", "indices"))
        if len(indptr) != rows + 1 or indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
            raise ValueError("its row offsets do not rise from 0 to the number of its entries")
        if len(indices) and not 0 <= indices.min() <= indices.max() < columns:
            raise ValueError(f"a column lies outside 0..{columns - 1}")
        return matrix(rows, columns, np.repeat(np.arange(rows), np.diff(indptr)), indices, path.name)
    if array in names or len(names) == 1:
        return _integers(arrays[array if array in names else names.pop()], path)
    raise CommandError(f"`{path}` has no array `{array}`; it has {', '.join(sorted(names))[:200] or 'none'}")


def _integers(found: Any, path: Path) -> Ints:
    values = np.asarray(found)
    if values.dtype.kind not in "iu":
        raise CommandError(f"`{path}` holds {values.dtype}, and indices are integers")
    return values.astype(np.int64)

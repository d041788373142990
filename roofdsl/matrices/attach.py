"""`--data rowptr,col=A.mtx`: gives index arrays their values, and parameters the sizes that follow from these.

What the arrays hold follows from their declarations. Two arrays take a matrix: offsets that rise and columns in one
dimension are CSR, offsets and columns in two dimensions SELL-C, rows and columns COO. One array of two dimensions takes
the columns of a matrix in ELLPACK. A list of integers from a generator is for one array of one dimension; integers from
a file may have as many dimensions as their array. Imports numpy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.findings import did_you_mean
from roofdsl.lang.record import Record, replace
from roofdsl.loops.affine import affine
from roofdsl.loops.index_data import IndexData
from roofdsl.loops.indirect import index_arrays, require_data
from roofdsl.loops.integers import IntExpr, Sym
from roofdsl.loops.model import Array, Kernel, Rises, Takes
from roofdsl.matrices.files import read_file
from roofdsl.matrices.generate import generated, is_generated
from roofdsl.matrices.matrix import Ints, Matrix, different, ell, sell, transposed


class Source(Record):
    """One `--data` text: the arrays, and the file or generator; sigma: the window in which SELL-C sorts rows.

    transposed: whether columns become rows.
    """

    names: tuple[str, ...]
    text: str
    sigma: int = 1
    transposed: bool = False


def parse_source(text: str) -> Source:
    """`rowptr,col=A.mtx`; `+transposed` swaps rows and columns, `chunk,col=A.mtx+sigma=128` sorts rows,
    in either order.

    Raises CommandError for another form.
    """
    names, equals, what = text.partition("=")
    arrays = tuple(n.strip() for n in names.split(","))
    if not equals or not what or not all(n.isidentifier() for n in arrays):
        help = "write `--data rowptr,col=A.mtx`: the index arrays, and a file or a generator"
        raise CommandError(f"`--data {text}` is not of the form NAME=FILE", help)
    what, swapped, rest = what.partition("+transposed")
    what, plus, window = (what + rest).partition("+sigma=")
    if plus and not (window.isascii() and window.isdigit() and int(window)):
        raise CommandError(f"`--data {text}`: sigma is a number of rows, such as +sigma=128")
    return Source(arrays, what, int(window) if plus else 1, bool(swapped))


def with_data(kernel: Kernel, texts: Sequence[str], settings: Mapping[str, int]) -> tuple[Kernel, dict[str, int]]:
    """The kernel with the values of its index arrays, and the settings with the sizes that these imply.

    Raises CommandError for arrays that the kernel does not have, data that do not fit them, data that contradict a
    size or an assumption, and index arrays left without values.
    """
    attach = _Attach(kernel, settings)
    for text in texts:
        attach.source(parse_source(text))
    filled = replace(kernel, data=IndexData(attach.values, attach.about))
    require_data(filled)
    attach.check()
    return filled, attach.sizes


class _Attach:
    def __init__(self, kernel: Kernel, settings: Mapping[str, int]) -> None:
        self.kernel = kernel
        self.arrays = {a.name: a for a in kernel.arrays}
        self.rises = {f.array: f for f in kernel.facts if isinstance(f, Rises)}
        self.sizes = dict(settings)
        self.values: dict[str, Ints] = {}
        self.about: list[str] = []

    def source(self, source: Source) -> None:
        """Gives the arrays of one `--data` their values."""
        known = index_arrays(self.kernel)
        for name in source.names:
            if name not in known:
                what = "has no index array" if known else "is affine and has no index array"
                help = did_you_mean(name, known, f"its index arrays are {', '.join(known)}" if known else "")
                raise CommandError(f"kernel {self.kernel.name} {what} `{name}`", help)
            if name in self.values:
                raise CommandError(f"`{name}` is given values twice")
        found = generated(source.text) if is_generated(source.text) else read_file(Path(source.text), source.names[0])
        arrays = [self.arrays[n] for n in source.names]
        turned = ""
        if isinstance(found, Matrix):
            if source.transposed:
                found, turned = transposed(found), ", transposed"
            self._matrix(found, arrays, source)
            shape = f"{found.rows} x {found.columns}, {found.entries} entries{self._beta_text(found, arrays)}"
        else:
            if source.transposed:
                raise CommandError(f"`{source.text}` is a list of integers, which `+transposed` does not change")
            self._list(found, arrays, source)
            shape = f"{found.size} integers"
        self.about.append(f"{', '.join(source.names)}: {source.text} ({shape}{turned})")

    def _matrix(self, matrix: Matrix, arrays: list[Array], source: Source) -> None:
        ranks = [len(a.dims) for a in arrays]
        rising = [a.name in self.rises for a in arrays]
        if source.sigma != 1 and (ranks, rising) != ([1, 2], [True, False]):
            raise CommandError("`+sigma` sorts the rows of SELL-C, which is offsets and an array of two dimensions")
        match ranks, rising:
            case [1, 1], [True, False]:
                self._set(arrays[0], matrix.offsets())
                self._set(arrays[1], matrix.column)
            case [1, 2], [True, False]:
                chunk = self._number(arrays[1].dims[1])
                if chunk is None:
                    what = f"the rows of a chunk, `{arrays[1].dims[1]}`, have no number"
                    raise CommandError(what, f"give it with --set {arrays[1].dims[1]}=32")
                offsets, columns = sell(matrix, chunk, source.sigma)
                self._set(arrays[0], offsets)
                self._set(arrays[1], columns)
            case [1, 1], [False, False]:
                self._set(arrays[0], matrix.row)
                self._set(arrays[1], matrix.column)
                self._size(arrays[0].below, matrix.rows)
            case [2], [False]:
                self._set(arrays[0], ell(matrix))
            case _:
                help = (
                    "a matrix needs two arrays (rising offsets and columns, or rows and columns) or one array of two"
                    " dimensions"
                )
                raise CommandError(f"`{source.text}` is a matrix, and {_listed(arrays)} cannot hold it", help)
        self._size(arrays[-1].below, matrix.columns)

    def _beta_text(self, matrix: Matrix, arrays: list[Array]) -> str:
        """`, beta 0.937` for a padded format: the share of what it stores that is entries of the matrix (Kreutzer et
        al., SIAM J. Sci. Comput. 36(5), 2014). Empty for other formats.
        """
        stored = self.values[arrays[-1].name].size
        return f", beta {matrix.entries / stored:.3g}" if len(arrays[-1].dims) == 2 and stored else ""

    def _list(self, found: Ints, arrays: list[Array], source: Source) -> None:
        if len(arrays) != 1:
            raise CommandError(f"`{source.text}` is a list of integers, and {_listed(arrays)} are {len(arrays)} arrays")
        (array,) = arrays
        if found.ndim != len(array.dims):
            what = f"`{source.text}` has {found.ndim} dimensions, and `{array.name}` has {len(array.dims)}"
            raise CommandError(what)
        self._set(array, found)
        n = source.text.partition(":n=")[2].partition(",")[0]
        if is_generated(source.text) and n.replace("_", "").isdigit():
            self._size(array.below, int(n.replace("_", "")))

    # ---- sizes ----

    def _set(self, array: Array, values: Ints) -> None:
        self.values[array.name] = np.ascontiguousarray(values, dtype=np.int64)
        for dim, extent in zip(array.dims, values.shape, strict=True):
            self._size(dim, extent)
        rising = self.rises.get(array.name)
        if rising is not None and values.size:
            self._size(rising.first, int(values[0]))
            self._size(rising.last, int(values[-1]))

    def _size(self, expression: IntExpr | None, value: int) -> None:
        """Derives the value of a parameter from the value of an expression in which it alone is unknown."""
        if expression is None:
            return
        form = affine(expression.substitute({}))
        unknown = [(t, c) for t, c in form.terms if not t.symbols() <= self.sizes.keys()]
        if not unknown:
            found = expression.evaluate(self.sizes)
            if found != value:
                given = ", ".join(f"{n} = {self.sizes[n]}" for n in sorted(expression.symbols()))
                raise CommandError(
                    f"`{expression}` is {found}{f' at {given}' if given else ''}, but the data say {value}"
                )
            return
        ((term, factor), *more) = unknown
        if more or not isinstance(term, Sym):
            return  # `check` asks for what is still missing
        known = form.constant + sum(
            c * t.evaluate(self.sizes) for t, c in form.terms if t.symbols() <= self.sizes.keys()
        )
        if (value - known) % factor or (value - known) // factor < 1:
            raise CommandError(
                f"`{expression}` cannot be {value}, as the data say, for a positive integer `{term.name}`"
            )
        self.sizes[term.name] = (value - known) // factor

    def _number(self, expression: IntExpr) -> int | None:
        defaults = {p.name: p.default for p in self.kernel.parameters if p.default is not None}
        known = {**defaults, **self.sizes}
        return expression.evaluate(known) if expression.symbols() <= known.keys() else None

    # ---- what the kernel assumes ----

    def check(self) -> None:
        """Raises CommandError where the values are not as they are declared and assumed."""
        for array in self.kernel.arrays:
            values = self.values.get(array.name)
            if values is None:
                continue
            shape = tuple(self._required(d) for d in array.dims)
            if values.shape != shape:
                declared, given = (" x ".join(map(str, of)) for of in (shape, values.shape))
                raise CommandError(f"`{array.name}` has the shape {declared}, but the data have {given}")
            limit = 1 << (8 * array.type.bytes - 1)
            if array.below is not None:
                limit = min(limit, self._required(array.below))
            if values.size and not 0 <= values.min() <= values.max() < limit:
                outside = values[(values < 0) | (values >= limit)][0]
                raise CommandError(f"`{array.name}` holds {outside}, but its values must be from 0 to {limit - 1}")
        for fact in self.kernel.facts:
            if isinstance(fact, Rises):
                self._check_rises(fact)
            elif isinstance(fact, Takes) and fact.array in self.values:
                number = len(different(self.values[fact.array].flatten()))
                if number != self._required(fact.number):
                    raise CommandError(f"`{fact.array}` takes {number} values, not {fact.number} as the kernel assumes")

    def _check_rises(self, fact: Rises) -> None:
        values = self.values.get(fact.array)
        if values is None:
            return
        ends = self._required(fact.first), self._required(fact.last)
        if not values.size or (int(values[0]), int(values[-1])) != ends or (np.diff(values) < 0).any():
            raise CommandError(f"`{fact.array}` does not rise from {fact.first} to {fact.last} in the data")

    def _required(self, expression: IntExpr) -> int:
        found = self._number(expression)
        if found is None:
            missing = min(expression.symbols() - self.sizes.keys())
            what = f"`{expression}` does not follow from the data"
            raise CommandError(what, f"give `{missing}` a number: --set {missing}=1000")
        return found


def _listed(arrays: Sequence[Array]) -> str:
    return ", ".join(f"{a.name}[{', '.join(map(str, a.dims))}]" for a in arrays)

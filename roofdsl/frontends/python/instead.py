"""What to write instead of functions of libraries that are not read."""

from __future__ import annotations

from roofdsl.lang.findings import closest

_OTHERWISE = "write it with loops and the functions that are read (docs/python.md), or take its result as an argument"
_PLACE = "take the index as an argument; `np.max` and `np.min` give the value itself"
_ORDER = "take sorted data as an argument, since the data decide how a sort runs"
_SOLVER = "write the loops of the factorization, or take its result as an argument"
_ROUNDED = "the language does not round: take rounded data as an argument"
_RANDOM = "take the random numbers as an argument"
_TIME = "leave it out: `roofdsl measure` times the code"
_INSTEAD = {
    **dict.fromkeys(("numpy.argmax", "numpy.argmin", "numpy.nonzero", "numpy.argwhere", "numpy.argsort"), _PLACE),
    **dict.fromkeys(("numpy.sort", "numpy.median", "numpy.percentile", "numpy.unique", "numpy.searchsorted"), _ORDER),
    **dict.fromkeys(("numpy.round", "numpy.floor", "numpy.ceil", "numpy.rint", "numpy.trunc"), _ROUNDED),
    **dict.fromkeys(("math.floor", "math.ceil"), _ROUNDED),
    **dict.fromkeys(("time.time", "time.perf_counter", "time.process_time"), _TIME),
    "numpy.cumsum": "write a loop: `s += x[i]` and `y[i] = s`",
    "numpy.cumprod": "write a loop: `p *= x[i]` and `y[i] = p`",
    "numpy.diff": "write `x[1:] - x[:-1]`",
    "numpy.roll": "write slices, such as `y[1:] = x[:-1]` and `y[0] = x[-1]`",
    "numpy.gradient": "write slices, such as `0.5 * (x[2:] - x[:-2])`",
    "numpy.convolve": "add up shifted slices in a loop: `y[k:k + n] += h[k] * x`",
    "numpy.pad": "store into a part of a larger array: `y[1:-1] = x`",
    "numpy.tile": "store `x` into the parts of a larger array, or use broadcasting: `x[None, :]`",
    "numpy.repeat": "use broadcasting: `x[:, None]`",
    "numpy.meshgrid": "use broadcasting: `x[None, :]` and `y[:, None]`",
    "numpy.broadcast_to": "leave it out: smaller arrays are broadcast by themselves",
    "numpy.linspace": "fill an array in a loop: `x[i] = a + i * (b - a) / (n - 1)`",
    "numpy.hypot": "write `np.sqrt(x * x + y * y)`",
    "numpy.sign": "write `np.where(x > 0, 1.0, np.where(x < 0, -1.0, 0.0))`",
    "numpy.tan": "write `np.sin(x) / np.cos(x)`",
    "numpy.sinh": "write `0.5 * (np.exp(x) - np.exp(-x))`",
    "numpy.cosh": "write `0.5 * (np.exp(x) + np.exp(-x))`",
    "numpy.log2": "write `np.log(x) / np.log(2)`",
    "numpy.log10": "write `np.log(x) / np.log(10)`",
    "numpy.log1p": "write `np.log(1 + x)`",
    "numpy.expm1": "write `np.exp(x) - 1`",
    "numpy.exp2": "write `2.0**x`",
    "numpy.tensordot": "write `np.einsum`",
    "numpy.kron": "write `a[:, None, :, None] * b[None, :, None, :]`",
    "numpy.cross": "write its three components",
    "numpy.count_nonzero": "write `np.sum(x != 0)`",
    "numpy.average": "write `np.sum(w * x) / np.sum(w)`",
    "numpy.histogram": "count one bin after another: `np.sum(np.where(x == b, 1, 0))`",
    "scipy.special.erf": "write `np.tanh`, which counts as one special function, too",
    "math.erf": "write `math.tanh`, which counts as one special function, too",
}
_FAMILIES = {
    "numpy.random.": _RANDOM,
    "random.": _RANDOM,
    "numpy.fft.": "write the loops of its butterflies",
    "numpy.linalg.": _SOLVER,
    "scipy.linalg.": _SOLVER,
    "scipy.sparse.": "take `data`, `indices` and `indptr` as index arrays of a .roof kernel (docs/sparse.md)",
    "scipy.signal.": "add up shifted slices in a loop: `y[k:k + n] += h[k] * x`",
    "scipy.ndimage.": "add up shifted slices, such as `w[0, 1] * x[:-2, 1:-1]`",
    "torch.": "`roofdsl convert FILE.py --torch` runs the file, and reads the PyTorch `Model` in it",
    "jax.": "`from_jax` of `roofdsl.api` reads a function of JAX",
}


def short(name: str) -> str:
    """A full name as people write it: `np.sum` for `numpy.sum`."""
    return f"np.{name.removeprefix('numpy.')}" if name.startswith("numpy.") else name


def instead(name: str, known: list[str]) -> str:
    """The help for a function that is not read, by its full name. known: the full names of those that are read."""
    if name in _INSTEAD:
        return _INSTEAD[name]
    family = next((help for start, help in _FAMILIES.items() if name.startswith(start)), None)
    package, _, last = name.rpartition(".")
    close = closest(last, [k.rpartition(".")[2] for k in known if k.rpartition(".")[0] == package], 0.82)
    if family is None and close is not None:
        return f"the nearest function that is read is `{short(f'{package}.{close}')}`"
    return family or _OTHERWISE

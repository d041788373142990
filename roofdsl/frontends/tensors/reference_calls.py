"""The functions and methods of torch that a reference may call: a table by name, each as operators of the graph.

A method is the function of its name with the tensor before the other arguments. What is not in the tables, or is
called in a way that is not known here, raises `NotRead`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import accumulate
from typing import Any

from roofdsl.frontends.tensors.elementwise import OPERATORS
from roofdsl.frontends.tensors.graph import Tensor
from roofdsl.frontends.tensors.normalizations import over_groups, over_last
from roofdsl.frontends.tensors.reference_products import attention, convolution, linear
from roofdsl.frontends.tensors.reference_values import Builder, Dtype, NotRead, broadcast, has_given
from roofdsl.frontends.tensors.types import is_whole, promoted

Call = Callable[..., Any]


def _tensor(value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise NotRead("an operand that is no tensor")
    return value


def _sizes(values: Sequence[Any]) -> list[int]:
    """`(2, 3)` and `([2, 3],)` as numbers."""
    found = list(values[0]) if len(values) == 1 and isinstance(values[0], tuple | list) else list(values)
    if not all(isinstance(n, int) and not isinstance(n, bool) for n in found):
        raise NotRead("sizes that are no whole numbers")
    return found


def _dims(dim: Any, rank: int) -> list[int]:
    found = list(range(rank)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    if not all(isinstance(d, int) and -rank <= d < max(rank, 1) for d in found):
        raise NotRead("dimensions that the tensor does not have")
    return [d % max(rank, 1) for d in found]


# ---- views ----


def _transpose(b: Builder, x: Tensor, first: int = 0, second: int = 1) -> Tensor:
    order = list(range(len(x.shape)))
    if len(order) > 1:
        order[first], order[second] = order[second], order[first]
    return b.permuted(x, order)


def _unsqueeze(b: Builder, x: Tensor, dim: int) -> Tensor:
    at = dim % (len(x.shape) + 1)
    return b.view(x, (*x.shape[:at], 1, *x.shape[at:]), in_order=True)


def _squeeze(b: Builder, x: Tensor, dim: Any = None) -> Tensor:
    gone = {d for d in _dims(dim, len(x.shape)) if x.shape[d] == 1}
    return b.view(x, [n for k, n in enumerate(x.shape) if k not in gone], in_order=True)


def _flatten(b: Builder, x: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    first, last = start_dim % len(x.shape), end_dim % len(x.shape)
    return b.reshape(x, (*x.shape[:first], math.prod(x.shape[first : last + 1]), *x.shape[last + 1 :]))


def _chunks(b: Builder, x: Tensor, sizes: Sequence[int], dim: int) -> tuple[Tensor, ...]:
    at = dim % len(x.shape)
    if sum(sizes) != x.shape[at]:
        raise NotRead(f"{x.shape[at]} places split into {list(sizes)}")
    ends = accumulate(sizes)
    return tuple(b.indexed(x, [*[slice(None)] * at, slice(e - n, e)]) for n, e in zip(sizes, ends, strict=True))


def _chunk(b: Builder, x: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    each = -(-x.shape[dim] // chunks)
    return _split(b, x, each, dim)


def _split(b: Builder, x: Tensor, size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    if isinstance(size, int):
        whole, rest = divmod(x.shape[dim], size)
        size = [size] * whole + [rest] * bool(rest)
    return _chunks(b, x, size, dim)


def _unbind(b: Builder, x: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    at = dim % len(x.shape)
    return tuple(b.indexed(x, [*[slice(None)] * at, place]) for place in range(x.shape[at]))


def _repeated(b: Builder, x: Tensor, repeats: int, dim: int) -> Tensor:
    """`repeat_interleave`: each place several times."""
    at = dim % len(x.shape)
    wide = b.expanded(_unsqueeze(b, x, at + 1), (*x.shape[: at + 1], repeats, *x.shape[at + 1 :]))
    return b.view(wide, (*x.shape[:at], x.shape[at] * repeats, *x.shape[at + 1 :]), in_order=False)


# ---- sums, extremes, normalizations ----


def _of_sums(op: str, type_name: str) -> str:
    """The type of the result, if none is asked for: whole numbers are added up in 64 bits."""
    return "i64" if op in ("sum", "prod", "cumsum") and is_whole(type_name) else type_name


def _cumsum(b: Builder, x: Tensor, dim: int, dtype: Dtype | None = None) -> Tensor:
    type_name = dtype.name if dtype is not None else _of_sums("cumsum", x.type)
    return b.add("cumsum", "cumsum", [x], x.shape, type_name, dim=_dims(dim, len(x.shape))[0])


def _reduced(op: str, kind: str = "", **fixed: Any) -> Call:
    """A reduction; kind: the type of the result, if it is not that of the data."""

    def read(b: Builder, x: Any, dim: Any = None, *rest: Any, keepdim: bool = False, **more: Any) -> Tensor:
        data, spread = _tensor(x), op in ("var", "std")
        known = {"dtype", "unbiased", "correction"} if spread else {"dtype"}
        keepdim = rest[0] if rest else keepdim
        wrong = len(rest) > (0 if spread else 1) or set(more) - known
        if wrong or not isinstance(keepdim, bool) or isinstance(dim, bool):
            raise NotRead(f"{op} called in this way")
        dims = _dims(dim, len(data.shape))
        type_name = kind or (more["dtype"].name if more.get("dtype") is not None else _of_sums(op, data.type))
        options = dict(fixed)
        if spread:
            options["correction"] = int(more.get("unbiased", more.get("correction", 1)))
        shape = [n for k, n in enumerate(data.shape) if k not in dims]
        made = b.add(op, op, [data], shape, type_name, dims=dims, **options)
        kept = [1 if k in dims else n for k, n in enumerate(data.shape)]
        return b.view(made, kept, in_order=True) if keepdim else made

    return read


_AMAX, _AMIN, _ARGMAX, _ARGMIN = (
    _reduced("extreme", kind, sign=sign, values=None if kind else 0, places=0 if kind else None)
    for kind in ("", "i64") for sign in (1, -1)
)  # fmt: skip


def _extreme(op: str, values: Call, places: Call) -> Call:
    """`max` and `min`: of all elements, along a dimension (values and places), or of two tensors."""

    def read(b: Builder, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if isinstance(dim, Tensor):
            return b.elementwise(op, [x, dim])
        return values(b, x) if dim is None else (values(b, x, dim, keepdim), places(b, x, dim, keepdim))

    return read


def _dropout(b: Builder, x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if training and p:
        raise NotRead("random numbers of a dropout")
    return x


def _softmax(op: str) -> Call:
    def read(b: Builder, x: Any, dim: int = -1, dtype: Dtype | None = None) -> Tensor:
        data = _tensor(x) if dtype is None else b.cast(_tensor(x), dtype.name)
        return b.add(op, op, [data], data.shape, data.type, dim=dim)

    return read


def _layer_norm(b: Builder, x: Tensor, shape: Any, *rest: Any, **more: Any) -> Tensor:
    weight, bias, eps = _affine(rest, more)
    return b.add(
        "layer_norm", "layer_norm", [x, weight, bias], x.shape, x.type, **over_last(x.shape, len(shape)), eps=eps
    )


def _affine(rest: Sequence[Any], more: Mapping[str, Any]) -> tuple[Any, Any, float]:
    """The weight, the bias and eps of a normalization. Raises ValueError for other arguments."""
    given = dict(zip(("weight", "bias", "eps"), rest, strict=False)) | dict(more)
    if set(given) - {"weight", "bias", "eps"} or len(rest) > 3:
        raise ValueError
    return given.get("weight"), given.get("bias"), given.get("eps", 1e-5)


def _group_norm(b: Builder, x: Tensor, groups: int, *rest: Any, **more: Any) -> Tensor:
    weight, bias, eps = _affine(rest, more)
    return b.add(
        "group_norm", "group_norm", [x, weight, bias], x.shape, x.type, **over_groups(x.shape, groups), eps=eps
    )


def _rms_norm(b: Builder, x: Tensor, shape: Any, weight: Any = None, eps: float | None = None) -> Tensor:
    dims = list(range(len(x.shape) - len(shape), len(x.shape)))
    mean = _reduced("mean")(b, b.elementwise("square", [x]), dims, True)
    made = b.elementwise("mul", [x, b.elementwise("rsqrt", [b.elementwise("add", [mean, eps or 1e-6])])])
    return made if weight is None else b.elementwise("mul", [made, weight])


# ---- movement ----


def _cat(b: Builder, tensors: Sequence[Any], dim: int = 0) -> Tensor:
    every = [_tensor(t) for t in tensors]
    at = dim % len(every[0].shape)
    shape = (*every[0].shape[:at], sum(t.shape[at] for t in every), *every[0].shape[at + 1 :])
    type_name = reduce(promoted, [t.type for t in every])
    if broadcast([(*t.shape[:at], 1, *t.shape[at + 1 :]) for t in every]) != (*shape[:at], 1, *shape[at + 1 :]):
        raise NotRead("tensors of other shapes, joined")
    return b.add("cat", "cat", every, shape, type_name, dim=at)


def _stack(b: Builder, tensors: Sequence[Any], dim: int = 0) -> Tensor:
    at = dim % (len(_tensor(tensors[0]).shape) + 1)
    return _cat(b, [_unsqueeze(b, _tensor(t), at) for t in tensors], at)


def _filled(value: float | None) -> Call:
    """`zeros`, `ones`, `full`: value None stands for the argument after the sizes."""

    def read(b: Builder, *given: Any, dtype: Dtype | None = None) -> Tensor:
        sizes = _sizes(given[:1] if value is None else given)
        number = value if value is not None else given[1]
        own = "f32" if value is not None else _type_of(number)
        return b.add("fill", "fill", [], sizes, own if dtype is None else dtype.name, value=float(number))

    return read


def _type_of(number: Any) -> str:
    """torch's type for a number of Python: `full` takes it, while `zeros` and `ones` are f32."""
    if isinstance(number, bool):
        return "i8"
    return "i64" if isinstance(number, int) else "f32"


def _like(value: float | None) -> Call:
    def read(b: Builder, x: Tensor, *given: Any, dtype: Dtype | None = None) -> Tensor:
        number = value if value is not None else given[0]
        return b.add("fill", "fill", [], x.shape, dtype.name if dtype else x.type, value=float(number))

    return read


def _arange(b: Builder, *given: Any, dtype: Dtype | None = None) -> Tensor:
    if not all(isinstance(n, int) for n in given) or not given:
        raise NotRead("arange of these numbers")
    count = len(range(*given))
    return b.add("arange", "arange", [], (count,), dtype.name if dtype else "i64")


def _triangle(sign: int) -> Call:
    """`tril` (sign 1) and `triu` (sign -1): the elements on one side of a diagonal, and zeros."""

    def read(b: Builder, x: Tensor, diagonal: int = 0) -> Tensor:
        rows, columns = x.shape[-2:]
        below = sum(min(max(k + diagonal + (sign > 0), 0), columns) for k in range(rows))
        kept = below if sign > 0 else rows * columns - below
        reads = math.prod(x.shape[:-2]) * kept if x.stored == x.shape else x.size
        called = "tril" if sign > 0 else "triu"
        return b.add("triangle", called, [x], x.shape, x.type, sign=sign, diagonal=diagonal, reads=reads)

    return read


def _rows(op: str) -> Call:
    def read(b: Builder, *given: Any, **more: Any) -> Tensor:
        values = [*given, *(more[k] for k in ("dim", "index") if k in more)]
        if op == "embedding":
            places, data = _tensor(values[0]), _tensor(values[1])
            return b.add(op, op, [data, places], (*places.shape, *data.shape[1:]), data.type)
        data, dim, places = _tensor(values[0]), values[1], _tensor(values[2])
        at = dim % len(data.shape)
        shape = places.shape if op == "gather" else (*data.shape[:at], *places.shape, *data.shape[at + 1 :])
        return b.add(op, op, [data, places], shape, data.type)

    return read


def _masked(b: Builder, x: Tensor, mask: Tensor, value: float) -> Tensor:
    finite = value if math.isfinite(value) else math.copysign(3.4e38, value)
    return b.elementwise("where", [mask, float(finite), x], x.type)


def _clamp(b: Builder, x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Bounds are numbers or tensors."""
    if min is None or max is None:
        op, bound = ("maximum", min) if max is None else ("minimum", max)
        return b.elementwise(op, [x, bound])
    return b.elementwise("clamp", [x, min, max])


def _to(b: Builder, x: Tensor, *given: Any, dtype: Any = None, **more: Any) -> Tensor:
    wanted = next((v for v in (dtype, *given) if isinstance(v, Dtype)), None)
    like = next((v for v in given if isinstance(v, Tensor)), None)
    name = wanted.name if wanted is not None else like.type if like is not None else x.type
    return b.cast(x, name)


def _cast(name: str) -> Call:
    return lambda b, x: b.cast(_tensor(x), name)


def _same(b: Builder, x: Any, *given: Any, **more: Any) -> Any:
    return x


CALLS: Mapping[str, Call] = {
    "matmul": lambda b, x, y: b.matmul(x, y), "mm": lambda b, x, y: b.matmul(x, y),
    "bmm": lambda b, x, y: b.matmul(x, y),
    "mv": lambda b, x, y: b.matmul(x, y), "dot": lambda b, x, y: b.matmul(x, y), "linear": linear,
    "scaled_dot_product_attention": attention,
    "conv1d": convolution(1), "conv2d": convolution(2), "conv3d": convolution(3),
    "transpose": _transpose, "swapaxes": _transpose, "t": _transpose,
    "permute": lambda b, x, *dims: b.permuted(x, _sizes(dims)),
    "view": lambda b, x, *sizes: b.reshape(x, _sizes(sizes)),
    "reshape": lambda b, x, *sizes: b.reshape(x, _sizes(sizes)),
    "view_as": lambda b, x, y: b.reshape(x, y.shape), "expand_as": lambda b, x, y: b.expanded(x, y.shape),
    "expand": lambda b, x, *sizes: b.expanded(x, _sizes(sizes)), "unsqueeze": _unsqueeze, "squeeze": _squeeze,
    "flatten": _flatten, "chunk": _chunk, "split": _split, "unbind": _unbind, "repeat_interleave": _repeated,
    "broadcast_to": lambda b, x, sizes: b.expanded(x, _sizes([sizes])),
    "sum": _reduced("sum"), "mean": _reduced("mean"), "prod": _reduced("prod"), "var": _reduced("var"),
    "std": _reduced("std"), "amax": _AMAX, "amin": _AMIN, "max": _extreme("maximum", _AMAX, _ARGMAX),
    "min": _extreme("minimum", _AMIN, _ARGMIN), "argmax": _ARGMAX, "argmin": _ARGMIN,
    "softmax": _softmax("softmax"), "log_softmax": _softmax("log_softmax"),
    "layer_norm": _layer_norm, "group_norm": _group_norm, "rms_norm": _rms_norm,
    "cat": _cat, "concat": _cat, "stack": _stack, "zeros": _filled(0), "ones": _filled(1), "full": _filled(None),
    "empty": _filled(0), "zeros_like": _like(0), "ones_like": _like(1), "empty_like": _like(0),
    "full_like": _like(None),
    "arange": _arange, "tril": _triangle(1), "triu": _triangle(-1),
    "embedding": _rows("embedding"), "gather": _rows("gather"),
    "index_select": _rows("index_select"), "masked_fill": _masked,
    "to": _to, "type": _to, "float": _cast("f32"), "half": _cast("f16"), "bfloat16": _cast("bf16"),
    "double": _cast("f64"),
    "long": _cast("i64"), "int": _cast("i32"), "bool": _cast("i8"),
    "contiguous": _same, "detach": _same, "cuda": _same, "cpu": _same, "requires_grad": _same, "dropout": _dropout,
    "clone": lambda b, x: b.elementwise("copy", [x]),
    "copy": lambda b, x, y: b.elementwise("copy", [b.expanded(y, x.shape)], x.type),
    "cumsum": _cumsum, "clamp": _clamp, "clip": _clamp,
    "size": lambda b, x, dim=None: x.shape if dim is None else x.shape[dim], "dim": lambda b, x: len(x.shape),
    "numel": lambda b, x: math.prod(x.shape), "broadcast_shapes": lambda b, *shapes: broadcast(shapes),
}  # fmt: skip
"""By name, as functions of torch and as methods. Elementwise operators are in `elementwise.OPERATORS`."""

_OF_GIVEN = ("scaled_dot_product_attention", "clamp", "clip", "full", "full_like", "masked_fill", "layer_norm",
             "group_norm", "rms_norm")  # fmt: skip
"""Calls whose numbers do not decide what is computed."""
_NUMPY = {"axis": "dim", "keepdims": "keepdim"}
"""numpy's names of arguments, which torch accepts too."""
_ALSO = {"multiply": "mul", "divide": "div", "subtract": "sub", "negative": "neg", "logical_and": "logical_and"}


def called(builder: Builder, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The value of a call of torch's function or method `name`. Raises NotRead."""
    plain = _ALSO.get(name.rstrip("_"), name.rstrip("_"))
    kwargs = {_NUMPY.get(k, k): v for k, v in kwargs.items()}
    deciding = [*kwargs.values(), *(args if plain in CALLS else ())]  # operands of elementwise operators do not
    if plain not in _OF_GIVEN and has_given(deciding):
        raise NotRead(f"`{name}` of a number that is given when the code runs")
    try:
        if plain in CALLS:
            return CALLS[plain](builder, *args, **kwargs)
        if plain in OPERATORS:
            options = {k: v for k, v in kwargs.items() if k in ("alpha", "approximate")}
            if set(kwargs) - set(options) - {"inplace"}:
                raise NotRead(f"{name} with {', '.join(kwargs)}")
            in_place = name.endswith("_") and isinstance(args[0], Tensor)
            return builder.elementwise(plain, args, args[0].type if in_place else None, **options)
    except (TypeError, IndexError, ValueError, ZeroDivisionError, AttributeError) as error:
        raise NotRead(f"{name} called in this way") from error
    raise NotRead(f"`{name}`")

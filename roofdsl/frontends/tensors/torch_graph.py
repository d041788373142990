"""From a module of PyTorch to a graph: `torch.export` and its decompositions into a small set of operators."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from roofdsl.frontends.tensors import normalizations
from roofdsl.frontends.tensors.graph import UNKNOWN, Graph, Node, Tensor
from roofdsl.frontends.tensors.program import program_name
from roofdsl.frontends.tensors.types import REAL, TYPES
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace

_VIEWS_IN_ORDER = ("view", "_unsafe_view", "reshape", "unsqueeze", "squeeze", "alias", "detach", "flatten",
                   "lift_fresh_copy", "contiguous", "unflatten")  # fmt: skip
_PARTS = ("slice", "select", "as_strided", "split_with_sizes", "unbind", "diagonal", "unfold", "chunk", "split",
          "narrow")  # fmt: skip
"""Views that leave elements out."""
_VIEWS = (*_PARTS, "permute", "transpose", "t", "expand", "movedim", "real", "imag", "view_as_real", "view_as_complex")
_SAME = {
    "_to_copy": "cast", "clone": "copy", "copy": "copy", 
    "bitwise_not": "logical_not", "clamp_min": "clamp", "_softmax": "softmax",
    "_log_softmax": "log_softmax", "rms_norm": "rms_norm", "sgn": "sign",
}  # fmt: skip
_FILLS = ("full", "full_like", "zeros", "zeros_like", "ones", "ones_like", "empty", "empty_like", "empty_permuted",
          "new_zeros", "new_full")  # fmt: skip
_NUMBERS = (int, float, bool)


def torch_graph(module: Any, inputs: Sequence[Any], name: str = "") -> Graph:
    """The graph of a module, in its current mode (training or not), for inputs of these shapes.

    Raises CommandError if torch is not installed or cannot export the module.
    """
    try:
        import torch
    except ImportError:
        raise CommandError("PyTorch is not installed", "install it with `pip install torch`") from None
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            exported = torch.export.export(module, tuple(inputs)).run_decompositions(_decompositions(torch))
    except Exception as error:  # what a module may raise is anything
        lines = str(error).strip().splitlines()
        said = f"{type(error).__name__}: {lines[0][:300] if lines else ''}"
        raise CommandError(f"torch.export cannot read the module: {said}", "run it once in PyTorch first") from None
    return _Reader(exported).graph(program_name(name or type(module).__name__))


def _decompositions(torch: Any) -> Any:
    """torch's own, except those of products by vectors, which would store every term of the sums."""
    if not hasattr(torch.export, "default_decompositions"):
        return None
    table = torch.export.default_decompositions()
    for product in (torch.ops.aten.mv.default, torch.ops.aten.dot.default):
        table.pop(product, None)
    return table


class _Reader:
    def __init__(self, exported: Any) -> None:
        self.exported = exported
        self.values: dict[str, Any] = {}  # by the names of nodes: a Tensor, a number, or a tuple of them
        self.nodes: list[Node] = []
        self.views = 0
        self.fresh = 0

    def graph(self, name: str) -> Graph:
        returned: list[Tensor] = []
        for node in self.exported.graph.nodes:
            if node.op == "placeholder":
                value = node.meta.get("val")
                self.values[node.name] = self._new(value) if hasattr(value, "shape") else value
            elif node.op == "output":
                returned = self._tensors(node.args)
            elif node.op == "call_function":
                self.values[node.name] = self._called(node)
        needed = self._needed({t.id for t in returned})
        return Graph(name, tuple(needed), tuple(returned), self.views)

    def _needed(self, results: set[int]) -> list[Node]:
        """The operators without those whose results are unused, such as unused statistics."""
        wanted = set(results)
        kept: list[Node] = []
        for node in reversed(self.nodes):
            if any(t.id in wanted for t in node.outputs):
                kept.insert(0, node)
                wanted |= {t.id for t in node.tensors}
        return kept

    # ---- values ----

    def _new(self, value: Any) -> Tensor:
        self.fresh += 1
        type_ = TYPES.get(str(value.dtype).removeprefix("torch."))
        if type_ is None:
            raise CommandError(f"tensors of {value.dtype} are not supported", f"the types are {', '.join(TYPES)}")
        shape = tuple(int(n) for n in value.shape)
        return Tensor(self.fresh, shape, type_, shape)

    def _value(self, argument: Any) -> Any:
        if hasattr(argument, "op") and hasattr(argument, "target"):
            return self.values.get(argument.name)
        if isinstance(argument, list | tuple):
            return tuple(self._value(a) for a in argument)
        return argument

    def _tensors(self, arguments: Any) -> list[Tensor]:
        value = self._value(arguments)
        pending, found = [value], []
        while pending:
            part = pending.pop(0)
            if isinstance(part, Tensor):
                found.append(part)
            elif isinstance(part, list | tuple):
                pending[:0] = list(part)
        return found

    # ---- operators ----

    def _called(self, node: Any) -> Any:
        target = node.target
        called = str(target)
        if getattr(target, "__name__", "") == "getitem":
            whole, place = self._value(node.args[0]), node.args[1]
            return whole[place]
        base = called.removeprefix("aten.").split(".")[0]
        args, kwargs = [self._value(a) for a in node.args], {k: self._value(v) for k, v in node.kwargs.items()}
        if node.meta.get("val") is None:
            return None  # a check that computes nothing
        result = node.meta["val"]
        if (base in _VIEWS_IN_ORDER or base in _VIEWS) and not _overlaps(base, args, result):
            return self._view(base, args, result)
        if base == "scalar_tensor" or (base in _FILLS and not result.shape):
            return args[0] if base == "scalar_tensor" else self._filled(base, args)
        if isinstance(result, bool | int | float):
            return result
        read = _READ.get(base)
        if base in _FILLS:
            op: tuple[str, Sequence[Any], Mapping[str, Any]] = ("fill", (), {"value": self._filled(base, args)})
        elif base in ("arange", "iota"):
            op = ("arange", (), {})
        elif read is not None:
            op = read(args, kwargs, self._users(node)) or (UNKNOWN, self._tensors(args), {})
        else:
            op = self._plain(base, args, kwargs)
        return self._add(called, op, result)

    def _add(self, called: str, op: tuple[str, Sequence[Any], Mapping[str, Any]], result: Any) -> Any:
        name, inputs, options = op
        several = isinstance(result, list | tuple)
        made = tuple(self._new(v) if v is not None else None for v in (result if several else (result,)))
        outputs = tuple(t for t in made if t is not None)
        operands: tuple[Any, ...] = tuple(_whole(i) for i in inputs)
        self.nodes.append(Node(name, called, operands, outputs, options))
        return made if several else made[0]

    def _view(self, base: str, args: list[Any], result: Any) -> Any:
        self.views += 1
        data = args[0]
        if not isinstance(data, Tensor):
            return data
        if isinstance(result, list | tuple):
            stored = _without(data.stored, args[1] if len(args) > 1 else 0) if base == "unbind" else None
            shapes = [tuple(map(int, v.shape)) for v in result]
            return tuple(data.parted(own, f"{base} {args[1:]} {k}", stored) for k, own in enumerate(shapes))
        shape = tuple(int(n) for n in result.shape)
        # What is read once more is stored once: `stored` has the 1 that `expand` widens, and follows every turn.
        if base == "expand":
            own = (*[1] * (len(shape) - len(data.stored)), *data.stored)
            return replace(data, shape=shape, stored=own, whole=False)
        if base in ("permute", "transpose", "t"):
            order = args[1] if base == "permute" else _swapped(len(shape), args[1:])
            return replace(data, shape=shape, stored=tuple(data.stored[k] for k in order), whole=False)
        if base in ("real", "imag"):
            return data.of_complex(base) if data.type in REAL else data
        if base in _PARTS:
            stored = shape if base == "as_strided" else _without(data.stored, args[1]) if base == "select" else None
            return data.parted(shape, f"{base} {args[1:]}", stored)
        moved = data.viewed(shape, in_order=base in _VIEWS_IN_ORDER)
        complex_ = {"view_as_real": REAL, "view_as_complex": {real: whole for whole, real in REAL.items()}}
        return replace(moved, type=complex_.get(base, {}).get(data.type, data.type))

    def _filled(self, base: str, args: list[Any]) -> float:
        if "full" in base:
            value = args[1] if base != "new_full" else args[2]
            return value if isinstance(value, _NUMBERS) else 0
        return float("ones" in base)

    def _users(self, node: Any) -> set[int]:
        """The used places of a tuple of results."""
        return {u.args[1] for u in node.users if getattr(u.target, "__name__", "") == "getitem" and u.users}

    def _plain(
        self, base: str, args: list[Any], kwargs: Mapping[str, Any]
    ) -> tuple[str, Sequence[Any], Mapping[str, Any]]:
        """An elementwise operator, by its name here; unknown if there is none."""
        from roofdsl.frontends.tensors.elementwise import OPERATORS

        name = _SAME.get(base, base)
        if name not in OPERATORS:
            return (UNKNOWN, self._tensors([args, list(kwargs.values())]), {})
        if name in ("cast", "copy"):
            return (name, args[1:2] if base == "copy" else args[:1], {})  # `copy` is given what it overwrites first
        if any(isinstance(a, complex) for a in args):
            return (UNKNOWN, self._tensors(args), {})  # the language has no complex numbers to write
        operands = [a for a in args if isinstance(a, Tensor | int | float)]
        options: dict[str, Any] = {k: v for k, v in kwargs.items() if k in ("alpha", "approximate", "value")}
        if name == "div" and kwargs.get("rounding_mode"):
            return (UNKNOWN, self._tensors(args), {})
        if name in ("clamp", "hardtanh"):
            low, high = (args[k] if k < len(args) else None for k in (1, 2))
            if not isinstance(low, Tensor) and not isinstance(high, Tensor):
                return (name, args[:1], _bounds(base, args))
            if low is not None and high is not None:
                return (name, args[:3], {})
            return ("maximum", args[:2], {}) if high is None else ("minimum", [args[0], high], {})
        extra = {"leaky_relu": ("slope",), "elu": ("alpha", "scale", "input_scale"), "softplus": ("beta", "threshold")}
        if name in extra:
            return (name, args[:1], options | dict(zip(extra[name], args[1:], strict=False)))
        return (name, operands, options)


def _overlaps(base: str, args: Sequence[Any], result: Any) -> bool:
    """Whether a view has elements several times that `expand` cannot repeat: windows that overlap."""
    return base in ("unfold", "as_strided") and isinstance(args[0], Tensor) and args[0].size < prod(result.shape)


def _bounds(base: str, args: list[Any]) -> dict[str, str]:
    from roofdsl.frontends.tensors.writing import number

    default = [-1.0, 1.0] if base == "hardtanh" else [None, None]
    given = [*args[1:3], *default[len(args[1:3]) :]]
    return {k: number(v) for k, v in zip(("low", "high"), given, strict=True) if isinstance(v, _NUMBERS)}


def _whole(operand: Any) -> Any:
    return int(operand) if isinstance(operand, bool) else operand


def _without(dims: tuple[int, ...], dim: int) -> tuple[int, ...]:
    at = dim % len(dims)
    return (*dims[:at], *dims[at + 1 :])


def _swapped(rank: int, dims: Sequence[int]) -> list[int]:
    order = list(range(rank))
    a, b = dims if dims else (0, rank - 1)
    order[a], order[b] = order[b], order[a]
    return order


# ---- operators with their own translation ----

Reading = tuple[str, Sequence[Any], Mapping[str, Any]] | None


def _product(bias: bool) -> Callable[..., Reading]:
    def read(args: list[Any], kwargs: Mapping[str, Any], users: set[int]) -> Reading:
        scaled = any(kwargs.get(k, 1) != 1 for k in ("alpha", "beta"))
        return None if scaled else ("matmul", args[: 3 if bias else 2], {"bias": bias})

    return read


def _convolution(args: list[Any], kwargs: Mapping[str, Any], users: set[int]) -> Reading:
    data, weight, bias, stride, padding, dilation, transposed, _, groups = args[:9]
    options = {"stride": stride, "padding": padding, "dilation": dilation, "transposed": transposed, "groups": groups}
    return ("convolution", [data, weight, *([bias] if bias is not None else [])], options)


def _reduction(op: str) -> Callable[..., Reading]:
    def read(args: list[Any], kwargs: Mapping[str, Any], users: set[int]) -> Reading:
        dims = args[1] if len(args) > 1 and args[1] is not None else ()
        dims = (dims,) if isinstance(dims, int) else dims
        options: dict[str, Any] = {"dims": list(dims)}
        if op in ("var", "std"):
            given = kwargs.get("correction")
            options["correction"] = 1 if given is None else given  # None is Bessel's correction, as for torch
        return (op, args[:1], options)

    return read


def _extreme(sign: int, kind: str) -> Callable[..., Reading]:
    def read(args: list[Any], kwargs: Mapping[str, Any], users: set[int]) -> Reading:
        if kind == "both" and len(args) == 1:  # of the whole tensor: the value alone
            return ("extreme", args, {"dims": [], "sign": sign, "values": 0, "places": None})
        given = args[1] if len(args) > 1 and args[1] is not None else ()
        dims = [given] if isinstance(given, int) else list(given)
        options: dict[str, Any] = {"dims": dims, "sign": sign, "values": 0, "places": None}
        if kind == "places":
            options |= {"values": None, "places": 0}
        elif kind == "both" and 1 in users:
            options["places"] = 1
        return ("extreme", args[:1], options)

    return read


def _softmax(args: list[Any], kwargs: Mapping[str, Any], users: set[int], op: str = "softmax") -> Reading:
    return (op, args[:1], {"dim": args[1]})


def _pooled(op: str) -> Callable[..., Reading]:
    def read(args: list[Any], kwargs: Mapping[str, Any], users: set[int]) -> Reading:
        window = list(args[1])
        d = len(window)
        given = [*args[2:], *[None] * 6]

        def wide(value: Any, otherwise: list[int]) -> list[int]:
            found = list(value) if value else otherwise
            return found * d if len(found) == 1 else found

        options: dict[str, Any] = {"window": window, "stride": wide(given[0], window)}
        options["padding"] = wide(given[1], [0] * d)
        options["dilation"] = wide(given[2], [1] * d) if op == "max_pool" else [1] * d
        options["places"] = 1 if op == "max_pool" and 1 in users else None
        options["divisor"] = given[4] if op == "avg_pool" else None
        return (op, args[:1], options)

    return read


def _layer_norm(args: list[Any], kwargs: Mapping[str, Any], users: set[int]) -> Reading:
    data, shape, weight, bias, eps = args[:5]
    options = normalizations.over_last(data.shape, len(shape)) | {"eps": eps}
    return ("layer_norm", [data, weight, bias], options)


def _group_norm(args: list[Any], kwargs: Mapping[str, Any], users: set[int]) -> Reading:
    data, weight, bias, _, _, _, groups, eps = args[:8]
    return ("group_norm", [data, weight, bias], normalizations.over_groups(data.shape, groups) | {"eps": eps})


def _batch_norm(form: str) -> Callable[..., Reading]:
    def read(args: list[Any], kwargs: Mapping[str, Any], users: set[int]) -> Reading:
        data, weight, bias, *rest = args
        if form == "no_stats":
            training, momentum, eps = rest[:3]
            running: list[Any] = []
        elif form == "no_training":
            mean, variance, momentum, eps = rest[:4]
            training, running = False, [mean, variance]
        else:
            mean, variance, training, momentum, eps = rest[:5]
            running = [mean, variance]
        options = normalizations.over_batch(data.shape, not training and bool(running))
        return ("batch_norm", [data, weight, bias, *running], options | {"eps": eps, "momentum": momentum})

    return read


def _scan(op: str) -> Callable[..., Reading]:
    return lambda args, kwargs, users: (op, args[:1], {"dim": args[1]})


def _cat(args: list[Any], kwargs: Mapping[str, Any], users: set[int]) -> Reading:
    return ("cat", args[0], {"dim": args[1] if len(args) > 1 else 0})


def _pad(args: list[Any], kwargs: Mapping[str, Any], users: set[int]) -> Reading:
    data, amounts = args[0], args[1]
    if any(a < 0 for a in amounts):
        return None
    low = [0] * len(data.shape)
    for k in range(len(amounts) // 2):
        low[-1 - k] = amounts[2 * k]
    return ("pad", [data], {"low": low, "value": args[2] if len(args) > 2 else 0})


def _rows(op: str, at: int) -> Callable[..., Reading]:
    """at: the position of the indices."""
    return lambda args, kwargs, users: (op, [args[0], args[at]], {})


_READ: Mapping[str, Callable[..., Reading]] = {
    "mm": _product(False), "bmm": _product(False), "mv": _product(False), "dot": _product(False),
    "addmm": _product(True), "baddbmm": _product(True), "convolution": _convolution,
    "sum": _reduction("sum"), "mean": _reduction("mean"), "prod": _reduction("prod"), "any": _reduction("any"),
    "all": _reduction("all"), "var": _reduction("var"), "std": _reduction("std"),
    "amax": _extreme(1, "values"), "amin": _extreme(-1, "values"), "max": _extreme(1, "both"),
    "min": _extreme(-1, "both"), "argmax": _extreme(1, "places"), "argmin": _extreme(-1, "places"),
    "_softmax": _softmax, "_log_softmax": lambda a, k, u: _softmax(a, k, u, "log_softmax"),
    "max_pool1d_with_indices": _pooled("max_pool"), "max_pool2d_with_indices": _pooled("max_pool"),
    "max_pool3d_with_indices": _pooled("max_pool"), "avg_pool1d": _pooled("avg_pool"),
    "avg_pool2d": _pooled("avg_pool"), "avg_pool3d": _pooled("avg_pool"),
    "native_layer_norm": _layer_norm, "native_group_norm": _group_norm,
    "_native_batch_norm_legit": lambda a, k, u: _batch_norm("no_stats" if len(a) == 6 else "functional")(a, k, u),
    "_native_batch_norm_legit_functional": _batch_norm("functional"),
    "_native_batch_norm_legit_no_training": _batch_norm("no_training"),
    "cumsum": _scan("cumsum"), "cumprod": _scan("cumprod"), "cat": _cat, "constant_pad_nd": _pad,
    "embedding": _rows("embedding", 1), "index_select": _rows("index_select", 2), "gather": _rows("gather", 2),
}  # fmt: skip

"""From a function of JAX to a graph: its jaxpr, with the functions that it calls inlined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from math import prod
from typing import Any

from roofdsl.frontends.tensors.elementwise import OPERATORS
from roofdsl.frontends.tensors.graph import UNKNOWN, Graph, Node, Tensor
from roofdsl.frontends.tensors.program import program_name
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace

TYPES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "float8_e4m3fn": "f8", "int64": "i64",
    "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "i8", "uint32": "i32", "uint64": "i64", "bool": "i8",
    "complex64": "c64", "complex128": "c128",
}  # fmt: skip
_SAME = {
    "add_any": "add", "max": "maximum", "min": "minimum", "logistic": "sigmoid", "convert_element_type": "cast",
    "copy": "copy", "not": "logical_not", "and": "bitwise_and", "or": "bitwise_or", "integer_pow": "pow",
}  # fmt: skip
_IN_ORDER = ("reshape", "squeeze", "expand_dims", "stop_gradient", "copy_p", "optimization_barrier")
_REDUCTIONS = {"reduce_sum": "sum", "reduce_prod": "prod", "reduce_or": "any", "reduce_and": "all"}
_SCANS = {"cumsum": "cumsum", "cumprod": "cumprod"}
_BODIES = ("jaxpr", "call_jaxpr", "fun_jaxpr")


def jax_graph(function: Callable[..., Any], inputs: Sequence[Any], name: str = "") -> Graph:
    """The graph of a function for inputs of these shapes (arrays, or `jax.ShapeDtypeStruct`).

    Raises CommandError where jax is not installed or cannot trace the function.
    """
    try:
        import jax
    except ImportError:
        raise CommandError("JAX is not installed", "install it with `pip install jax`") from None
    try:
        closed = jax.make_jaxpr(function)(*inputs)
    except Exception as error:  # what a function may raise is anything
        lines = str(error).strip().splitlines()
        said = f"{type(error).__name__}: {lines[0][:300] if lines else ''}"
        raise CommandError(f"JAX cannot trace the function: {said}", "run it once with jax.jit first") from None
    return _Reader().graph(closed, program_name(name or getattr(function, "__name__", "") or "function"))


class _Reader:
    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.views = 0
        self.fresh = 0

    def graph(self, closed: Any, name: str) -> Graph:
        inputs = [self._new(v.aval) for v in closed.jaxpr.invars]
        results = self._body(closed.jaxpr, closed.consts, inputs)
        returned = tuple(r for r in results if isinstance(r, Tensor))
        wanted = {t.id for t in returned}
        kept: list[Node] = []
        for node in reversed(self.nodes):  # operators with unused results are left out, as by jit
            if any(t.id in wanted for t in node.outputs):
                kept.insert(0, node)
                wanted |= {t.id for t in node.tensors}
        return Graph(name, tuple(kept), returned, self.views)

    def _new(self, aval: Any) -> Tensor:
        self.fresh += 1
        type_ = TYPES.get(str(aval.dtype), "")
        if not type_:
            raise CommandError(f"arrays of {aval.dtype} are not supported", f"the types are {', '.join(TYPES)}")
        shape = tuple(int(n) for n in aval.shape)
        return Tensor(self.fresh, shape, type_, shape)

    def _body(self, jaxpr: Any, consts: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        values: dict[Any, Any] = dict(zip(jaxpr.invars, inputs, strict=True))
        for variable, constant in zip(jaxpr.constvars, consts, strict=True):
            scalar = getattr(constant, "shape", None) == ()
            values[variable] = constant.item() if scalar else self._new(variable.aval)

        def value(atom: Any) -> Any:
            if not hasattr(atom, "val"):
                return values[atom]
            scalar = getattr(atom.val, "shape", ()) == ()
            return (atom.val.item() if hasattr(atom.val, "item") else atom.val) if scalar else self._new(atom.aval)

        for equation in jaxpr.eqns:
            found = self._equation(equation, [value(a) for a in equation.invars])
            values.update(zip(equation.outvars, found, strict=True))
        return [value(a) for a in jaxpr.outvars]

    # ---- equations ----

    def _equation(self, equation: Any, inputs: list[Any]) -> Sequence[Any]:
        name, params = equation.primitive.name, equation.params
        inner = next((params[k] for k in _BODIES if k in params), None)
        if inner is not None and name not in ("while", "scan", "cond", "pallas_call", "custom_partitioning"):
            consts = getattr(inner, "consts", ())
            return self._body(getattr(inner, "jaxpr", inner), consts, inputs)
        avals = [v.aval for v in equation.outvars]
        scalar = name == "broadcast_in_dim" or (name == "convert_element_type" and not avals[0].shape)
        if scalar and not any(isinstance(i, Tensor) for i in inputs):
            return [inputs[0]]  # a number, wherever it is read
        if name == "convert_element_type" and str(equation.invars[0].aval.dtype) == str(avals[0].dtype):
            return [inputs[0]]  # only how it combines with Python's numbers changes
        view = self._view(name, params, inputs, avals)
        if view is not None:
            self.views += 1
            return view
        op, operands, options = self._operator(name, params, inputs)
        outputs = tuple(self._new(a) for a in avals)
        self.nodes.append(Node(op, name, tuple(operands), outputs, options))
        return outputs

    def _view(self, name: str, params: Mapping[str, Any], inputs: list[Any], avals: list[Any]) -> list[Any] | None:
        if not inputs or not isinstance(inputs[0], Tensor):
            return None
        data, shape = inputs[0], tuple(int(n) for n in getattr(avals[0], "shape", ()))
        if name in _IN_ORDER and len(avals) == 1:
            data = self._copied(data) if data.is_copied(shape) else data
            return [data.viewed(shape, in_order=True)]
        if name == "transpose":
            turned = tuple(data.stored[k] for k in params["permutation"])
            return [replace(data, shape=shape, stored=turned, whole=False)]
        if name in ("real", "imag"):
            return [data.of_complex(name)]
        if name == "rev":
            return [data.viewed(shape, in_order=False)]
        if name in ("slice", "dynamic_slice"):
            where = [params.get(k) for k in ("start_indices", "limit_indices", "strides")]
            return [data.parted(shape, f"{where if name == 'slice' else inputs[1:]}")]
        if name == "split":
            shapes = [tuple(int(n) for n in aval.shape) for aval in avals]
            begins = accumulate(params["sizes"], initial=0)
            return [data.parted(own, f"{params['axis']}:{at}") for own, at in zip(shapes, begins, strict=False)]
        if name == "broadcast_in_dim":
            stored = [1] * len(shape)
            for own, place in enumerate(params["broadcast_dimensions"]):
                stored[place] = data.stored[own]
            return [replace(data, shape=shape, stored=tuple(stored), whole=False)]
        return None

    def _copied(self, data: Tensor) -> Tensor:
        """A copy with all elements that `data` repeats."""
        self.fresh += 1
        copy = Tensor(self.fresh, data.shape, data.type, data.shape)
        self.nodes.append(Node("copy", "reshape", (data,), (copy,), {}))
        return copy

    def _operator(
        self, name: str, params: Mapping[str, Any], inputs: list[Any]
    ) -> tuple[str, Sequence[Any], Mapping[str, Any]]:
        operands = [int(i) if isinstance(i, bool) else i for i in inputs]
        unknown = (UNKNOWN, [i for i in operands if isinstance(i, Tensor)], dict[str, Any]())
        read = _READ.get(name)
        if read is not None:
            return read(params, operands) or unknown
        if name in _REDUCTIONS:
            return _REDUCTIONS[name], operands, {"dims": list(params["axes"])}
        if name in ("reduce_max", "reduce_min"):
            options = {"dims": list(params["axes"]), "sign": 1 if name == "reduce_max" else -1}
            return "extreme", operands, {**options, "values": 0, "places": None}
        if name in ("argmax", "argmin"):
            options = {"dims": list(params["axes"]), "sign": 1 if name == "argmax" else -1}
            return "extreme", operands, {**options, "values": None, "places": 0}
        if name in _SCANS:
            return (UNKNOWN, *unknown[1:]) if params["reverse"] else (_SCANS[name], operands, {"dim": params["axis"]})
        plain = _SAME.get(name, name)
        if plain == "pow" and "y" in params:
            return plain, [operands[0], params["y"]], {}
        if plain in OPERATORS and not any(i is None for i in operands):
            return plain, operands, {}
        return unknown


Reading = tuple[str, Sequence[Any], Mapping[str, Any]] | None


def _dot(params: Mapping[str, Any], inputs: list[Any]) -> Reading:
    """`dot_general`: batch dimensions first, then the rest of the left operand, the rest of the right, and the summed
    ones.
    """
    (left_sum, right_sum), (left_batch, right_batch) = params["dimension_numbers"]
    left, right = inputs
    own = [d for d in range(len(left.shape)) if d not in (*left_sum, *left_batch)]
    other = [d for d in range(len(right.shape)) if d not in (*right_sum, *right_batch)]
    a = _arranged(left, left_batch, own, left_sum)
    b = _arranged(right, right_batch, right_sum, other)
    return ("matmul", [a, b], {"bias": False})


def _arranged(tensor: Tensor, batch: Sequence[int], *joined: Sequence[int]) -> Tensor:
    """A factor with its dimensions in the order of a product: those of the batch, and two groups that are joined. A
    group is one element in memory if each of its dimensions is; otherwise all of it counts.
    """
    shape = (*(tensor.shape[d] for d in batch), *(prod(tensor.shape[d] for d in group) for group in joined))
    stored = tuple(tensor.stored[d] for d in batch)
    for group in joined:
        size = prod(tensor.stored[d] for d in group)
        stored = (*stored, size if size == 1 else prod(tensor.shape[d] for d in group))
    return replace(tensor, shape=shape, stored=stored, whole=False)


def _convolution(params: Mapping[str, Any], inputs: list[Any]) -> Reading:
    """A convolution with dimensions in any order, as X[n, c, ...] and W[o, c, ...]; None for dilated data (a transposed
    convolution) and for groups of the batch.
    """
    order = params["dimension_numbers"]
    data, weight = inputs
    x = tuple(data.shape[d] for d in order.lhs_spec)
    w = tuple(weight.shape[d] for d in order.rhs_spec)
    low = [int(a) for a, _ in params["padding"]]
    if params.get("batch_group_count", 1) != 1 or any(d != 1 for d in params["lhs_dilation"]):
        return None
    options: dict[str, Any] = {"stride": list(params["window_strides"]), "padding": low}
    options |= {
        "dilation": list(params["rhs_dilation"]),
        "groups": params["feature_group_count"],
        "transposed": False,
        "result": order.out_spec,
    }
    a = replace(data, shape=x, stored=x, whole=False)
    b = replace(weight, shape=w, stored=w, whole=False)
    return ("convolution", [a, b], options)


def _pooled(op: str) -> Callable[[Mapping[str, Any], list[Any]], Reading]:
    def read(params: Mapping[str, Any], inputs: list[Any]) -> Reading:
        if any(d != 1 for d in (*params["base_dilation"], *params["window_dilation"])):
            return None
        options = {
            "window": list(params["window_dimensions"]), "stride": list(params["window_strides"]),
            "padding": [int(a) for a, _ in params["padding"]], "dilation": list(params["window_dilation"]),
            "places": None, "divisor": 1,
        }  # fmt: skip
        return (op, inputs[:1], options)

    return read


def _select(params: Mapping[str, Any], inputs: list[Any]) -> Reading:
    return ("where", [inputs[0], inputs[2], inputs[1]], {}) if len(inputs) == 3 else None


def _pad(params: Mapping[str, Any], inputs: list[Any]) -> Reading:
    configuration = params["padding_config"]
    if any(a < 0 or b < 0 or inner for a, b, inner in configuration) or not isinstance(inputs[1], int | float):
        return None
    return ("pad", inputs[:1], {"low": [a for a, _, _ in configuration], "value": inputs[1]})


def _gather(params: Mapping[str, Any], inputs: list[Any]) -> Reading:
    return ("gather", inputs, {})


_READ: Mapping[str, Callable[[Mapping[str, Any], list[Any]], Reading]] = {
    "dot_general": _dot, "conv_general_dilated": _convolution, "reduce_window_max": _pooled("max_pool"),
    "reduce_window_sum": _pooled("avg_pool"), "select_n": _select, "pad": _pad, "gather": _gather,
    "concatenate": lambda p, i: ("cat", i, {"dim": p["dimension"]}), "iota": lambda p, i: ("arange", (), {}),
    "erf_inv": lambda p, i: None, "square": lambda p, i: ("square", i, {}),
}  # fmt: skip

"""A contraction split over p devices along one of its parameters: T_math of one device and T_comms of the links.

Each device gets 1/p of the parameter's range. It needs a part of the arrays with such a dimension, and all of the
others. If the parameter is summed over, each device has partial sums of the whole result, which a collective adds. If
it is a dimension of the result, each device has a part of the result. (T_lower = max(T_math, T_comms) and T_upper =
T_math + T_comms; here, the memory's time is one more term.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.findings import did_you_mean
from roofdsl.lang.record import Record, field
from roofdsl.loops.accesses import accesses, operands, statements
from roofdsl.loops.integers import Const, Sym
from roofdsl.loops.model import Array, Assign, Count, Kernel
from roofdsl.loops.parameter_values import check_names, numbers
from roofdsl.loops.streams import require_ordinary
from roofdsl.machine.model import Machine
from roofdsl.predict.break_even import BreakEven, break_even
from roofdsl.predict.collectives import Collective, Kind, Network, collective, cost
from roofdsl.predict.contraction import is_contraction
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import DEFAULTS, Options
from roofdsl.predict.prediction import Prediction
from roofdsl.predict.time_model import bound_text, bounding, link_seconds
from roofdsl.sets.quasi import Quasi

Result = Literal["whole", "parts"]


class Transfer(Record):
    """One array that is communicated, and how."""

    array: Array
    kind: Kind


class Sharding(Record):
    """How a kernel is split: along `parameter`, with these transfers.

    parts: arrays of which each device has a part; whole: arrays that each device needs whole; sums: results of which it
    has partial sums.
    """

    kernel: Kernel
    parameter: str
    parts: tuple[str, ...]
    whole: tuple[str, ...]
    sums: tuple[str, ...]
    transfers: tuple[Transfer, ...]


class ShardedPrediction(Record):
    """p devices: `device` is the prediction of one of them without links, `communication` the collectives.

    break_evens: the sizes from which compute takes as long as the memory, and as the links.
    """

    sharding: Sharding
    network: Network
    device: Prediction
    communication: tuple[tuple[str, Collective], ...]
    break_evens: tuple[BreakEven, ...] = field(default=(), compare=False)

    @property
    def parameters(self) -> dict[str, int]:
        """The sizes of the whole product."""
        own = dict(self.device.parameters)
        return own | {self.sharding.parameter: own[self.sharding.parameter] * self.network.devices}

    @property
    def link(self) -> str:
        """The name of the links."""
        return self.network.link

    @property
    def compute_s(self) -> Fraction:
        """T_math of one device."""
        return self.device.compute_s

    @property
    def communication_s(self) -> Fraction:
        """T_comms: all collectives in sequence."""
        return sum((c.time_s for _, c in self.communication), Fraction(0))

    @property
    def bound_s(self) -> Fraction:
        """The lower bound: everything overlaps."""
        return max(self.device.bound_s, self.communication_s)

    @property
    def no_overlap_s(self) -> Fraction:
        """The upper bound: nothing overlaps."""
        return self.device.no_overlap_s + self.communication_s

    @property
    def work(self) -> int:
        """W of all devices together."""
        return self.device.work * self.network.devices

    @property
    def rate_per_s(self) -> Fraction:
        """W of all devices over the lower bound."""
        return self.work / self.bound_s if self.bound_s else Fraction(0)

    @property
    def bounds(self) -> tuple[str, ...]:
        """The largest term, and those within 10 % of it, largest first."""
        terms = (*self.device.terms, (self.link, self.communication_s))
        return tuple(terms[k][0] for k in bounding([time_s for _, time_s in terms]))

    @property
    def bound(self) -> str:
        """The names of `bounds` in words."""
        return bound_text(self.bounds)

    def to_json(self) -> dict[str, Any]:
        """The document `roofdsl.shard/1`; `device` is a `roofdsl.predict/1`."""
        s = self.sharding
        return {
            "schema": "roofdsl.shard/1",
            "kernel": s.kernel.name,
            "machine": self.device.machine,
            "devices": self.network.devices,
            "split": s.parameter,
            "parts": list(s.parts),
            "whole": list(s.whole),
            "sums": list(s.sums),
            "topology": self.network.topology,
            "work_flops": self.work,
            "flops_per_s": float(self.rate_per_s),
            "compute_s": float(self.compute_s),
            "communication_s": float(self.communication_s),
            "time_s": float(self.bound_s),
            "time_no_overlap_s": float(self.no_overlap_s),
            "bound": self.bound,
            "communication": [{"array": name} | c.to_json() for name, c in self.communication],
            "break_even": [c.to_json() for c in self.break_evens],
            "device": self.device.to_json(),
        }


def shard(kernel: Kernel, parameter: str, *, gather: Sequence[str] = (), result: Result = "whole") -> Sharding:
    """How to split the contraction `kernel` along `parameter`.

    gather: arrays that each device needs whole but at first holds only a part of. result: whether each device gets all
    of the result or a part. Raises CommandError for a kernel that cannot be split this way, and for unknown names.
    """
    _check_parameter(kernel, parameter)
    require_ordinary(kernel, "a split among devices")
    if not is_contraction(kernel):
        raise CommandError(
            f"{kernel.name} is not a contraction, and only contractions can be split",
            "a contraction sums products of two arrays, as in `C[i, j] += A[i, k] * B[k, j]`",
        )
    _check_loops(kernel, parameter)
    arrays = [a for a in kernel.arrays if a.intent != "temp"]
    parts = [a.name for a in arrays if Sym(parameter) in a.dims]
    written = {a.name for a in arrays if a.intent in ("out", "inout")}
    summed = _summed(kernel, parameter)
    sums = [a.name for a in arrays if a.name in summed and a.name not in parts]
    inputs = [a.name for a in arrays if a.name not in parts and a.name not in written]
    transfers = [Transfer(_gathered(arrays, inputs, parts, name, parameter), "all-gather") for name in gather]
    for array in arrays:
        if array.name in sums:
            transfers.append(Transfer(array, "all-reduce" if result == "whole" else "reduce-scatter"))
        elif array.name in written and array.name in parts and result == "whole":
            transfers.append(Transfer(array, "all-gather"))
    return Sharding(kernel, parameter, tuple(parts), tuple(inputs), tuple(sums), tuple(transfers))


def _check_parameter(kernel: Kernel, name: str) -> None:
    check_names(f"kernel {kernel.name}", [name], [p.name for p in kernel.parameters])


def _check_loops(kernel: Kernel, parameter: str) -> None:
    """Checks that `parameter` is only the extent of loops and of the dimensions that they run through."""

    def refuse(why: str) -> CommandError:
        help = "a kernel with a separate parameter for each loop can be split along any of them"
        return CommandError(f"{kernel.name} cannot be split along {parameter}: {why}", help)

    for array in kernel.arrays:
        if any(parameter in d.symbols() and d != Sym(parameter) for d in array.dims):
            raise refuse(f"{array.name} has a dimension that is an expression in it")
        if sum(d == Sym(parameter) for d in array.dims) > 1:
            raise refuse(f"{array.name} uses it for two of its dimensions")
    if any(parameter in assumed.symbols() for assumed in kernel.assumptions):
        raise refuse("an assumption restricts it")
    for placed in statements(kernel.body):
        over: set[str] = set()
        for loop in placed.loops:
            bounds = (loop.start, loop.stop, loop.step)
            if bounds == (Const(0), Sym(parameter), Const(1)):
                over.add(loop.var)
            elif any(parameter in b.symbols() for b in bounds):
                raise refuse(f"the loop over {loop.var} does not run from 0 to {parameter}")
            elif any(b.symbols() & over for b in bounds):  # a triangle: its devices would have unequal work
                raise refuse(f"the loop over {loop.var} has bounds that change with its iterations")
        if len(over) > 1:
            raise refuse(f"the loops over {' and '.join(sorted(over))} both run over it")
        if any(condition.symbols() & {*over, parameter} for _, condition in placed.guards):
            raise refuse("an `if` depends on its iteration")
        if isinstance(placed.statement, Count):
            continue
        for element in (access.element for access in accesses(placed.statement)):
            for subscript, extent in zip(element.subscripts, element.array.dims, strict=True):
                # A device has rows low to high - 1 of the array and runs these iterations: row i of the array in
                # iteration i, and neither row i + 1, which another device has, nor the same row in all of them.
                used = subscript.symbols() & over
                shifted = bool(used) and subscript not in {Sym(v) for v in used}
                if (extent == Sym(parameter)) != bool(used) or shifted:
                    raise refuse(f"{element.array.name} cannot be split, because of its subscript `{subscript}`")


def _summed(kernel: Kernel, parameter: str) -> set[str]:
    """Arrays that are updated inside a loop over the parameter and lack its dimension: sums over the devices.

    A temporary that every iteration of the loop initializes is private to each device. Raises CommandError if an array
    is overwritten in each iteration, and if sums are used before they could be added up.
    """

    def refuse(why: str) -> CommandError:
        return CommandError(f"{kernel.name} cannot be split along {parameter}: {why}")

    assigned = [(p, p.statement) for p in statements(kernel.body) if isinstance(p.statement, Assign)]
    over = {id(s): [loop for loop in p.loops if loop.stop == Sym(parameter)] for p, s in assigned}
    starts = [(s.target.array, loop) for _, s in assigned if not _updates(s) for loop in over[id(s)]]
    # As in `s = 0`, `s += x[i]`, `y[i] = s` in a loop over i: each iteration begins its sum anew.
    found = set()
    for _, statement in assigned:
        array = statement.target.array
        if Sym(parameter) in array.dims or not over[id(statement)]:
            continue
        own = array.intent == "temp" and any(a == array and loop in over[id(statement)] for a, loop in starts)
        if own:
            continue
        if not _updates(statement):
            raise refuse(f"each iteration of its loop overwrites {array.name}")
        if array.intent == "temp":
            raise refuse(f"the sum over it in {array.name} is used before it is complete")
        found.add(array.name)
    for read in (p.statement for p in statements(kernel.body) if not isinstance(p.statement, Count)):
        target = read.target if isinstance(read, Assign) else None
        used = {e.array.name for e in operands(read.value) if e != target} & found
        if used:
            raise refuse(f"the sum over it in {min(used)} is used before it is complete")
    return found


def _updates(statement: Assign) -> bool:
    """Whether the statement uses what its target holds."""
    return statement.op != "=" or statement.target in operands(statement.value)


def _gathered(arrays: Sequence[Array], inputs: Sequence[str], parts: Sequence[str], name: str, parameter: str) -> Array:
    if name in parts:
        raise CommandError(f"{name} needs no gather: each device needs only its part along {parameter}")
    if name not in inputs:
        help = did_you_mean(name, inputs, f"it may be {', '.join(inputs)}" if inputs else "none is needed whole")
        raise CommandError(f"`{name}` is not an input that every device needs whole", help)
    return next(a for a in arrays if a.name == name)


def predict_sharded(
    sharding: Sharding,
    parameters: Mapping[str, int],
    machine: Machine,
    network: Network,
    options: Options = DEFAULTS,
    *,
    over: str | None = None,
) -> ShardedPrediction:
    """The prediction for `network.devices` machines, with the collectives; `over`: the parameter whose break-even sizes
    are wanted.

    Raises CommandError for a missing parameter, one that the number of devices does not divide, and what `predict`
    raises.
    """
    kernel, name, p = sharding.kernel, sharding.parameter, network.devices
    values = numbers(kernel, parameters)
    if values[name] % p:
        raise CommandError(f"{p} devices do not share {name} = {values[name]} evenly", f"make {name} a multiple of {p}")
    device = predict(kernel, {**values, name: values[name] // p}, machine, options)
    done = tuple((t.array.name, collective(t.kind, _bytes(t.array, values), network)) for t in sharding.transfers)
    found = () if over is None else _break_evens(sharding, machine, network, values, options, parameter=over)
    return ShardedPrediction(sharding, network, device, done, found)


def _bytes(array: Array, values: Mapping[str, int]) -> int:
    return array.element_count(values) * array.type.bytes


def _break_evens(
    sharding: Sharding,
    machine: Machine,
    network: Network,
    values: Mapping[str, int],
    options: Options,
    *,
    parameter: str,
) -> tuple[BreakEven, ...]:
    """The values of `parameter` from which the compute time of one device is at least that of its memory, and that of
    its links. They are closed forms in the parameters of the whole, or exact values if `values` has the other
    parameters. Latencies are part of the links' time. Raises CommandError if the terms have no closed form.
    """
    from roofdsl.predict.time_forms import in_closed_form, quasi, terms_of

    kernel, p = sharding.kernel, network.devices
    _check_parameter(kernel, parameter)
    terms = terms_of(kernel, machine, options)
    local = {sharding.parameter: Quasi.symbol(sharding.parameter) * Fraction(1, p)}
    compute = terms.compute_s.substitute(local)
    memory = machine.main_memory
    others = [(memory.name, terms.seconds(memory.name, machine).substitute(local))]
    if sharding.transfers:
        of, seconds = link_seconds(network.bandwidth_bytes_per_s), Quasi.constant(0)
        for t in sharding.transfers:
            share, steps = cost(t.kind, p, network.topology)
            size = Quasi.constant(t.array.type.bytes)
            for d in t.array.dims:
                size = size * quasi(d)
            sent, waited = size * share, Quasi.constant(steps * network.latency_s)
            seconds += in_closed_form(of, {"bytes": sent, "latency": waited})
        others.append((network.link, seconds))
    return tuple(break_even(name, (compute, other), parameter, values, within=terms.within) for name, other in others)

"""The bandwidth of a stream whose resident threads advance in rounds: each loads its element, computes and stores.

The rate rises with the bytes in flight by the law of `predict.bytes_in_flight`. What else threads do in a round makes
it longer, and so the flow F of that law smaller.
"""

from __future__ import annotations

from roofdsl.lang.record import Record
from roofdsl.machine.model import Cache, Machine
from roofdsl.predict.bytes_in_flight import latency_s, rate_of_flow

CLOCK_HZ = 1.4e9
"""The clock of a machine that states none: between those of a V100 and an A100."""

NEIGHBOR_CYCLES = 22
"""The additional cycles of a round for each neighbor of an element that is loaded, too, and found in the first cache:
the load passes through the cache's port, and adds one operation to the chain. From the stencils of gpu-benches on a
V100."""


class Round(Record):
    """What a thread does in a round besides streaming its element of f64.

    neighbors: the number of further loads that find their elements in the first cache, as in a stencil.
    multiply_adds: the number of multiplications, additions, and fused pairs of these.
    """

    neighbors: int = 0
    multiply_adds: int = 0


STREAMING = Round()
ELEMENT_BYTES = 8


def clock_hz(machine: Machine) -> float:
    return float(machine.clock_hz or CLOCK_HZ)


def stream_rate(
    machine: Machine, loads_bytes: float, stores_bytes: float, in_flight_bytes: float, each: Round = STREAMING
) -> float:
    """Bytes per second of a stream from and to the memory.

    loads_bytes, stores_bytes: of one element; if threads only stream (`each`), those of all elements may be given
    instead.
    in_flight_bytes: what all resident threads together load and store in one round, in which each of them also does
    what `each` says.

    Neighbors add to the latency of a round, and in a cache that answers loads in order, so do their transfers (gpu-
    benches: the stencils of MI100 and MI210; those of NVIDIA's GPUs show no such time). Threads that start together
    also compute together, after their data have arrived. So a round is no shorter than its latency and the operations
    of all resident threads, which matters where f64 is slow (gpu-benches: the stencils of an A40).
    """
    elements = in_flight_bytes / (loads_bytes + stores_bytes)
    waiting_s = latency_s(machine, loads_bytes, stores_bytes) + _neighbors_s(machine, elements, each.neighbors)
    rate = rate_of_flow(machine, loads_bytes, stores_bytes, in_flight_bytes / waiting_s)
    return min(rate, in_flight_bytes / (waiting_s + _computing_s(machine, elements * each.multiply_adds)))


def _neighbors_s(machine: Machine, elements: float, neighbors: int) -> float:
    """What loading `neighbors` further elements for each of `elements` resident ones adds to a round."""
    first = machine.hierarchy[0]
    alone_s = neighbors * NEIGHBOR_CYCLES / clock_hz(machine)
    if not (isinstance(first, Cache) and first.in_order):
        return alone_s
    return alone_s + elements * neighbors * ELEMENT_BYTES / float(first.bandwidth_bytes_per_s)


def _computing_s(machine: Machine, multiply_adds: float) -> float:
    """Seconds of so many operations on f64, each as long as a fused pair; 0 if the machine states no rate of f64."""
    if "f64" not in machine.types:
        return 0.0
    return multiply_adds * 2 / float(machine.rate("f64", "fma").per_s)

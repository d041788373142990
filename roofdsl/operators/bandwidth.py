"""The bandwidth of the memory as more bytes are in flight: a smooth law instead of the smaller of two bounds.

By Little's law, L bytes in flight over the latency give the rate F = L / latency. The level sustains B. If F and B are
close to each other, queues form long before the smaller one is reached: the rate is (F^-p + B^-p)^(-1/p), with the
exponent p as the machine states it. Ernst's gpu-benches publishes the curves that latency, bandwidth and exponent are
read off.
"""

from __future__ import annotations

from roofdsl.machine.model import Machine, Sustained

LATENCY_S = 700e-9
"""Of a round of requests where the machine does not state it: between those measured on a V100 and an A100."""


def stream_rate(machine: Machine, loads_bytes: float, stores_bytes: float, in_flight_bytes: float) -> float:
    """Bytes per second of a stream from and to the memory.

    in_flight_bytes: of all resident threads together, each with what it loads and stores in one round.
    """
    flow = in_flight_bytes / latency_s(machine, loads_bytes, stores_bytes)
    return rate_of_flow(machine, loads_bytes, stores_bytes, flow)


def latency_s(machine: Machine, loads_bytes: float = 1, stores_bytes: float = 1) -> float:
    """Seconds of a round of requests to the memory in the direction of these bytes."""
    stated = sustained(machine, loads_bytes, stores_bytes)
    return LATENCY_S if stated is None else float(stated.latency_s)


def rate_of_flow(machine: Machine, loads_bytes: float, stores_bytes: float, flow: float) -> float:
    """Bytes per second where latency alone would allow `flow` bytes per second.

    A machine that states no `sustained` bandwidth for the memory has its plain bandwidth.
    """
    stated = sustained(machine, loads_bytes, stores_bytes)
    if stated is None:
        return min(flow, float(machine.main_memory.bandwidth_bytes_per_s))
    power = float(stated.exponent)
    return float((flow**-power + float(stated.bandwidth_bytes_per_s) ** -power) ** (-1 / power))


def sustained(machine: Machine, loads_bytes: float, stores_bytes: float) -> Sustained | None:
    """The memory's sustained bandwidth in the direction of these bytes; None if the machine does not state it."""
    direction = "mixed" if loads_bytes and stores_bytes else "read" if loads_bytes else "write"
    level = machine.main_memory.name
    return next((s for s in machine.sustained if (s.level, s.direction) == (level, direction)), None)

"""The bandwidth of the memory as more bytes are in flight: a smooth law instead of the smaller of two bounds.

By Little's law, L bytes in flight over the latency give the rate F = L / latency. The level sustains B. If F and B are
close to each other, queues form long before the smaller one is reached: the rate is (F^-p + B^-p)^(-1/p). The machine
states the exponent p. Ernst's gpu-benches publishes the curves from which latency, bandwidth and exponent are read.
"""

from __future__ import annotations

from roofdsl.machine.model import Machine, Sustained

LATENCY_S = 700e-9
"""The latency of a round of requests if the machine states none: between those measured on a V100 and an A100."""


def latency_s(machine: Machine, loads_bytes: float = 1, stores_bytes: float = 1) -> float:
    """The latency of a round of requests to the memory in the direction of these bytes, in seconds."""
    stated = sustained(machine, loads_bytes, stores_bytes)
    return LATENCY_S if stated is None else float(stated.latency_s)


def rate_of_flow(machine: Machine, loads_bytes: float, stores_bytes: float, flow: float) -> float:
    """Bytes per second if latency alone would allow `flow` bytes per second.

    If the machine states no `sustained` bandwidth, the smaller of `flow` and the memory's plain bandwidth.
    """
    stated = sustained(machine, loads_bytes, stores_bytes)
    if stated is None:
        return min(flow, float(machine.main_memory.bandwidth_bytes_per_s))
    power = float(stated.exponent)
    return float((flow**-power + float(stated.bandwidth_bytes_per_s) ** -power) ** (-1 / power))


def both_busy(machine: Machine, memory_s: float, other_s: float) -> float:
    """Seconds of a kernel that keeps the memory busy for `memory_s` and something else for `other_s` at the same time.

    They combine like the two rates of the bandwidth: if both times are about equal, each waits for the other at times.
    Without a stated exponent, the longer time counts.
    """
    stated = sustained(machine, 1, 1)
    if stated is None:
        return max(memory_s, other_s)
    return together_s((memory_s, other_s), float(stated.exponent))


def together_s(times_s: tuple[float, ...], exponent: float) -> float:
    """Seconds of activities that overlap, but wait for each other at times: (sum of t^p)^(1/p)."""
    longest = max(times_s)
    if not longest:
        return 0.0
    return float(longest * sum((time_s / longest) ** exponent for time_s in times_s) ** (1 / exponent))


def sustained(machine: Machine, loads_bytes: float, stores_bytes: float) -> Sustained | None:
    """The memory's sustained bandwidth in the direction of these bytes; None if the machine does not state it."""
    direction = "mixed" if loads_bytes and stores_bytes else "read" if loads_bytes else "write"
    level = machine.main_memory.name
    return next((s for s in machine.sustained if (s.level, s.direction) == (level, direction)), None)

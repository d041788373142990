"""Elementwise operators: PyTorch's vectorized kernel, blocks of 128 threads with four elements of f32 for each."""

from __future__ import annotations

from math import ceil

from roofdsl.machine.model import Machine
from roofdsl.operators.bandwidth import stream_rate
from roofdsl.operators.launch import multiprocessors, resident_blocks
from roofdsl.operators.operator import BYTES, UNARY, Operator
from roofdsl.predict.launch_time import instructions_per_s

THREADS = 128
VECTOR = 4  # elements in one access of 16 B

INSTRUCTIONS = {"pow": 80, "powu": 80, "gelu": 40, "tanh": 35}
"""Instructions per element that NVIDIA's compiler generates for `powf`, `erff` and `tanhf`, on the path without special
cases. Other operators need so few that the memory hides them."""


def elementwise_s(operator: Operator, machine: Machine) -> float:
    """Seconds of the kernel: its bytes at the rate that the resident threads sustain, or its instructions if these take
    longer.
    """
    units, _ = multiprocessors(machine)
    blocks = ceil(operator.elements / (THREADS * VECTOR))
    resident = min(blocks, units * resident_blocks(machine, THREADS))
    arrays = 2 if operator.name in UNARY else 3
    in_flight = resident * THREADS * VECTOR * BYTES * arrays
    moved = operator.loads_bytes + operator.stores_bytes
    streamed = moved / stream_rate(machine, operator.loads_bytes, operator.stores_bytes, in_flight)
    return max(streamed, operator.elements * INSTRUCTIONS.get(operator.name, 1) / instructions_per_s(machine))

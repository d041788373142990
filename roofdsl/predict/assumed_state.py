"""What a prediction assumes about the state of the machine, in words."""

from __future__ import annotations

from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import show_bandwidth, show_size, show_time
from roofdsl.predict.prediction import Prediction


def assumed_state(prediction: Prediction, machine: Machine, *, warm: bool) -> tuple[str, ...]:
    """The assumed state of the machine, in words."""
    state: tuple[str, ...] = tuple(
        f"{level.name}: loads and stores move at the same time, at {show_bandwidth(level.bandwidth_bytes_per_s)} each"
        for level in prediction.levels
        if level.duplex_bytes
    )
    if len(prediction.in_turn) > 1:
        shares = ", ".join(f"{show_time(time)} of {name}" for name, time in prediction.in_turn)
        state += (f"levels take turns: {shares}",)
    if warm:
        state += ("warm: predicted right after another launch of the same kernel",)
    return state


def too_large(kernel: Kernel, machine: Machine, footprint: int) -> str:
    memory = machine.main_memory
    larger = next((m.name for m in machine.memories[1:] if m.size_bytes >= footprint), None)
    others = f"; `--data {larger}` streams it from there" if larger else ""
    return (
        f"{kernel.name} touches {show_size(footprint)}, more than {machine.name}'s {memory.name} holds "
        f"({show_size(memory.size_bytes)}); the time assumes that it fits{others}"
    )

"""Machines made for the tests: every type, awkward rates, and one that has everything a prediction may rest on."""

from __future__ import annotations

from roofdsl.lang.source import Source
from roofdsl.loops.load import load_file
from roofdsl.machine.lower import lower
from roofdsl.machine.model import Machine

_TYPES = ("f64", "f32", "f16", "bf16", "tf32", "f8", "i64", "i32", "i16", "i8")
_RATES = "\n".join(f"    peak {t} fma {7 + k} T{'FLOP' if t[0] != 'i' else 'OP'}/s" for k, t in enumerate(_TYPES))

TEXT = f"""
machine bare:
{_RATES}
    memory HBM 16 GiB, 900 GB/s
    launch 4.2 us

machine three:
{_RATES}
    cache L1 32 KiB, 4969.2 GB/s, line 64 B, write_allocate
    cache L2 1 MiB, 2257.1 GB/s, line 64 B, write_allocate
    cache L3 27.5 MiB, 1440.2 GB/s, line 64 B, write_allocate
    memory DRAM 768 GB, 128 GB/s

machine both_ways:
{_RATES}
    cache L1 256 MiB, 1001.7 GB/s, line 64 B, duplex
    memory DRAM 64 GiB, 77.3 GB/s, duplex
    ceiling "slow" f64 1.3 TFLOP/s
    ceiling "slow memory" DRAM 31 GB/s
    launch 1.7 us

machine elements:
{_RATES}
    cache L1 32 KiB, 1001.7 GB/s
    memory DRAM 64 GiB, 77.3 GB/s

machine two_pipes:
{_RATES}
    pipes separate add mul
    cache L2 64 MiB, 500 GB/s, line 64 B, sector 32 B, no_write_allocate
    memory DRAM 64 GiB, 100 GB/s

machine by_unit:
{_RATES}
    pipes units
    instruction add f64 256 bits, throughput 0.5 cycles, p1, p2
    instruction mul f64 256 bits, throughput 0.5 cycles, p0, p1
    instruction fma f64 256 bits, throughput 0.5 cycles, p0, p1
    memory DRAM 64 GiB, 40 TB/s
"""


def machine(name: str) -> Machine:
    """One of them, lowered."""
    return lower(load_file(Source("machines.roof", TEXT)).machines[name])

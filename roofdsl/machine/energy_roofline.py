"""The roofline of energy: what an operation takes in time, energy and power, over its intensity.

The model is that of Choi, Bedard, Fowler and Vuduc, A Roofline Model of Energy (IPDPS 2013): W operations and Q bytes
take W eps_op + Q eps_mem and, for as long as they last, the constant power P0. Times overlap, energies do not, so the
roofline of time has a corner and that of energy is an arch. With a power cap, they last at least as long as the energy
of operations and bytes takes at the power that is left, P_cap - P0 (Choi, Dukhan, Liu and Vuduc, Algorithmic time,
energy, and power on candidate HPC compute building blocks, IPDPS 2014).

All numbers are exact where those of the machine are. Curves take floats.
"""

from __future__ import annotations

from fractions import Fraction

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.operation_classes import MATRIX_CLASSES, OPERATION_CLASSES, SPECIAL_FUNCTIONS
from roofdsl.lang.record import Record
from roofdsl.machine.model import UNFUSED, Cache, Machine, Memory, operation

Number = float | Fraction


class Unstated(Exception):
    """A machine does not state the energy that is asked for; the message says which, and how to state it."""


class EnergyRoofline(Record):
    """What one operation of a type takes at each intensity, with data from the main memory.

    operation_j: eps_op; byte_j: eps_mem; constant_w: P0; cap_w: None for no cap. peak_per_s, bandwidth_bytes_per_s: the
    roofline of time.
    """

    operation_j: Number
    byte_j: Number
    constant_w: Number
    peak_per_s: Number
    bandwidth_bytes_per_s: Number
    cap_w: Number | None = None

    @property
    def time_balance(self) -> Number:
        """B_tau, in operations per byte: where compute takes as long as the memory."""
        return self.peak_per_s / self.bandwidth_bytes_per_s

    @property
    def energy_balance(self) -> Number:
        """B_eps = eps_mem / eps_op, in operations per byte: where operations take as much energy as bytes."""
        return self.byte_j / self.operation_j

    def seconds(self, intensity: Number) -> Number:
        """The time of one operation: the largest of compute, memory, and what the power cap allows."""
        free = max(1 / self.peak_per_s, 1 / (self.bandwidth_bytes_per_s * intensity))
        return capped_seconds(free, self.dynamic_j(intensity), self.constant_w, self.cap_w)

    def dynamic_j(self, intensity: Number) -> Number:
        """The energy of one operation and its bytes, without the constant power."""
        return self.operation_j + self.byte_j / intensity

    def joules(self, intensity: Number) -> Number:
        """The energy of one operation: its own, that of its bytes, and the constant power for its time."""
        return self.dynamic_j(intensity) + self.constant_w * self.seconds(intensity)

    def watts(self, intensity: Number) -> Number:
        """The average power."""
        return self.joules(intensity) / self.seconds(intensity)

    @property
    def least_j(self) -> Number:
        """The energy of an operation whose data take none: what is approached as the intensity grows."""
        least_s = capped_seconds(1 / self.peak_per_s, self.operation_j, self.constant_w, self.cap_w)
        return self.operation_j + self.constant_w * least_s

    @property
    def half_intensity(self) -> Number:
        """Where an operation takes twice the least energy: half of the best efficiency, the middle of the arch.

        Choi et al. call it the effective energy balance; it is B_eps where there is no constant power. The energy is
        the largest of three linear functions of bytes per operation, so it reaches twice the least where the first of
        them does.
        """
        extra = 2 * self.least_j - self.operation_j
        lines = [
            (self.byte_j, self.constant_w / self.peak_per_s),
            (self.byte_j + self.constant_w / self.bandwidth_bytes_per_s, 0 * extra),
        ]
        if self.cap_w is not None:
            per_dynamic = self.constant_w / (self.cap_w - self.constant_w)
            lines.append((self.byte_j * (1 + per_dynamic), self.operation_j * per_dynamic))
        return 1 / min((extra - start) / slope for slope, start in lines)


def capped_seconds(seconds: Number, dynamic_j: Number, constant_w: Number, cap_w: Number | None) -> Number:
    """The time under a power cap: at least what the energy of operations and bytes takes at P_cap - P0."""
    return seconds if cap_w is None else max(seconds, dynamic_j / (cap_w - constant_w))


# ---- what a machine states ----


def energy_roofline(machine: Machine, type_name: str, unit: str | None = None) -> EnergyRoofline:
    """The energy roofline of a type, with data from the main memory.

    Raises Unstated, and CommandError where the machine lacks the type.
    """
    peak = machine.peak(type_name, unit).per_s
    memory = machine.main_memory
    return EnergyRoofline(
        operation_energy(machine, type_name, unit or "fma"),
        byte_energy(machine, memory),
        constant_power(machine),
        peak,
        memory.bandwidth_bytes_per_s,
        machine.power_cap_w,
    )


def require_energy(machine: Machine) -> None:
    """Raise CommandError if a machine does not state its constant power, without which no energy is known."""
    try:
        constant_power(machine)
    except Unstated as error:
        message, _, help = str(error).partition(": ")
        raise CommandError(message, f"{help}; docs/energy.md lists machines that state it") from None


def constant_power(machine: Machine) -> Fraction:
    """P0, in watts. Raises Unstated."""
    if machine.constant_power_w is None:
        raise Unstated(f"{machine.name} does not state its constant power: add a line such as `constant_power 100 W`")
    return machine.constant_power_w


def byte_energy(machine: Machine, level: Cache | Memory) -> Fraction:
    """The energy of a byte across a level's boundary, in joules. Raises Unstated."""
    if level.energy_j_per_byte is None:
        keyword = "memory" if isinstance(level, Memory) else "cache"
        lacking = f"{machine.name} states no energy of the bytes of {level.name}"
        raise Unstated(f"{lacking}: end its `{keyword}` line in `, energy 100 pJ/B`")
    return level.energy_j_per_byte


def operation_energy(machine: Machine, type_name: str, cls: str) -> Fraction:
    """The energy of one operation of a class of rates, in joules: stated for the class, or for the type as a whole.

    A type's `fma` line, or else its line without a class, is for all its operations. Matrix units have energies of
    their own. In a type that only they compute in, pairs take these, and other operations take those of f32 (rule 14).
    Raises Unstated.
    """
    type_name, cls = _computed_as(machine, type_name, cls)
    classes: tuple[str, ...] = (cls,) if cls in MATRIX_CLASSES else (cls, "fma", UNFUSED)
    if cls in SPECIAL_FUNCTIONS:
        classes = (cls, "special", "fma", UNFUSED)
    for each in classes:
        peak = machine.stated(type_name, each)
        if peak is not None and peak.energy_j is not None:
            return peak.energy_j
    what = f"{type_name} {cls}" if cls in MATRIX_CLASSES else type_name
    lacking = f"{machine.name} states no energy of {what} operations"
    raise Unstated(f"{lacking}: end its `peak` line in `, energy 20 pJ/{operation(type_name)}`")


def _computed_as(machine: Machine, type_name: str, cls: str) -> tuple[str, str]:
    """The type and class whose units compute a class of operations: as `Machine.rate` has it."""
    computed = machine.computed_in(type_name)
    if cls in MATRIX_CLASSES or computed == type_name:
        return type_name, cls
    return (type_name, MATRIX_CLASSES[0]) if cls == "fma" else (computed, cls)


def has_own_energy(machine: Machine, type_name: str, cls: str) -> bool:
    """Whether the machine states the energy of this class, and not only of the type's additions and multiplications."""
    type_name, cls = _computed_as(machine, type_name, cls)
    if cls in OPERATION_CLASSES[:2] or cls in ("fma", UNFUSED, *MATRIX_CLASSES):
        return True
    classes = (cls, "special") if cls in SPECIAL_FUNCTIONS else (cls,)
    peaks = [machine.stated(type_name, each) for each in classes]
    return any(peak is not None and peak.energy_j is not None for peak in peaks)

"""The expected time of a library's operator, next to its bound from the roofline."""

from __future__ import annotations

from roofdsl.lang.record import Record
from roofdsl.machine.model import Machine
from roofdsl.operators.elementwise import elementwise_s
from roofdsl.operators.launch import call_s
from roofdsl.operators.operator import Operator
from roofdsl.operators.products import product_s
from roofdsl.operators.softmax_and_layer_norm import row_s

KERNELS = {"elementwise": elementwise_s, "row": row_s, "product": product_s}


class OperatorTime(Record):
    """Seconds of one call. bound_s: the larger of the operations over the peak and the compulsory bytes over the
    memory's bandwidth. kernel_s: the kernel alone. call_s: what the call adds.
    """

    operator: Operator
    bound_s: float
    kernel_s: float
    call_s: float

    @property
    def expected_s(self) -> float:
        return self.kernel_s + self.call_s


def operator_time(operator: Operator, machine: Machine) -> OperatorTime:
    """The expected time of one call of `operator`, on f32, with its data in the memory of `machine`.

    Raises CommandError for an unknown operator, and for a machine without f32 or without multiprocessors.
    """
    moved = (operator.loads_bytes + operator.stores_bytes) / float(machine.main_memory.bandwidth_bytes_per_s)
    bound_s = max(moved, operator.work / float(machine.peak("f32").per_s))
    return OperatorTime(operator, bound_s, KERNELS[operator.kind](operator, machine), call_s(machine))

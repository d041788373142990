"""Operations and accesses of a user's C function in the interpreter, and of the kernel that it is read as."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from pycparser import c_ast

from roofdsl.codegen.inputs import random_inputs
from roofdsl.counts.work_at import work_at
from roofdsl.lang.record import replace
from roofdsl.loops.index_data import IndexData
from roofdsl.loops.indirect import index_arrays
from roofdsl.loops.model import Kernel
from tests.frontends.c_interpreter import Machine
from tests.frontends.c_memory import Access, Array, Pointer, Scalar, Structure, Value
from tests.oracle.enumerate import run
from tests.oracle.lru import address

Counts = tuple[Counter[str], Counter[Access]]


def indices_of(kernel: Kernel, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Values of the index arrays that the kernel's declarations allow."""
    return {name: values for name, values in random_inputs(kernel, sizes).items() if name in index_arrays(kernel)}


def executed(
    path: Path, name: str, kernel: Kernel, sizes: Mapping[str, int], numbers: Mapping[str, float] | None = None
) -> Counts:
    """The operations and accesses of the user's function, on arrays as large as those of the kernel, and with the same
    index arrays. numbers: the values of arguments that the kernel does not have.
    """
    machine = Machine(path)
    extents: dict[str, int] = {}
    for array in kernel.arrays:
        elements = array.type.bytes
        for dim in array.dims:
            elements *= dim.evaluate(sizes)
        if array.dims:
            extents[array.name] = elements
    caller = _Caller(machine, extents, {**sizes, **(numbers or {})}, indices_of(kernel, sizes))
    function = machine.functions[name]
    listed = function.decl.type.args.params if function.decl.type.args is not None else ()
    declared = [node for node in listed if isinstance(node, c_ast.Decl)]
    for node in declared:
        if sizes.get(node.name) is not None:
            machine.scopes[0][node.name] = caller.register(sizes[node.name])  # for the dimensions of other arguments
    for variable, (place, type_) in list(machine.scopes[0].items()):
        if not isinstance(type_, Array) and place not in machine.initialized:
            caller.fill(variable, place, type_)
    given = [caller.value(node.name, caller.declared(node)) for node in declared]
    machine.accesses.clear()
    machine.operations.clear()
    machine.call(name, given)
    return +machine.operations, Counter(machine.accesses)


def counted(kernel: Kernel, sizes: Mapping[str, int]) -> Counts:
    """The operations and accesses of the kernel."""
    indices = indices_of(kernel, sizes)
    found = work_at(replace(kernel, data=IndexData(indices, ())) if indices else kernel, sizes)
    work: Counter[str] = Counter(cmp=found.cmp)
    for (type_, kind), n in found.operations.items():
        if type_.startswith("f"):  # the interpreter counts no operations on integers
            work[kind] += n
    arrays = {a.name: a for a in kernel.arrays}
    accesses: Counter[Access] = Counter()
    for execution in run(kernel, sizes, indices):
        for one in execution.accesses:
            array = arrays[one.array]
            accesses[Access(one.array, address(array, one.index, sizes), array.type.bytes, one.is_write)] += 1
    return +work, accesses


class _Caller:
    """Makes arguments: numbers, arrays of random numbers, structures of both."""

    def __init__(
        self, machine: Machine, extents: Mapping[str, int], sizes: Mapping[str, int], indices: Mapping[str, Any]
    ) -> None:
        self.machine, self.extents, self.sizes, self.indices = machine, extents, sizes, indices
        self.random = Random(1)

    def declared(self, node: Any) -> Any:
        """The type of an argument: an array is a pointer."""
        type_ = self.machine.type(node.type)
        return Pointer(type_.of) if isinstance(type_, Array) else type_

    def register(self, number: int) -> tuple[int, Scalar]:
        """A variable that holds an integer."""
        place = self.machine.allocate(8)
        self.machine.store(place, Scalar("q", 8), Value(number, Scalar("q", 8)))
        return place, Scalar("q", 8)

    def value(self, name: str, type_: Any) -> Value:
        """The argument called `name`."""
        if isinstance(type_, Scalar):
            if type_.is_float and name in self.sizes:
                return Value(self.sizes[name], type_)  # comparisons with it are no work of the kernel
            if type_.is_float:
                return Value(self.random.uniform(0.5, 2), type_, True)
            return Value(self.sizes.get(name, 1), type_)
        place = self.place(name, type_.to if isinstance(type_, Pointer) else type_)
        if isinstance(type_, Pointer):
            return Value(place, type_)
        return Value(bytes(self.machine.block(place).bytes), type_)

    def place(self, name: str, type_: Any) -> int:
        """Memory for what a pointer called `name` points at."""
        name = f"{name}_" if f"{name}_" in self.extents else name  # a word of the language
        if name in self.extents:
            element = type_
            while isinstance(element, Array):
                element = element.of
            place = self.machine.allocate(self.extents[name], name)
            for at in range(0, self.extents[name] - element.size + 1, element.size):
                self.fill(name, place + at, element, inside=True)
            if name in self.indices:
                self.machine.block(place).bytes[:] = self.indices[name].tobytes()
            return place
        place = self.machine.allocate(type_.size)
        self.fill(name, place, type_)
        return place

    def fill(self, name: str, place: int, type_: Any, *, inside: bool = False) -> None:
        """Random numbers. inside: of an array, whose members are no variables of their own."""
        if isinstance(type_, Structure):
            for field, (offset, own) in type_.fields.items():
                self.fill(f"{name}_{field}", place + offset, own, inside=inside)
        elif isinstance(type_, Array):
            if not inside:
                self.machine.parts.append((place, type_.size, name))
            for k in range(type_.count):
                self.fill(name, place + k * type_.of.size, type_.of, inside=True)
        elif not inside or isinstance(type_, Scalar):
            self.machine.store(place, type_, self.value(name, type_))

"""The speed of light of a problem of SOL-ExecBench: its reference code as a program of operators."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from roofdsl.frontends.tensors.definition import read_definition
from roofdsl.frontends.tensors.program import tensor_program
from roofdsl.frontends.tensors.reference import graph_of_reference
from roofdsl.loops.program_at import program_at
from roofdsl.machine.model import Machine
from roofdsl.sol.program import ProgramLight, program_light


def definition_light(
    path: str, settings: Mapping[str, int], machine: Machine, measured_s: Fraction | None = None, *, fused: bool = False
) -> ProgramLight:
    """The answer for a `definition.json`. Its inputs are loaded once and its outputs stored once, if it is one launch.

    settings: numbers of its `var` axes. fused: the launches are groups of elementwise operators, else single operators.
    The reference code is read and not executed. Raises CommandError for what is not read.
    """
    graph = graph_of_reference(read_definition(path, settings))
    program = tensor_program(graph, fused=fused)
    return program_light(program_at(program.checked, program.name, {}), machine, measured_s, graph.moved_once)

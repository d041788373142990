"""The speed of light of a SOL-ExecBench problem, from its reference code as a program of operators."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from roofdsl.frontends.tensors.definition import read_definition
from roofdsl.frontends.tensors.program import tensor_program
from roofdsl.frontends.tensors.reference import graph_of_reference
from roofdsl.loops.program_at_sizes import program_at
from roofdsl.machine.model import Machine
from roofdsl.sol.fused import Known
from roofdsl.sol.program import ProgramLight, program_light


def definition_light(
    path: str, settings: Mapping[str, int], machine: Machine, measured_s: Fraction | None = None, *, fused: bool = False
) -> ProgramLight:
    """The answer for a `definition.json`. As one launch, it loads its inputs once and stores its outputs once.

    settings: the sizes of its `var` axes. fused: each launch is a group of elementwise operators instead of a single
    operator. The reference code is parsed, not executed. Raises CommandError for code that cannot be read.
    """
    graph = graph_of_reference(read_definition(path, settings))
    program = tensor_program(graph, fused=fused)
    known = Known(*graph.moved_once, program.first, tuple(map(_note, graph.partly_used)))
    return program_light(program_at(program.checked, program.name, {}), machine, measured_s, known)


def _note(called: str) -> str:
    return f"not all results of `{called}` are sure to be used, but all are counted, so the floor may be too high"

"""From a kernel to the source text of one target and variant: the entry point of code generation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from roofdsl.codegen.function_parts import positions
from roofdsl.codegen.generated import Generated
from roofdsl.codegen.math_mode import Math
from roofdsl.codegen.registry import target_of
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.findings import listed
from roofdsl.loops.accesses import LoopId
from roofdsl.loops.indirect import require_affine
from roofdsl.loops.model import Kernel, Node
from roofdsl.loops.private_loops import PrivateLoop
from roofdsl.loops.streams import has_streams, ordinary, require_lines
from roofdsl.loops.transform import apply

Free = Mapping[LoopId, int]
"""Loops without carried dependences, each with a number. Take two different iterations of a loop at depth d, in
executions that agree in all loops at depths below that number: they never access the same element if one of them
writes it. The number d means independence within one execution of the loop, 0 independence of all its iterations.
"""

Private = Mapping[LoopId, PrivateLoop]
"""Loops whose only carried dependences are those of `temp` arrays of which each iteration can have its own copy."""


def generate(
    kernel: Kernel,
    target: str = "python",
    variant: str | None = None,
    *,
    free: Free | None = None,
    private: Private | None = None,
    sizes: Mapping[str, int] | None = None,
    math: Math = "relaxed",
) -> Generated:
    """The source of `kernel`, with its directives applied, for one target.

    free: which loops have independent iterations (`roofdsl.checks.parallel_loops` proves them); without it, only loops
    that the kernel itself declares parallel are parallel. private: which loops become independent if threads have
    copies of `temp` arrays (`roofdsl.checks.private_copies.private_loops` proves them, for CUDA), or iterations of
    scalars (`private_scalar_loops` there, for C and Python). sizes: numbers for tile sizes, which the variant `tiled`
    needs. math: whether the compiler may reorder sums and fuse products with sums, where the text says so (for C, the
    compiler's flags do). Raises CommandError for an unknown target, for a variant that the target or the kernel does
    not have, and for stores that bypass the caches if the target cannot make them or they do not fill lines; InputError
    if the directives do not fit the loops.
    """
    syntax = target_of(target)()
    if has_streams(kernel):
        if syntax.streams == "not at all":
            message = f"kernel {kernel.name} has stores that bypass the caches, which {target} cannot make"
            raise CommandError(message, "use C (`--to c`, `--compiler cc`), or write `A[i] = ...` without `stream`")
        if syntax.streams == "as usual":
            made = generate(ordinary(kernel), target, variant, free=free, private=private, sizes=sizes, math=math)
            return replace(made, notes=(*made.notes, f"{target}: `stream` stores are made as usual"))
    syntax.math, syntax.private = math, private or {}
    chosen = variant or syntax.variants[0]
    if chosen not in syntax.variants:
        raise CommandError(f"there is no variant `{chosen}` of {target}", f"it has {listed(syntax.variants, 'and')}")
    if chosen not in ("loops", "naive", "parallel"):
        require_affine(kernel, f"the variant `{chosen}` in {target}", f"use the variant `{syntax.variants[0]}`")
    plain_kernel = apply(kernel)
    require_lines(plain_kernel)
    known = with_declared(free or {}, plain_kernel.body)
    return syntax.generated(plain_kernel, chosen, known, sizes or {})


def with_declared(proven: Free, nodes: Sequence[Node]) -> dict[LoopId, int]:
    """The loops that are proven parallel, and those that the kernel itself declares parallel.

    If loops around a declared one are declared parallel too, without a gap, its iterations are independent of those in
    other executions of it: they differ in one of these loops.
    """
    found = dict(proven)
    declared: dict[LoopId, int] = {}
    for position, loop in positions(nodes):  # outer loops come before inner ones
        if loop.parallel:
            depth = len(position) - 1
            declared[position] = declared.get(position[:-1], depth)
            found[position] = min(declared[position], found.get(position, depth))
    return found

"""From a kernel to the source text of one target and variant: the entry point of code generation."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from roofdsl.codegen.c import CSyntax
from roofdsl.codegen.compute import REDUCED
from roofdsl.codegen.cuda import generate_cuda
from roofdsl.codegen.emitter import Emitter
from roofdsl.codegen.generated import VARIANTS, Generated, TargetName, Variant
from roofdsl.codegen.helpers import c_helpers, python_helpers
from roofdsl.codegen.kernels import (
    LoopId,
    arguments,
    described,
    heading,
    load_scalars,
    name_extents,
    positions,
    signature,
    store_scalars,
    wrapped,
)
from roofdsl.codegen.names import renamed
from roofdsl.codegen.python import PythonSyntax
from roofdsl.codegen.syntax import Lines
from roofdsl.codegen.tiled import generate_tiled
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.functions import FUNCTIONS
from roofdsl.loops.model import For, Kernel, Node
from roofdsl.loops.transform import apply

FREE = Mapping[LoopId, int]
"""Loops without dependences: iterations of the loop at depth d never touch one element, with a write, in executions
that agree in the loops at depths below the number given (d itself: in one execution of the loop; 0: at all)."""


def generate(
    kernel: Kernel,
    target: TargetName = "python",
    variant: Variant | None = None,
    *,
    free: FREE | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Generated:
    """The source of `kernel`, its directives applied, for one target.

    free: which loops have independent iterations (`roofdsl.checks.parallel.parallel_loops` proves them); without it
    no loop is parallel but those that the kernel itself calls so. sizes: numbers for tile sizes, which the variant
    `tiled` needs. Raises CommandError for a variant that the target or the kernel does not have, InputError where the
    directives do not fit the loops.
    """
    chosen = variant or VARIANTS[target][0]
    if chosen not in VARIANTS[target]:
        raise CommandError(f"there is no variant `{chosen}` of {target}", f"it has {' and '.join(VARIANTS[target])}")
    plain_kernel = apply(kernel)
    known = dict(free or {}) | declared_parallel(plain_kernel.body)
    if target == "cuda":
        if chosen == "tiled":
            return generate_tiled(plain_kernel, known, sizes or {})
        return generate_cuda(plain_kernel, known)
    syntax: PythonSyntax | CSyntax = PythonSyntax() if target == "python" else CSyntax()
    parallel = outermost(plain_kernel.body, known) if chosen == "parallel" else []
    if chosen == "parallel" and not parallel:
        message = f"kernel {kernel.name} has no loop whose iterations are known to be independent"
        raise CommandError(message, "take the variant `loops`")
    names = renamed(plain_kernel, syntax)
    out = Lines()
    emitter = Emitter(syntax, out, names, plain_kernel.source, [p.name for p in plain_kernel.parameters])
    emitter.headers = {id(loop): syntax.parallel_loop for loop in parallel}
    function = names.get(kernel.name, kernel.name)
    if isinstance(syntax, PythonSyntax):
        source = _python(plain_kernel, syntax, emitter, function, bool(parallel))
    else:
        source = _c(plain_kernel, syntax, emitter, function, bool(parallel))
    spread = tuple(dict.fromkeys(loop.var for loop in parallel))
    return Generated(kernel.name, target, chosen, source, function, arguments(plain_kernel), spread)


def declared_parallel(nodes: Sequence[Node]) -> dict[LoopId, int]:
    """The loops that the kernel itself calls parallel: each of them within one execution of it."""
    return {position: len(position) - 1 for position, loop in positions(nodes) if loop.parallel}


def outermost(nodes: Sequence[Node], free: Collection[LoopId]) -> list[For]:
    """The parallel loops that stand in no other parallel loop."""
    chosen: list[tuple[LoopId, For]] = []
    for position, loop in positions(nodes):
        if position in free and not any(position[: len(p)] == p for p, _ in chosen):
            chosen.append((position, loop))
    return [loop for _, loop in chosen]


def _python(kernel: Kernel, syntax: PythonSyntax, emitter: Emitter, function: str, parallel: bool) -> str:
    out = emitter.out
    names = []
    for a in arguments(kernel):
        names.append(f"{a.name}_out" if a.role == "scalar_out" else emitter.name(a.name))
    out.add(f"def {function}({', '.join(names)}):")
    out.depth += 1
    for array in kernel.arrays:
        out.add(f"# {described(array)}")
    for array in kernel.arrays:
        if array.is_scalar and array.intent == "in" and array.type.name in REDUCED:
            out.add(f"{emitter.name(array.name)} = np.float32({emitter.name(array.name)})")
    load_scalars(kernel, emitter, "{}[0]")
    emitter.block(kernel.body)
    store_scalars(kernel, emitter, "{}[0]")
    body = "\n".join(out.lines)
    head = heading(kernel, syntax, f"Python for numba, variant {'parallel' if parallel else 'loops'}")
    definitions = python_helpers(syntax)
    imports = ["import math"] if any("math." in text for text in (body, *definitions)) else []
    if "np." in body or definitions:
        imports.append("import numpy as np")
    imports.append(f"from numba import njit{', prange' if parallel else ''}")
    options = 'error_model="numpy", fastmath={"contract", "reassoc", "nsz"}'
    helpers = [f'@njit(error_model="numpy")\n{h}\n\n' for h in definitions]
    decorator = f"@njit({options}{', parallel=True' if parallel else ''}, nogil=True)"
    return "\n".join([*head, *_grouped(imports), "", "", *helpers, decorator, body]) + "\n"


def _grouped(imports: list[str]) -> list[str]:
    """Imports as isort groups them: the standard library apart."""
    return [imports[0], "", *imports[1:]] if imports[0] == "import math" else imports


def _c(kernel: Kernel, syntax: CSyntax, emitter: Emitter, function: str, parallel: bool) -> str:
    out = emitter.out
    for line in wrapped(f"void {function}", signature(kernel, syntax, emitter.names)):
        out.add(line)
    out.add("{")
    out.depth += 1
    for array in kernel.arrays:
        out.add(f"// {described(array)}")
    name_extents(emitter, kernel.body, syntax.integer_type)
    load_scalars(kernel, emitter, "*{}")
    emitter.block(kernel.body)
    store_scalars(kernel, emitter, "*{}")
    out.depth -= 1
    out.add("}")
    head = heading(kernel, syntax, f"C11, variant {'parallel' if parallel else 'loops'}")
    helpers = c_helpers(syntax, "static inline")
    body = "\n".join([*helpers, *out.lines])
    includes = ["#include <stdint.h>"]
    includes += ["#include <complex.h>"] if "complex" in body else []
    includes += ["#include <math.h>"] if _MATH.search(body) else []
    includes += ["#include <stdlib.h>"] if "abs(" in body else []
    includes += ["#include <string.h>"] if "memcpy(" in body else []
    return "\n".join([*head, *sorted(includes), "", *helpers, *([""] if helpers else []), *out.lines]) + "\n"


def _of_math_h() -> set[str]:
    """The names in C of real functions of floating-point values: those that are written with a suffix for floats."""
    texts = [f.spelling("c", "f64").text for f in FUNCTIONS.values() if f.name != "select" and f.of_real == "call"]
    return {name for text in texts for name in re.findall(r"(\w+)\{f\}\(", text)}


_MATH = re.compile(rf"(?:{'|'.join(sorted(_of_math_h()))})f?\(")

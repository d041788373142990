"""A target of code generation: a syntax, the variants of a kernel in it, and the complete text of each."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, Literal

from roofdsl.codegen.emitter import Emitter
from roofdsl.codegen.function_parts import arguments, positions
from roofdsl.codegen.generated import Generated
from roofdsl.codegen.grouped_sums import Grouped, grouped, nothing_to_group
from roofdsl.codegen.identifiers import renamed
from roofdsl.codegen.math_mode import Math
from roofdsl.codegen.syntax import Lines, Syntax, Text
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace
from roofdsl.loops.accesses import LoopId
from roofdsl.loops.model import For, Kernel, Node
from roofdsl.loops.private_loops import PrivateLoop


class Target(Syntax):
    """A language in which kernels can be generated.

    math: what the text allows its compiler to do, in a language that states it in the text. private: the loops that
    copies of `temp` arrays make independent.

    Each file of `roofdsl/codegen/targets/` defines one of them as TARGET and has the target's name.
    """

    math: Math = "relaxed"
    private: Mapping[LoopId, PrivateLoop] = MappingProxyType({})
    streams: ClassVar[Literal["lines", "as usual", "not at all"]] = "not at all"
    """How it makes stores that bypass the caches: in whole lines, as usual stores, or not at all."""

    variants: ClassVar[tuple[str, ...]]
    """The possible ways to lay out a kernel, the default first. `loops` keeps the order of the kernel; all others need
    to know which loops have independent iterations.
    """

    @abstractmethod
    def generated(
        self, kernel: Kernel, variant: str, free: Mapping[LoopId, int], sizes: Mapping[str, int]
    ) -> Generated:
        """The text of a kernel with its directives applied, in one of the target's variants.

        free, sizes: see `generate`. Raises CommandError if this kernel does not have the variant.
        """


class OneFunction(Target):
    """A target in which a kernel becomes one function; `parallel` shares the outermost free loops among cores, and
    `grouped` computes neighboring sums together.
    """

    variants: ClassVar[tuple[str, ...]] = ("loops", "parallel", "grouped")
    emitter: ClassVar[type[Emitter]] = Emitter

    @abstractmethod
    def source(self, kernel: Kernel, emitter: Emitter, function: str, variant: str) -> str:
        """The complete text: headers, helpers, and the function with the body that the emitter writes.

        `emitter.held` are arrays that the function has for itself.
        """

    def parallel_loop(self, out: Lines, var: str, start: Text, stop: Text, step: Text) -> None:
        """Open a loop whose iterations are shared among cores. A language without such loops has no such variant."""
        self.loop(out, var, start, stop, step)

    def generated(
        self, kernel: Kernel, variant: str, free: Mapping[LoopId, int], sizes: Mapping[str, int]
    ) -> Generated:
        parallel = outermost(kernel.body, free) if variant == "parallel" else []
        if variant == "parallel" and not parallel:
            message = f"kernel {kernel.name} has no loop whose iterations are known to be independent"
            raise CommandError(message, "use the variant `loops`")
        names, together = renamed(kernel, self), Grouped(kernel.body, (), ())
        if variant == "grouped":
            together = grouped(kernel, free)
            if not together.loops:
                raise nothing_to_group(kernel)
            kernel = replace(kernel, body=together.body)
        emitter = self.emitter(self, Lines(), names, kernel.source, [p.name for p in kernel.parameters])
        emitter.held = together.held
        emitter.headers = {id(loop): self.parallel_loop for loop in parallel}
        function = emitter.name(kernel.name)
        source = self.source(kernel, emitter, function, variant)
        spread = tuple(dict.fromkeys(loop.var for loop in parallel))
        return Generated(kernel.name, self.name, variant, source, function, arguments(kernel), spread)


def outermost(nodes: Sequence[Node], free: Collection[LoopId]) -> list[For]:
    """The parallel loops that are not inside another parallel loop."""
    chosen: list[tuple[LoopId, For]] = []
    for position, loop in positions(nodes):
        if position in free and not any(position[: len(p)] == p for p, _ in chosen):
            chosen.append((position, loop))
    return [loop for _, loop in chosen]

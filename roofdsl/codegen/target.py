"""A target of code generation: a syntax, the variants of a kernel in it, and the complete text of each."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import ClassVar, Literal

from roofdsl.codegen.computed_types import Computed, computed
from roofdsl.codegen.core_loops import core_loops
from roofdsl.codegen.emitter import Emitter
from roofdsl.codegen.function_parts import arguments
from roofdsl.codegen.generated import Generated
from roofdsl.codegen.grouped_sums import Grouped, grouped, nothing_to_group
from roofdsl.codegen.identifiers import renamed
from roofdsl.codegen.math_mode import Math
from roofdsl.codegen.syntax import Lines, Syntax, Text
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.accesses import LoopId
from roofdsl.loops.model import Kernel
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


class Own(Record):
    """A variable of which each iteration of a shared loop has its own, and its type."""

    name: str
    type: Computed


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

    def parallel_loop(  # noqa: PLR0917
        self, own: Sequence[Own], out: Lines, var: str, start: Text, stop: Text, step: Text
    ) -> None:
        """Open a loop whose iterations are shared among cores, and have the variables `own` for themselves.

        A language without such loops has no such variant.
        """
        self.loop(out, var, start, stop, step)

    def generated(
        self, kernel: Kernel, variant: str, free: Mapping[LoopId, int], sizes: Mapping[str, int]
    ) -> Generated:
        parallel = core_loops(kernel, free, self.private) if variant == "parallel" else ()
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
        for shared in parallel:
            own = [Own(emitter.name(array.name), computed(array.type)) for array in shared.own]
            emitter.headers[id(shared.loop)] = partial(self.parallel_loop, own)
        function = emitter.name(kernel.name)
        source = self.source(kernel, emitter, function, variant)
        spread = tuple(dict.fromkeys(shared.loop.var for shared in parallel))
        return Generated(kernel.name, self.name, variant, source, function, arguments(kernel), spread)

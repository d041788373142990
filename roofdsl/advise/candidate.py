"""The candidate changes and how they are represented."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from roofdsl.advise.evaluate import Case, Estimate
from roofdsl.advise.kernel_text import lowered
from roofdsl.lang import tree
from roofdsl.lang.checked import CheckedKernel
from roofdsl.lang.record import Record
from roofdsl.lang.write import written
from roofdsl.loops.model import Kernel
from roofdsl.predict.options import Options

DEPENDENCES = "every dependence keeps its order"


class Candidate(Record):
    """A change. kind: `order`, `tile`, `registers`, `parallel`, `type`, `tensor`, `stores`, `reciprocal`, `layout`,
    `ceiling` or `launches`.

    text: the changed kernel as a complete file, empty if the kernel stays as it is. because: why the results are the
    same (up to rounding, if `rounding`). precision: whether it computes in a narrower type. options: how to predict it;
    None: as before. loops: those of an `order`, outermost first. block: of `registers` on a GPU, which nest and how
    many results a thread keeps; only the best block of each nest is advised, of equally fast ones the smallest.
    """

    kind: str
    what: str
    text: str
    because: str
    rounding: bool = False
    options: Options | None = None
    precision: bool = False
    loops: tuple[str, ...] = ()
    block: tuple[int, int] | None = None


class Refused(Record):
    """A change that is not advised, and why: it is not proven legal (`illegal`), does not apply, or gains nothing."""

    kind: str
    what: str
    why: str
    illegal: bool = False


Found = Iterator[Candidate | Refused]


class Subject(Record):
    """The kernel for which changes are sought: as written, lowered and predicted.

    settings: the values of its `const` parameters.
    """

    given: CheckedKernel
    kernel: Kernel
    settings: Mapping[str, int]
    case: Case
    now: Estimate

    @property
    def syntax(self) -> tree.Kernel:
        return self.given.tree

    def text(self, changed: tree.Kernel) -> str:
        """A changed kernel as the text of a file."""
        return written(self.given, changed)

    def lowered(self, text: str) -> Kernel:
        """The kernel in such a file."""
        return lowered(text, self.kernel.name, self.settings)

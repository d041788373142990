"""What a prediction of a kernel with index arrays needs, and what is not available for it."""

from __future__ import annotations

from roofdsl.loops.indirect import is_indirect, require_affine, require_data
from roofdsl.loops.model import Kernel


def check_available(kernel: Kernel, *, sets: bool, compiled: bool) -> None:
    """Raises CommandError for index arrays without values, and for options that need affine accesses."""
    if not is_indirect(kernel):
        return
    require_data(kernel)
    for wanted, what in ((sets, "`--sets`"), (compiled, "`--accesses compiled`")):
        if wanted:
            require_affine(kernel, what)


def values_given(kernel: Kernel) -> tuple[str, ...]:
    """Where the values of the kernel's index arrays come from, in words."""
    return () if kernel.data is None else tuple(f"values of {text}" for text in kernel.data.about)

"""`%load_ext roofdsl`: the cell magic, rich results, and errors reported as on the command line."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from roofdsl.counts.derived import Derivation
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.record import Record
from roofdsl.loops.model import Kernel
from roofdsl.notebook import rich
from roofdsl.notebook.findings import of_error
from roofdsl.notebook.magic import run
from roofdsl.tell.blocks import Block

FIELDS = (
    "roofdsl.simulate.hierarchy:Simulated",
    "roofdsl.profiler.measured_points:MeasuredPoint",
)
"""Dataclasses that are shown by their fields, as all records are."""


def load(shell: Any) -> None:
    """Registers everything with an IPython shell; loading twice changes nothing."""

    def roof(line: str, cell: str) -> Any:
        """A cell in the .roof language; its kernels, machines and programs become names of the notebook.

        `%%roof` takes numbers for `const` parameters, as in `%%roof s=2`.
        """
        return run(shell, line, cell)

    shell.register_magic_function(roof, magic_kind="cell", magic_name="roof")
    html, latex, plain = _formatters(shell)
    for place, blocks in rich.RESULTS.items():
        module, _, name = place.partition(":")
        html.for_type_by_name(module, name, _shown(blocks, rich.as_html))
        latex.for_type_by_name(module, name, _shown(rich.LATEX[place], rich.as_latex))
        plain.for_type_by_name(module, name, _printed(_shown(blocks, rich.as_text), place in rich.TITLED))
    html.for_type(Kernel, rich.kernel_html)
    plain.for_type(Kernel, _printed(rich.kernel_text))
    plain.for_type(Derivation, _printed(rich.derivation_text))
    html.for_type(Record, _record)
    for place in FIELDS:
        html.for_type_by_name(*place.split(":"), rich.record_html)
    shell.set_custom_exc((InputError, CommandError), _tell)


def unload(shell: Any) -> None:
    """Removes everything again."""
    shell.magics_manager.magics["cell"].pop("roof", None)
    html, latex, plain = _formatters(shell)
    for place in rich.RESULTS:
        for formatter in (html, latex, plain):
            formatter.pop(place.replace(":", "."), None)
    for place in FIELDS:
        html.pop(place.replace(":", "."), None)
    for kind in (Kernel, Record):
        html.pop(kind, None)
    for kind in (Kernel, Derivation):
        plain.pop(kind, None)
    shell.set_custom_exc((), None)


def _formatters(shell: Any) -> tuple[Any, Any, Any]:
    known = shell.display_formatter.formatters
    return known["text/html"], known["text/latex"], known["text/plain"]


def _shown(blocks: Callable[[Any], list[Block]], write: Callable[[list[Block]], str]) -> Callable[[Any], str]:
    """What writes a result from its blocks."""
    return lambda of: write(blocks(of))


def _printed(show: Callable[[Any], str], titled: bool = True) -> Callable[[Any, Any, bool], None]:
    """A writer for IPython's pretty printer. Inside a list or a tuple, it writes only the first line if that is a
    title, and the repr otherwise.
    """

    def write(of: Any, printer: Any, cycle: bool) -> None:
        if not printer.indentation:
            printer.text(show(of))
        else:
            printer.text(show(of).split("\n")[0] if titled else repr(of))

    return write


def _record(of: Record) -> str | None:
    """A record's own HTML, or else its fields; None for a record with a text of its own. IPython prefers this formatter
    to the record's own method, so it has to call that.
    """
    own = getattr(of, "_repr_html_", None)
    if own is not None:
        return str(own())
    if "__repr__" in type(of).__dict__:  # it says as text what it is
        return None
    return rich.record_html(of)


def _tell(
    shell: Any, kind: type[BaseException], error: BaseException, trace: TracebackType | None, tb_offset: Any = None
) -> list[str]:
    """What is shown in place of a traceback: the place of the error in the text, or what could not be done."""
    from IPython.display import display

    if isinstance(error, InputError):
        found = of_error(error)
        display(found)
        count = len(found.diagnostics)
        lines = [f"{count} error{'s' if count > 1 else ''} in {error.source.name}"]
    elif isinstance(error, CommandError):
        help = error.help.replace("--set ", "")  # sizes are keywords here
        lines = [f"error: {error.message}", *([f"help: {help}"] if help else [])]
    else:
        lines = [str(error)]
    shell._showtraceback(kind, error, lines)
    return lines

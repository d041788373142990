"""Kernels as text: a syntax tree written out in canonical layout. Comments of a file are not kept."""

from __future__ import annotations

from collections.abc import Sequence

from roofdsl.lang import tree
from roofdsl.lang.checked import CheckedKernel
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.format import INDENT, format_source
from roofdsl.lang.format_text import WIDTH, expression, for_header, parameters, simple
from roofdsl.lang.record import replace
from roofdsl.lang.source import Source

NAME = "<changed>"
"""The name by which messages refer to such a text."""


def written(given: CheckedKernel, changed: tree.Kernel | None = None) -> str:
    """The kernel (or `changed` instead of it) as a file of its own, with what its file states for all kernels.

    Raises CommandError if an expression is nested too deep for a text.
    """
    own = changed or given.tree
    lines = [f"cost {cls} {str(value).removesuffix('.0')}" for cls, value in given.costs]
    lines += [f"# {note}" for note in given.notes]
    lines.append(f"kernel {own.name.text}({parameters(own.parameters)}):")
    if given.traffic is not None and not any(isinstance(item, tree.Traffic) for item in own.body):
        lines.append(f"{INDENT}traffic {given.traffic}")
    lines += _block(own.body, 1)
    try:
        return format_source(Source(NAME, "\n".join(lines) + "\n"))
    except InputError as error:  # made from C or Python, whose expressions may be deeper than those of a text
        first = error.diagnostics[0]
        raise CommandError(f"kernel {own.name.text} cannot be written out: {first.message}", first.help) from None


def _block(items: Sequence[tree.Item], depth: int) -> list[str]:
    lines: list[str] = []
    for item in items:
        match item:
            case tree.For(clauses, parallel, body):
                header = INDENT * depth + for_header(item)
                if len(header) > WIDTH and len(clauses) > 1 and not parallel:  # a loop a line is easier to read
                    inner = replace(item, clauses=clauses[1:])
                    header = INDENT * depth + for_header(replace(item, clauses=clauses[:1]))
                    body = (inner,)
                lines += [header, *_block(body, depth + 1)]
            case tree.If(branches, orelse):
                for i, branch in enumerate(branches):
                    lines.append(f"{INDENT * depth}{'elif' if i else 'if'} {expression(branch.condition)}:")
                    lines += _block(branch.body, depth + 1)
                if orelse:
                    lines += [f"{INDENT * depth}else:", *_block(orelse, depth + 1)]
            case _:
                lines.append(INDENT * depth + simple(item))
    return lines

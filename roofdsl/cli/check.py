"""`roofdsl check`: every finding about files."""

from __future__ import annotations

from typing import Any

import click

from roofdsl.cli.options import json_option, set_option, show_json
from roofdsl.lang.diagnostics import CommandError, Diagnostic, InputError, render
from roofdsl.lang.findings import did_you_mean
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel
from roofdsl.machine.find import Target, checked_file, find_model


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--deep", is_flag=True, help="Also check subscripts, intents and legality, for all allowed sizes.")
@set_option
@json_option
def check(files: tuple[str, ...], deep: bool, settings: dict[str, int], as_json: bool) -> int:
    """Parse and check FILEs (`-` is standard input). The exit status is 1 if there is an error.

    --deep checks all sizes that the assumptions allow. A `const` parameter without a default needs --set.
    """
    findings: list[tuple[Source, Diagnostic]] = []
    failures: list[CommandError] = []
    for file in files:
        try:
            found, summary = _check(find_model(file), deep, settings)
        except CommandError as error:
            failures.append(error)
            continue
        findings += found
        if not as_json:
            for source, diagnostic in found:
                click.echo(render(source, diagnostic))
            if summary:
                click.echo(summary)
    if as_json:
        show_json({"schema": "roofdsl.check/1", "diagnostics": [_plain(s, d) for s, d in findings]})
    for failure in failures[:-1]:
        click.echo(f"error: {failure.message}", err=True)
    if failures:
        raise failures[-1]
    return 1 if _errors(findings) else 0


def _check(target: Target, deep: bool, settings: dict[str, int]) -> tuple[list[tuple[Source, Diagnostic]], str]:
    """The findings of a whole file, and a line that sums them up, if they need one. Raises CommandError for an unknown
    NAME.
    """
    try:
        checked = checked_file(target.path, target.name)
    except InputError as error:
        skipped = f"{error.source.name}: correct these errors first; --deep has checked nothing yet" if deep else ""
        return [(error.source, d) for d in error.diagnostics], skipped
    names = (*checked.kernels, *checked.machines, *checked.programs)
    if target.name is not None and target.name not in names:
        listed = did_you_mean(target.name, names, f"it has {', '.join(names[:8])}")
        raise CommandError(f"`{checked.source.name}` has no `{target.name}`", listed)
    found = [(checked.source, d) for d in checked.warnings]
    if deep:
        from roofdsl.checks.deep import deep_check

        for name in checked.own_kernels:
            try:
                found += [(checked.source, d) for d in deep_check(kernel(checked, name, settings))]
            except InputError as error:
                found += [(error.source, d) for d in error.diagnostics]
    counts = (
        (len(checked.own_kernels), "kernel"),
        (len(checked.own_machines), "machine"),
        (len(checked.own_programs), "program"),
    )
    has = ", ".join(f"{n} {word}{'s' if n > 1 else ''}" for n, word in counts if n)
    return found, "" if _errors(found) else f"{checked.source.name}: ok ({has or 'nothing of its own'})"


def _errors(findings: list[tuple[Source, Diagnostic]]) -> bool:
    return any(d.severity == "error" for _, d in findings)


def _plain(source: Source, diagnostic: Diagnostic) -> dict[str, Any]:
    span = diagnostic.span
    return {
        "file": source.name,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
        "severity": diagnostic.severity,
        "code": diagnostic.code,
        "message": diagnostic.message,
        "help": diagnostic.help,
    }

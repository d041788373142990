"""`roofdsl derive`: closed forms of W, Q, Q(Z) and I."""

from __future__ import annotations

from typing import Literal

import click

from roofdsl.cli.options import (
    choose,
    json_option,
    kernels_of,
    parse_size_option,
    set_option,
    show_json,
    size_option,
    traffic_option,
)
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Traffic


def _cache(ctx: click.Context, param: click.Parameter, value: str | None) -> int | Literal["Z"] | None:
    return "Z" if value == "Z" else parse_size_option(ctx, param, value)


@click.command()
@click.argument("file")
@set_option
@traffic_option
@click.option(
    "--cache", metavar="SIZE|Z", callback=_cache, help="Such as 32KiB, or Z for every size; without it Q is compulsory."
)
@size_option("--line", "Size of a line; without one, an element of each array.")
@click.option("--steps", is_flag=True, help="The argument, step by step.")
@click.option("--latex", is_flag=True, help="A LaTeX fragment (needs amsmath), of the steps with --steps.")
@json_option
def derive(
    *,
    file: str,
    settings: dict[str, int],
    traffic: Traffic | None,
    cache: int | Literal["Z"] | None,
    line: int | None,
    steps: bool,
    latex: bool,
    as_json: bool,
) -> None:
    """Derive W, Q, Q(Z) and I of the kernels of FILE (or FILE:KERNEL, or a shipped kernel's name)."""
    from roofdsl.analysis.derive import derive as derive_kernel

    if latex and as_json:
        raise click.UsageError("--latex and --json are two outputs; give one of them")
    chosen = choose(file)
    if chosen.programs:
        some = ", ".join(chosen.checked.kernels)
        message = f"`{chosen.programs[0]}` is a program, and closed forms are derived for kernels"
        raise CommandError(message, f"pick one: {some}; `roofdsl predict` adds up a program's launches")
    size, any_cache = (None, True) if cache == "Z" else (cache, False)
    found = []
    for kernel, _ in kernels_of(chosen, settings):
        own = {p.name: settings[p.name] for p in kernel.parameters if p.name in settings}
        derivation = derive_kernel(
            kernel, own, traffic=traffic, cache_bytes=size, line_bytes=line, steps=steps, any_cache=any_cache
        )
        found.append(derivation)
    if as_json:
        from roofdsl.analysis.report.derive_json import documents

        show_json(documents(found))
    elif latex:
        from roofdsl.analysis.report.derive_latex import to_latex

        click.echo(to_latex(found), nl=False)
    else:
        from roofdsl.analysis.report.derive_text import to_text

        click.echo("\n".join(to_text(d) for d in found), nl=False)

"""`roofdsl derive`: closed forms of W, Q, Q(Z) and I."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import click

from roofdsl.cli.options import (
    choose,
    data_option,
    json_option,
    kernels_of,
    no_programs,
    parse_size_option,
    set_option,
    settings_of,
    show_json,
    size_option,
    traffic_option,
)
from roofdsl.cli.text import terminal_width
from roofdsl.loops.model import Traffic
from roofdsl.tell.line_breaks import WIDTH

if TYPE_CHECKING:
    from roofdsl.counts.derived import Derivation
    from roofdsl.counts.program import ProgramDerivation


def _cache(ctx: click.Context, param: click.Parameter, value: str | None) -> int | Literal["Z"] | None:
    return "Z" if value == "Z" else parse_size_option(ctx, param, value)


@click.command()
@click.argument("file")
@set_option
@traffic_option
@click.option(
    "--cache",
    metavar="SIZE|Z",
    callback=_cache,
    help="The size of the cache, such as 32KiB, or Z for every size. Without it, Q is compulsory.",
)
@size_option("--line", "The size of a cache line; by default, one element of each array.")
@data_option
@click.option(
    "--all-cases", is_flag=True, help="List also the cases of Q(Z) that hold on single lines, and all terms of a sum."
)
@click.option("--steps", is_flag=True, help="Show the derivation step by step.")
@click.option("--latex", is_flag=True, help="Print LaTeX (for amsmath); with --steps, the steps.")
@json_option
def derive(
    *,
    file: str,
    settings: dict[str, int],
    traffic: Traffic | None,
    cache: int | Literal["Z"] | None,
    line: int | None,
    data: tuple[str, ...],
    all_cases: bool,
    steps: bool,
    latex: bool,
    as_json: bool,
) -> None:
    """Derive W, Q, Q(Z) and I of FILE's kernels and programs (or FILE:NAME, or a shipped kernel's name).

    The results for a program are sums over its launches.
    """
    from roofdsl.counts.derive import derive as derive_kernel

    if latex and as_json:
        raise click.UsageError("--latex and --json are two outputs; choose one")
    if all_cases and (latex or steps):
        raise click.UsageError("--all-cases is for the text; leave out --latex and --steps")
    chosen = choose(file, whole=True)
    size, any_cache = (None, True) if cache == "Z" else (cache, False)
    if not chosen.kernels and (steps or any_cache):
        raise no_programs(chosen, f"{'--cache Z' if any_cache else '--steps'} is only for kernels")
    of_kernels, of_programs = settings_of(chosen, settings)
    found = []
    for kernel, sizes in kernels_of(chosen, of_kernels, data):
        own = {p.name: sizes[p.name] for p in kernel.parameters if p.name in sizes}
        derivation = derive_kernel(
            kernel, own, traffic=traffic, cache_bytes=size, line_bytes=line, steps=steps, any_cache=any_cache
        )
        found.append(derivation)
    programs = []
    if chosen.programs:
        from roofdsl.counts.program import derive_program

        for name in chosen.programs:
            values = of_programs[name]
            programs.append(
                derive_program(chosen.checked, name, values, traffic=traffic, cache_bytes=size, line_bytes=line)
            )
    _show(found, programs, as_json=as_json, latex=latex, all_cases=all_cases)


def _show(
    kernels: Sequence[Derivation],
    programs: Sequence[ProgramDerivation],
    *,
    as_json: bool,
    latex: bool,
    all_cases: bool,
) -> None:
    if as_json:
        from roofdsl.tell.derive_json import to_json, together

        documents = [to_json(d) for d in kernels]
        if programs:
            from roofdsl.tell.derive_program import to_json as program_json

            documents += [program_json(d) for d in programs]
        show_json(together(documents))
    elif latex:
        from roofdsl.tell.derive_latex import to_latex

        texts = [to_latex(kernels)] if kernels else []
        if programs:
            from roofdsl.tell.derive_program import to_latex as program_latex

            texts.append(program_latex(programs))
        click.echo("\n".join(texts), nl=False)
    else:
        from roofdsl.tell.derive_text import to_text

        width = terminal_width() or WIDTH
        texts = [to_text(d, width, all_cases=all_cases) for d in kernels]
        if programs:
            from roofdsl.tell.derive_program import to_text as program_text

            texts += [program_text(d, width) for d in programs]
        click.echo("\n".join(texts), nl=False)

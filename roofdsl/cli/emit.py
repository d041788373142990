"""`roofdsl emit`: the code generated for a kernel, for people to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from roofdsl.cli.options import choose_kernels, json_option, kernels_of, set_option, show_json
from roofdsl.codegen.registry import target_names, target_of
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from roofdsl.store.atomic import write_whole

if TYPE_CHECKING:
    from roofdsl.codegen.generated import Argument, Generated


def _variants() -> dict[tuple[str, ...], list[str]]:
    """The targets grouped by their variants."""
    found: dict[tuple[str, ...], list[str]] = {}
    for name in target_names():
        found.setdefault(target_of(name).variants, []).append(name)
    return found


def _told(variants: Mapping[tuple[str, ...], Sequence[str]]) -> str:
    """The help of `--variant`: `c and python: loops (default), parallel; cuda: naive (default), tiled.`"""
    parts = []
    for (default, *others), targets in variants.items():
        parts.append(f"{' and '.join(targets)}: {', '.join([f'{default} (default)', *others])}")
    return "; ".join(parts) + "."


_VARIANTS = _variants()


@click.command()
@click.argument("file")
@click.option("--to", "target", type=click.Choice(target_names()), required=True, help="The target language.")
@click.option("--variant", type=click.Choice(list(dict.fromkeys(chain(*_VARIANTS)))), help=_told(_VARIANTS))
@set_option
@click.option("-o", "--output", metavar="FILE", help="Write the code to a file instead.")
@json_option
def emit(
    *,
    file: str,
    target: str,
    variant: str | None,
    settings: dict[str, int],
    output: str | None,
    as_json: bool,
) -> None:
    """Print the code generated for the kernels of FILE (or FILE:KERNEL, or a shipped kernel's name)."""
    chosen = choose_kernels(file, "code is generated for kernels")
    pairs = kernels_of(chosen, settings, ())
    if output is not None and len(pairs) > 1:
        names = ", ".join(kernel.name for kernel, _ in pairs)
        raise CommandError("-o writes a single kernel", f"pick one of {names}: {file}:{pairs[0][0].name}")
    found = []
    for kernel, given in pairs:
        sizes = {p.name: p.default for p in kernel.parameters if p.default is not None} | given
        found.append((generated_for(kernel, target, variant, sizes), sizes))
    if as_json:
        documents = [document(code, sizes) for code, sizes in found]
        whole = {"schema": "roofdsl.emit/1", "kernels": documents}
        show_json({"schema": "roofdsl.emit/1", **documents[0]} if len(documents) == 1 else whole)
    elif output is not None:
        write_whole(Path(output), found[0][0].source)
    else:
        click.echo("\n".join(code.source for code, _ in found), nl=False)


def generated_for(kernel: Kernel, target: str, variant: str | None, sizes: dict[str, int]) -> Generated:
    """The code of a kernel. Raises InputError for errors that `check --deep` reports, such as an illegal directive."""
    from roofdsl.checks.deep import require_legal
    from roofdsl.checks.parallel_loops import parallel_loops
    from roofdsl.checks.private_copies import private_loops, private_scalar_loops
    from roofdsl.codegen.generate import generate

    require_legal(kernel)
    chosen = variant or target_of(target).variants[0]
    free = {} if chosen == "loops" else parallel_loops(kernel)
    proofs = {"naive": private_loops, "parallel": private_scalar_loops}
    private = proofs[chosen](kernel) if chosen in proofs else {}
    return generate(kernel, target, chosen, free=free, private=private, sizes=sizes)


def document(code: Generated, sizes: dict[str, int]) -> dict[str, Any]:
    """The `--json` document of one kernel; with its launches if all sizes have numbers (the first 1000)."""
    from itertools import islice

    shown: dict[str, Any] = {
        "kernel": code.kernel,
        "target": code.target,
        "variant": code.variant,
        "function": code.function,
        "arguments": [_argument(a) for a in code.arguments],
        "parallel": list(code.parallel),
        "sizes": dict(code.sizes),
        "notes": list(code.notes),
        "source": code.source,
    }
    parameters = [a.name for a in code.arguments if a.role == "parameter"]
    if code.steps is not None and all(name in sizes for name in parameters):
        shown["launches"] = [
            {
                "function": launch.function,
                "grid": list(launch.grid),
                "block": list(launch.block),
                "shared_bytes": launch.shared_bytes,
                "values": list(launch.values),
            }
            for launch in islice(code.launches(sizes), 1000)
        ]
    return shown


def _argument(a: Argument) -> dict[str, Any]:
    shape = [str(d) for d in a.dims]
    layout = "column-major" if a.column_major else "row-major"
    order = {"order": layout} if a.role == "array" else {}
    type_ = a.type.name if a.type else "i64"
    work = {} if a.work_bytes is None else {"work_bytes": a.work_bytes}
    return {"name": a.name, "role": a.role, "type": type_, "shape": shape, **order, "written": a.written, **work}

"""`roofdsl convert`: code in another language as the `.roof` kernel that it is read as."""

from __future__ import annotations

from pathlib import Path

import click

from roofdsl.cli.options import choose
from roofdsl.cli.safe_streams import exact_output
from roofdsl.lang.diagnostics import CommandError


@click.command()
@click.argument("file", metavar="FILE[:NAME]")
@click.option("-o", "--output", metavar="OUT.roof", help="Write to a file instead of standard output.")
@click.option("--torch", "is_torch", is_flag=True, help="Run the Python FILE, and read the PyTorch Model in it.")
@click.option("--fused", is_flag=True, help="With --torch: elementwise operators in one kernel where that is possible.")
@click.option("--verify", is_flag=True, help="Compile your function too, and compare results on random data.")
def convert(*, file: str, output: str | None, is_torch: bool, fused: bool, verify: bool) -> None:
    """Print the .roof kernels that the functions of a C FILE are read as.

    With --torch, FILE is a Python file with a class Model and functions get_inputs and get_init_inputs. It is RUN, and
    the program of kernels that its model is read as is printed.
    """
    from roofdsl.lang.write import written
    from roofdsl.store.atomic import write_whole

    if fused and not is_torch:
        raise click.UsageError("`--fused` groups the operators of a tensor program: give `--torch`, too")
    if verify and is_torch:
        raise click.UsageError("`--verify` executes a function beside its kernel, which a tensor program has none of")
    if is_torch:
        text = _torch(file, fused)
    else:
        chosen = choose(file)
        text = "\n".join(written(chosen.checked.kernels[name]) for name in chosen.kernels)
    if output is None:
        exact_output().write(text)
    else:
        write_whole(Path(output), text)
        click.echo(f"wrote {output}")
    if verify:
        _verify(file)


def _torch(file: str, fused: bool) -> str:
    """The program of a PyTorch model; says on standard error what was run and read."""
    from roofdsl.frontends.tensors.program import tensor_program
    from roofdsl.frontends.tensors.user_file import graph_of_file

    click.echo(f"running {file} to build its model", err=True)
    found = tensor_program(graph_of_file(file), fused=fused, about=f"Read from {Path(file).name} by torch.export.")
    click.echo(found.summary, err=True)
    return found.text


def _verify(file: str) -> None:
    """Says on standard error what was compared. Raises CommandError where a result differs."""
    from roofdsl.machine.find import find_model

    target = find_model(file)
    if not target.path.endswith(".c"):
        raise CommandError("`--verify` executes code in another language, and this is a .roof file", "give a C file")
    from roofdsl.frontends.c.verify import verify_file

    for found in verify_file(target.path, target.name):
        click.echo(str(found), err=True)

"""`roofdsl convert`: code in another language as the `.roof` kernel that it is read as."""

from __future__ import annotations

from pathlib import Path

import click

from roofdsl import reading_options
from roofdsl.cli.options import choose
from roofdsl.cli.safe_streams import exact_output
from roofdsl.lang.checked import CheckedKernel
from roofdsl.lang.diagnostics import CommandError


@click.command()
@click.argument("file", metavar="[FILE[:NAME]]", required=False)
@click.option("--einsum", metavar="TEXT", help="Convert an einsum, such as 'ik,kj->ij', instead of a file.")
@click.option("--type", "type_", metavar="TYPE", help="The type of the einsum's arrays; by default f64.")
@click.option("-o", "--output", metavar="OUT.roof", help="Write to a file instead of standard output.")
@click.option("--torch", "is_torch", is_flag=True, help="Run the Python FILE, and read the PyTorch Model in it.")
@click.option("--verify", is_flag=True, help="Run your function too, and compare results on random data.")
def convert(
    *, file: str | None, einsum: str | None, type_: str | None, output: str | None, is_torch: bool, verify: bool
) -> None:
    """Print the .roof kernels that the functions of a C or Python FILE, or an einsum, are read as.

    State the arguments of a Python function that have no annotation by --shape, as in --shape A=n,m:f64.

    With --torch, FILE is a Python file with a class Model and functions get_inputs and get_init_inputs. It is RUN, and
    the program of kernels that its model is read as is printed.
    """
    from roofdsl.lang.write import written
    from roofdsl.store.atomic import write_whole

    if is_torch:
        if file is None or einsum is not None or type_ is not None or verify:
            raise click.UsageError("`--torch` takes a FILE, without --einsum, --type and --verify")
        text = _torch(file)
    else:
        text = "\n".join(map(written, _kernels(file, einsum, type_)))
    if output is None:
        exact_output().write(text)
    else:
        write_whole(Path(output), text)
        click.echo(f"wrote {output}")
    if verify:
        if file is None:
            raise CommandError("`--verify` executes code in another language, and this is an einsum")
        _verify(file)


def _torch(file: str) -> str:
    """The program of a PyTorch model; says on standard error what was run and read."""
    from roofdsl.frontends.tensors.program import tensor_program
    from roofdsl.frontends.tensors.user_file import graph_of_file

    click.echo(f"running {file} to build its model", err=True)
    about = f"Read from {Path(file).name} by torch.export."
    found = tensor_program(graph_of_file(file), fused=reading_options.current().fused, about=about)
    click.echo(found.summary, err=True)
    return found.text


def _kernels(file: str | None, einsum: str | None, type_: str | None) -> list[CheckedKernel]:
    """The kernels of a file or of an einsum. Raises click.UsageError for both, or for neither."""
    if (file is None) == (einsum is None):
        raise click.UsageError("give a FILE, or --einsum TEXT")
    if einsum is not None:
        from roofdsl.frontends.einsum import kernel_of

        return list(kernel_of(einsum, type_ or "f64").kernels.values())
    if type_ is not None:
        raise click.UsageError("--type is for --einsum; the arrays of a file have types of their own")
    chosen = choose(file or "")
    return [chosen.checked.kernels[name] for name in chosen.kernels]


def _verify(file: str) -> None:
    """Says on standard error what was compared. Raises CommandError where a result differs."""
    from roofdsl.machine.find import find_model

    target = find_model(file)
    if target.path.endswith(".py"):
        from roofdsl.frontends.python.verify import verify_file
    elif target.path.endswith(".c"):
        from roofdsl.frontends.c.verify import verify_file
    else:
        message = "`--verify` executes code in another language, and this is a .roof file"
        raise CommandError(message, "give a C or Python file")
    for found in verify_file(target.path, target.name):
        click.echo(str(found), err=True)

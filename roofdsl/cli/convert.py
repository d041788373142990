"""`roofdsl convert`: translates code in another language into `.roof` kernels."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from roofdsl.cli.options import choose
from roofdsl.cli.safe_streams import exact_output
from roofdsl.frontends.refuse import PartlyRead
from roofdsl.lang.checked import CheckedFile
from roofdsl.lang.diagnostics import CommandError
from roofdsl.reading_options import current


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
    """Translate the functions of a C or Python FILE, or an einsum, into .roof kernels, and print them.

    --shape states an argument of a Python function that has no annotation, as in --shape A=n,m:f64. --fused fuses the
    loops of Python functions, as a compiler could.

    If some functions cannot be read, the others are converted; the errors follow, and the exit status is 1.

    With --torch, FILE is a Python file with a class Model and functions get_inputs and get_init_inputs. The command
    RUNS the file, and prints the program of kernels that the model becomes. --fused then puts elementwise operators
    into one kernel where that is possible.
    """
    from roofdsl.store.atomic import write_whole

    if output is not None and Path(output).suffix != ".roof":
        raise click.UsageError(f"-o writes a .roof file, and the name `{output}` does not end in .roof")
    refused = None
    try:
        text = _text(file, einsum, type_, is_torch=is_torch, verify=verify)
    except PartlyRead as error:
        if not error.read.kernels:
            raise
        refused, text = error, _written(error.read, tuple(error.read.kernels))
    if output is None:
        exact_output().write(text)
    else:
        write_whole(Path(output), text)
        click.echo(f"wrote {output}")
    if verify and file is not None:
        for target in [file] if refused is None else [f"{file}:{name}" for name in refused.read.kernels]:
            _verify(target)
    if refused is not None:
        sys.stdout.flush()
        click.echo(refused.alone, err=True)
        raise SystemExit(1)


def _written(checked: CheckedFile, names: Sequence[str]) -> str:
    """The text of some kernels of a file."""
    from roofdsl.lang.write import written

    return "\n".join(written(checked.kernels[name]) for name in names)


def _text(file: str | None, einsum: str | None, type_: str | None, *, is_torch: bool, verify: bool) -> str:
    """The kernels of a file or of an einsum. Raises click.UsageError for both, neither, and options that do not fit."""
    from roofdsl.lang.write import written

    if file is None and einsum is None:
        raise click.UsageError("give a FILE, or --einsum TEXT")
    if file is not None and einsum is not None:
        raise click.UsageError("give a FILE or --einsum TEXT, not both")
    if is_torch and einsum is not None:
        raise click.UsageError("--torch is for a Python FILE; an einsum needs no PyTorch")
    if is_torch and not str(file).endswith(".py"):
        raise click.UsageError(f"--torch runs a Python file, and `{file}` does not end in .py")
    if type_ is not None and einsum is None:
        raise click.UsageError("--type is for --einsum; the arrays of a file have types of their own")
    if verify and (is_torch or file is None):
        what = "a tensor program" if is_torch else "an einsum"
        raise click.UsageError(f"`--verify` compares a function with its kernel, and {what} has no function")
    if einsum is not None:
        from roofdsl.frontends.einsum import kernel_of

        return "\n".join(map(written, kernel_of(einsum, type_ or "f64").kernels.values()))
    assert file is not None
    if is_torch:
        return _torch(file, current().fused)
    chosen = choose(file)
    if current().fused and not chosen.checked.source.name.endswith(".py"):
        message = (
            "`--fused` groups loops of Python functions, or the operators of a tensor program: give `--torch`, too"
        )
        raise click.UsageError(message)
    return _written(chosen.checked, chosen.kernels)


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
    if target.path.endswith(".py"):
        from roofdsl.frontends.python.verify import verify_file
    elif target.path.endswith(".c"):
        from roofdsl.frontends.c.verify import verify_file
    else:
        message = "`--verify` executes code in another language, and this is a .roof file"
        raise CommandError(message, "give a C or Python file")
    for found in verify_file(target.path, target.name):
        click.echo(str(found), err=True)

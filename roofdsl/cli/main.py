"""`roofdsl COMMAND`: finds the command, runs it, and turns errors into messages and exit statuses.

Commands are imported when they run, so that `roofdsl --help` is fast. Exit status: 0 done, 1 the input is found wrong,
2 the command could not be carried out, 130 interrupted (docs/commands.md).
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence

import click

from roofdsl import __version__, budget, reading_options
from roofdsl.cli.budget import summary, take_budget
from roofdsl.cli.code_options import take_reading_options
from roofdsl.cli.failure import NO_ROOM, Failure, failure_of, for_people, out_of_budget, with_unit_joined
from roofdsl.cli.lazy import LazyGroup
from roofdsl.cli.progress import telling_progress
from roofdsl.cli.safe_streams import visible_output
from roofdsl.lang.cache_folder import turn_off

# name -> (module:attribute, one line of help)
COMMANDS: Mapping[str, tuple[str, str]] = {
    "check": ("roofdsl.cli.check:check", "Report errors and warnings in files."),
    "fmt": ("roofdsl.cli.fmt:fmt", "Rewrite files in the canonical layout."),
    "convert": ("roofdsl.cli.convert:convert", "Translate C or Python code into kernels."),
    "derive": ("roofdsl.cli.derive:derive", "Derive W, Q, Q(Z) and I in closed form."),
    "bound": ("roofdsl.cli.bound:bound", "Find a lower bound on the loads of any legal order, and tiles close to it."),
    "predict": ("roofdsl.cli.predict:predict", "Predict time and FLOP/s on a machine, and what bounds them."),
    "advise": ("roofdsl.cli.advise:command", "Rank legal transformations by their predicted gain."),
    "sol": ("roofdsl.cli.sol:sol", "Find the shortest time any code could take, and judge a measured time."),
    "suite": ("roofdsl.cli.suite:command", "Compare many kernels on a machine: W, Q, lower bound, rate."),
    "sweep": ("roofdsl.cli.sweep:sweep", "Predict over ranges of parameters, machines and cache sizes."),
    "shard": ("roofdsl.cli.devices:shard_command", "Split a contraction over devices: compute and communication."),
    "collective": ("roofdsl.cli.devices:collective_command", "Compute the time of a collective, such as all-reduce."),
    "threshold": (
        "roofdsl.cli.threshold:threshold",
        "Find the sizes at which the bound changes.",
    ),
    "simulate": ("roofdsl.cli.simulate:simulate", "Simulate every memory access of a kernel in caches."),
    "emit": ("roofdsl.cli.emit:emit", "Print generated C, CUDA or Python code."),
    "measure": ("roofdsl.cli.measure:measure", "Generate, verify and time code on this machine."),
    "validate": ("roofdsl.cli.validate:validate", "Compare measurements with predictions."),
    "characterize": (
        "roofdsl.cli.characterize:characterize",
        "Measure this machine's ceilings and write a machine file.",
    ),
    "demo": ("roofdsl.cli.demo:demo", "Run the complete workflow on this machine."),
    "explore": ("roofdsl.cli.explore:explore", "Write an interactive HTML page of kernels and machines."),
    "plot": ("roofdsl.cli.plot:plot", "Draw figures: rooflines, Q(Z), times."),
    "import": ("roofdsl.cli.import_ncu:import_group", "Import a profiler's report as measured points."),
    "exercise": ("roofdsl.cli.exercise:exercise", "List, show, check and grade exercises."),
    "machines": ("roofdsl.cli.machines:machines", "List and show the shipped machines."),
    "models": ("roofdsl.cli.models:models", "List and show the shipped kernels."),
    "schema": ("roofdsl.cli.schema:schema", "Print the JSON Schemas of what --json prints."),
    "mcp": ("roofdsl.cli.serve:mcp", "Serve agents over the Model Context Protocol."),
    "serve": ("roofdsl.cli.serve:serve", "Answer requests in JSON lines, for editors."),
    "cache": ("roofdsl.cli.cache:cache", "Show or clear the on-disk cache of derivations."),
}


@click.group(cls=LazyGroup, commands_at=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="roofdsl")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
@click.option("--no-cache", is_flag=True, expose_value=False, help="Do not use the on-disk cache of derivations.")
@click.option(
    "--budget",
    metavar="TIME[,SIZE]",
    expose_value=False,
    help="Limit processor time and memory, as in 2min or 1h,16GiB; the default is 20s,4GiB. The value none removes "
    "both limits.",
)
@click.option("-D", metavar="NAME[=VALUE]", expose_value=False, help="Define a macro for C files (repeatable).")
@click.option("-I", metavar="FOLDER", expose_value=False, help="Search a folder for headers of C files (repeatable).")
@click.option(
    "--value",
    metavar="NAME=NUMBER",
    expose_value=False,
    help="Read C functions as if called with this argument, as in alpha=1.0,incx=1 (repeatable).",
)
@click.option(
    "--shape",
    metavar="NAME=SIZES:TYPE",
    expose_value=False,
    help="State the shape and type of a Python function's argument, as in A=n,m:f64 (repeatable).",
)
@click.option("--fused", is_flag=True, expose_value=False, help="Fuse loops of Python functions and tensor programs.")
def cli() -> None:
    """Analyze loop kernels: exact work, traffic and intensity, and predicted times on a machine."""


OWN_WORK = frozenset(
    {"measure", "validate", "characterize", "demo", "sweep", "suite", "exercise", "import", "mcp", "serve"}
)
"""Commands with long work of their own. Their budget applies only to the analyses they use, in a suite to those of each
kernel.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit the process."""
    try:
        if signal.getsignal(signal.SIGINT) not in {signal.SIG_IGN, None}:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # until now, roofdsl/__main__.py handled it
        gc.freeze()
        gc.set_threshold(50_000)  # imports and built objects stay: searching them for garbage took 5 % of a command
        args = list(sys.argv[1:] if arguments is None else arguments)
        debug = "--debug" in args
        status = run([a for a in args if a != "--debug"], debug)
    except BrokenPipeError:  # the reader of our output closed it; the flush at exit must not complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    except KeyboardInterrupt:
        status = 130
    sys.exit(status)


def run(args: list[str], debug: bool = False, spoken: Callable[[Failure], str] = for_people) -> int:
    """Run `args` and return the exit status; a failure is written to standard error in the words of `spoken`.

    With `debug`, all errors but those of usage are raised.
    """
    with visible_output(), reading_options.for_one_command():
        return _run_in_budget(args, debug, spoken)


def _run_in_budget(args: list[str], debug: bool, spoken: Callable[[Failure], str]) -> int:
    if "--no-cache" in args:  # like --debug, it may be anywhere
        turn_off()
        args = [a for a in args if a != "--no-cache"]
    try:
        args, seconds, memory = take_budget(take_reading_options(args))
    except click.ClickException as error:
        return _tell(failure_of(error), spoken)
    args = [f"./-{a[1:]}" if a.startswith("-:") else a for a in args]  # `-:KERNEL` is not an option
    name = next((a for a in args if not a.startswith("-")), "")
    with budget.beginning(seconds, memory, whole=name not in OWN_WORK) as own, telling_progress(name):
        own.last_words = f"{spoken(out_of_budget(own))}\n"
        status = _run(args, debug, spoken, own)
        if own.left_out and status == 0:
            click.echo(f"note: {summary(own)}", err=True)
        return status


def _run(args: list[str], debug: bool, spoken: Callable[[Failure], str], own: budget.Budget) -> int:
    try:
        with cli.make_context("roofdsl", args) as context:  # not cli.main, which has its own signal handling
            result = cli.invoke(context)
        if sys.stdout is not None:  # the output may be closed (>&-)
            sys.stdout.flush()
        own.stop()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return 130
    except BrokenPipeError:
        raise
    except Exception as error:
        own.stop()  # what follows, and freeing what the command made, would be interrupted once more
        if debug and not isinstance(error, click.ClickException):
            raise
        if isinstance(error, OSError) and error.errno in NO_ROOM and error.filename is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the flush at exit must not complain
        return _tell(with_unit_joined(failure_of(error), args), spoken)


def _tell(failure: Failure, spoken: Callable[[Failure], str]) -> int:
    click.echo(spoken(failure), err=True)
    return failure.status

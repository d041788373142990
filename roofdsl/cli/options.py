"""Options and arguments that commands share: files, parameters, machines, sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar, get_args

import click

import roofdsl.frontends  # noqa: F401 registers what reads files of other languages
from roofdsl.cli.settings import parse_settings, settings_of_options
from roofdsl.codegen.math_mode import Math
from roofdsl.lang.checked import CheckedFile
from roofdsl.lang.diagnostics import CommandError, render
from roofdsl.lang.findings import did_you_mean
from roofdsl.lang.record import Record
from roofdsl.lang.types import TYPES
from roofdsl.lang.units import UnitError, parse_size, parse_time
from roofdsl.loops.indirect import require_affine
from roofdsl.loops.load import kernel
from roofdsl.loops.model import Kernel
from roofdsl.loops.parameter_values import its_parameters
from roofdsl.machine.find import checked_file, find_model
from roofdsl.predict.in_core_time import Model
from roofdsl.sweep.ranges import parse_ranges, points_of

F = TypeVar("F", bound=Callable[..., Any])


def size_option(name: str, help: str) -> Callable[[F], F]:
    """An option for a size with its unit, such as `32KiB`; the function gets bytes or None."""
    return click.option(name, metavar="SIZE", callback=parse_size_option, help=help)


def parse_size_option(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """`32KiB` in bytes; for a line, a number without a unit is allowed and means bytes. Raises click.BadParameter."""
    try:
        if value is not None and param.name == "line" and value.strip().isdecimal():
            value = f"{value.strip()} B"
        return None if value is None else parse_size(value)
    except UnitError as error:
        raise click.BadParameter(str(error), ctx, param) from None


def set_option(function: F) -> F:
    """`--set n=4096,b=32`, repeatable; the function gets `settings`, a dict of integers."""
    help = "Values of parameters, as in n=4096,b=32 (repeatable)."
    return click.option(
        "--set", "settings", multiple=True, metavar="NAME=NUMBER,...", callback=settings_of_options, help=help
    )(function)


def unit_option(function: F) -> F:
    """`--unit tensor|tensor_sparse`; the function gets `unit` or None."""
    units = click.Choice(["tensor", "tensor_sparse"])
    return click.option("--unit", type=units, help="Run contractions on matrix units.")(function)


def type_option(
    about: str = "Draw the roofs of this type (repeatable); by default, those of the kernels.",
) -> Callable[[F], F]:
    """`--type TYPE`, repeatable; the function gets `types`, all of which exist."""
    return click.option("--type", "types", multiple=True, metavar="TYPE", callback=_types, help=about)


def _types(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """Types of the language. Raises click.BadParameter for an unknown one."""
    unknown = next((t for t in value if t not in TYPES), None)
    if unknown is not None:
        raise click.BadParameter(f"there is no type `{unknown}`; the types are {', '.join(TYPES)}", ctx, param)
    return value


def network_options(function: F) -> F:
    """`--topology`, `--link`, `--latency`: how devices are connected; `topology` and `link` are None if not given."""
    kinds = click.Choice(["ring", "two-way-ring", "switch"])
    function = latency_option(function)
    function = click.option("--link", metavar="NAME", help="The machine's link to its neighbors.")(function)
    return click.option("--topology", type=kinds, help="How the links join the devices; by default a one-way ring.")(
        function
    )


def latency_option(function: F) -> F:
    """`--latency TIME`; the function gets `latency` in seconds, 0 if it is not given."""
    help = "The latency of each step of a collective."
    return click.option("--latency", metavar="TIME", default="", callback=_time, help=help)(function)


def _time(ctx: click.Context, param: click.Parameter, value: str) -> Fraction:
    """`1us` in seconds, 0 without a value. Raises click.BadParameter."""
    try:
        return parse_time(value) if value else Fraction(0)
    except UnitError as error:
        raise click.BadParameter(str(error), ctx, param) from None


MOST_STEPS = 1000
"""The maximum number of sizes that one `--at` can stand for."""


def parse_steps(texts: Sequence[str]) -> list[dict[str, int]]:
    """The sizes of the `--at` options, in order: `n=64,b=8` is one, `n=64..4096:*2` one for every value of the range.

    If one text has several ranges, the last varies fastest. Without a text there is one step without sizes. Raises
    click.BadParameter, and CommandError for a wrong range.
    """
    if not texts:
        return [{}]
    found: list[dict[str, int]] = []
    for text in texts:
        if ".." not in text:
            found.append(parse_settings(text))
            continue
        from itertools import product

        ranges = parse_ranges(text)
        if points_of(ranges) > MOST_STEPS:
            raise CommandError(f"`--at {text}` gives {points_of(ranges):,} sizes", f"give at most {MOST_STEPS:,}")
        found += [dict(zip(ranges, values, strict=True)) for values in product(*ranges.values())]
    return found


def data_option(function: F) -> F:
    """`--data rowptr,col=A.mtx`, repeatable; the function gets `data`, texts."""
    help = "Values of index arrays: a file, or a generated matrix such as random:n=1000,row=8,seed=1 (repeatable)."
    return click.option("--data", "data", multiple=True, metavar="NAME,...=FILE", help=help)(function)


def json_option(function: F) -> F:
    """`--json`; the function gets `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")(function)


def traffic_option(function: F) -> F:
    """`--traffic CONVENTION`; the function gets `traffic` or None."""
    return click.option(
        "--traffic",
        type=click.Choice(["once", "load_store", "write_allocate"]),
        help="How to count bytes; by default as the kernel or the file says, else (in predictions) as the machine "
        "says, else load_store.",
    )(function)


def math_option(function: F) -> F:
    """`--math relaxed|strict`; the function gets `math`."""
    return click.option(
        "--math",
        type=click.Choice(["relaxed", "strict"]),
        default="relaxed",
        show_default=True,
        help="relaxed: compilers of CPU code may reorder sums, and fuse products with sums; strict: neither.",
    )(function)


def _core_numbers(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...]:
    """The numbers of cores in `1,2,4`."""
    if value is None:
        return ()
    parts = value.split(",")
    if not all(part.strip().isascii() and part.strip().isdigit() and int(part) for part in parts):
        raise click.BadParameter(f"`{value}` is not a list of numbers of cores such as 1,2,4", ctx, param)
    return tuple(dict.fromkeys(int(part) for part in parts))


def cores_option(function: F) -> F:
    """`--cores 1,2`; the function gets `cores`, empty if it is not given."""
    return click.option(
        "--cores",
        callback=_core_numbers,
        metavar="N,...",
        help="Run each kernel on these numbers of cores: `loops` on one core, `parallel` on several.",
    )(function)


def variants_on(cores: Sequence[int], variants: Sequence[str], backend: str) -> list[tuple[str, int | None]]:
    """(variant, number of cores) of the runs of a kernel. Raises click.UsageError if the options conflict."""
    if not cores:
        return [(variant, None) for variant in variants]
    if backend == "gpu":
        raise click.UsageError("--cores is about CPUs; omit it with --backend gpu")
    if variants:
        raise click.UsageError("--cores chooses the variants itself; omit --variant")
    return [("loops" if n == 1 else "parallel", n) for n in cores]


def refuse_strict(backend: str, math: Math) -> None:
    """Raises click.UsageError for strict math on a GPU, whose code has no such mode."""
    if backend == "gpu" and math == "strict":
        raise click.UsageError("--math is about the code for CPUs; omit it with --backend gpu")


def in_core_option(function: F) -> F:
    """`--in-core MODEL`; the function gets `in_core`."""
    return click.option(
        "--in-core",
        "in_core",
        type=click.Choice(get_args(Model)),
        default="auto",
        show_default=True,
        help="Where the in-core time comes from. compiled: the assembly of generated code; stated: the kernel and what "
        "the machine states; auto: compiled if the machine is this processor, otherwise stated; llvm-mca, osaca: that "
        "tool, if it is installed; none: no expected time.",
    )(function)


def machine_option(function: F) -> F:
    """`--machine NAME|FILE[:NAME]`, required; the function gets `machine_name`."""
    return click.option(
        "--machine",
        "machine_name",
        required=True,
        metavar="NAME|FILE[:NAME]",
        help="A shipped machine, or a file with one.",
    )(function)


class Chosen(Record):
    """A file and the names selected in it: one kernel or program, or those that a whole file stands for (`choose`)."""

    checked: CheckedFile
    kernels: tuple[str, ...]
    programs: tuple[str, ...]


def choose(text: str, *, whole: bool = False) -> Chosen:
    """The subject of FILE, FILE:NAME, `-` or the name of a shipped kernel.

    For a file with programs and no name, the programs are selected, since they run its kernels; `whole`: select both.
    Raises CommandError for a missing file or name, InputError for a file with errors. Warnings about the file go to
    standard error.
    """
    target = find_model(text)
    checked = checked_file(target.path, target.name)
    for warning in checked.warnings:
        click.echo(render(checked.source, warning), err=True)
    if target.name is None:
        if checked.own_programs:
            return Chosen(checked, checked.own_kernels if whole else (), checked.own_programs)
        names = checked.own_kernels or tuple(checked.kernels)
        if not names:
            raise CommandError(f"`{checked.source.name}` has no kernel", "pass machines with --machine")
        return Chosen(checked, names, ())
    if target.name in checked.programs:
        return Chosen(checked, (), (target.name,))
    if target.name in checked.kernels:
        return Chosen(checked, (target.name,), ())

    names = (*checked.kernels, *checked.programs)
    listed = f"it has {', '.join(names[:8])}" if names else "it has no kernels"
    message = f"`{checked.source.name}` has no kernel or program `{target.name}`"
    raise CommandError(message, did_you_mean(target.name, names, listed))


def choose_kernels(text: str, what: str) -> Chosen:
    """Like `choose`, for a command that takes kernels: a file without a name stands for its kernels; `what` is for
    errors.

    Raises CommandError for a program.
    """
    chosen = choose(text, whole=True)
    if chosen.kernels:
        return Chosen(chosen.checked, chosen.kernels, ())
    raise no_programs(chosen, what)


def no_programs(chosen: Chosen, what: str) -> CommandError:
    """The error of a command that takes only kernels; `what` says so: `bounds are for kernels`."""
    names = chosen.checked.kernels_run_by(chosen.programs[0])
    more = ", ..." if len(names) > NAMED else ""
    help = f"pick one of its kernels: {', '.join(names[:NAMED])}{more}" if names else ""
    return CommandError(f"`{chosen.programs[0]}` is a program, and {what}", help)


NAMED = 8
"""The maximum number of kernel names that an error lists."""


def settings_of(chosen: Chosen, settings: Mapping[str, int]) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """The settings for the kernels, and the settings for each program.

    Raises CommandError for a setting that none of them has. If only kernels or a single program are selected, the code
    that uses the setting reports it instead.
    """
    if not chosen.programs:
        return dict(settings), {}
    if not chosen.kernels and len(chosen.programs) == 1:
        return {}, {chosen.programs[0]: dict(settings)}
    unknown = sorted(settings.keys() - _parameters(chosen))
    if unknown:
        have = f"they have {', '.join(sorted(_parameters(chosen)))}"
        raise CommandError(f"nothing in `{chosen.checked.source.name}` has a parameter `{unknown[0]}`", have)

    def own(names: frozenset[str]) -> dict[str, int]:
        return {n: v for n, v in settings.items() if n in names}

    of_programs = {name: own(_parameters(Chosen(chosen.checked, (), (name,)))) for name in chosen.programs}
    return own(_parameters(Chosen(chosen.checked, chosen.kernels, ()))), of_programs


def choose_all(
    files: Sequence[str], settings: Mapping[str, int], sizes: Sequence[str] = ()
) -> list[tuple[Chosen, list[dict[str, int]]]]:
    """The subject of each FILE, with its parameters at each of the `--at` texts.

    A parameter that only other FILEs have is left out for a FILE, and so are sizes that become equal. A name unknown to
    all of them stays, and the code that uses it reports it.
    """
    chosen = [choose(file) for file in files]
    known = frozenset().union(*map(_parameters, chosen))
    found = []
    for each in chosen:
        elsewhere = known - _parameters(each)
        given: list[dict[str, int]] = []
        for size in parse_steps(sizes):
            own = {name: number for name, number in {**settings, **size}.items() if name not in elsewhere}
            given += [own] if own not in given else []
        found.append((each, given))
    return found


def _parameters(chosen: Chosen) -> frozenset[str]:
    kernels = [p for name in chosen.kernels for p in chosen.checked.kernels[name].tree.parameters]
    programs = [p for name in chosen.programs for p in chosen.checked.programs[name].tree.parameters]
    return frozenset(p.name.text for p in (*kernels, *programs))


def kernels_of(
    chosen: Chosen, settings: Mapping[str, int], data: Sequence[str] | None = None
) -> list[tuple[Kernel, dict[str, int]]]:
    """The selected kernels, each with the settings that are its parameters, and its index arrays with their values.

    data: None for a command that is not available for kernels with index arrays. Raises CommandError for such a kernel
    then, for a setting that no kernel has, and for data that do not fit the one kernel they are for.
    """
    pairs = []
    unknown = set(settings)
    for name in chosen.kernels:
        lowered = kernel(chosen.checked, name, settings)
        known = {p.name for p in lowered.parameters} | {c for c, _ in lowered.constants}
        unknown -= known
        pairs.append((lowered, {n: v for n, v in settings.items() if n in known}))
        if data is None:
            running = click.get_current_context(silent=True)
            require_affine(lowered, f"`{running.command_path.partition(' ')[2]}`" if running else "this")
    if unknown and pairs:
        first = pairs[0][0]
        whose = f"kernel {first.name} has" if len(pairs) == 1 else f"the kernels of {first.source.name} have"
        every = [[*(p.name for p in k.parameters), *(c for c, _ in k.constants)] for k, _ in pairs]
        names = dict.fromkeys(n for some in every for n in some)
        raise CommandError(f"{whose} no parameter `{min(unknown)}`", its_parameters(list(names)))
    if not data:
        return pairs
    if len(pairs) != 1:
        help = f"pick one of {', '.join(k.name for k, _ in pairs)}" if pairs else "name it as FILE:KERNEL"
        raise CommandError("--data is for one kernel", help)
    from roofdsl.matrices.attach import with_data

    return [with_data(pairs[0][0], data, pairs[0][1])]


def show_json(document: object) -> None:
    """Print a JSON document on standard output; json itself refuses NaN and infinities."""
    import json

    click.echo(json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False))


def warn(*messages: str) -> None:
    """Print each of these warnings once, on standard error."""
    for message in dict.fromkeys(messages):
        click.echo(f"warning: {message}", err=True)

"""`-D`, `-I`, `--value`, `--shape` and `--fused`: how files of other languages are read."""

from __future__ import annotations

import re

import click

from roofdsl import reading_options

_DEFINE = re.compile(r"[A-Za-z_]\w*(?:\([^)]*\))?(?:=.*)?", re.DOTALL)

_NUMBER = re.compile(r"[A-Za-z]|-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
"""A number, or a letter for an argument that is a `char`."""


def take_reading_options(args: list[str]) -> list[str]:
    """The arguments without `-D NAME[=VALUE]`, `-I FOLDER`, `--value NAME=NUMBER`, `--shape NAME=SIZES:TYPE` and
    `--fused`.

    These options may stand anywhere, and take effect from now on.

    Raises click.UsageError.
    """
    rest: list[str] = []
    found: dict[str, list[str]] = {"-D": [], "-I": []}
    shapes: list[str] = []
    values: list[tuple[str, str]] = []
    fused = False
    waiting = iter(args)
    for arg in waiting:
        if arg == "--":
            rest += [arg, *waiting]
        elif arg == "--fused":
            fused = True
        elif arg == "--shape" or arg.startswith("--shape="):
            value = arg[8:] if arg.startswith("--shape=") else next(waiting, "")
            shapes += _shapes(value)
        elif arg == "--value" or arg.startswith("--value="):
            values += _values(arg[8:] if arg.startswith("--value=") else next(waiting, ""))
        elif arg[:2] in found:
            value = arg[2:] or next(waiting, "")
            if not value or (arg[:2] == "-D" and not _DEFINE.fullmatch(value)):
                form = "-D NAME or -D NAME=VALUE" if arg[:2] == "-D" else "-I FOLDER"
                raise click.UsageError(f"`{arg[:40]}` is not of the form `{form}`")
            found[arg[:2]].append(value)
        else:
            rest.append(arg)
    defines, folders = tuple(found["-D"]), tuple(found["-I"])
    reading_options.use(reading_options.Options(defines, folders, tuple(shapes), tuple(values), fused))
    return rest


def _values(text: str) -> list[tuple[str, str]]:
    """`alpha=1.0,beta=0` in parts. Raises click.UsageError."""
    parts = [tuple(map(str.strip, part.split("=", 1))) for part in text.split(",") if part.strip()]
    if not parts or any(len(p) != 2 or not p[0].isidentifier() or not _NUMBER.fullmatch(p[1]) for p in parts):
        raise click.UsageError(
            f"`{text[:40]}` is not of the form `--value NAME=NUMBER`, as in --value alpha=1.0,beta=0"
        )
    return [(name, value) for name, value in parts]


def _shapes(text: str) -> list[str]:
    """`A=n,m:f64; x=m` in parts. Raises click.UsageError."""
    parts = [part.strip() for part in text.split(";") if part.strip()]
    if not parts or any(not part.partition("=")[0].strip().isidentifier() or "=" not in part for part in parts):
        raise click.UsageError(f"`{text[:40]}` is not of the form `--shape NAME=SIZES:TYPE`, as in --shape A=n,m:f64")
    return parts

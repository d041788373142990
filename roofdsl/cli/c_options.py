"""`-D` and `-I`: how C files are read."""

from __future__ import annotations

import re

import click

from roofdsl import reading_options

_DEFINE = re.compile(r"[A-Za-z_]\w*(?:\([^)]*\))?(?:=.*)?", re.DOTALL)


def take_c_options(args: list[str]) -> list[str]:
    """The arguments without `-D NAME[=VALUE]` and `-I FOLDER`, which may stand anywhere; they hold from now on.

    Raises click.UsageError.
    """
    rest: list[str] = []
    found: dict[str, list[str]] = {"-D": [], "-I": []}
    waiting = iter(args)
    for arg in waiting:
        if arg == "--":
            rest += [arg, *waiting]
        elif arg[:2] in found:
            value = arg[2:] or next(waiting, "")
            if not value or (arg[:2] == "-D" and not _DEFINE.fullmatch(value)):
                form = "-D NAME or -D NAME=VALUE" if arg[:2] == "-D" else "-I FOLDER"
                raise click.UsageError(f"`{arg[:40]}` is not of the form `{form}`")
            found[arg[:2]].append(value)
        else:
            rest.append(arg)
    reading_options.use(reading_options.Options(tuple(found["-D"]), tuple(found["-I"])))
    return rest

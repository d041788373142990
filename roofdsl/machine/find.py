"""Shipped machines and models by name, and what `--machine NAME|FILE[:NAME]` means."""

from __future__ import annotations

import os
import re
from functools import cache, lru_cache
from pathlib import Path

import roofdsl
from roofdsl.lang.checked import CheckedFile
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.findings import did_you_mean
from roofdsl.lang.record import Record
from roofdsl.loops.load import READERS, load_file, standard_input
from roofdsl.machine.lower import lower
from roofdsl.machine.model import Machine

SUFFIX = ".roof"
GROUPS = ("kernels", "polybench")
"""The folders of shipped kernels, in the order in which a name is looked for."""

SIZES = ("mini", "small", "medium", "large", "extralarge")
"""The standard sizes of PolyBench 4.2."""

MOST_FILES = 256
"""The most shipped files that a process keeps in checked form."""

_PACKAGE = Path(roofdsl.__file__).parent

MODELS = (_PACKAGE.parent / "models", _PACKAGE / "_models")
"""Where the shipped models are: in a checkout, in a wheel."""
_DEFINITION = re.compile(r"^(?:kernel|machine|program)[ \t]+([A-Za-z_]\w*)", re.MULTILINE)


class Target(Record):
    """A file and, where one is picked, the name of a definition in it. `path` is `-` for standard input."""

    path: str
    name: str | None = None


def models_folder() -> Path:
    """The folder of the shipped models: `models/` of a checkout, `roofdsl/_models` in a wheel.

    Raises CommandError if neither exists (a broken installation).
    """
    for folder in MODELS:
        if (folder / "machines").is_dir():
            return folder
    raise CommandError("the shipped models are missing from this installation", "install roofdsl again")


def shipped(kind: str) -> dict[str, Path]:
    """The files under models/`kind`, by their names without the suffix, sorted; `kind` is machines or one of GROUPS."""
    return {p.stem: p for p in sorted((models_folder() / kind).glob(f"*{SUFFIX}"))}


def shipped_names(kind: str) -> dict[str, Path]:
    """The names defined in the files under models/`kind`, with the file of each; `kind` as in `shipped`.

    The texts are searched, not parsed: a command that looks for one name should not pay for all files.
    """
    return {
        name: path for path in shipped(kind).values() for name in _DEFINITION.findall(path.read_text(encoding="utf-8"))
    }


def shipped_model(text: str) -> Target | None:
    """The shipped kernel or program that NAME, GROUP/NAME, STEM:NAME or GROUP/STEM:NAME refers to; None if there is
    none.

    STEM is a file's name without its suffix; whether that file defines NAME is not checked. If several groups have a
    name, it refers to the first group's; the group in front selects another: `lu`, `polybench/lu`.
    """
    target = split_target(text)
    group, slash, name = target.path.rpartition("/")
    if slash and group not in GROUPS:
        return None
    for kind in (group,) if slash else GROUPS:
        if target.name is not None:
            file = shipped(kind).get(name)
            if file is not None:
                return Target(str(file), target.name)
        elif (file := shipped_names(kind).get(name)) is not None:
            return Target(str(file), name)
    return None


def find_model(text: str) -> Target:
    """The file that FILE refers to: a path, or the name of a kernel or program among the shipped models.

    Standard input, and a path that ends in `.roof` or leads into a folder, are returned without looking for the file.
    Raises CommandError for any other name that is neither a file nor shipped.
    """
    target = split_target(text)
    path = target.path
    elsewhere = "/" in path and path.split("/")[0] not in GROUPS
    if path == "-" or elsewhere or path.endswith(SUFFIX) or Path(path).is_file():
        return target
    model = shipped_model(text)
    if model is not None:
        return model
    if not path:
        raise CommandError("the name of the file is empty", "`roofdsl models` lists the shipped kernels")
    if Path(path).is_dir():
        raise CommandError(f"`{path}` is a folder", f"give its files: {path.rstrip('/')}/*{SUFFIX}")
    help = _own_file(path) or did_you_mean(path, shipped_models(), "`roofdsl models` lists the shipped ones")
    raise CommandError(f"there is no file or shipped kernel named `{path}`", help)


def shipped_models() -> dict[str, Target]:
    """Every shipped kernel and program by the shortest text that `shipped_model` accepts for it, group by group."""
    found: dict[str, Target] = {}
    for kind in GROUPS:
        for name, path in shipped_names(kind).items():
            found[f"{kind}/{name}" if name in found else name] = Target(str(path), name)
    return found


def standard_sizes(group: str = "polybench") -> dict[str, dict[str, dict[str, int]]]:
    """The sizes that a benchmark suite defines: by kernel, by SIZES, the value of each parameter."""
    import tomllib

    text = (models_folder() / group / "sizes.toml").read_text(encoding="utf-8")
    return {
        name: {size: {p: values[k] for p, values in rows.items()} for k, size in enumerate(SIZES)}
        for name, rows in tomllib.loads(text).items()
    }


def split_target(text: str) -> Target:
    """FILE or FILE:NAME. A colon belongs to the path if that path exists; `./-:NAME` is read from standard input."""
    head, colon, tail = text.rpartition(":")
    if colon and head and tail.isidentifier() and not Path(text).exists():
        return Target("-" if head == "./-" else head, tail)
    return Target(text)


def load_machine(text: str) -> Machine:
    """The machine that NAME, FILE or FILE:NAME refers to; a FILE alone ends in `.roof`, has a folder in front, or is
    `-`.

    Raises CommandError if the machine or file does not exist, InputError if it has errors.
    """
    target = split_target(text)
    if target.path == "-" or "/" in target.path or target.path.endswith(SUFFIX) or target.name is not None:
        return machine_of(checked_file(target.path), target.name)
    names = shipped_names("machines")
    if text in names:
        return lower(checked_file(str(names[text])).machines[text])
    otherwise = "`roofdsl machines` lists the shipped machines; the name of a file ends in .roof"
    raise CommandError(f"there is no shipped machine `{text}`", _own_file(text) or did_you_mean(text, names, otherwise))


def _own_file(text: str) -> str:
    """The help that names the user's file `heat.roof` for `heat` or `heat.rof`; empty if there is no such file."""
    file = f"{text.partition('.')[0]}{SUFFIX}"
    return f"did you mean the file `{file}`?" if file != SUFFIX and Path(file).is_file() else ""


def machine_of(checked: CheckedFile, name: str | None) -> Machine:
    """The machine of that name in a file; without a name, the only one.

    Raises CommandError if there is no such machine, and without a name if there are several.
    """
    if name is not None:
        if name not in checked.machines:
            help = did_you_mean(name, checked.machines, _has(checked.own_machines))
            raise CommandError(f"{checked.source.name} has no machine `{name}`", help)
        return lower(checked.machines[name])
    names = checked.own_machines or tuple(checked.machines)
    if len(names) != 1:
        what = "no machine" if not names else f"{len(names)} machines"
        pick = f"pick one: {', '.join(f'{checked.source.name}:{n}' for n in names)}" if names else ""
        raise CommandError(f"{checked.source.name} has {what}", pick)
    return lower(checked.machines[names[0]])


@cache
def shipped_machines() -> dict[str, Machine]:
    """Every shipped machine by name, sorted."""
    found: dict[str, Machine] = {}
    for path in shipped("machines").values():
        checked = checked_file(str(path))
        found |= {name: lower(checked.machines[name]) for name in checked.own_machines}
    return dict(sorted(found.items()))


def checked_file(path: str, name: str | None = None) -> CheckedFile:
    """A file, read and checked with what it uses; `-` is a `.roof` file on standard input.

    `name`: the only definition that is wanted from a file in another language. Raises CommandError if the file cannot
    be read, InputError with all errors of its text.
    """
    reader = READERS.get(os.path.splitext(path)[1])
    if reader is not None:
        return reader(path, name)
    if path == "-":
        return load_file(standard_input())
    if any(path.startswith(f"{folder}{os.sep}") for folder in MODELS):  # models_folder() raises if there are none
        about = os.stat(path)
        return _shipped_file(path, about.st_mtime_ns, about.st_size)
    return load_file(path)


@lru_cache(MOST_FILES)
def _shipped_file(path: str, _changed: int, _bytes: int) -> CheckedFile:
    """A shipped file; a process that answers many questions checks it once, and again only if it changes."""
    return load_file(path)


def _has(names: tuple[str, ...]) -> str:
    return f"it has {', '.join(names)}" if names else "it has no machines"

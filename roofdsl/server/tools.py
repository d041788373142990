"""The tools of the service: each is a command of roofdsl with some of its options, as a row of a table.

The row gives the JSON Schema of the tool's arguments and the command line that answers a call. Answers are the
documents that the command prints with `--json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.findings import did_you_mean
from roofdsl.lang.record import Record

Kind = Literal["text", "flag", "integer", "sizes", "machine", "data"]

_HOW = re.compile(r"(\+transposed)?(\+sigma=\d+)?$")
"""What may follow the file name of a matrix."""

GIVEN = "given.roof"
"""The file name of the text that a call contains, in the folder where the call is answered."""

MOST_CHARACTERS = 1_000_000
"""The maximum length of a text."""

SUBJECT = {
    "text": "kernels, programs or machines in the language of roofdsl (resource roofdsl://language)",
    "file": "a file under the server's root, or the name of a shipped kernel (resource roofdsl://models)",
    "name": "the kernel or program, if the text or file has several",
}


class Parameter(Record):
    """An argument of a tool: the option that it sets, what it is for, and its values if it has a fixed set of them."""

    name: str
    option: str
    kind: Kind
    about: str
    values: tuple[str, ...] = ()
    needed: bool = False


class Tool(Record):
    """A tool: its name, the command that answers it, and what it is for."""

    name: str
    command: str
    about: str
    parameters: tuple[Parameter, ...]


SIZES = Parameter("set", "--set", "sizes", 'values of parameters, such as {"n": 4096}')
DATA = Parameter(
    "data", "--data", "data",
    'the values of index arrays, such as {"rowptr,col": "A.mtx"}: a file under the server\'s root, or a generator '
    'such as "random:n=1000,row=8,seed=1"',
)  # fmt: skip
MACHINE = Parameter(
    "machine", "--machine", "machine",
    "a shipped machine (resource roofdsl://machines), one under the server's root, or one of `text`",
    needed=True,
)  # fmt: skip
CACHE = Parameter("cache", "--cache", "text", "the size of the cache, such as 32KiB")
LINE = Parameter("line", "--line", "text", "the size of a line of the cache, such as 64B")
UNIT = Parameter("unit", "--unit", "text", "run contractions on matrix units", ("tensor", "tensor_sparse"))
CONVENTIONS = ("once", "load_store", "write_allocate")
TRAFFIC = Parameter("traffic", "--traffic", "text", "how bytes are counted", CONVENTIONS)

TOOLS = (
    Tool("check", "check", "Report errors and warnings in a text.", (
        Parameter("deep", "--deep", "flag", "also check subscripts, intents and legality for all sizes"), SIZES,
    )),
    Tool("derive", "derive", "Derive work, traffic and intensity as exact closed forms.", (
        SIZES, CACHE, LINE, TRAFFIC, DATA,
    )),
    Tool("predict", "predict", "Predict the time of a kernel on a machine, and what bounds it.", (
        MACHINE, SIZES, TRAFFIC, UNIT, DATA,
        Parameter("warm", "--warm", "flag", "start with the caches as a previous launch left them"),
    )),
    Tool("sol", "sol", "Find the minimum time of any code for the kernel on a machine.", (MACHINE, SIZES)),
    Tool("validate_claim", "sol", "Judge whether a measured or claimed time is possible.", (
        MACHINE, SIZES, Parameter("time", "--measured", "text", "the claimed time, such as 3.96ms", needed=True),
    )),
    Tool("bound", "bound", "Bound the loads of any order of a kernel from below.", (
        SIZES, CACHE, Parameter("machine", "--machine", "machine", "evaluate the bound for each cache of a machine"),
    )),
    Tool("advise", "advise", "Find legal changes of a kernel that save time, ranked by their gain.", (
        MACHINE, SIZES, TRAFFIC, UNIT,
        Parameter("keep_rounding", "--keep-rounding", "flag", "only changes that do not affect rounding"),
    )),
    Tool("simulate", "simulate", "Simulate every access of a kernel in a cache.", (
        SIZES, CACHE, LINE, DATA, Parameter("ways", "--ways", "integer", "lines in a set"),
        Parameter("machine", "--machine", "machine", "simulate all caches of a machine instead"),
    )),
)  # fmt: skip

BY_NAME = {tool.name: tool for tool in TOOLS}


def schema(tool: Tool) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments."""
    properties: dict[str, Any] = {name: {"type": "string", "description": about} for name, about in SUBJECT.items()}
    for p in tool.parameters:
        kinds: dict[Kind, dict[str, Any]] = {
            "flag": {"type": "boolean"},
            "integer": {"type": "integer", "minimum": 1},
            "sizes": {"type": "object", "additionalProperties": {"type": "integer"}},
            "data": {"type": "object", "additionalProperties": {"type": "string"}},
        }
        properties[p.name] = kinds.get(p.kind, {"type": "string"}) | {"description": p.about}
        if p.values:
            properties[p.name]["enum"] = list(p.values)
    return {
        "type": "object",
        "properties": properties,
        "required": [p.name for p in tool.parameters if p.needed],
        "additionalProperties": False,
    }


class Question(Record):
    """A call as a command line, and the text that it needs in the file GIVEN (None: it needs none)."""

    arguments: tuple[str, ...]
    text: str | None


def question(name: str, given: Mapping[str, Any], root: Path | None) -> Question:
    """The command line of a call. Raises CommandError for an unknown tool or argument, a missing or wrong value, and a
    path outside the root.
    """
    tool = BY_NAME.get(name)
    if tool is None:
        raise CommandError(
            f"there is no tool `{name[:80]}`", did_you_mean(name, list(BY_NAME), f"the tools are {', '.join(BY_NAME)}")
        )
    known = {p.name: p for p in tool.parameters}
    for argument in given:
        if argument not in known and argument not in SUBJECT:
            names = [*SUBJECT, *known]
            raise CommandError(
                f"{name} has no argument `{argument[:80]}`", did_you_mean(argument, names, ", ".join(names))
            )
    text = _text(given.get("text"), "text")
    arguments = [tool.command, _subject(given, text, root)]
    for p in tool.parameters:
        value = given.get(p.name)
        if value is None:
            if p.needed:
                raise CommandError(f"{name} needs `{p.name}`", p.about)
            continue
        arguments += _option(p, value, text, root)
    return Question((*arguments, "--json"), text)


def _text(value: object, name: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise CommandError(f"`{name}` must be a string, not {type(value).__name__}")
    if len(value) > MOST_CHARACTERS:
        raise CommandError(f"`{name}` has {len(value):,} characters; the limit is {MOST_CHARACTERS:,}")
    return value


def _subject(given: Mapping[str, Any], text: str | None, root: Path | None) -> str:
    """The command line's FILE argument. Raises CommandError unless there is either a `text` or a `file`, and for a
    wrong `name`.
    """
    file, name = _text(given.get("file"), "file"), _text(given.get("name"), "name")
    if (text is None) == (file is None):
        raise CommandError(
            "a call needs either `text` or `file`", "give the text of a kernel, or the name of a shipped one"
        )
    if name is not None and not name.isidentifier():
        raise CommandError(f"`{name[:80]}` is not the name of a kernel")
    path = GIVEN if file is None else _inside(file, root)
    return path if name is None else f"{path}:{name}"


def _inside(file: str, root: Path | None) -> str:
    """A path under the root, or a shipped name. Raises CommandError for any other path."""
    if _may_be_shipped(file) and not (root and (root / file).exists()):
        return file
    if root is None:
        raise CommandError(
            f"the server has no root, so it cannot read `{file[:80]}`", "start the server with --root FOLDER"
        )
    head, colon, tail = file.rpartition(":")
    if colon and tail.isidentifier() and not (root / file).exists():
        file, tail = head, f":{tail}"
    else:
        tail = ""
    return f"{_under(file, root)}{tail}"


def _may_be_shipped(file: str) -> bool:
    """Whether this is written like a shipped name: `gemv`, `polybench/gemm`, `polybench/gemm:gemm`.

    `/etc/hosts:k` is not: its first part is empty. If it were taken for a name, only the confinement of the process
    would keep the command from that file.
    """
    path, colon, name = file.partition(":")
    return all(part.isidentifier() for part in (*path.split("/"), *([name] if colon else [])))


def _option(p: Parameter, value: object, text: str | None, root: Path | None) -> list[str]:
    """The option with its value; empty for a flag that is false. Raises CommandError for a value of another kind."""
    if p.kind == "flag":
        if not isinstance(value, bool):
            raise CommandError(f"`{p.name}` must be true or false")
        return [p.option] if value else []
    if p.kind == "sizes":
        return [part for name, number in _sizes(value) for part in ("--set", f"{name}={number}")]
    if p.kind == "data":
        return [part for names, source in _data(value) for part in ("--data", f"{names}={_source(source, root)}")]
    if p.kind == "integer":
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise CommandError(f"`{p.name}` must be a positive whole number")
        return [f"{p.option}={value}"]
    word = _text(value, p.name) or ""
    if p.values and word not in p.values:
        raise CommandError(f"`{p.name}` must be one of {', '.join(p.values)}")
    if p.kind == "machine":
        word = f"{GIVEN}:{word}" if _defines(text or "", word) else _inside(word, root)
    return [f"{p.option}={word}"]


def _defines(text: str, machine: str) -> bool:
    """Whether the text defines a machine of exactly this name."""
    return machine.isidentifier() and bool(re.search(rf"^machine[ \t]+{machine}\b", text, re.MULTILINE))


def _sizes(value: object) -> list[tuple[str, int]]:
    about = '`set` must be an object of whole numbers, such as {"n": 4096}'
    if not isinstance(value, dict):
        raise CommandError(about)
    found = []
    for name, number in value.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise CommandError(about, f"`{str(name)[:40]}` is not the name of a parameter")
        is_whole = type(number) is int or (isinstance(number, float) and number.is_integer())  # `integer` has 4096.0
        if not is_whole:
            raise CommandError(about, f"the value of `{name[:40]}` is {json.dumps(number)[:40]}")
        found.append((name, int(number)))
    return found


def _data(value: object) -> list[tuple[str, str]]:
    about = '`data` must be an object of sources, such as {"rowptr,col": "A.mtx"}'
    if not isinstance(value, dict):
        raise CommandError(about)
    for names, source in value.items():
        known = isinstance(names, str) and all(n.strip().isidentifier() for n in names.split(","))
        if not known or not isinstance(source, str):
            raise CommandError(about, f"not `{str(names)[:40]}`")
    return list(value.items())


def _source(source: str, root: Path | None) -> str:
    """A generator unchanged, or the path of a file under the root; what follows the file (`+sigma=128`) is kept."""
    from roofdsl.matrices.generate import is_generated

    if is_generated(source):
        return source
    file = _HOW.sub("", source)
    if root is None:
        raise CommandError(
            f"the server has no root, so it cannot read `{file[:80]}`", "start the server with --root FOLDER"
        )
    return f"{_under(file, root)}{source[len(file) :]}"


def _under(file: str, root: Path) -> Path:
    """The absolute path of a file under the root. Raises CommandError for any other path."""
    try:
        path = (root / file).resolve()
    except (OSError, ValueError, RuntimeError):
        raise CommandError(f"`{file[:80]}` is not a path") from None
    if not path.is_relative_to(root):
        raise CommandError(f"`{file[:80]}` is not under the server's root", "give a path inside it")
    return path

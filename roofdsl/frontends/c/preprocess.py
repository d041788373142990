"""The preprocessor: `cc -E` where there is a compiler, pcpp otherwise.

System headers are not read: each `#include <...>` that none of the user's folders has gets a stub, which is empty or
has the types and constants that programs take from that header.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from roofdsl.lang.diagnostics import CommandError, Diagnostic, InputError
from roofdsl.lang.record import Record
from roofdsl.lang.source import Source, Span
from roofdsl.loops.load import read_source
from roofdsl.reading_options import Options

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
_MARKER = re.compile(r'^#[ \t]*(?:line[ \t]+)?(\d+)(?:[ \t]+"((?:[^"\\]|\\.)*)")?[^\n]*$')
_FAULT = re.compile(r"^(.*?):(\d+):(?:(\d+):)? (?:fatal )?error: (.*)$", re.MULTILINE)
_TIMEOUT_S = 30

ATTRIBUTE = "__roofdsl_attribute"
"""What stands before the words of an attribute in brackets, in the preprocessed text."""

_ATTRIBUTES = (
    f"__attribute__(x)={ATTRIBUTE} x", f"__declspec(x)={ATTRIBUTE} (x)", "__asm__(x)=",
    "__extension__=", "__restrict=restrict",
    "__restrict__=restrict", "__inline=inline", "__inline__=inline", "__forceinline=inline", "__const=const",
    "__volatile__=volatile", "__signed__=signed", f"_Alignas(x)={ATTRIBUTE} (aligned)",
    f"alignas(x)={ATTRIBUTE} (aligned)", "__builtin_assume_aligned(p,n)=(p)",
)  # fmt: skip
"""What compilers add to C and what says nothing about the meaning of a loop. Attributes are kept: they may change how
structures lie in memory.
"""

_TYPES = """#ifndef ROOFDSL_TYPES
#define ROOFDSL_TYPES
typedef unsigned long size_t; typedef long ssize_t; typedef long ptrdiff_t; typedef struct _FILE FILE;
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned uint32_t;
typedef unsigned long uint64_t;
typedef long intptr_t; typedef unsigned long uintptr_t;
#define NULL ((void*)0)
#endif
"""
_CONTENTS = {
    "math.h": "#define M_PI 3.14159265358979323846\n#define M_E 2.7182818284590452354\n"
    "#define M_SQRT2 1.41421356237309504880\n#define M_SQRT1_2 0.70710678118654752440\n",
    "complex.h": "#define complex _Complex\n",
    "stdbool.h": "#define bool _Bool\n#define true 1\n#define false 0\n",
    "limits.h": "#define INT_MAX 2147483647\n#define INT_MIN (-2147483647 - 1)\n"
    "#define LONG_MAX 9223372036854775807L\n",
    "float.h": "#define FLT_MAX 3.40282346638528859812e+38F\n#define DBL_MAX 1.79769313486231570815e+308\n"
    "#define FLT_EPSILON 1.1920928955078125e-7F\n#define DBL_EPSILON 2.22044604925031308085e-16\n",
    "assert.h": "",
}
_WITH_TYPES = ("stddef.h", "stdint.h", "inttypes.h", "stdlib.h", "stdio.h", "string.h", "sys/types.h", "unistd.h")


class Preprocessed(Record):
    """The text without line markers, and the origin of each of its lines (from 0): a file and a line (from 1)."""

    text: str
    origins: tuple[tuple[str, int], ...]


def preprocess(source: Source, options: Options) -> Preprocessed:
    """The preprocessed file. Raises InputError for errors of the preprocessor, CommandError if it does not run or does
    not say where the errors are.
    """
    own = os.path.dirname(source.name) or "."
    folders = [own, *options.folders]
    with tempfile.TemporaryDirectory(prefix="roofdsl-c-") as stubs:
        _write_stubs(source.text, own, folders, Path(stubs))
        compiler = _compiler()
        if compiler is not None:
            text = _by_compiler(compiler, source, [*folders, stubs], options)
        else:
            text = _by_pcpp(source, [*folders, stubs], options)
    return _without_markers(text, source.name)


def _compiler() -> str | None:
    """The C compiler, $CC first; None where there is none."""
    for name in (os.environ.get("CC", "").split(" ")[0], "cc", "gcc", "clang"):
        found = shutil.which(name) if name else None
        if found is not None:
            return found
    return None


def _write_stubs(text: str, own: str, folders: list[str], stubs: Path) -> None:
    """A stub for each `<header>` that the text, or a file it includes, names and no folder contains."""
    pending, seen = [(text, own)], set[str]()
    while pending:
        content, folder = pending.pop()
        for kind, name in _INCLUDE.findall(content):
            places = [Path(f, name) for f in ([folder] if kind == '"' else []) + folders]
            found = next((p for p in places if p.is_file()), None)
            if found is not None and str(found) not in seen:
                seen.add(str(found))
                pending.append((read_source(found).text, str(found.parent)))
            elif found is None and kind == "<" and ".." not in name and not name.startswith("/"):
                stub = stubs / name
                stub.parent.mkdir(parents=True, exist_ok=True)
                content = _TYPES if name in _WITH_TYPES else ""
                stub.write_text(content + _CONTENTS.get(name, ""), encoding="utf-8")


def _by_compiler(compiler: str, source: Source, folders: list[str], options: Options) -> str:
    command = [compiler, "-E", "-nostdinc", "-x", "c", *(f"-D{d}" for d in _ATTRIBUTES)]
    command += [f"-D{d}" for d in options.defines] + [f"-I{f}" for f in folders] + ["-"]
    text = f'# 1 "{_escaped(source.name)}"\n{source.text}\n'
    try:
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, encoding="utf-8", timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandError(f"the preprocessor `{compiler} -E` did not run: {error}") from None
    if done.returncode:
        raise _faults(source, done.stderr)
    return done.stdout


def _faults(source: Source, messages: str) -> Exception:
    """The preprocessor's errors at the lines that they name; a CommandError if they name none."""
    found = []
    for file, line, column, message in _FAULT.findall(messages):
        own = file == source.name
        number = int(line) if own else 1
        text = source.line(number)
        at = min(int(column or 1), len(text) + 1) if own else 1
        word = re.match(r'"[^"]*"|<[^>]*>|\w+', text[at - 1 :])
        said = message if own else f"{message} ({file}:{line})"
        found.append(Diagnostic("c-syntax", said, Span(number, at, number, at + (len(word[0]) if word else 1))))
    if not found:
        return CommandError(f"`{source.name}` cannot be preprocessed: {messages.strip()[:400]}")
    return InputError(source, found)


def _by_pcpp(source: Source, folders: list[str], options: Options) -> str:
    import io

    from pcpp import Preprocessor

    class Quiet(Preprocessor):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.faults: list[Diagnostic] = []

        def on_error(self, file: str, line: int, msg: str) -> None:
            at = line if file == source.name else 1
            self.faults.append(Diagnostic("c-syntax", msg, Span(at, 1, at, 2)))

        def on_directive_unknown(self, directive: Any, toks: Any, ifpassthru: Any, precedingtoks: Any) -> Any:
            if directive.value != "error":
                return super().on_directive_unknown(directive, toks, ifpassthru, precedingtoks)
            self.on_error(directive.source, directive.lineno, "#error " + "".join(t.value for t in toks).strip())
            return True

    preprocessor = Quiet()
    for define in (*_ATTRIBUTES, *options.defines):
        name, equals, value = define.partition("=")
        preprocessor.define(f"{name} {value if equals else 1}")
    for folder in folders:
        preprocessor.add_path(folder)
    out = io.StringIO()
    preprocessor.parse(source.text, source.name)
    preprocessor.write(out)
    if preprocessor.faults:
        raise InputError(source, preprocessor.faults)
    return out.getvalue()


def _without_markers(text: str, own: str) -> Preprocessed:
    """own: the file's name as it was given; pcpp shortens it."""
    whole = os.path.abspath(own)
    lines = [""]  # for the reader's own declarations
    origins = [("", 0)]
    file, number = "", 0
    for line in text.split("\n"):
        marker = _MARKER.match(line)
        if marker is not None:
            number = int(marker[1])
            file = marker[2].replace("\\\\", "\\").replace('\\"', '"') if marker[2] is not None else file
            file = own if os.path.abspath(file) == whole else file
            lines.append("")
            origins.append((file, number))
            continue
        lines.append(line)
        origins.append((file, number))
        number += 1
    return Preprocessed("\n".join(lines), tuple(origins))


def _escaped(path: str) -> str:
    return path.replace("\\", "\\\\").replace('"', '\\"')

"""From a C file to a checked file: its functions as kernels, with the spans of the user's own lines."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from pycparser import c_ast, c_parser

from roofdsl.frontends.c.c_types import tagged
from roofdsl.frontends.c.context import Program
from roofdsl.frontends.c.kernel import Reading, reading
from roofdsl.frontends.c.lexer import Lexer
from roofdsl.frontends.c.places import Places
from roofdsl.frontends.c.preprocess import preprocess
from roofdsl.frontends.c.rewritten_loops import is_rewritten, rewrite
from roofdsl.frontends.c.scop_region import Region, region_of
from roofdsl.frontends.c.steps_inside import has_steps, take_out
from roofdsl.frontends.c.variables import copied, parameters, walk
from roofdsl.frontends.refuse import PartlyRead, Refused, too_deep
from roofdsl.lang import tree
from roofdsl.lang.check_kernel import check_kernel
from roofdsl.lang.checked import CheckedFile, CheckedKernel
from roofdsl.lang.diagnostics import CommandError, Diagnostic, InputError
from roofdsl.lang.findings import Report, did_you_mean
from roofdsl.lang.source import Source, Span
from roofdsl.loops.load import read_source, standard_input
from roofdsl.reading_options import current

_PLACE = re.compile(r"^(?:.*?):(\d+)(?::(\d+))?: (.*)$", re.DOTALL)
_BUILT_IN = "typedef int _Float16; typedef int __bf16; typedef int __fp16; typedef int _Float32; typedef int _Float64;"


def read(path: str, name: str | None = None) -> CheckedFile:
    """The functions of a C file that contain loops, or the one called `name`, as checked kernels.

    Raises CommandError if the file or the function does not exist, InputError with the unsupported code and the reason.
    """
    source = standard_input() if path == "-" else read_source(path)
    reader = _Reader(source)
    regions = reader.regions(name)
    kernels: dict[str, CheckedKernel] = {}
    warnings: list[Diagnostic] = []
    errors: dict[Source, list[Diagnostic]] = {}
    for region in regions:
        try:
            _, own, noted = reader.kernel(region)
        except InputError as error:
            errors.setdefault(error.source, []).extend(error.diagnostics)
            continue
        kernels[own.tree.name.text] = own
        warnings += noted
    file = tree.File(tuple(k.tree for k in kernels.values()), source=source)
    found = CheckedFile(source, file, kernels, {}, {}, tuple(kernels), tuple(warnings))
    if errors:
        raise PartlyRead(errors, found)
    return found


def readings(path: str, name: str | None = None) -> list[tuple[Reading, CheckedKernel]]:
    """The kernels that `read` gives, each with its reading. Raises what `read` does, for the first function with an
    error.
    """
    reader = _Reader(standard_input() if path == "-" else read_source(path))
    return [reader.kernel(region)[:2] for region in reader.regions(name)]


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        preprocessed = preprocess(source, current())
        self.places = Places(source, preprocessed)
        self.program = self._program(_BUILT_IN + preprocessed.text)

    def _program(self, text: str) -> Program:
        parser = c_parser.CParser(lexer=Lexer)
        try:
            parsed = parser.parse(text, "")
        except RecursionError:
            raise InputError(self.source, [too_deep(Span(1, 1, 1, 2))]) from None
        except c_parser.ParseError as error:
            raise self._syntax(str(error), parser.clex.reached) from None
        functions: dict[str, Any] = {}
        originals: dict[str, Any] = {}
        typedefs: dict[str, Any] = {}
        variables: list[Any] = []
        enums = [p for node in parsed.ext for p in walk(node) if isinstance(p, c_ast.Enum)]
        typedefs |= _structures(parsed)
        for node in parsed.ext:
            if isinstance(node, c_ast.FuncDef):
                if is_rewritten(node) or has_steps(node):
                    originals[node.decl.name] = copied(node)
                take_out(node)
                rewrite(node)
                functions[node.decl.name] = node
            elif isinstance(node, c_ast.Typedef):
                typedefs[node.name] = node.type
            elif isinstance(node, c_ast.Decl) and node.name and not isinstance(node.type, c_ast.FuncDecl):
                variables.append(node)
        packed = frozenset(parser.clex.packed)
        return Program(functions, typedefs, tuple(variables), tuple(enums), tuple(parsed.ext), packed, originals)

    def _syntax(self, text: str, reached: tuple[int, int]) -> InputError:
        """pycparser's message at the user's line; `reached` is the line and column that the lexer has reached."""
        found = _PLACE.match(text)
        place = (int(found[1]), int(found[2])) if found and found[2] else reached
        source, span = self.places.at(*place)
        said = found[3] if found else text.lstrip(": ")
        word = source.line(span.line)[span.column - 1 : span.end_column - 1]
        if said == "Invalid declaration" and word.isidentifier():
            help = "include the header that defines it, or define it: `-D bool=int`"
            return InputError(source, [Diagnostic("c-syntax", f"`{word}` is not a known type", span, help)])
        message = f"`{said[8:].strip()}` is not expected here" if said.startswith("before: ") else said.lower()
        help = "roofdsl reads C99, without extensions of compilers and without C++"
        return InputError(source, [Diagnostic("c-syntax", message, span, help)])

    # ---- which functions ----

    def regions(self, name: str | None) -> list[Region]:
        """The function of that name; without a name, those with a marked region, or else those with loops except
        `main`: of these, the ones that no other function calls, if there are any.
        """
        functions = self.program.functions
        if name is not None:
            if name not in functions:
                known = list(functions)
                help = did_you_mean(name, known, f"it has {', '.join(known[:8])}" if known else "")
                raise CommandError(f"`{self.source.name}` has no function `{name}`", help)
            return self._with_values([functions[name]])
        own = [f for f in functions.values() if self.places.file_of(f.decl) == self.source.name]
        marked = [f for f in own if any(_is_scop(p) for p in walk(f.body))]
        calls = [p.name for f in own for p in walk(f.body) if isinstance(p, c_ast.FuncCall)]
        called = {n.name for n in calls if isinstance(n, c_ast.ID)}
        loops = (c_ast.For, c_ast.While, c_ast.DoWhile, c_ast.Goto)
        looping = [f for f in own if f.decl.name != "main" and any(isinstance(p, loops) for p in walk(f.body))]
        chosen = marked or [f for f in looping if f.decl.name not in called] or looping
        if not chosen:
            raise CommandError(f"`{self.source.name}` has no function with loops", "pick one: FILE.c:FUNCTION")
        return self._with_values(chosen)

    def _with_values(self, functions: list[Any]) -> list[Region]:
        """The regions of functions. Raises CommandError if one of `--value` is an argument of none of them."""
        known = [p.name for f in functions for p in parameters(f)]
        for name, number in current().values:
            if name not in known:
                help = did_you_mean(name, known, "it is for arguments that are numbers")
                raise CommandError(
                    f"no function that is read has the argument `{name}` of `--value {name}={number}`", help
                )
        return [self._region(f) for f in functions]

    def _region(self, function: Any) -> Region:
        try:
            return region_of(function)
        except Refused as refused:
            raise self._refused(refused) from None
        except RecursionError:
            raise self._too_deep(function) from None

    # ---- kernels ----

    def kernel(self, region: Region) -> tuple[Reading, CheckedKernel, list[Diagnostic]]:
        """The kernel of a region, checked, and warnings. Raises InputError."""
        own = self.places.of(region.function.decl)[0]

        def spans(node: Any) -> Span:
            source, span = self.places.of(node)
            return span if source is own else self.places.of(region.function.decl)[1]

        try:
            found = reading(self.program, region, spans)
        except Refused as refused:
            raise self._refused(refused) from None
        except RecursionError:
            raise self._too_deep(region.function) from None
        report = Report()
        check_kernel(found.kernel, report)
        if report.errors:
            raise InputError(own, report.errors)
        return found, CheckedKernel(found.kernel, own, None, (), found.notes), list(report.diagnostics)

    def _too_deep(self, function: Any) -> InputError:
        source, span = self.places.of(function.decl)
        return InputError(source, [too_deep(span)])

    def _refused(self, refused: Refused) -> InputError:
        source, span = self.places.of(refused.node)
        return InputError(source, [Diagnostic(refused.code, refused.message, span, refused.help)])


def _structures(parsed: Any) -> dict[str, Any]:
    """The nodes that define structures, by their tags; without tags that two blocks define differently."""
    defined = [p for p in walk(parsed) if isinstance(p, c_ast.Struct) and p.name and p.decls is not None]
    times = Counter(tagged(node) for node in defined)
    return {tagged(node): node for node in defined if times[tagged(node)] == 1}


def _is_scop(node: Any) -> bool:
    return isinstance(node, c_ast.Pragma) and (node.string or "").split()[:1] == ["scop"]

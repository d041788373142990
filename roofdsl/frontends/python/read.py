"""From a Python file to a checked file: its functions as kernels, with the spans of the user's own lines."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from roofdsl.frontends.python.context import BUILT_IN, Module, arguments_of
from roofdsl.frontends.python.kernel import kernel
from roofdsl.frontends.python.parsing import parse_module
from roofdsl.frontends.python.places import span_of
from roofdsl.frontends.python.signature import Given, shape_option
from roofdsl.frontends.python.user_functions import Reading
from roofdsl.frontends.refuse import PartlyRead, Refused, too_deep
from roofdsl.lang import tree
from roofdsl.lang.check_kernel import check_kernel
from roofdsl.lang.checked import CheckedFile, CheckedKernel
from roofdsl.lang.diagnostics import CommandError, Diagnostic, InputError
from roofdsl.lang.findings import Report, did_you_mean
from roofdsl.lang.source import Source, Span
from roofdsl.loops.load import read_source, standard_input
from roofdsl.reading_options import current

_DECORATORS = ("kernel", "njit", "jit")
_NO_KERNELS = ("main", "initialize")
"""Functions with these names are read only if they are asked for: they prepare data, and call the others."""


def read(path: str, name: str | None = None) -> CheckedFile:
    """The functions of a Python file, or the one called `name`, as checked kernels. Nothing of it is executed.

    Raises CommandError if the file or the function does not exist, InputError with the unsupported code and the reason.
    """
    source = standard_input() if path == "-" else read_source(path)
    return read_text(source, name, dict(map(shape_option, current().shapes)), fuse=current().fused)


def readings(path: str, name: str | None = None) -> list[tuple[Reading, Source]]:
    """The reading of each function that `FILE:NAME` stands for, with the file. Raises what `read` does."""
    source, given = read_source(path), dict(map(shape_option, current().shapes))
    module = module_of(source)
    chosen = _chosen(module, name, given)
    return [(read_function(module, f, given, fuse=current().fused)[0], source) for f in chosen]


def read_text(source: Source, name: str | None, shapes: Mapping[str, Given], *, fuse: bool = False) -> CheckedFile:
    """The functions of a text in Python. shapes: descriptions of the arguments without annotations.

    fuse: with loops fused and temporaries kept in scalars, as a compiler could do.
    """
    module = module_of(source)
    chosen = _chosen(module, name, shapes)
    kernels: dict[str, CheckedKernel] = {}
    warnings: list[Diagnostic] = []
    errors: list[Diagnostic] = []
    for function in chosen:
        try:
            reading, found = read_function(module, function, shapes, fuse=fuse)
        except InputError as error:
            errors += error.diagnostics
            continue
        kernels[function.name] = CheckedKernel(reading.tree, source, None, ())
        warnings += found
    file = tree.File(tuple(k.tree for k in kernels.values()), source=source)
    read = CheckedFile(source, file, kernels, {}, {}, tuple(kernels), tuple(warnings))
    if errors:
        raise PartlyRead({source: errors}, read)
    return read


def read_function(
    module: Module, function: ast.FunctionDef, shapes: Mapping[str, Given], *, fuse: bool = False
) -> tuple[Reading, list[Diagnostic]]:
    """One function, and warnings. Raises InputError."""
    source = module.source
    try:
        reading = kernel(module, function, shapes, fuse=fuse)
    except Refused as refused:
        span = span_of(refused.node, source)
        raise InputError(source, [Diagnostic(refused.code, refused.message, span, refused.help)]) from None
    except RecursionError:
        raise InputError(source, [too_deep(span_of(function, source))]) from None
    report = Report()
    check_kernel(reading.tree, report)
    if report.errors:
        raise InputError(source, report.errors)
    return reading, list(report.diagnostics)


def module_of(source: Source) -> Module:
    """The functions, imports and constants of a file. Raises InputError for a text that is not Python."""
    parsed = _parsed(source)
    functions: dict[str, ast.FunctionDef] = {}
    imported: dict[str, str] = {}
    constants: dict[str, int | float] = {}
    bound: dict[str, int] = {}
    # A name counts as known only if the file gives it one meaning: what a function sees depends on when it is called.
    for node in parsed.body:
        for name in _bound(node, imported):
            bound[name] = bound.get(name, 0) + 1
            if name == "*":  # `from settings import *` may give new values to the names before it
                bound |= {n: bound[n] + 1 for n in (*functions, *constants)}
        match node:
            case ast.FunctionDef():
                functions[node.name] = node
            case ast.Import() | ast.ImportFrom():
                imported |= _imported(node)
            case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(ast.Name(name), value=value):
                number = _number(value)
                if number is not None:
                    constants[name] = number
    changed = {n for f in ast.walk(parsed) if isinstance(f, ast.Global) for n in f.names}
    several = {n for n, k in bound.items() if k > 1} | changed
    functions = {n: f for n, f in functions.items() if n not in several}
    imported = {n: f for n, f in imported.items() if n not in several and n != "*"}
    constants = {n: v for n, v in constants.items() if n not in several}
    unclear = {*bound, *changed, *(BUILT_IN if "*" in bound else ())} - {*functions, *imported, *constants}
    classes = [node for node in parsed.body if isinstance(node, ast.ClassDef)]
    has_methods = any(isinstance(item, ast.FunctionDef) for node in classes for item in node.body)
    return Module(source, functions, imported, constants, frozenset(unclear), has_methods)


def _parsed(source: Source) -> ast.Module:
    """Raises InputError for a text that is not Python, at the place that Python gives."""
    try:
        return parse_module(source.text.replace("\f", " "))
    except SyntaxError as error:
        line, column = error.lineno or 1, error.offset or 1
        if isinstance(error, IndentationError):  # some are placed at the end of their line
            own = source.line(line)
            column = len(own) - len(own.lstrip()) + 1
        span = Span(line, column, error.end_lineno or line, max(error.end_offset or 0, column + 1))
        if span.end_line != line:
            span = Span(line, column, line, column + 1)
        raise InputError(source, [Diagnostic("py-syntax", error.msg, span)]) from None
    except ValueError as error:
        raise InputError(source, [Diagnostic("py-syntax", str(error), Span(1, 1, 1, 2))]) from None


def _imported(node: ast.AST) -> dict[str, str]:
    """The names that an import defines, with what they stand for; empty for other statements and packages' own."""
    match node:
        case ast.Import(names):
            wholes = [alias.name if alias.asname else alias.name.partition(".")[0] for alias in names]
            return {alias.asname or whole: whole for alias, whole in zip(names, wholes, strict=True)}
        case ast.ImportFrom(package, names, 0) if package:
            return {alias.asname or alias.name: f"{package}.{alias.name}" for alias in names}
    return {}


def _bound(node: ast.stmt, imported: Mapping[str, str]) -> set[str]:
    """The names that a statement of a file defines; not those that an import inside it defines as `imported` does."""
    match node:
        case ast.FunctionDef(name) | ast.ClassDef(name) | ast.AsyncFunctionDef(name):
            return {name}
        case ast.Import(names) | ast.ImportFrom(names=names):
            return {alias.asname or alias.name.partition(".")[0] for alias in names}
    found: set[str] = set()
    for part in ast.walk(node):
        match part:
            case ast.Name(name, ast.Store()) | ast.FunctionDef(name) | ast.ClassDef(name) | ast.AsyncFunctionDef(name):
                found.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                found.add(name)
            case ast.Import() | ast.ImportFrom():
                # `try: from settings import N` gives `N = 4` above another value
                found |= {n for n, whole in _imported(part).items() if imported.get(n) != whole}
    return found


def _number(node: ast.expr | None) -> int | float | None:
    match node:
        case ast.Constant(int() | float() as value) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(ast.USub(), operand):
            number = _number(operand)
            return None if number is None else -number
        case _:
            return None


# ---- which functions ----


def _chosen(module: Module, name: str | None, shapes: Mapping[str, Given]) -> list[ast.FunctionDef]:
    """The function of that name; without a name, those that are marked, or else those with an argument that `shapes`
    names, or else those whose annotations state shapes, or else all but _NO_KERNELS: of these, those that nothing
    calls, if there are any.
    """
    file = module.source.name
    chosen = _unnamed(module, shapes) if name is None else [_named(module, name)]
    arguments = {a.arg for f in chosen for a in arguments_of(f)}
    unknown = sorted(shapes.keys() - arguments)
    if unknown:
        listed = f"its arguments are {', '.join(sorted(arguments))}" if arguments else ""
        have = did_you_mean(unknown[0], arguments, listed)
        raise CommandError(f"no function in `{file}` has an argument `{unknown[0]}`", have)
    return chosen


def _named(module: Module, name: str) -> ast.FunctionDef:
    functions, file = module.functions, module.source.name
    if name not in functions:
        known = list(functions)
        help = did_you_mean(name, known, f"it has {', '.join(known[:8])}" if known else "")
        raise CommandError(f"`{file}` has no function `{name}`", help)
    return functions[name]


def _unnamed(module: Module, shapes: Mapping[str, Given]) -> list[ast.FunctionDef]:
    functions, file = module.functions, module.source.name
    inside = [n for f in functions.values() for n in ast.walk(f) if isinstance(n, ast.Name)]
    called = {n.id for n in inside if isinstance(n.ctx, ast.Load)}
    own = [f for f in functions.values() if f.name not in _NO_KERNELS]
    marked = [f for f in own if any(_decorator(d) in _DECORATORS for d in f.decorator_list)]
    stated = [f for f in own if any(isinstance(a.annotation, ast.Subscript) for a in arguments_of(f))]
    named = [f for f in own if set(shapes) & {a.arg for a in arguments_of(f)}]
    some = marked or named or stated or own
    if some:
        return [f for f in some if f.name not in called] or some
    if functions:
        raise CommandError(f"`{file}` has no function that is read as a kernel", "pick one: FILE.py:FUNCTION")
    help = "put the loops into one: `def name(...):`"
    if module.has_methods:
        help = "methods of classes are not read: move the loops into a function outside the class"
    raise CommandError(f"`{file}` has no function", help)


def _decorator(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""

"""Checks one kernel: parameters, declarations and directives; its statements are `check_body`'s."""

from __future__ import annotations

from roofdsl.lang import tree
from roofdsl.lang.check_body import Body
from roofdsl.lang.check_integers import ASSUMPTION, DEFAULT, DIMENSION, Integers
from roofdsl.lang.check_nests import Nests
from roofdsl.lang.check_values import element_of
from roofdsl.lang.findings import Report, did_you_mean, listed
from roofdsl.lang.scope import Scope, Symbol
from roofdsl.lang.syntax_hints import of_type
from roofdsl.lang.types import TYPES, ElementType

CONVENTIONS = ("once", "load_store", "write_allocate")
UNITS = ("tensor", "tensor_sparse")
_Statement = tree.Assign | tree.Let | tree.Count | tree.For | tree.If


def check_kernel(kernel: tree.Kernel, report: Report) -> None:
    """Reports everything that is wrong in a kernel, as far as its text shows."""
    at_start = len(report.errors)
    scope = Scope(report)
    check_parameters(kernel.parameters, scope, report)
    body = Body(scope, report)
    statements = [item for item in kernel.body if isinstance(item, _Statement)]
    _declarations(kernel, scope, report)
    before = len(report.errors)
    body.block(statements, 0)
    _directives(kernel, scope, report, len(report.errors) > before)
    if not statements:
        message = f"the kernel `{kernel.name.text}` has no statements"
        help = "a kernel must compute or move something"
        report.error("kernel-empty", message, kernel.name.span, help)
    else:
        _streams(scope, body, report)
        _uses(scope, body, report, whole=len(report.errors) == at_start)


def check_parameters(parameters: tuple[tree.Parameter, ...], scope: Scope, report: Report) -> None:
    """Defines the parameters of a kernel or program, and checks their defaults."""
    for parameter in parameters:
        if parameter.default is not None:
            default_value(parameter.default, report)
        kind = "const" if parameter.const else "parameter"
        scope.define(Symbol(parameter.name.text, "const" if kind == "const" else "parameter", parameter.name.span))


def default_value(default: tree.Expr, report: Report) -> int | None:
    """The value of a default, which must be a positive integer made of numbers; reports anything else."""
    shape = Integers(Scope(report), report).shape(default, DEFAULT)
    if shape.value is not None and shape.value <= 0:
        message = f"a parameter is a positive integer, and this default is {shape.value}"
        report.error("parameter-default", message, default.span)
    return shape.value


def _declarations(kernel: tree.Kernel, scope: Scope, report: Report) -> None:
    integers = Integers(scope, report)
    first: tree.Item | None = None
    rising = {i.array.text for i in kernel.body if isinstance(i, tree.DataFact) and i.word == "rises"}
    for item in kernel.body:
        if isinstance(item, _Statement):
            first = first or item
        if not isinstance(item, tree.Declaration):
            continue
        if first is not None:
            help = f"move it before line {first.span.line}"
            report.error("declaration-late", "declarations come before the first statement", item.span, help)
        for group in item.groups:
            _declared(group, item.intent, scope, integers, report, rising)


def _declared(  # noqa: PLR0917
    group: tree.Declared, intent: str, scope: Scope, integers: Integers, report: Report, rising: set[str]
) -> None:
    type_ = TYPES.get(group.type.text)
    if type_ is None:
        help = of_type(group.type.text)
        report.error("type-unknown", f"there is no type `{group.type.text}`", group.type.span, help)
        type_ = TYPES["f64"]
    for dim in group.dims:
        shape = integers.shape(dim, DIMENSION)
        if shape.value is not None and shape.value <= 0:
            report.error("dimension", f"a dimension must be positive, but this one is {shape.value}", dim.span)
    if group.column_major and not group.dims:
        report.error("dimension", "only an array has a row or column order", group.span, "leave `col` out")
    if group.below is not None:
        _index_range(group, group.below, intent, type_, integers)
    for name in group.names:
        kind = "array" if group.dims else "scalar"
        rank = len(group.dims)
        index = group.below is not None or name.text in rising
        scope.define(Symbol(name.text, "array" if kind == "array" else "scalar", name.span, type_, rank, intent, index))


def _index_range(group: tree.Declared, below: tree.Expr, intent: str, type_: ElementType, integers: Integers) -> None:
    """Checks `index(n)`: its range, and that it is on an `in` array of integers."""
    report, name = integers.report, group.names[0].text
    shape = integers.shape(below, DIMENSION)
    if shape.value is not None and shape.value <= 0:
        message = f"`index({shape.value})` allows no value: indices are 0 to n - 1"
        report.error("index-array", message, below.span, "give the number of elements that the indices choose from")
    elif shape.value is not None and type_.kind == "int" and shape.value > 1 << (8 * type_.bytes - 1):
        message = f"{type_} holds no index as large as {shape.value - 1}"
        report.error("index-array", message, below.span, "declare the array i64")
    if type_.kind != "int":
        message = f"an index array holds integers, but `{name}` is {type_}"
        report.error("index-array", message, group.type.span, f"write `{name}: i32` or `i64`")
    elif not group.dims:
        help = f"give it dimensions, such as `{name}: {type_}[n] index(n)`"
        report.error("index-array", f"`{name}` is a scalar, and `index` is for arrays", group.span, help)
    elif intent != "in":
        message = f"an index array is `in`: its values are there before the kernel runs, but `{name}` is `{intent}`"
        report.error("index-array", message, group.span, f"declare it `in {name}`")


def _data_fact(fact: tree.DataFact, scope: Scope, integers: Integers) -> None:
    """Checks `assume a rises from 0 to m`, `assume a takes m values` and `assume x has alpha 0.5`."""
    report, name = integers.report, fact.array.text
    symbol = scope.find(fact.array, f"declare it: `in {name}: i32[n]`", ("array",))
    if symbol is None:
        return
    word = "has alpha" if fact.word == "alpha" else fact.word
    if symbol.kind != "array":
        message = f"`assume ... {word}` is about the data of an array, but `{name}` is {symbol.word}"
        report.error("index-fact", message, fact.array.span)
    elif fact.word == "alpha":
        (share,) = fact.values
        if isinstance(share, tree.Number) and share.value <= 0:
            help = "alpha is the bytes that an access moves on average, divided by those of an element"
            report.error("index-fact", f"alpha is positive, but this one is {share.text}", share.span, help)
    else:
        _integer_fact(fact, symbol, integers)


def _integer_fact(fact: tree.DataFact, symbol: Symbol, integers: Integers) -> None:
    report, name = integers.report, symbol.name
    for value in fact.values:
        integers.shape(value, DIMENSION)
    if symbol.type is not None and symbol.type.kind != "int":
        message = f"`assume ... {fact.word}` is about indices, but `{name}` is {symbol.type}"
        wanted = "i32 or i64" if symbol.intent == "in" else "`in`, and i32 or i64"
        report.error("index-fact", message, fact.array.span, f"declare `{name}` {wanted}")
    elif symbol.intent != "in":
        message = f"an index array is `in`: its values are there before the kernel runs, but `{name}` is"
        report.error("index-fact", f"{message} `{symbol.intent}`", fact.array.span, f"declare it `in {name}`")
    elif fact.word == "rises" and symbol.rank != 1:
        message = f"`assume ... rises` is about an array of one dimension, and `{name}` has {symbol.rank}"
        report.error("index-fact", message, fact.array.span)
    elif fact.word == "takes" and not symbol.index:
        message = f"`{name}` is no index array"
        report.error("index-fact", message, fact.array.span, f"declare it `in {name}: {symbol.type}[n] index(m)`")


def _directives(kernel: tree.Kernel, scope: Scope, report: Report, broken: bool) -> None:
    integers = Integers(scope, report)
    nests = Nests(kernel.body, scope, report)
    seen: dict[str, tree.Item] = {}
    for item in kernel.body:
        match item:
            case tree.Assume(conditions):
                for condition in conditions:
                    if not integers.condition(condition, ASSUMPTION):
                        report.error("assume", "an assumption must name a parameter", condition.span)
            case tree.DataFact(word, array):
                _once(item, f"assume {array.text} {word}", seen, report)
                _data_fact(item, scope, integers)
            case tree.Traffic():
                _once(item, "traffic", seen, report)
                check_word(item.convention, "traffic convention", CONVENTIONS, report)
            case tree.Unit(name):
                _once(item, "unit", seen, report)
                check_word(name, "unit", UNITS, report)
            case tree.Compute(type_):
                _once(item, "compute", seen, report)
                if any(s.type is TYPES["f32"] for s in scope.symbols.values()):
                    check_word(type_, "compute type", ("tf32",), report)
                else:
                    message = "`compute` is for kernels of f32 arrays, and this kernel has none"
                    report.error("word-unknown", message, item.span, "leave it out")
            case tree.Tile() | tree.Order() if scope.indexed:
                help = "write the loops in the order, and with the tiles, that they are to have"
                message = "`tile` and `order` need subscripts and bounds that are known before the data"
                report.error("tile-loops", message, item.span, help)
            case tree.Tile() | tree.Order():
                if not broken:
                    nests.directive(item)


def _once(item: tree.Item, word: str, seen: dict[str, tree.Item], report: Report) -> None:
    if word in seen:
        message = f"`{word}` appears twice; it was first given on line {seen[word].span.line}"
        report.error("directive-twice", message, item.span)
    seen.setdefault(word, item)


def check_word(word: tree.Name, what: str, known: tuple[str, ...], report: Report) -> None:
    """Reports a word that is not one of the known ones."""
    if word.text not in known:
        help = did_you_mean(word.text, known, f"write {listed(known)}")
        report.error("word-unknown", f"there is no {what} `{word.text}`", word.span, help)


def _streams(scope: Scope, body: Body, report: Report) -> None:
    """Reports stores that bypass the caches to arrays that something else touches, which would need the caches."""
    for name, item in body.streams.items():
        if name in body.stored or name in body.values.read:
            what = "stored without `stream`" if name in body.stored else "read"
            message = f"`{name}` is stored past the caches here, and {what} elsewhere in the kernel"
            help = "leave out `stream`, or make two kernels of it and a program that runs them"
            report.error("stream-store", message, item.target.span, help)
        elif scope.indexed:
            message = "`stream` is not available in a kernel with index arrays"
            report.error("stream-store", message, item.target.span, "leave out `stream`")


def _uses(scope: Scope, body: Body, report: Report, whole: bool) -> None:
    """Reports intents that cannot be right, and (of a `whole` kernel, in which no use was missed) unused names."""
    for symbol in scope.symbols.values():
        if symbol.kind not in ("array", "scalar"):
            continue
        touched = symbol.name in body.values.read or symbol.name in body.updates or symbol.name in scope.indexed
        if symbol.name in body.assigned:
            continue
        if not touched:
            if whole:
                report.warning("unused", f"`{symbol.name}` is declared but not used", symbol.span, "leave it out")
        elif symbol.intent in ("out", "temp"):
            update = body.updates.get(symbol.name)
            span = update.span if update else symbol.span
            what = "updated" if update else "read"
            message = f"`{symbol.name}` is declared `{symbol.intent}`, but it is {what} without being assigned by `=`"
            target = element_of(symbol) if symbol.kind == "array" else symbol.name
            help = f"assign it first, such as `{target} = 0`, or declare it `{'inout' if update else 'in'}`"
            report.error("intent-read", message, span, help)

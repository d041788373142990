"""einsum texts: parsed as numpy reads them, and turned into kernels."""

from __future__ import annotations

from collections.abc import Sequence

from roofdsl.lang import tree
from roofdsl.lang.check_kernel import check_kernel
from roofdsl.lang.checked import CheckedFile, CheckedKernel
from roofdsl.lang.diagnostics import CommandError, Diagnostic, InputError
from roofdsl.lang.findings import Report
from roofdsl.lang.source import Source, Span
from roofdsl.lang.types import TYPES

_NAMES = "ABDEFGHKLMNOPQRSTUVWXYZ"
_EXAMPLE = "`ik,kj->ij`"


class EinsumError(ValueError):
    """A text that is no einsum. `code` is the diagnostic's; `help` says what to write."""

    def __init__(self, code: str, message: str, help: str) -> None:
        self.code, self.help = code, help
        super().__init__(message)


def parsed(text: str, ranks: Sequence[int] | None = None) -> tuple[list[str], str]:
    """The letters of each operand and of the result. Without `->`, the result has the letters that occur once, in
    alphabetical order.

    ranks: the operands' numbers of dimensions. Raises EinsumError.
    """
    plain = text.replace(" ", "")
    if "..." in plain:
        raise EinsumError("syntax", "`...` is not supported", f"write a letter for every dimension, as in {_EXAMPLE}")
    left, arrow, right = plain.partition("->")
    inputs = left.split(",")
    wrong = next((c for c in plain.replace("->", "").replace(",", "") if not (c.isascii() and c.isalpha())), None)
    if wrong is not None or not all(inputs) or ("," in right):
        raise EinsumError("syntax", f"`{text}` is not an einsum", f"write it like {_EXAMPLE}")
    if not arrow:
        right = "".join(sorted(c for c in set(left) - {","} if left.count(c) == 1))
    for letter in right:
        if letter not in left:
            message = f"the result has the dimension `{letter}`, which no operand has"
            help = f"every letter after `->` must occur in an operand, as in {_EXAMPLE}"
            raise EinsumError("name-unknown", message, help)
        if right.count(letter) > 1:
            help = f"each letter occurs once after `->`, as in {_EXAMPLE}"
            raise EinsumError("name-twice", f"the result has the dimension `{letter}` twice", help)
    if ranks is not None:
        if len(ranks) != len(inputs):
            message = f"`{text}` is of {len(inputs)} operands, but {len(ranks)} are given"
            raise EinsumError("function-arguments", message, "separate the letters of the operands by `,`")
        for k, (letters, rank) in enumerate(zip(inputs, ranks, strict=True)):
            if len(letters) != rank:
                has = f"{rank} dimension{'s' * (rank != 1)}"
                message = f"operand {k + 1} has {has}, but `{letters}` stands for {len(letters)}"
                raise EinsumError("function-arguments", message, "write a letter for every dimension")
    return inputs, right


def kernel_of(text: str, type_: str = "f64", name: str = "einsum") -> CheckedFile:
    """A kernel of an einsum text; the size of `i` is `n_i`. Raises InputError for a wrong text, CommandError for an
    unknown type or too many operands.
    """
    if type_ not in TYPES:
        raise CommandError(f"there is no type `{type_}`", f"the types are {', '.join(TYPES)}")
    source = Source("<einsum>", text)
    span = Span(1, 1, 1, max(2, len(text) + 1))
    try:
        inputs, out = parsed(text)
    except EinsumError as error:
        raise InputError(source, [Diagnostic(error.code, str(error), span, error.help)]) from None
    made = _kernel(inputs, out, type_, name, span)
    report = Report()
    check_kernel(made, report)
    if report.errors:
        raise InputError(source, report.errors)
    checked = CheckedKernel(made, source, None, ())
    return CheckedFile(source, tree.File((made,), source=source), {name: checked}, {}, {}, (name,))


def _kernel(inputs: Sequence[str], out: str, type_: str, name: str, span: Span) -> tree.Kernel:
    letters = list(dict.fromkeys([*out, *"".join(inputs)]))
    sizes = {c: f"n_{c}" for c in letters}
    free = [c for c in _NAMES if c not in letters]
    if len(free) < len(inputs):
        raise CommandError(f"an einsum of {len(inputs)} operands is too long", "multiply some of them first")
    names, result = free[: len(inputs)], "C" if "C" not in letters else "result"

    def named(word: str) -> tree.Name:
        return tree.Name(word, span)

    def element(array: str, subscripts: str) -> tree.Ref | tree.Index:
        if not subscripts:
            return tree.Ref(array, span)
        return tree.Index(named(array), tuple(tree.Ref(c, span) for c in subscripts), span)

    def declared(array: str, subscripts: str) -> tree.Declared:
        dims = tuple(tree.Ref(sizes[c], span) for c in subscripts)
        return tree.Declared((named(array),), named(type_), dims, False, span)

    def loops(over: Sequence[str], body: Sequence[tree.Item]) -> tuple[tree.Item, ...]:
        if not over:
            return tuple(body)
        clauses = tuple(tree.Clause(named(c), named("range"), (tree.Ref(sizes[c], span),), span) for c in over)
        return (tree.For(clauses, False, tuple(body), span),)

    product: tree.Expr = element(names[0], inputs[0])
    for array, subscripts in zip(names[1:], inputs[1:], strict=True):
        product = tree.Binary("*", product, element(array, subscripts), span)
    summed = [c for c in letters if c not in out]
    target = element(result, out)
    if summed:
        begin = tree.Assign(target, "=", tree.Number("0", 0, span), span)
        body: tuple[tree.Item, ...] = (begin, *loops(summed, [tree.Assign(target, "+=", product, span)]))
    else:
        body = (tree.Assign(target, "=", product, span),)
    parameters = tuple(tree.Parameter(named(sizes[c]), None, False, span) for c in letters)
    given = tuple(declared(a, s) for a, s in zip(names, inputs, strict=True))
    items = (
        tree.Declaration("in", given, span),
        tree.Declaration("out", (declared(result, out),), span),
        *loops(list(out), body),
    )
    return tree.Kernel(named(name), parameters, items, span)

"""Every diagnostic code: stable names that tests, editors and the language page rely on."""

from __future__ import annotations

CODES: dict[str, str] = {
    # reading and layout
    "file-empty": "The file defines nothing.",
    "file-encoding": "The file is no UTF-8 text.",
    "limit-file": "The file is larger than 1 MiB.",
    "limit-nesting": "An expression is nested deeper than 200.",
    "limit-blocks": "Blocks are nested deeper than 64, or an `if` has more than 64 branches.",
    "limit-loops": "Loops are nested deeper than 16.",
    "limit-statements": "A kernel has more than 1,000 statements.",
    "limit-use": "Files use each other more than 16 deep.",
    "limit-runs": "Programs run each other more than 16 deep.",
    "character": "A character that is no part of the language.",
    "string-unclosed": "A text without its closing double quote.",
    "bracket-unclosed": "A bracket that is never closed.",
    "bracket-mismatch": "A closing bracket that does not match the open one.",
    "indent-inconsistent": "Indentation that fits no block, or mixes tabs and spaces.",
    "syntax": "A word or sign where the grammar does not allow it.",
    "syntax-block": "A line that opens a block with nothing indented under it.",
    "syntax-indent": "An indented line where no block begins.",
    "syntax-more": "More syntax errors than are shown.",
    "more": "More errors than are shown.",
    # numbers and units
    "number-range": "A number too large (integers: 2**63 - 1; floats: f64).",
    "number-integer": "A number with a fraction where an integer is needed.",
    "unit-missing": "A quantity without its unit.",
    "unit-kind": "A unit of another kind than the quantity needs.",
    "unit-unknown": "No unit of that name.",
    "quantity-zero": "A size, rate or time of zero.",
    "quantity-whole": "A size that is no whole number of bytes, a count that is no whole number.",
    # names
    "name-unknown": "A name that nothing defines here.",
    "name-twice": "The same name defined twice.",
    "name-hidden": "A loop variable or `let` that hides another name.",
    "name-function": "A function of the language used as a name.",
    "name-kind": "A name used as something that it is not.",
    "type-unknown": "No element type of that name.",
    "class-unknown": "No class of operations of that name.",
    "word-unknown": "A convention, unit or option that does not exist.",
    "use-missing": "A used file that cannot be read.",
    "use-errors": "A used file that has errors.",
    "use-cycle": "Files that use each other in a circle.",
    "use-path": "A path that does not end in `.roof`.",
    "use-unused": "Warning: nothing of a used file is needed here.",
    # kernels
    "parameter-default": "A default that is no positive integer.",
    "declaration-late": "A declaration after the first statement.",
    "declaration-nested": "A declaration or directive inside a loop or `if`.",
    "directive-twice": "A directive that may stand once stands twice.",
    "kernel-empty": "A kernel without statements.",
    "unused": "Warning: an array or scalar that is declared and not used.",
    "dimension": "A dimension that is no positive expression in the parameters.",
    "assume": "An assumption that names no parameter.",
    # loops and directives
    "loop-range": "A loop that does not run over `range(...)` with one to three arguments.",
    "loop-step": "A step that is neither a positive integer nor a parameter.",
    "bound-affine": "A loop bound that is not affine, or a `min` or `max` where it cannot stand.",
    "tile-loops": "`tile` or `order` names loops that are unknown or no perfect nest.",
    "tile-size": "A tile size that is neither a positive integer nor a parameter, or the wrong number of them.",
    "tile-bounds": "Loops whose bounds do not allow the `tile` or `order` asked for.",
    "condition-affine": "A condition that is not affine.",
    # expressions
    "subscript-count": "Too few or too many subscripts.",
    "subscript-affine": "A subscript that is not affine.",
    "subscript-indirect": "A subscript, bound or condition that reads an array, a scalar or a `let`.",
    "divisor": "`//` or `%` by something else than a positive integer.",
    "integer-division": "`/` where an integer is needed.",
    "integer-only": "`//` or `%` on computed values.",
    "exponent": "An exponent that is no integer from 0 to 64.",
    "function-unknown": "No function of that name.",
    "function-arguments": "The wrong number of arguments.",
    "function-place": "A function where only integer arithmetic can stand.",
    "select-condition": "`select` whose first argument is not one comparison.",
    "condition-value": "A condition where a value is needed, or a value where a condition is needed.",
    "type-complex": "A complex value where only a real one has a meaning.",
    "assign-target": "An assignment to something that is no array element or scalar.",
    "intent-write": "A write to what is declared `in`.",
    "intent-read": "An `out` or `temp` that is read and never assigned.",
    # machines
    "machine-memory": "A machine without a memory.",
    "machine-peak": "A machine without a peak.",
    "machine-twice": "A peak, level, ceiling, link or property stated twice.",
    "machine-option": "An option of a `cache` or `memory` that is unknown, doubled or does not fit.",
    "machine-pipes": "`pipes` says something else than `separate add mul`.",
    "memory-unlinked": "Warning: a further memory that no link reaches.",
    "link-end": "A link that leads nowhere or to itself.",
    # programs
    "run-arguments": "The wrong number of arguments for a kernel or program.",
    "run-cycle": "A program that runs itself, by itself or through others.",
    "run-value": "An argument or repetition that is no positive integer.",
}
"""Of reading and checking a file."""

DEEP_CODES: dict[str, str] = {
    "subscript-bounds": "A subscript that leaves its array at some allowed sizes.",
    "dependence-reversed": "A `tile` or `order` that reverses a dependence.",
    "reduction-order": "A `tile` or `order` that changes the order of updates such as `s += ...` of one element.",
    "parallel-dependence": "A `parallel for` whose iterations depend on each other.",
    "intent-order": "An `out` or `temp` that is read before it is written.",
    "intent-unused": "Warning: an `inout` that is never read or never written, an `out` that no allowed size writes.",
    "unchecked": "Warning: what could not be decided for all sizes.",
}
"""Of `check --deep`, beside those above."""

RESULT_CODES: dict[str, str] = {
    "result-damaged": "A file of measured results that is no JSON, or not of the form that `measure` writes.",
    "profile-damaged": "A profiler's table, or points taken from one, cut off or of another form.",
}
"""Of files of results, which are no `.roof` files."""

"""Every diagnostic code: stable names that tests, editors and the language page rely on."""

from __future__ import annotations

CODES: dict[str, str] = {
    # reading and layout
    "file-empty": "The file defines nothing.",
    "file-encoding": "The file is not UTF-8 text.",
    "limit-file": "The file is larger than 1 MiB.",
    "limit-nesting": "An expression is nested more than 200 levels deep.",
    "limit-blocks": "Blocks are nested more than 64 levels deep, or an `if` has more than 64 branches.",
    "limit-loops": "Loops are nested more than 16 levels deep.",
    "limit-statements": "A kernel has more than 1,000 statements.",
    "limit-use": "Files use each other more than 16 levels deep.",
    "limit-runs": "Programs run each other more than 16 levels deep.",
    "character": "A character that is not part of the language.",
    "string-unclosed": "A string without its closing double quote.",
    "bracket-unclosed": "A bracket that is never closed.",
    "bracket-mismatch": "A closing bracket that does not match the open one.",
    "indent-inconsistent": "Indentation that matches no block, or mixes tabs and spaces.",
    "syntax": "A word or symbol where the grammar does not allow it.",
    "syntax-block": "A line that opens a block with nothing indented under it.",
    "syntax-indent": "An indented line that no block allows.",
    "syntax-more": "More syntax errors than are shown.",
    "more": "More errors or warnings than are shown.",
    # numbers and units
    "number-range": "A number that is too large (integers: 2**63 - 1; floats: f64).",
    "number-integer": "A number with a fraction where an integer is needed.",
    "unit-missing": "A quantity without a unit.",
    "unit-kind": "A unit of the wrong kind for the quantity.",
    "unit-unknown": "A unit that does not exist.",
    "quantity-zero": "A size, rate or time of zero.",
    "quantity-whole": "A size that is not a whole number of bytes, or a count that is not a whole number.",
    # names
    "name-unknown": "A name that is not defined here.",
    "name-twice": "The same name defined twice.",
    "name-hidden": "A loop variable or `let` that hides another name.",
    "name-function": "A function of the language that is used as a name.",
    "name-kind": "A name of the wrong kind, such as a parameter used as an array.",
    "type-unknown": "An element type that does not exist.",
    "class-unknown": "A class of operations that does not exist.",
    "word-unknown": "A convention, unit or option that does not exist.",
    "use-missing": "A used file that cannot be read.",
    "use-errors": "A used file that has errors.",
    "use-cycle": "Files that use each other in a cycle.",
    "use-path": "A path that does not end in `.roof`.",
    "use-unused": "Warning: a `use` from which nothing is needed.",
    # kernels
    "parameter-default": "A default that is not a positive integer.",
    "declaration-late": "A declaration after the first statement.",
    "declaration-nested": "A declaration or directive inside a loop or `if`.",
    "directive-twice": "A directive that may occur only once occurs twice.",
    "kernel-empty": "A kernel without statements.",
    "unused": "Warning: an array or scalar that is declared but not used.",
    "dimension": "A dimension that is not a positive expression in the parameters.",
    "assume": "An assumption that names no parameter.",
    # loops and directives
    "loop-range": "A loop that does not run over `range(...)` with one to three arguments.",
    "loop-step": "A step that is neither a positive integer nor a parameter.",
    "bound-affine": "A loop bound that is not affine, or a `min` or `max` where it is not allowed.",
    "tile-loops": "A `tile` or `order` whose loops are unknown or do not form a perfect nest.",
    "tile-size": "A tile size that is neither a positive integer nor a parameter, or the wrong number of them.",
    "tile-bounds": "Loops whose bounds do not allow the requested `tile` or `order`.",
    "condition-affine": "A condition that is not affine.",
    # expressions
    "subscript-count": "Too few or too many subscripts.",
    "subscript-affine": "A subscript that is not affine.",
    "subscript-indirect": (
        "A subscript or bound that reads a scalar, a `let`, or an array that is not an index array, or a condition "
        "that reads any of these or an index array."
    ),
    "index-array": "An `index(...)` on something other than an `in` array of integers.",
    "index-fact": "An `assume ... rises`, `takes` or `has alpha` that does not fit its array.",
    "divisor": "`//` or `%` by anything other than a positive integer.",
    "integer-division": "`/` where an integer is needed.",
    "integer-only": "`//` or `%` on computed values.",
    "exponent": "An exponent that is not an integer from 0 to 64.",
    "function-unknown": "A function that does not exist.",
    "function-arguments": "The wrong number of arguments.",
    "function-place": "A function where only integer arithmetic is allowed.",
    "select-condition": "A `select` whose first argument is not a single comparison.",
    "condition-value": "A condition where a value is needed, or a value where a condition is needed.",
    "type-complex": "A complex value where only a real one makes sense.",
    "assign-target": "An assignment to something other than an array element or scalar.",
    "intent-write": "A write to something declared `in`.",
    "intent-read": "An `out` or `temp` that is read but never assigned.",
    "stream-store": "A `stream` that is not a plain store to an element, or whose array is also accessed elsewhere.",
    # machines
    "machine-memory": "A machine without a memory.",
    "machine-peak": "A machine without a peak.",
    "machine-twice": "A peak, level, ceiling, link or property that is defined twice.",
    "machine-option": "An option of a line of a machine that is unknown, repeated or not applicable.",
    "machine-order": "Caches that are not listed from the nearest to the farthest.",
    "machine-smaller": "Warning: a cache that is smaller than the nearer one.",
    "machine-line": "Warning: a line or sector of a cache that is no power of two.",
    "machine-ways": "Warning: a cache whose size its sets do not divide.",
    "machine-power": "A `power_cap` that is not above the `constant_power`.",
    "machine-pipes": "A `pipes` line that is not `separate add mul`, `separate add mul div` or `units`.",
    "machine-transfers": "A `transfers` line that is neither `transfers serial` nor `transfers overlap [SHARE]`.",
    "memory-unlinked": "Warning: a further memory that no link reaches.",
    "link-end": "A link that leads nowhere or to itself.",
    # programs
    "run-arguments": "The wrong number of arguments for a kernel or program.",
    "run-cycle": "A program that runs itself, directly or through others.",
    "run-value": "An argument or a number of repetitions that is not a positive integer.",
}
"""Of reading and checking a file."""

DEEP_CODES: dict[str, str] = {
    "subscript-bounds": "A subscript that is out of bounds at some allowed sizes.",
    "dependence-reversed": "A `tile` or `order` that reverses a dependence.",
    "reduction-order": "A `tile` or `order` that changes the order of updates of one element, such as `s += ...`.",
    "parallel-dependence": "A `parallel for` whose iterations depend on each other.",
    "stream-apart": "A `stream` whose stores are not next to each other along the innermost loop.",
    "intent-order": "An `out` or `temp` that is read before it is written.",
    "intent-unused": "Warning: an `inout` that is never read or never written, or an `out` that is never written.",
    "unchecked": "Warning: something that could not be decided for all sizes.",
}
"""Of `check --deep`, beside those above."""

C_CODES: dict[str, str] = {
    "c-syntax": "C that the preprocessor or the parser does not accept.",
    "c-statement": "A statement of C that is not supported, such as `goto`.",
    "c-loop": "A `for` loop whose bounds, step or counter are not affine.",
    "c-condition": "A condition that the language cannot express, such as one on data around a loop.",
    "c-index": "A subscript, bound or offset that does not follow from loop variables and sizes.",
    "c-pointer": "A pointer whose array is not known, or that reads an array as one of another type or shape.",
    "c-type": "A type, or a mixture of types, in which the language cannot compute.",
    "c-integer": "Integer arithmetic that may wrap around, or that rounds differently in the language.",
    "c-effect": "A side effect inside an expression.",
    "c-call": "A call of a function that is not known, or not simple enough to be inlined.",
    "c-name": "A name that is not declared, hides another one, or is changed where it may not be.",
    "c-pragma": "A pragma that changes what the program does, or stands in the wrong place.",
}
"""Of files in C (docs/c.md)."""

PYTHON_CODES: dict[str, str] = {
    "py-syntax": "Text that is not Python.",
    "py-statement": "A statement or expression that is not supported, such as `while` or a list comprehension.",
    "py-loop": "A `for` loop whose bounds, step or counter are not affine, or that makes new arrays from old ones.",
    "py-condition": "A condition that the language cannot express, such as one on data around a loop.",
    "py-index": "A subscript, slice or size that does not follow from loop variables and sizes, or may be negative.",
    "py-shape": "An array whose shape is not known, or does not fit.",
    "py-type": "A type, a mixture of types or an operation that the language does not support.",
    "py-effect": "A side effect that is not a store into an array.",
    "py-call": "A call of a function that is not known, or not simple enough to be inlined.",
    "py-name": "A name that has no value here, or stands for two things.",
}
"""Of files in Python (docs/python.md)."""

RESULT_CODES: dict[str, str] = {
    "result-damaged": "A file of measured results that is not JSON, or not in the format that `measure` writes.",
    "profile-damaged": "A profiler's table, or a file of points, that is truncated or in another format.",
}
"""Of files of results, which are no `.roof` files."""

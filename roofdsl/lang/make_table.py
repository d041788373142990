"""Writes `table.py`, the parser's table, from `grammar.lark`: `python -m roofdsl.lang.make_table`.

lark analyses the grammar here, once, by whoever changes it; users' programs load the plain data that comes out, so
that starting up costs a millisecond and not lark's import and construction (some 110 ms).
"""

from __future__ import annotations

import textwrap
from collections import deque
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
GRAMMAR = HERE / "grammar.lark"
TABLE = HERE / "table.py"

_HEAD = '''"""Generated from grammar.lark by `python -m roofdsl.lang.make_table`; do not edit.

TERMINALS: name -> (is it a regular expression, the text). RULES: (what it makes, symbols taken, name of the builder's
method or "" for a list or the only child, plan), where a plan says for each argument: -1 an absent part, 2 i the value
of symbol i, 2 i + 1 each value in the list at symbol i. ROWS: by state, symbols, each with the state to go to or
-1 - rule; rows are text because decoding the few that a file needs is faster than loading all of them as dicts.
"""

# fmt: off
# ruff: noqa
from __future__ import annotations

'''


def generate() -> str:
    """The text of `table.py` for the grammar as it stands (needs lark)."""
    import lark

    parser = lark.Lark(GRAMMAR.read_text(encoding="utf-8"), parser="lalr", start="file", lexer="basic")
    table = parser.parser.parser._parse_table
    rules = list(parser.rules)
    index = {rule: i for i, rule in enumerate(rules)}
    numbers, actions = _renumber(table.states, table.start_states["file"], index)
    lines = [_HEAD, "TERMINALS: dict[str, tuple[bool, str]] = {\n"]
    for terminal in parser.terminals:
        is_regex = type(terminal.pattern).__name__ == "PatternRE"
        lines.append(f"    {terminal.name!r}: ({is_regex}, {terminal.pattern.value!r}),\n")
    lines.append("}\n\nRULES: tuple[tuple[str, int, str, tuple[int, ...]], ...] = (\n")
    lines += [f"    {_rule(rule)!r},\n" for rule in rules]
    lines.append(f")\n\nEND = {numbers[table.end_states['file']]}\n\n")
    lines.append("ROWS: tuple[str, ...] = (\n")
    for row in actions:
        text = " ".join(f"{symbol} {action}" for symbol, action in row.items())
        wrapped = textwrap.wrap(text, 110, drop_whitespace=False) or [""]
        lines.append("\n".join(f"    {part!r}" for part in wrapped) + ",\n")
    return "".join(lines) + ")\n"


def _renumber(states: Any, start: Any, index: dict[Any, int]) -> tuple[dict[Any, int], list[dict[str, int]]]:
    """States numbered breadth first in the order of sorted symbols: the same grammar gives the same text."""
    numbers = {start: 0}
    queue = deque([start])
    actions: list[dict[str, int]] = []
    while queue:
        row: dict[str, int] = {}
        for symbol, (_, argument) in sorted(states[queue.popleft()].items(), key=lambda item: str(item[0])):
            if type(argument).__name__ == "Rule":
                row[str(symbol)] = -1 - index[argument]
                continue
            if argument not in numbers:
                numbers[argument] = len(numbers)
                queue.append(argument)
            row[str(symbol)] = numbers[argument]
        actions.append(row)
    return numbers, actions


def _rule(rule: Any) -> tuple[str, int, str, tuple[int, ...]]:
    origin = str(rule.origin.name)
    plan: list[int] = []
    absent = list(rule.options.empty_indices) or [False] * len(rule.expansion)
    symbols = iter(enumerate(rule.expansion))
    for is_absent in absent:
        if is_absent:
            plan.append(-1)
            continue
        i, symbol = next(symbols)
        if not (symbol.is_term and symbol.filter_out):
            plan.append(2 * i + (not symbol.is_term and symbol.name.startswith("_")))
    is_list = origin.startswith("_")
    passes_through = rule.options.expand1 and not rule.alias
    return origin, len(rule.expansion), "" if is_list or passes_through else str(rule.alias or origin), tuple(plan)


if __name__ == "__main__":
    TABLE.write_text(generate(), encoding="utf-8")

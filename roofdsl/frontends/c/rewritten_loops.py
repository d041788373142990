"""Loops and branches in other words: `continue` and `switch` as `if`, other loops with a counter as `for`.

- `if (c) continue; rest` is `if (c) {} else { rest }`.
- `while (i < n) { ...; i++; }` is `for (; i < n; i++) { ... }`; `do { ...; i++; } while (i < n)` is the same where the
  condition holds before the first iteration, which is checked when the loop is read.
- `while (i--) { ... i ... }` is `for (; i; i--) { ... (i - 1) ... }`, and `while (--i)` is `i--; for (; i; i--)`.
- `for (...; c; ...) { if (d) break; rest }` is `for (...; c && !d; ...) { rest }`.
- `switch (k) { case 1: a; break; default: b; }` is `if (k == 1) a; else b;`.
"""

from __future__ import annotations

from copy import copy
from typing import Any

from pycparser import c_ast

from roofdsl.frontends.c.switches import as_ifs
from roofdsl.frontends.c.variables import assigned_names, walk

_LOOPS = (c_ast.For, c_ast.While, c_ast.DoWhile)
_REWRITTEN = (c_ast.While, c_ast.DoWhile, c_ast.Switch, c_ast.Break, c_ast.Continue)
_STEPS = ("++", "--", "p++", "p--")
_TURNED = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
_MEMORY = (c_ast.ArrayRef, c_ast.StructRef, c_ast.FuncCall, c_ast.Assignment)


class Repeated(c_ast.For):  # type: ignore[misc]
    """A `do`: a `for` that also runs once if its condition does not hold at its beginning."""

    __slots__ = ()


def opposite(test: Any) -> Any:
    """The condition that holds where another one on integers does not."""
    if isinstance(test, c_ast.BinaryOp) and test.op in _TURNED:
        return c_ast.BinaryOp(_TURNED[test.op], test.left, test.right, test.coord)
    if isinstance(test, c_ast.BinaryOp) and test.op == "||":
        return c_ast.BinaryOp("&&", opposite(test.left), opposite(test.right), test.coord)
    if isinstance(test, c_ast.UnaryOp) and test.op == "!":
        return test.expr
    return c_ast.UnaryOp("!", test, test.coord)


def is_rewritten(function: Any) -> bool:
    """Whether `rewrite` may change a function."""
    parts = walk(function.body)
    return any(isinstance(p, _REWRITTEN) or (isinstance(p, c_ast.For) and p.next is None) for p in parts)


def rewrite(function: Any) -> None:
    """Rewrites the loops of a function in place, where that is possible."""
    nodes = list(walk(function.body))
    for node in nodes:
        if isinstance(node, _LOOPS) and isinstance(node.stmt, c_ast.Compound):
            node.stmt.block_items = _without_continue(node.stmt.block_items or [])
    for node in reversed(nodes):  # inner ones first
        if isinstance(node, c_ast.Compound | c_ast.Case | c_ast.Default):
            place = "block_items" if isinstance(node, c_ast.Compound) else "stmts"
            setattr(node, place, [new for item in getattr(node, place) or [] for new in _counted(item, function)])
        for place in ("stmt", "iftrue", "iffalse"):
            only = getattr(node, place, None)
            if isinstance(only, (*_LOOPS, c_ast.Switch)):
                found = _counted(only, function)
                setattr(node, place, found[0] if len(found) == 1 else c_ast.Compound(found, only.coord))


def _without_continue(items: list[Any]) -> list[Any]:
    for k, item in enumerate(items):
        if not isinstance(item, c_ast.If) or item.iffalse is not None or k + 1 == len(items):
            continue
        own = _items(item.iftrue)
        if own and isinstance(own[-1], c_ast.Continue):
            rest = c_ast.Compound(_without_continue(items[k + 1 :]), items[k + 1].coord)
            before = c_ast.Compound(own[:-1], item.iftrue.coord)
            return [*items[:k], c_ast.If(item.cond, before, rest, item.coord)]
    return items


def _counted(node: Any, function: Any) -> list[Any]:
    """The statements that a loop or a `switch` is written as; any other statement as it is."""
    if isinstance(node, c_ast.Switch):
        return [as_ifs(node) or node]
    if isinstance(node, c_ast.For | c_ast.While):
        node = _without_break(node)
    if isinstance(node, c_ast.While):
        return _stepped_in_condition(node, function) or [_stepped_at_end(node, c_ast.For) or node]
    if isinstance(node, c_ast.DoWhile):
        return [_do_stepped_in_condition(node) or _stepped_at_end(node, Repeated) or node]
    if isinstance(node, c_ast.For) and node.next is None and node.cond is not None:
        return [_stepped_at_end(node, c_ast.For) or node]
    return [node]


def _stepped_at_end(node: Any, kind: Any) -> Any:
    """A loop whose last statement changes what its condition tests; None for any other one."""
    tested = {p.name for p in walk(node.cond) if isinstance(p, c_ast.ID)}
    items = _step_last(_items(node.stmt), tested)
    if not items or not isinstance(items[-1], c_ast.Assignment | c_ast.UnaryOp) or _jumps(items):
        return None
    if not assigned_names(items[-1]) & tested:
        return None
    return kind(
        getattr(node, "init", None), node.cond, items[-1], c_ast.Compound(items[:-1], node.stmt.coord), node.coord
    )


def _step_last(items: list[Any], tested: set[str]) -> list[Any]:
    """The statements of a body with the step of what is tested at their end: `p++; q++;` may be `q++; p++;`."""
    flat = [*items[:-1], *items[-1].exprs] if items and isinstance(items[-1], c_ast.ExprList) else items
    for k in range(len(flat) - 1, -1, -1):
        if not isinstance(flat[k], c_ast.UnaryOp) or flat[k].op not in _STEPS or not isinstance(flat[k].expr, c_ast.ID):
            break
        if flat[k].expr.name in tested and k < len(flat) - 1:
            return [*flat[:k], *flat[k + 1 :], flat[k]]
    return flat


def _step_of(cond: Any) -> Any:
    """The `i--` or `--i` that a condition consists of, or that it compares; None if there is none."""
    sides = (cond.left, cond.right) if isinstance(cond, c_ast.BinaryOp) else (cond,)
    steps = [s for s in sides if isinstance(s, c_ast.UnaryOp) and s.op in _STEPS and isinstance(s.expr, c_ast.ID)]
    if len(steps) != 1:
        return None
    uses = [p for p in walk(cond) if isinstance(p, c_ast.ID) and p.name == steps[0].expr.name]
    return steps[0] if len(uses) == 1 else None


def _put(cond: Any, step: Any, expr: Any) -> Any:
    """A condition with another expression in place of its `i--`."""
    if cond is step:
        return expr
    return c_ast.BinaryOp(
        cond.op, expr if cond.left is step else cond.left, expr if cond.right is step else cond.right, cond.coord
    )


def _beside(name: Any, op: str) -> Any:
    """`i - 1` for `i--`, `i + 1` for `i++`."""
    return c_ast.BinaryOp(op[-1], c_ast.ID(name.name, name.coord), c_ast.Constant("int", "1", name.coord), name.coord)


def _stepped_in_condition(node: Any, function: Any) -> list[Any]:
    """`while (i--)` and `while (--i)`; [] for any other loop."""
    step, items = _step_of(node.cond), _items(node.stmt)
    if step is None or _jumps(items):
        return []
    name = step.expr.name
    body = c_ast.Compound(items, node.stmt.coord)
    declared = {p.name for p in walk(body) if isinstance(p, c_ast.Decl)}
    if name in assigned_names(body) | declared:
        return []
    cond = _put(node.cond, step, step.expr)
    own = c_ast.UnaryOp(f"p{step.op[-2:]}", step.expr, step.coord)
    if step.op[0] != "p":
        return [own, c_ast.For(None, cond, own, body, node.coord)]
    occurrences = [p for p in walk(function.body) if isinstance(p, c_ast.ID) and p.name == name]
    inside = {id(p) for p in walk(node)}
    last = max(k for k, p in enumerate(occurrences) if id(p) in inside)
    read_after = last + 1 < len(occurrences) or _in_a_loop(node, function)
    _replace(body, name, step.op)
    return [c_ast.For(None, cond, own, body, node.coord), *([own] if read_after else [])]


def _do_stepped_in_condition(node: Any) -> Any:
    """`do { } while (i-- > 1)` and `do { } while (--i)`; None for any other loop."""
    step, items = _step_of(node.cond), _items(node.stmt)
    if step is None or _jumps(items) or step.expr.name in assigned_names(node.stmt):
        return None
    before = step.expr  # the value that is tested, in terms of the one after the step
    if step.op[0] == "p":
        before = _beside(step.expr, "+" if step.op[-1] == "-" else "-")
    own = c_ast.UnaryOp(f"p{step.op[-2:]}", step.expr, step.coord)
    return Repeated(None, _put(node.cond, step, before), own, c_ast.Compound(items, node.stmt.coord), node.coord)


def _in_a_loop(node: Any, function: Any) -> bool:
    around = [p for p in walk(function.body) if isinstance(p, _LOOPS) and p is not node]
    return any(part is node for loop in around for part in walk(loop))


def _replace(node: Any, name: str, op: str) -> None:
    """Puts the value after `op` in place of each use of a name, in place."""
    for part in list(walk(node)):
        for place, child in part.children():
            if isinstance(child, c_ast.ID) and child.name == name and not _is_field(part, place):
                attribute, _, index = place.partition("[")
                if index:
                    getattr(part, attribute)[int(index[:-1])] = _beside(child, op)
                else:
                    setattr(part, attribute, _beside(child, op))


def _is_field(node: Any, place: str) -> bool:
    return isinstance(node, c_ast.StructRef) and place == "field"


def _without_break(node: Any) -> Any:
    """A loop whose body begins with `if (c) break;`, or that is endless and ends with it; any other one as it is."""
    items = _items(node.stmt)
    endless = node.cond is None or (isinstance(node.cond, c_ast.Constant) and node.cond.value != "0")
    if items and _breaks(items[0]) and not _jumps(items[1:]):
        goes_on = opposite(items[0].cond)
        changed = copy(node)
        changed.cond = goes_on if endless else c_ast.BinaryOp("&&", node.cond, goes_on, node.cond.coord)
        changed.stmt = c_ast.Compound(items[1:], node.stmt.coord)
        return changed
    if items and endless and getattr(node, "next", None) is None and _breaks(items[-1]) and not _jumps(items[:-1]):
        body = c_ast.Compound(items[:-1], node.stmt.coord)
        do = c_ast.DoWhile(opposite(items[-1].cond), body, node.coord)
        found = _do_stepped_in_condition(do) or _stepped_at_end(do, Repeated)
        if found is not None and isinstance(node, c_ast.For) and node.init is not None:
            found.init = node.init
        return found or node
    return node


def _breaks(node: Any) -> bool:
    """Whether a statement is `if (c) break;` with a condition on variables."""
    if not isinstance(node, c_ast.If) or node.iffalse is not None:
        return False
    own = _items(node.iftrue)
    on_memory = any(isinstance(p, _MEMORY) or getattr(p, "op", "") in ("*", *_STEPS) for p in walk(node.cond))
    return len(own) == 1 and isinstance(own[0], c_ast.Break) and not on_memory


def _jumps(items: list[Any]) -> bool:
    """Whether statements leave an iteration early, apart from those of loops inside."""
    pending = list(items)
    while pending:
        part = pending.pop()
        if isinstance(part, c_ast.Continue | c_ast.Break | c_ast.Goto | c_ast.Return):
            return True
        if part is not None and not isinstance(part, _LOOPS):
            pending += [child for _, child in part.children()]
    return False


def _items(node: Any) -> list[Any]:
    return list(node.block_items or []) if isinstance(node, c_ast.Compound) else [node]

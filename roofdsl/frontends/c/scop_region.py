"""`#pragma scop` ... `#pragma endscop`: the region that is read, and what is known where it begins."""

from __future__ import annotations

from typing import Any

from pycparser import c_ast

from roofdsl.frontends.c.context import Context, Split
from roofdsl.frontends.c.pointers import Peel
from roofdsl.frontends.c.statements import Statements
from roofdsl.frontends.c.values import NeedsData
from roofdsl.frontends.c.variables import Pointer, State, Unknown, Variable, walk
from roofdsl.frontends.poly import Poly
from roofdsl.frontends.refuse import Refused
from roofdsl.lang.record import Record


class Region(Record):
    """`items` are the statements of the region; `path` the blocks and loops around them, outermost first.

    `after`: names that may be used after the region: that occur after it in the text of the function, or are read
    anywhere in a loop around it. `marked`: by `#pragma scop`.
    """

    function: Any
    items: tuple[Any, ...]
    path: tuple[Any, ...]
    after: frozenset[str]
    marked: bool


def region_of(function: Any) -> Region:
    """The marked region of a function, or its whole body. Raises Refused for a region without its end."""
    found = _marked(function.body, ())
    if found is None:
        return Region(function, tuple(function.body.block_items or ()), (), frozenset(), False)
    block, first, path = found
    items = block.block_items
    last = next((k for k in range(first, len(items)) if _is_pragma(items[k], "endscop")), None)
    if last is None:
        raise Refused("c-pragma", "`#pragma scop` has no `#pragma endscop` in the same block", items[first])
    inside = tuple(items[first + 1 : last])
    ids = [p for p in walk(function.body) if isinstance(p, c_ast.ID)]
    own = {id(p) for item in inside for p in walk(item)}
    passed, after = False, set[str]()
    for part in ids:
        passed = passed or id(part) in own
        if passed and id(part) not in own:
            after.add(part.name)
    path = (*path, block)
    for k, node in enumerate(path):
        if isinstance(node, c_ast.For | c_ast.While | c_ast.DoWhile):
            after |= _read_again(node, path[k + 1 :], own)
    return Region(function, inside, path, frozenset(after), True)


def _read_again(loop: Any, below: tuple[Any, ...], own: set[int]) -> set[str]:
    """The names that the next iteration of a loop around the region may read before it reaches the region.

    below: the blocks and loops between the two, whose variables are new in every iteration. own: ids of the region's
    nodes.
    """
    again = [child for part, child in loop.children() if part != "init"]
    parts = [p for node in again for p in walk(node) if id(p) not in own]
    written = {id(p.lvalue) for p in parts if isinstance(p, c_ast.Assignment) and p.op == "="}
    blocks = [node.block_items or () for node in below if isinstance(node, c_ast.Compound)]
    new = {item.name for items in blocks for item in items if isinstance(item, c_ast.Decl)}
    return {p.name for p in parts if isinstance(p, c_ast.ID) and id(p) not in written} - new


def _marked(node: Any, path: tuple[Any, ...]) -> tuple[Any, int, tuple[Any, ...]] | None:
    items = node.block_items or () if isinstance(node, c_ast.Compound) else ()
    for k, item in enumerate(items):
        if _is_pragma(item, "scop"):
            return node, k, path
    for _, child in node.children():
        found = _marked(child, (*path, node))
        if found is not None:
            return found
    return None


def _is_pragma(item: Any, word: str) -> bool:
    return isinstance(item, c_ast.Pragma) and (item.string or "").split()[:1] == [word]


def outside(region: Region, context: Context, statements: Statements) -> None:
    """The declarations and known values where the region begins."""
    for k, node in enumerate(region.path):
        following = region.path[k + 1] if k + 1 < len(region.path) else None
        if isinstance(node, c_ast.Compound):
            context.scopes.levels.append({})
            for item in node.block_items:
                if item is following or _is_pragma(item, "scop"):
                    break
                _before(item, context, statements)
                _called(item, region, context)
        elif isinstance(node, c_ast.For | c_ast.While | c_ast.DoWhile):
            context.scopes.levels.append({})
            if isinstance(node, c_ast.For) and isinstance(node.init, c_ast.DeclList):
                for decl in node.init.decls:
                    _declared(decl, context, statements)
            statements.follower.forget([node], "a loop around the region changes it")
            _called(node, region, context)
            if isinstance(node, c_ast.For) and node.init is not None:
                for part in node.init.decls if isinstance(node.init, c_ast.DeclList) else ():
                    variable = context.scopes.find(part.name)
                    assert variable is not None
                    context.env[variable] = Unknown("a loop around the region counts with it")


def _before(item: Any, context: Context, statements: Statements) -> None:
    """A statement before the region: integers and pointers are followed, everything else becomes unknown."""
    if isinstance(item, c_ast.Decl):
        _declared(item, context, statements)
        return
    follower = statements.follower
    if isinstance(item, c_ast.Assignment | c_ast.UnaryOp):
        follower.follow(item)
    else:
        follower.forget([item], "statements before the region change it")


def _declared(node: Any, context: Context, statements: Statements) -> None:
    """A declaration before the region. An integer that is set once, to an unknown value, becomes a parameter."""
    type_ = context.type_of(node.type)
    variable = context.variable(node.name, type_, node, "outer")
    context.scopes.declare(variable)
    if not statements.follower.is_followed(variable):
        if not type_.is_plain:
            statements.shape(variable, node)
        return
    changed = node.name in context.changing[-1]
    if node.init is None:
        if changed or not type_.is_plain:
            context.env[variable] = Unknown("nothing has been assigned to it")
    else:
        context.env.pop(variable, None)
        known = _initial(node.init, type_.is_plain, context, statements)
        if known is not None:
            context.env[variable] = known
        elif changed or (not type_.is_plain and _mentioned(node.init, context)):
            context.env[variable] = Unknown("it is set before the region to what is not known")
    if not type_.is_plain:
        statements.shape(variable, node)


def _initial(init: Any, plain: bool, context: Context, statements: Statements) -> State | None:
    """The value of an initializer; None if it is not known."""
    try:
        if plain:
            return statements.values.value(init).poly
        return statements.values.pointers.pointer(init)
    except (Refused, NeedsData, Split, Peel):
        return None


def _mentioned(node: Any, context: Context) -> set[Variable]:
    """The arrays of numbers that an expression may point into."""
    fields = {id(p.field) for p in walk(node) if isinstance(p, c_ast.StructRef)}
    found = {context.scopes.find(p.name) for p in walk(node) if isinstance(p, c_ast.ID) and id(p) not in fields}
    return {v for v in found if v is not None and not v.type.is_plain and v.type.base not in ("other", "void")}


def targets_of_globals(context: Context) -> None:
    """Records the arrays into which any function lets the pointers of the file point."""
    bodies = [f.body for f in context.program.functions.values()]
    sets = [p for body in bodies for p in walk(body) if isinstance(p, c_ast.Assignment)]
    for variable in context.scopes.levels[0].values():
        if variable.type.pointers == 1 and variable.type.base not in ("other", "void"):
            given = [p.rvalue for p in sets if isinstance(p.lvalue, c_ast.ID) and p.lvalue.name == variable.name]
            given += [variable.node.init] if variable.node.init is not None else []
            context.apart[variable] = {v for value in given for v in _mentioned(value, context)} - {variable}


def _called(node: Any, region: Region, context: Context) -> None:
    """Unknown functions may change variables of the file, other than constants.

    A `restrict` pointer is the only way to its target, wherever that is; `context.apart` records the arrays into which
    the function itself lets it point.
    """
    own = {id(p) for item in region.items for p in walk(item)}
    if not any(isinstance(p, c_ast.FuncCall) and id(p) not in own for p in walk(node)):
        return
    for variable in context.scopes.levels[0].values():
        if variable.type.const or (variable.type.dims and not variable.type.pointers):
            continue
        if variable.type.restrict and variable.type.pointers == 1:
            sets = [p for p in walk(region.function.body) if isinstance(p, c_ast.Assignment)]
            sets = [p for p in sets if isinstance(p.lvalue, c_ast.ID) and p.lvalue.name == variable.name]
            set_here = {v for p in sets for v in _mentioned(p.rvalue, context)}
            context.apart[variable] = context.apart.get(variable, set()) | set_here
            context.env[variable] = Pointer(variable, (Poly.number(0),))
        elif variable in context.env:
            context.env[variable] = Unknown("a function that is called outside the region may change it")

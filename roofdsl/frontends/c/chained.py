"""`a = b = v` as statements: `b = v`, and then `a` takes the value that C passes on, which has the type of `b`.

If `b` is a variable, that is `a = b`. An element is not read again: its value gets a name, as in
`double t = v; b[i] = t; a[i] = t;`.
"""

from __future__ import annotations

from typing import Any

from pycparser import c_ast

from roofdsl.frontends.c.assignments import Assignments
from roofdsl.frontends.c.c_types import element, is_integer
from roofdsl.frontends.c.context import Context, Passed, Value
from roofdsl.frontends.c.static_types import place_type
from roofdsl.frontends.c.values import Values
from roofdsl.frontends.c.variables import base_name, member_path, walk
from roofdsl.frontends.refuse import Refused

_HELP = "write each assignment as a statement of its own"


class Chains:
    """Reads chained assignments."""

    def __init__(self, context: Context, values: Values, assignments: Assignments) -> None:
        self.context, self.values, self.assignments = context, values, assignments

    def read(self, node: Any) -> None:
        """`a = b = v`, from right to left. Raises Refused for `+=` and the like, and if C leaves the order open."""
        links = _links(node)
        _in_order(links)
        passed = links[-1].rvalue
        for link in reversed(links):
            if link is not node and not isinstance(link.lvalue, c_ast.ID):
                passed = self._held(link, passed)
            self.assignments.assign(c_ast.Assignment("=", link.lvalue, passed, link.coord))
            if isinstance(link.lvalue, c_ast.ID):
                passed = link.lvalue

    def _held(self, link: Any, given: Any) -> Passed:
        """A value, converted to the type of the element or member that it is assigned to."""
        context, name = self.context, base_name(link.lvalue)
        type_ = place_type(link.lvalue, context)
        if type_ is None or not type_.is_plain:
            raise Refused("c-effect", "an assignment inside an expression is a side effect", link, _HELP)
        base = element(type_, link, name)
        value = self.values.to(self.values.plain(given), base, link)
        if value.poly is not None and is_integer(base):
            whole = self.assignments.integer(name, base, value.poly, link)
            return Passed(Value(base, None, None, whole), given.coord)
        variable = context.variable("t", type_, link, "local")
        context.once.add((link, variable.name))
        self.assignments.bind(variable, value, link)
        held = context.lets.get(variable)
        return Passed(context.scalar(variable, link) if held is None else held, given.coord)


def _links(node: Any) -> list[Any]:
    """The assignments of a chain, from left to right."""
    links = [node]
    while isinstance(links[-1].rvalue, c_ast.Assignment):
        links.append(links[-1].rvalue)
    return links


def _in_order(links: list[Any]) -> None:
    """Raises Refused unless a chain consists of `=`, and no target is used to find one further to the left, as `i` is
    in `a[i] = i = 0`.
    """
    for k, link in enumerate(links):
        if link.op != "=":
            raise Refused("c-effect", f"`{link.op}` in a chain of assignments is not supported", link, _HELP)
        changed = {member_path(inner.lvalue) for inner in links[k + 1 :]} - {""}
        for part in walk(link.lvalue):
            if member_path(part) in changed:
                message = f"C leaves open whether `{member_path(part)}` has its old or its new value here"
                raise Refused("c-effect", message, part, _HELP)

"""Assignments: of scalars, elements and members, and of integers and pointers that are followed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pycparser import c_ast

from roofdsl.frontends.c.c_types import element, is_integer
from roofdsl.frontends.c.context import Again, Context, Value
from roofdsl.frontends.c.effects import no_effects
from roofdsl.frontends.c.follow import Follower
from roofdsl.frontends.c.static_types import fits, place_type
from roofdsl.frontends.c.values import Values
from roofdsl.frontends.c.variables import Pointer, State, Unknown, Variable, assigned_paths, member_path
from roofdsl.frontends.c.whole_structures import Structures
from roofdsl.frontends.poly import Poly
from roofdsl.frontends.refuse import Refused
from roofdsl.lang import tree


class Assignments:
    """Writes assignments, and first values of scalars."""

    def __init__(self, context: Context, values: Values, follower: Follower) -> None:
        self.context, self.values, self.follower = context, values, follower
        self.structures = Structures(context, values, self.put, self.bind, self.is_let)

    def integer(self, name: str, type_: str, value: Poly, node: Any) -> Poly:
        """A value that an integer of this type, called `name`, can hold. Raises Refused if it may wrap around."""
        if type_[0] == "u" and not self.context.facts.not_negative(value):
            message = f"`{name}` is unsigned and would wrap around where this is negative"
            raise Refused("c-integer", message, node, "use a signed integer, such as `int`")
        if int(type_[1:]) < 32 and value.value is None:
            raise Refused("c-integer", f"`{name}` may overflow", node, "use an `int`")
        if value.value is not None and not fits(value.value, type_):
            message = f"the value {value.value} overflows in `{name}`"
            raise Refused("c-integer", message, node, "use a wider type, such as `long`")
        return value

    def is_let(self, variable: Variable) -> bool:
        if variable.key in self.context.learnt.stored:
            return False
        return (variable.root.node, max(variable.paths, key=len)) in self.context.once or not (
            variable.paths & self.context.changing[-1]
        )

    def bind(self, variable: Variable, value: Value, node: Any) -> None:
        """Gives a new local scalar its first value: a `let` if it is the only one; a number is inserted as it is."""
        type_ = element(variable.type, node, variable.name)
        value = self.values.to(value, type_, node)
        self.context.lets.pop(variable, None)  # of a function that was inlined before
        if self.is_let(variable) and not is_integer(type_):
            if value.poly is not None or isinstance(value.expr, tree.Number):
                self.context.lets[variable] = Value(type_, None, value.written(self.context.spans(node)))
                return
            if value.own == type_:  # a `let` of plain numbers would take the type of its first use
                self.context.lets[variable] = self.context.let(variable.label, value, node)
                return
        self._store(variable, "=", value, node)

    def _store(self, variable: Variable, op: str, value: Value, node: Any) -> None:
        span = self.context.spans(node)
        target = tree.Ref(self.context.top_name(variable), span)
        self.context.emit(tree.Assign(target, op, value.written(span), span), node)

    # ---- assignments ----

    def assign(self, node: Any) -> None:
        """`target op value`, `x++` and the like as statements."""
        is_update = isinstance(node, c_ast.UnaryOp)
        target = node.expr if is_update else node.lvalue
        type_ = place_type(target, self.context)
        if type_ is not None and type_.is_structure and not is_update and node.op == "=":
            self.structures.copy(self.values.pointers.structure(target), type_, node.rvalue, node)
            return
        found: Variable | Pointer | None
        if isinstance(target, c_ast.ID):
            found = self.context.scopes.find(target.name)
            if found is None:
                raise Refused("c-name", f"`{target.name}` is not declared", target)
        elif isinstance(target, c_ast.StructRef):
            found = self.values.pointers.member(target)
        elif isinstance(target, c_ast.ArrayRef) or (isinstance(target, c_ast.UnaryOp) and target.op == "*"):
            found = self.values.pointers.place(target)
        else:
            raise Refused("c-pointer", "this cannot be assigned", target, "assign variables and elements of arrays")
        if isinstance(found, Variable) and self._follows(found, node):
            self._assign_integer(found, node)
            return
        if isinstance(found, Variable) and found is self.begins(node):
            self.bind(found, self.values.value(node.rvalue), node)
            return
        place = self._target(found, target, node)
        if isinstance(found, Variable) and not is_update and node.op == "=":
            self.context.env.pop(found, None)
        elif isinstance(found, Variable) and isinstance(self.context.env.get(found), Unknown):
            raise Refused("c-integer", f"the value of `{found.name}` is not known here", node, "assign it first")
        self._assign_value(node, place, is_update)

    def begins(self, node: Any) -> Variable | None:
        """The member of a structure whose only value an assignment gives it."""
        if not isinstance(node, c_ast.Assignment) or not isinstance(node.lvalue, c_ast.StructRef) or node.op != "=":
            return None
        path = member_path(node.lvalue)
        root = self.context.scopes.find(path.split(".")[0])
        if root is None or (root.node, path) not in self.context.once:
            return None
        found = self.values.pointers.member(node.lvalue)
        if not isinstance(found, Variable) or found.root is not root or found.type.is_integer or not self.is_let(found):
            return None
        return found

    def _follows(self, variable: Variable, node: Any) -> bool:
        """Whether the value of an assigned variable is known from its place in the program. Raises Again for a member
        of a structure outside the function, which is data if it is assigned anywhere.
        """
        if not self.follower.is_followed(variable):
            return False
        if variable.place != "member":
            return True
        if not variable.type.is_plain:
            message = f"the member `{variable.field}` is made to point elsewhere"
            raise Refused("c-pointer", message, node, "use a local pointer")
        self.context.learnt.data.add(variable.key)
        raise Again

    def _target(self, found: Variable | Pointer, target: Any, node: Any) -> Value:
        """A scalar or element that is assigned."""
        if isinstance(found, Pointer):
            of_value = found.array.owner is not None and found.array.place == "parameter"
            if of_value and not found.array.type.pointers:
                message = f"the argument `{found.array.root.name}` is changed inside the function"
                raise Refused("c-name", message, node, "pass a pointer to the structure")
            return self.values.pointers.access(found, target)[1]
        if not found.type.is_plain:
            raise Refused("c-pointer", f"`{found.name}` is an array and cannot be assigned", target)
        if found.place == "parameter":
            message = f"the argument `{found.root.name}` is changed inside the function"
            raise Refused("c-name", message, node, "copy it to a local variable first")
        return self.context.scalar(found, target)

    def put(self, found: Variable | Pointer, value: Value, node: Any) -> None:
        """`found = value` for a member of a structure."""
        if isinstance(found, Variable) and self._follows(found, node):
            self.context.env[found] = value.poly if value.poly is not None else Unknown("it depends on data")
            return
        place = self._target(found, node, node)
        if isinstance(found, Variable):
            self.context.env.pop(found, None)
            self.context.lets.pop(found, None)
        value = self.values.to(value, place.type, node)
        span = self.context.spans(node)
        assert isinstance(place.expr, tree.Ref | tree.Index)
        self.context.emit(tree.Assign(place.expr, "=", value.written(span), span), node)

    def _assign_value(self, node: Any, place: Value, is_update: bool) -> None:
        op = "=" if not is_update and node.op == "=" else node.op[-2 if is_update else 0]
        if not is_update and node.op not in ("=", "+=", "-=", "*=", "/="):
            raise Refused(
                "c-integer", f"`{node.op}` is not supported", node, "write it with `=`, `+`, `-`, `*` and `/`"
            )
        one = Value("i32", None, None, Poly.number(1))
        value = one if is_update else self.values.value(node.rvalue)
        if op != "=":
            result = self.values.operate(op, place, value, node)
            self.values.to(result, place.type, node)
            op += "="
        else:
            value = self.values.to(value, place.type, node)
        span = self.context.spans(node)
        assert isinstance(place.expr, tree.Ref | tree.Index)
        self.context.emit(tree.Assign(place.expr, op, value.written(span), span), node)

    def _assign_integer(self, variable: Variable, node: Any) -> None:
        if variable.place == "global" and variable.type.is_plain:
            message = f"`{variable.name}` is a variable of the file, whose new value may be used elsewhere"
            raise Refused("c-name", message, node, "count with a local variable")

        def read() -> State:
            found = self.follower.assigned(variable, node)
            return self.integer(variable.name, variable.type.base, found, node) if isinstance(found, Poly) else found

        found = self.follower.each_way(read)
        if isinstance(found, Unknown):
            no_effects(node, node)
        self.context.env[variable] = found


def assigned_once(items: Sequence[Any]) -> set[tuple[Any, str]]:
    """The members of structures that a block declares without a value, and that only one of its own statements sets:
    `vec r; r.x = 1;` gives (the declaration, `r.x`).
    """
    declared = {item.name: item for item in items if isinstance(item, c_ast.Decl) and item.init is None}
    own = [member_path(i.lvalue) for i in items if isinstance(i, c_ast.Assignment) and i.op == "="]
    whole = Counter(path for item in items for path in assigned_paths(item))
    found = {path for path in own if "." in path and path.split(".")[0] in declared and whole[path] == 1}
    return {(declared[path.split(".")[0]], path) for path in found if not whole[path.split(".")[0]]}

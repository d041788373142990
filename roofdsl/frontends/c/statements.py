"""Statements: declarations, assignments, branches, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pycparser import c_ast

from roofdsl.frontends.c.assertions import Assertions, leaves
from roofdsl.frontends.c.assignments import Assignments, assigned_once
from roofdsl.frontends.c.c_types import element, steady
from roofdsl.frontends.c.chained import Chains
from roofdsl.frontends.c.choices import Choices
from roofdsl.frontends.c.conditions import turned
from roofdsl.frontends.c.context import Again, Context, Known, Split
from roofdsl.frontends.c.effects import no_effects
from roofdsl.frontends.c.follow import Follower, is_allocation, merged
from roofdsl.frontends.c.given_values import arguments_in, help_for
from roofdsl.frontends.c.loops import Loops
from roofdsl.frontends.c.memory_calls import NAMES as MEMORY_CALLS
from roofdsl.frontends.c.memory_calls import MemoryCalls
from roofdsl.frontends.c.omp_pragmas import Directive, directive
from roofdsl.frontends.c.values import NeedsData, Values
from roofdsl.frontends.c.variables import OfData, State, Variable
from roofdsl.frontends.refuse import Refused
from roofdsl.lang import tree

_NO = {
    c_ast.While: ("a `while` loop may run any number of times", "write `for (i = lo; i < hi; i++)`"),
    c_ast.DoWhile: ("a `do` loop may run any number of times", "write `for (i = lo; i < hi; i++)`"),
    c_ast.Goto: ("`goto` is not followed", "write `if` and `else`"),
    c_ast.Label: ("a label is not followed", "write `if` and `else`"),
    c_ast.Switch: (
        "this `switch` depends on data, or a case goes on into the next one",
        "end each case with `break`, and test a variable, or write `if` and `else`",
    ),
    c_ast.Break: ("`break` ends the loop early, and how often it runs is then not known", "run the loop to its end"),
    c_ast.Continue: ("`continue` is not supported", "put the rest of the body into an `if`"),
    c_ast.Return: ("a `return` before the end of the function is not supported", "put the rest into an `if`"),
}


class Statements:
    """Reads statements one after the other, and writes those of the kernel."""

    def __init__(self, context: Context, values: Values) -> None:
        self.context, self.values = context, values
        self.follower = Follower(context, values)
        self.loops = Loops(context, values, self.follower, self)
        self.choices = Choices(context, values.conditions, self.scoped)
        self.follower.loops = self.loops.followed
        self.assertions = Assertions(context, values)
        self.assignments = Assignments(context, values, self.follower)
        self.chains = Chains(context, values, self.assignments)
        self.structures = self.assignments.structures
        self.memory_calls = MemoryCalls(context, values)

    def block(self, items: Sequence[Any]) -> None:
        """Consecutive statements; a pragma applies to the loop after it."""
        self.context.once |= assigned_once(items)
        pending: Directive | None = None
        for item in items:
            if isinstance(item, c_ast.Pragma):
                found = directive(item)
                pending = found if pending is None or found.parallel else pending
                continue
            if pending is not None and not pending.fits(item):
                message = f"`#pragma {pending.text}` stands before something other than a loop"
                raise Refused("c-pragma", message, pending.node, "put it before a `for` loop")
            self.statement(item, pending.loops if pending is not None else 0)
            pending = None

    def statement(self, node: Any, parallel: int = 0) -> None:
        """One statement; it is written once for each outcome of the known conditions inside its expressions.

        parallel: the number of loops, starting with this one, that a pragma declares parallel.
        """
        context = self.context
        env, out, accesses, active = dict(context.env), len(context.out), len(context.accesses), set(context.active[-1])
        try:
            self._statement(node, parallel)
        except NeedsData as need:
            raise self.values.learn_data(need) from None
        except Split as split:
            if context.choosing:
                raise  # the `if` on data around it is written once for each answer
            del context.out[out:], context.accesses[accesses:]
            context.env, context.active[-1] = env, active
            if isinstance(node, c_ast.Decl):
                context.learnt.stored.add(node)
                if self.assignments.is_let(context.variable(node.name, context.type_of(node.type), node, "local")):
                    raise Again from None
            elif (member := self.assignments.begins(node)) is not None:
                context.learnt.stored.add(member.key)
                raise Again from None
            self._each_way(split, node, parallel)

    def _each_way(self, split: Split, node: Any, parallel: int) -> None:
        def way(answer: bool) -> None:
            with self.context.answering(split.place, answer):
                self.statement(node, parallel)

        self.branches(split, node, lambda: way(True), lambda: way(False))

    def _statement(self, node: Any, parallel: int) -> None:
        match node:
            case None | c_ast.EmptyStatement():
                return
            case c_ast.Compound():
                with self.context.scopes.block():
                    self.block(node.block_items or ())
            case c_ast.Decl():
                self.declare(node)
            case c_ast.DeclList():
                for decl in node.decls:
                    self.declare(decl)
            case c_ast.Assignment(rvalue=c_ast.Assignment()):
                self.chains.read(node)
            case c_ast.Assignment():
                self.assignments.assign(node)
            case c_ast.UnaryOp(op="++" | "--" | "p++" | "p--"):
                self.assignments.assign(node)
            case c_ast.For():
                self.loops.loop(node, parallel)
            case c_ast.If():
                self._if(node)
            case c_ast.FuncCall():
                self._call(node)
            case c_ast.Cast() if isinstance(node.expr, c_ast.ID | c_ast.Constant):
                return  # `(void) x;`
            case c_ast.ExprList():
                for part in node.exprs:
                    self.statement(part)
            case c_ast.Pragma():
                raise Refused("c-pragma", "no statement follows this pragma", node)
            case _ if type(node) in _NO:
                message, help = _NO[type(node)]
                raise Refused("c-statement", message, node, help)
            case _:
                raise Refused("c-statement", "this statement has no effect", node, "leave it out")

    # ---- declarations ----

    def declare(self, node: Any) -> None:
        """A declaration inside the function."""
        context = self.context
        if "static" in (node.storage or ()):
            raise Refused("c-type", f"`{node.name}` keeps its value between calls", node, "make it an argument")
        type_ = context.type_of(node.type)
        steady(type_, node, node.name)
        if "extern" in (node.storage or ()) or type_.words == "a function":
            context.scopes.declare(context.variable(node.name, type_, node, "global"))
            return
        variable = context.variable(node.name, type_, node, "local")
        context.scopes.declare(variable)
        context.env.pop(variable, None)
        if self.follower.is_followed(variable):
            self._follow_declaration(variable, node)
        elif type_.is_structure:
            self.structures.declare(variable, node.init, node)
        elif not type_.is_plain:
            if type_.base != "struct":
                element(type_, node, node.name)
            self.shape(variable, node)
            if node.init is not None:
                message = "an array with initial values is not supported"
                raise Refused("c-type", message, node, "assign its elements, or make it an argument")
        else:
            element(type_, node, node.name)
            if node.init is not None:
                self.assignments.bind(variable, self.values.value(node.init), node)

    def shape(self, variable: Variable, node: Any) -> None:
        """Records the dimensions of an array; None if the declaration leaves one open."""
        if variable.type.pointers > 1 or variable.type.base in ("other", "void"):
            return  # refused where it is used
        dims = [None if d is None else self.values.integer(d, "a dimension") for d in variable.type.dims]
        counters = {r.var for r in self.context.facts.ranges}
        if any(d is not None and d.names & counters for d in dims):
            message = f"the size of `{variable.name}` changes from iteration to iteration"
            raise Refused("c-type", message, node, "declare it before the loop, with its largest size")
        self.context.dims[variable] = (*[None] * variable.type.pointers, *dims)

    def _follow_declaration(self, variable: Variable, node: Any) -> None:
        if node.init is None:
            return
        if not variable.type.is_plain:
            self.shape(variable, node)
            if is_allocation(node.init):
                return
        self.context.env[variable] = self.follower.each_way(lambda: self._first_state(variable, node))

    def _first_state(self, variable: Variable, node: Any) -> State:
        if not variable.type.is_plain:
            found = self.values.pointers.pointer(node.init)
            self.values.pointers.fits(found, variable.type, node.init)
            return found
        value = self.values.followed(variable, node.init)
        if value.poly is None:
            return OfData()
        return self.assignments.integer(variable.name, variable.type.base, value.poly, node)

    # ---- branches ----

    def _if(self, node: Any) -> None:
        if self.assertions.returns(node):
            return
        if leaves(node) and arguments_in(node.cond, self.context):
            message = "whether the function ends here depends on its arguments"
            raise Refused("c-statement", message, node.cond, help_for(node.cond, self.context, ""))
        condition = self.values.conditions.read(node.cond)
        if not isinstance(condition, Known):
            self.choices.write(condition, node)
            return
        if condition.value is not None or self.context.choosing:
            answer = self.context.chosen(node, condition) if condition.value is None else condition.value
            taken = node.iftrue if answer else node.iffalse
            if taken is not None:
                self.scoped(taken)
            return
        split = Split(self.context.choice_at(node, condition), condition)
        self.branches(split, node, lambda: self.scoped(node.iftrue), lambda: self.scoped(node.iffalse))

    def scoped(self, node: Any) -> None:
        """A statement, or those of a block, in a scope of its own."""
        with self.context.scopes.block():
            self.block(_items(node))

    def branches(self, split: Split, node: Any, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
        """An `if` on loop variables and sizes, with what writes its branches."""
        context, condition = self.context, split.condition
        before = dict(context.env)
        context.guarded += 1
        with context.block() as first, context.within(context.facts.given_all(condition.holds)):
            then()
        after, context.env = context.env, before
        with context.block() as second, context.within(context.facts.given_all(condition.fails)):
            otherwise()
        context.guarded -= 1
        context.env = merged(after, context.env, split)
        span = context.spans(node)
        if first:
            branches = [tree.Branch(condition.written, tuple(first), span)]
            orelse = tuple(second)
            if len(second) == 1 and isinstance(second[0], tree.If):
                branches += second[0].branches
                orelse = second[0].orelse
            context.emit(tree.If(tuple(branches), orelse, span if orelse else None, span), node)
        elif second:
            branch = tree.Branch(turned(condition.written, span), tuple(second), span)
            context.emit(tree.If((branch,), (), None, span), node)

    # ---- calls ----

    def _call(self, node: Any) -> None:
        name = node.name.name if isinstance(node.name, c_ast.ID) else ""
        if name in self.context.program.functions:
            assert self.values.caller is not None
            self.values.caller.statement(node)  # type: ignore[attr-defined]
            return
        if name == "assert" and node.args is not None and len(node.args.exprs) == 1:
            self.assertions.read(node.args.exprs[0])
            return
        if name in MEMORY_CALLS:
            self.memory_calls.write(name, node)
            return
        if name in ("free", "__builtin_unreachable", "__builtin_assume"):
            for argument in node.args.exprs if node.args is not None else ():
                no_effects(argument)
            return
        shown = f"`{name}`" if name else "a function"
        message = f"what {shown} does is not known"
        raise Refused("c-call", message, node, "move the call out of the loops that are to be analyzed")


def _items(node: Any) -> Sequence[Any]:
    if isinstance(node, c_ast.Compound):
        return list(node.block_items or ())
    return [node]

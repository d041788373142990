"""Follows statements: assignments, branches, calls and what is refused."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from roofdsl.frontends.python.bindings import Bindings
from roofdsl.frontends.python.choices import Choices, merged
from roofdsl.frontends.python.conditions import decided
from roofdsl.frontends.python.context import Again, Context, Frame, assigned_names
from roofdsl.frontends.python.expressions import Expressions
from roofdsl.frontends.python.loops import Loops
from roofdsl.frontends.python.types import kind
from roofdsl.frontends.python.values import Constant, Items, Known, Value, View
from roofdsl.frontends.whole_steps import reduced
from roofdsl.lang import tree

_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**"}
_FOR = "write `for i in range(n):`, and take the number of iterations `n` as an argument"
_NO: dict[type[ast.AST], tuple[str, str, str]] = {
    ast.While: ("py-statement", "a `while` loop may run any number of times", _FOR),
    ast.Break: (
        "py-statement",
        "`break` ends the loop early: how often it runs is not in the text",
        "take the number of iterations as an argument, and leave `break` out",
    ),
    ast.Continue: ("py-statement", "`continue` is not supported", "put the rest of the body into an `if`"),
    ast.Return: ("py-statement", "a `return` before the end of the function is not supported", "use `if` and `else`"),
    ast.Try: ("py-statement", "`try` is not supported", "leave it out"),
    ast.With: ("py-statement", "`with` is not supported", "leave it out"),
    ast.Raise: ("py-statement", "`raise` is not supported", "leave it out, or write `assert n >= 2` for sizes"),
    ast.Delete: ("py-statement", "`del` is not supported", "leave it out"),
    ast.Global: ("py-effect", "`global` changes names outside the function", "use arguments and `return`"),
    ast.Nonlocal: ("py-effect", "`nonlocal` changes names outside the function", "use arguments and `return`"),
    ast.Import: ("py-statement", "an import inside a function is not supported", "import at the top of the file"),
    ast.ImportFrom: ("py-statement", "an import inside a function is not supported", "import at the top of the file"),
    ast.FunctionDef: ("py-call", "a function inside a function is not supported", "define it at the top of the file"),
    ast.AsyncFunctionDef: ("py-call", "`async` functions are not supported", "write a plain function"),
    ast.ClassDef: ("py-statement", "a class inside a function is not supported", "use arrays"),
    ast.Match: ("py-statement", "`match` is not supported", "write `if` and `elif`"),
}
_AUGMENTED = "write it as an assignment with `=`"


class Statements:
    """Follows the statements of functions, and writes those of the kernel."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.expressions = Expressions(context)
        self.expressions.follow = self.called
        self.bindings = Bindings(context, self.expressions)
        self.loops = Loops(context, self.expressions, self.bindings, self.block)
        self.choices = Choices(context, self.expressions, self.block)

    def block(self, items: Sequence[ast.stmt]) -> None:
        """Consecutive statements."""
        for item in items:
            before, self.context.top = self.context.top, None
            self.statement(item)
            self.context.top = before

    def statement(self, node: ast.stmt) -> None:
        """One statement. Raises Refused."""
        context = self.context
        match node:
            case ast.Pass():
                return
            case ast.Expr(value):
                self._expression(value)
            case ast.Assign(targets, value):
                self._assign(targets, value, node)
            case ast.AnnAssign(target, _, value):
                if value is not None:
                    self._assign([target], value, node)
            case ast.AugAssign(target, op, value):
                self._augmented(target, op, value, node)
            case ast.If():
                self._if(node)
            case ast.For():
                self.loops.loop(node)
            case ast.Assert(test):
                self._assert(test, node)
            case _:
                default = ("py-statement", "this statement is not supported", "")
                code, message, help = _NO.get(type(node), default)
                context.refuse(code, message, node, help)

    def _expression(self, value: ast.expr) -> None:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return  # a comment
        before = len(self.context.written)
        self.context.top = value
        found = self.expressions.read(value)
        if len(self.context.written) == before and not isinstance(found, Constant):
            message = "this has no effect that is read"
            self.context.refuse("py-statement", message, value, "assign its value, or leave it out")

    def _assert(self, test: ast.expr, node: ast.AST) -> None:
        if self.context.guarded or self.context.choosing:
            message = "an assertion inside an `if` does not hold for every call"
            self.context.refuse("py-statement", message, node, "leave it out")
        match test:
            case ast.Compare(ast.BinOp(length, ast.Mod(), step), [ast.Eq()], [ast.Constant(0)]):
                self._assert_multiple(length, step, node)
                return
        found = self.expressions.read(test)
        if decided(found) is True:
            return
        sizes = isinstance(found, Known) and found.holds and all(map(self.context.is_size, found.holds))
        if not isinstance(found, Known) or not sizes or found.value is False:
            message = "only an assertion that compares sizes is read"
            self.context.refuse("py-statement", message, node, "leave it out")
        for difference in found.holds:
            self.context.assumed.setdefault(difference, node)

    def _assert_multiple(self, length: ast.expr, step: ast.expr, node: ast.AST) -> None:
        """`assert n % b == 0`."""
        whole, each = (self.expressions.integer(part, "a size of an assertion") for part in (length, step))
        if not self.context.is_size(whole) or not self.context.is_size(each):
            message = "only an assertion that compares sizes is read"
            self.context.refuse("py-statement", message, node, "leave it out")
        steps = reduced(whole, each)
        if steps not in self.context.learnt.whole_steps:
            self.context.learnt.whole_steps[steps] = node
            raise Again

    # ---- assignments ----

    def _assign(self, targets: Sequence[ast.expr], value: ast.expr, node: ast.AST) -> None:
        first = targets[0]
        wish = first.id if isinstance(first, ast.Name) else "t"
        self.context.top = value
        if isinstance(first, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
            found: Any = Items(tuple(map(self.expressions.read, value.elts)))
        else:
            found = self.expressions.named(value, wish)
        if isinstance(found, Items) and len(found.values) > 1 and isinstance(first, ast.Tuple | ast.List):
            found = Items(tuple(self._kept(v, value, k) for k, v in enumerate(found.values)))
        if len(targets) > 1 and isinstance(found, Value) and not found.simple:
            name = next((t.id for t in targets if isinstance(t, ast.Name)), "t")
            found = self.expressions.nests.materialized(found, value, name, ("several",))
        for target in targets:
            self._to(target, found, node, value)

    def _kept(self, found: Any, node: ast.AST, k: int) -> Any:
        """A scalar as it is before any of the targets is assigned."""
        if not isinstance(found, Value) or not found.is_scalar or found.number is not None:
            return found
        if found.own and found.type != "bool":
            return self.expressions.nests.let(found, node, "old")
        return self.expressions.nests.materialized(found, node, "old", ("old", k))

    def _to(self, target: ast.expr, found: Any, node: ast.AST, source: ast.expr) -> None:
        match target:
            case ast.Name(name):
                self.bindings.bind(name, found, node)
            case ast.Subscript():
                view = self._element(target)
                value = self.expressions.arithmetic.value(found, source)
                arithmetic = self.expressions.arithmetic
                if arithmetic.broadcast([view.shape, value.shape], node) != view.shape:
                    self.context.refuse("py-shape", "the value does not have the shape of its target", node)
                if not value.simple and value.shape != view.shape:
                    value = self.expressions.nests.materialized(value, node, "t", ("once", id(target)))
                self.expressions.library.store(view, "=", self._narrowed(value, view, node), node)
            case ast.Tuple(elts) | ast.List(elts):
                if not isinstance(found, Items) or len(found.values) != len(elts):
                    self.context.refuse("py-shape", "there are not as many values as names", node)
                for part, value in zip(elts, found.values, strict=True):
                    self._to(part, value, node, source)
            case ast.Attribute():
                message = "an attribute cannot be assigned"
                self.context.refuse("py-effect", message, target, "use arrays and `reshape`")
            case _:
                self.context.refuse("py-statement", "this cannot be assigned", target, "assign names and elements")

    def _narrowed(self, value: Value, view: View, node: ast.AST) -> Value:
        """The value, in the type of the array if it is a Python float that is stored in an array of floats."""
        if value.own and value.weak and kind(value.type) == kind(view.buffer.type) == "float":
            (value,) = self.expressions.arithmetic.fitted([value], view.buffer.type, node)
        return value

    def _element(self, target: ast.Subscript) -> View:
        found = self.expressions.element(target)
        if not isinstance(found, Value) or found.view is None:
            help = "write to an array itself" if isinstance(found, Value) else "use numpy's arrays"
            self.context.refuse("py-effect", "this is not a part of an array that can be written", target, help)
        return found.view

    def _augmented(self, target: ast.expr, op: ast.operator, value: ast.expr, node: ast.AST) -> None:
        context, arithmetic = self.context, self.expressions.arithmetic
        word = _OPERATORS.get(type(op))
        context.top = value
        if word is None and not isinstance(op, ast.MatMult):
            context.refuse("py-type", "bit operations are not part of the language", node, "compute with numbers")
        if not isinstance(target, ast.Name | ast.Subscript):
            context.refuse("py-effect", "this cannot be changed", target, "change names and elements")
        old = self.expressions.element(target) if isinstance(target, ast.Subscript) else self.expressions.read(target)
        new = self.expressions.read(value)
        if word is None:
            context.refuse("py-statement", "`@=` is not supported", node, _AUGMENTED)
        if isinstance(target, ast.Name) and (not isinstance(old, Value) or old.is_scalar):
            self._augmented_name(target, word, old, new, node)
            return
        if not isinstance(old, Value) or old.view is None:
            message = "this is not a part of an array that can be written"
            context.refuse("py-effect", message, target, _AUGMENTED)
        change = arithmetic.value(new, value)
        if word not in ("+", "-", "*", "/"):
            change, word = arithmetic.operate(word, old, change, node), ""
        else:
            type_, _ = arithmetic.common([old, change])
            if word == "/" and kind(type_) == "int":
                context.refuse("py-type", "numpy does not divide an array of integers in place", node)
            if kind(type_) != kind(old.type):
                context.refuse("py-type", f"numpy does not store {type_} in {old.type}", node, "use one type")
            change = arithmetic.fitted([old, change], type_, node)[1]
            context.exact &= kind(type_) != "complex" and type_ != "f16"
        if arithmetic.broadcast([old.shape, change.shape], node) != old.shape:
            context.refuse("py-shape", "the value does not have the shape of its target", node)
        if not change.simple and change.shape != old.shape:
            change = self.expressions.nests.materialized(change, node, "c" if change.is_scalar else "t", ("once",))
        self.expressions.library.store(old.view, f"{word}=", change, node)

    def _augmented_name(self, target: ast.Name, word: str, old: Any, new: Any, node: ast.AST) -> None:
        context, frame = self.context, self.context.frame
        found = self.expressions.arithmetic.operate(word, old, new, node)
        cell = context.buffers.get(frame.key(target.id))
        is_own = isinstance(old, Value) and old.view is not None and old.view.buffer is cell
        if cell is None or not is_own or not isinstance(found, Value) or not found.is_scalar or word not in "+-*/":
            self.bindings.bind(target.id, found, node)
            return
        if (found.type, found.weak) != (cell.type, cell.weak):
            self.bindings.bind(target.id, found, node)
            return
        change = self.expressions.arithmetic.value(new, node)
        context.assign(cell, (), f"{word}=", self.expressions.nests.written(change, change.at(()), node), node)

    # ---- branches ----

    def _if(self, node: ast.If) -> None:
        context = self.context
        condition = self.expressions.read(node.test)
        known = decided(condition)
        if known is not None:
            self.block(node.body if known else node.orelse)
            return
        self.bindings.settle(assigned_names([*node.body, *node.orelse]), node)
        if not isinstance(condition, Known):
            self.choices.write(self.expressions.arithmetic.truth(condition, node.test), node)
            return
        before = dict(context.frame.env)
        first = self._way(node.body, condition.holds)
        after, context.frame.env = context.frame.env, before
        second = self._way(node.orelse, condition.fails)
        context.frame.env = merged(context.frame, after, context.frame.env)
        span = context.span(node)
        if not first and not second:
            return
        written = condition.written
        if not first:
            negated = self.expressions._not(condition, node.test)
            first, second, written = second, first, negated.written
        branches = [tree.Branch(written, tuple(first), span)]
        if len(second) == 1 and isinstance(second[0], tree.If):
            branches += second[0].branches
            second = list(second[0].orelse)
        context.emit(tree.If(tuple(branches), tuple(second), span if second else None, span))

    def _way(self, items: Sequence[ast.stmt], holds: Sequence[Any]) -> list[tree.Item]:
        context = self.context
        facts = context.facts.given_all(holds)
        context.guarded += 1
        known, context.known = context.known, (*context.known, *filter(context.is_size, holds))
        with context.visible(), context.collected() as found, context.within(facts):
            self.block(items)
        context.guarded -= 1
        context.known = known
        return found

    # ---- functions ----

    def called(self, function: ast.FunctionDef, args: Sequence[Any], named: dict[str, Any], node: ast.Call) -> Any:
        """The value of a call of a function of the file, which is inlined."""
        context = self.context
        if any(frame.node is function for frame in context.frames):
            context.refuse("py-call", f"`{function.name}` calls itself", node, "write a loop")
        self.plain(function)
        given = self._arguments(function, args, named, node)
        existing = set(context.buffers.values())
        written, context.written = context.written, []
        is_statement = context.top is node
        path, top = context.path, context.top
        context.path = (*path, id(node))
        frame = Frame(function, context.path)
        context.frames.append(frame)
        try:
            for name, value in given.items():
                self.bindings.bind(name, value, node)
            found = self.body(function)
        finally:
            context.frames.pop()
            context.path, context.top = path, top
            own, context.written = context.written, [*written, *context.written]
        if not is_statement and any(b in existing for b in own):
            changed = next(b.name for b in own if b in existing)
            message = f"this call changes `{changed}` inside an expression"
            context.refuse("py-effect", message, node, "call the function in a statement of its own")
        return found

    def body(self, function: ast.FunctionDef) -> Any:
        """Follows a function; returns its value."""
        return self._ending(function.body)

    def plain(self, function: ast.FunctionDef) -> None:
        """Raises Refused for a decorator that may change what a function does."""
        for decorator in function.decorator_list:
            name = decorator.func if isinstance(decorator, ast.Call) else decorator
            last = name.attr if isinstance(name, ast.Attribute) else name.id if isinstance(name, ast.Name) else ""
            if last not in ("kernel", "njit", "jit"):
                message = f"the decorator `{last}` may change what the function does"
                self.context.refuse("py-call", message, decorator, "leave it out")

    def _ending(self, body: Sequence[ast.stmt]) -> Any:
        """Follows the last statements of a function; returns the function's value."""
        items = list(body)
        last = items.pop() if items and isinstance(items[-1], ast.Return) else None
        if last is None and items and isinstance(items[-1], ast.If) and _returns(items[-1]):
            self.block(items[:-1])
            return self._either(items[-1])
        self.block(items)
        if not isinstance(last, ast.Return) or last.value is None:
            return Constant(None)
        self.context.top = last.value
        if isinstance(last.value, ast.Tuple):
            return Items(tuple(self.expressions.named(e, "result") for e in last.value.elts))
        return self.expressions.named(last.value, "result")

    def _either(self, node: ast.If) -> Any:
        """The value of `if c: return a` and `else: return b`: one of two numbers, if `c` depends on data."""
        context, arithmetic = self.context, self.expressions.arithmetic
        condition = self.expressions.read(node.test)
        known = decided(condition)
        if known is not None:
            return self._ending(node.body if known else node.orelse)
        if isinstance(condition, Known):
            message = "what is returned depends on sizes or loop variables"
            context.refuse("py-condition", message, node.test, "assign the result in both branches, and return it")
        before = len(context.out)
        ways = [self._ending(way) for way in (node.body, node.orelse)]
        if len(context.out) > before:
            message = "whether these statements run depends on data"
            context.refuse("py-condition", message, node.test, "assign the result in both branches, and return it")
        a, b = (arithmetic.value(way, node) for way in ways)
        found = arithmetic.truth(condition, node.test)
        if not (a.is_scalar and b.is_scalar and found.is_scalar):
            context.refuse("py-condition", "a choice between arrays is not supported", node.test, "write `np.where`")
        return arithmetic.select(found, a, b, node)

    def _arguments(
        self, function: ast.FunctionDef, args: Sequence[Any], named: dict[str, Any], node: ast.Call
    ) -> dict[str, Any]:
        spec = function.args
        if spec.vararg or spec.kwarg or spec.kwonlyargs or spec.posonlyargs:
            self.context.refuse(
                "py-call", f"`{function.name}` has `*` or keyword-only arguments, which are not supported", node
            )
        names = [a.arg for a in spec.args]
        given = dict(zip(names, args, strict=False))
        wrong = len(args) > len(names) or any(n not in names or n in given for n in named)
        given |= named
        defaults = dict(zip(names[len(names) - len(spec.defaults) :], spec.defaults, strict=True))
        for name in names:
            if name not in given and name in defaults:
                default = defaults[name]
                if not isinstance(default, ast.Constant | ast.UnaryOp):
                    self.context.refuse("py-call", "a default that is not a number is not supported", default)
                given[name] = self.expressions.read(default)
        if wrong or set(given) != set(names):
            message = f"these are not the arguments of `{function.name}`"
            self.context.refuse("py-call", message, node, f"it takes {', '.join(names)}" if names else "it takes none")
        return {n: given[n] for n in names}


def _returns(node: ast.If) -> bool:
    """Whether both branches of an `if` end with what the function returns."""
    return all(
        way and (isinstance(way[-1], ast.Return) or (isinstance(way[-1], ast.If) and _returns(way[-1])))
        for way in (node.body, node.orelse)
    )

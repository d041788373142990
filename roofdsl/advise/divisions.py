"""Divisions turned into multiplications by a reciprocal, which is computed once while the divisor stays the same.

There are three cases, each exact up to rounding. (1) The divisor contains no data: `x / 9` becomes `x * (1 / 9)`, whose
reciprocal costs nothing (docs/rules.md, rule 2). (2) The divisor does not change in the surrounding loops: its
reciprocal gets a name before them. (3) Something is complex, as in version 7 of the GPP deck: with a complex divisor w
that is a name, `x / w` becomes `x * conj(w) * (1 / |w|^2)`; with a complex dividend and a real divisor, it becomes `x *
(1 / w)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roofdsl.advise.edits import HERE, binary, grouped, is_statement, mapped, name, number, parts, ref, uses
from roofdsl.advise.register_blocks import free_name, names_of
from roofdsl.lang import tree
from roofdsl.lang.record import replace
from roofdsl.loops import model

Kinds = Mapping[str, str]
"""Name of an array, scalar or `let` -> "float", "int" or "complex"."""


def kinds_of(kernel: model.Kernel) -> Kinds:
    """The kinds of the names in the kernel that hold data."""
    found = {a.name: a.type.kind for a in kernel.arrays}

    def walk(body: Sequence[model.Node]) -> None:
        for node in body:
            if isinstance(node, model.For):
                walk(node.body)
            elif isinstance(node, model.If):
                walk(node.then)
                walk(node.orelse)
            elif isinstance(node, model.Let):
                found[node.name] = node.type.kind

    walk(kernel.body)
    return found


def with_reciprocals(kernel: tree.Kernel, kinds: Kinds) -> tree.Kernel | None:
    """The kernel with its divisions replaced; None if none can be, or if any of its data are integers."""
    if "int" in kinds.values():
        return None
    rewriting = _Rewriting(kernel, kinds)
    body = rewriting.block(kernel.body)
    return replace(kernel, body=body) if rewriting.changed else None


class _Rewriting:
    def __init__(self, kernel: tree.Kernel, kinds: Kinds) -> None:
        self.kinds = kinds
        self.taken = names_of(kernel)
        self.changed = False
        self.known: dict[tree.Expr, str] = {}  # divisors whose reciprocal has a name at this point

    def block(self, items: Sequence[tree.Item]) -> tuple[tree.Item, ...]:
        before = dict(self.known)
        found: list[tree.Item] = []
        for item in items:
            found += self._item(item)
        self.known = before
        return tuple(found)

    def _item(self, item: tree.Item) -> list[tree.Item]:
        match item:
            case tree.For():
                return self._for(item)
            case tree.If(branches, orelse):
                new = tuple(replace(b, body=self.block(b.body)) for b in branches)
                return [replace(item, branches=new, orelse=self.block(orelse))]
            case tree.Assign(value=value) | tree.Let(value=value):
                return [replace(item, value=mapped(value, self._part))]
            case _:
                return [item]

    def _for(self, loop: tree.For) -> list[tree.Item]:
        """The loop, with its clauses split where reciprocals are named between them."""
        outer: list[tree.Clause] = []
        for k, clause in enumerate(loop.clauses):
            inner = replace(loop, clauses=loop.clauses[k:])
            named = self._steady(inner)
            if named:
                before = dict(self.known)
                lets: list[tree.Item] = []
                for divisor in named:
                    own = free_name("r", self.taken)
                    one = binary("/", number(1), grouped(divisor))
                    lets.append(tree.Let(name(own), one, HERE))
                    self.known[divisor] = own
                self.changed = True
                rest = [*lets, *self._for(inner)]
                self.known = before
                return [replace(loop, clauses=tuple(outer), body=tuple(rest))] if outer else rest
            outer.append(clause)
        return [replace(loop, body=self.block(loop.body))]

    def _steady(self, loop: tree.For) -> list[tree.Expr]:
        """Real divisors that contain data and are invariant in the loop, each once."""
        changing = {c.var.text for c in loop.clauses} | _assigned(loop.body)
        found: dict[tree.Expr, None] = {}
        for value in _values(loop.body):
            for part in parts(value):
                if isinstance(part, tree.Binary) and part.op == "/":
                    divisor = _bare(part.right)
                    is_new = divisor not in self.known and not uses(divisor) & changing and self._has_data(part.left)
                    if is_new and self._has_data(divisor) and self._kind(divisor) == "float":
                        found[divisor] = None
        return list(found)

    def _part(self, part: tree.Expr) -> tree.Expr:
        if not (isinstance(part, tree.Binary) and part.op == "/") or not self._has_data(part.left):
            return part
        divisor = _bare(part.right)
        reciprocal: tree.Expr
        if divisor in self.known:
            reciprocal = ref(self.known[divisor])
        elif not self._has_data(divisor):
            reciprocal = tree.Group(binary("/", number(1), grouped(divisor)), HERE)
        elif self._kind(divisor) == "complex" and isinstance(divisor, tree.Ref):
            real, imag = (tree.Call(name(f), (divisor,), HERE) for f in ("real", "imag"))
            square = binary("+", binary("*", real, real), binary("*", imag, imag))
            self.changed = True
            turned = binary("*", part.left, tree.Call(name("conj"), (divisor,), HERE))
            return binary("*", turned, tree.Group(binary("/", number(1), tree.Group(square, HERE)), HERE))
        elif self._kind(part.left) == "complex" and self._kind(divisor) == "float":
            reciprocal = tree.Group(binary("/", number(1), grouped(divisor)), HERE)
        else:
            return part
        self.changed = True
        return binary("*", part.left, reciprocal)

    def _has_data(self, e: tree.Expr) -> bool:
        return any(n in self.kinds for n in uses(e))

    def _kind(self, e: tree.Expr) -> str:
        """Complex if a complex name occurs outside `real`, `imag` and `abs`."""
        match e:
            case tree.Ref(text):
                return self.kinds.get(text, "float")
            case tree.Index(own):
                return self.kinds.get(own.text, "float")
            case tree.Call(own) if own.text in ("real", "imag", "abs"):
                return "float"
            case tree.Call(args=args):
                return self._widest(args)
            case tree.Group(inner):
                return self._kind(inner)
            case tree.Unary(operand=operand):
                return self._kind(operand)
            case tree.Binary(_, left, right):
                return self._widest((left, right))
            case _:
                return "float"

    def _widest(self, of: Sequence[tree.Expr]) -> str:
        return "complex" if "complex" in map(self._kind, of) else "float"


def _bare(e: tree.Expr) -> tree.Expr:
    return _bare(e.inner) if isinstance(e, tree.Group) else e


def _values(items: Sequence[tree.Item]) -> list[tree.Expr]:
    """The right-hand sides of all statements."""
    found: list[tree.Expr] = []
    for item in items:
        match item:
            case tree.For(body=body):
                found += _values(body)
            case tree.If(branches, orelse):
                found += [v for b in branches for v in _values(b.body)] + _values(orelse)
            case tree.Assign(value=value) | tree.Let(value=value):
                found.append(value)
    return found


def _assigned(items: Sequence[tree.Item]) -> set[str]:
    """The names whose values a block changes: its loop variables, its `let` names, the arrays and scalars it writes."""
    found: set[str] = set()
    for item in filter(is_statement, items):
        match item:
            case tree.For(clauses, _, body):
                found |= {c.var.text for c in clauses} | _assigned(body)
            case tree.If(branches, orelse):
                found |= set().union(*(_assigned(b.body) for b in branches)) | _assigned(orelse)
            case tree.Assign(target):
                found.add(target.name.text if isinstance(target, tree.Index) else target.name)
            case tree.Let(own):
                found.add(own.text)
    return found

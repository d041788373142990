"""C executed statement by statement on pycparser's tree, to check the kernels that it is read as.

Each load and store of an array is recorded, with its place in bytes, and each operation on floating-point data is
counted. Nothing here uses the front end.
"""

from __future__ import annotations

import math
import struct
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pycparser import c_ast, c_parser

from tests.frontends.c_memory import Array, Memory, Pointer, Scalar, Structure, Value

_SCALARS = {
    "double": ("d", 8), "float": ("f", 4), "int": ("i", 4), "long": ("q", 8), "short": ("h", 2), "char": ("b", 1),
    "unsigned": ("I", 4), "unsigned int": ("I", 4), "unsigned long": ("Q", 8), "size_t": ("Q", 8),
    "unsigned char": ("B", 1), "signed char": ("b", 1), "void": ("b", 1), "int64_t": ("q", 8), "int32_t": ("i", 4),
    "uint32_t": ("I", 4),
}  # fmt: skip
_MATH = {"sqrt": math.sqrt, "exp": math.exp, "sin": math.sin, "cos": math.cos, "log": math.log, "tanh": math.tanh}
_TYPEDEFS = "typedef unsigned long size_t; typedef long int64_t; typedef int int32_t; typedef unsigned int uint32_t;\n"
_CLASSES = {"+": "add", "-": "add", "*": "mul", "/": "div"}


@dataclass
class _Jump(Exception):
    kind: str
    value: Value | None = None


class Machine(Memory):
    """A program in memory. `operations`: of floating-point data, by class."""

    def __init__(self, path: Path, defines: Sequence[str] = ()) -> None:
        super().__init__()
        command = ["cc", "-E", "-P", "-nostdinc", "-x", "c", "-DNULL=((void*)0)", *(f"-D{d}" for d in defines), "-"]
        kept = [line for line in path.read_text().splitlines() if not line.startswith("#include")]
        text = subprocess.run(command, input="\n".join(kept), capture_output=True, text=True, check=True).stdout
        self.typedefs: dict[str, Any] = {}
        self.tags: dict[str, Structure] = {}
        self.functions: dict[str, Any] = {}
        self.scopes: list[dict[str, tuple[int, Any]]] = [{}]
        self.constants: dict[str, int] = {}
        self.operations: Counter[str] = Counter()
        self.initialized: set[int] = set()  # addresses of variables that were declared with a value
        for node in c_parser.CParser().parse(_TYPEDEFS + text).ext:
            if isinstance(node, c_ast.FuncDef):
                self.functions[node.decl.name] = node
            elif isinstance(node, c_ast.Typedef):
                self.typedefs[node.name] = self.type(node.type)
            elif isinstance(node, c_ast.Decl) and node.name is None:
                self.type(node.type)
            elif isinstance(node, c_ast.Decl) and not isinstance(node.type, c_ast.FuncDecl):
                self.declare(node)

    # ---- types ----

    def type(self, node: Any) -> Any:
        """The type of a type node."""
        match node:
            case c_ast.TypeDecl() | c_ast.Typename():
                return self.type(node.type)
            case c_ast.PtrDecl():
                return Pointer(None if isinstance(node.type, c_ast.FuncDecl) else self.type(node.type))
            case c_ast.ArrayDecl():
                return Array(self.type(node.type), self.rvalue(node.dim).number if node.dim is not None else 1)
            case c_ast.IdentifierType():
                name = " ".join(node.names)
                return self.typedefs[name] if name in self.typedefs else Scalar(*_SCALARS[name])
            case c_ast.Struct():
                return self._structure(node)
            case c_ast.Enum():
                for k, one in enumerate(node.values.enumerators if node.values else ()):
                    self.constants[one.name] = self.rvalue(one.value).number if one.value else k
                return Scalar("i", 4)
        raise NotImplementedError(type(node))

    def _structure(self, node: Any) -> Structure:
        found = self.tags.setdefault(node.name, Structure()) if node.name else Structure()
        if node.decls is None or found.fields:
            return found
        for decl in node.decls:
            type_ = self.type(decl.type)
            found.size += -found.size % type_.align
            found.fields[decl.name] = (found.size, type_)
            found.size += type_.size
            found.align = max(found.align, type_.align)
        found.size += -found.size % found.align
        return found

    # ---- variables ----

    def find(self, name: str) -> tuple[int, Any]:
        """The address and the type of a variable."""
        return next(scope[name] for scope in reversed(self.scopes) if name in scope)

    def declare(self, node: Any) -> None:
        """A declaration; arrays are memory, everything else is in registers."""
        type_ = self.type(node.type)
        if isinstance(node.init, c_ast.InitList) and isinstance(node.type, c_ast.ArrayDecl) and node.type.dim is None:
            type_ = Array(type_.of, len(node.init.exprs))
        address = self.allocate(type_.size, node.name if isinstance(type_, Array) else "")
        if node.init is not None:
            self._initialize(address, type_, node.init)
            self.initialized.add(address)
        self.scopes[-1][node.name] = address, type_

    def _initialize(self, address: int, type_: Any, init: Any) -> None:
        if not isinstance(init, c_ast.InitList):
            self.store(address, type_, self.rvalue(init))
        elif isinstance(type_, Structure):
            names = list(type_.fields)
            for k, one in enumerate(init.exprs):
                named = isinstance(one, c_ast.NamedInitializer)
                offset, own = type_.fields[one.name[0].name if named else names[k]]
                self._initialize(address + offset, own, one.expr if named else one)
        else:
            for k, one in enumerate(init.exprs):
                self._initialize(address + k * type_.of.size, type_.of, one)

    # ---- calls and statements ----

    def call(self, name: str, given: Sequence[Value]) -> Value | None:
        """Calls a function."""
        function = self.functions[name]
        before = self.scopes
        self.scopes = [self.scopes[0], {}]
        try:
            for node, value in zip(function.decl.type.args.params if given else (), given, strict=True):
                declared = node.type
                type_ = (
                    Pointer(self.type(declared.type)) if isinstance(declared, c_ast.ArrayDecl) else self.type(declared)
                )
                address = self.allocate(type_.size)
                self.store(address, type_, value)
                self.scopes[-1][node.name] = address, type_
            self.statement(function.body)
        except _Jump as jump:
            if jump.kind == "return":
                return jump.value
            raise
        finally:
            self.scopes = before
        return None

    def statement(self, node: Any) -> None:
        """Executes a statement."""
        match node:
            case None | c_ast.EmptyStatement() | c_ast.Pragma():
                return
            case c_ast.Compound():
                self.scopes.append({})
                for item in node.block_items or ():
                    self.statement(item)
                self.scopes.pop()
            case c_ast.Decl():
                self.declare(node)
            case c_ast.DeclList():
                for decl in node.decls:
                    self.declare(decl)
            case c_ast.If():
                self.statement(node.iftrue if self.truth(node.cond) else node.iffalse)
            case c_ast.For():
                self.scopes.append({})
                self.statement(node.init)
                self._loop(lambda: node.cond is None or self.truth(node.cond), node.stmt, node.next)
                self.scopes.pop()
            case c_ast.While():
                self._loop(lambda: self.truth(node.cond), node.stmt, None)
            case c_ast.DoWhile():
                first = [True]
                self._loop(lambda: bool(first and first.pop()) or self.truth(node.cond), node.stmt, None)
            case c_ast.Switch():
                self._switch(node)
            case c_ast.Break():
                raise _Jump("break")
            case c_ast.Continue():
                raise _Jump("continue")
            case c_ast.Return():
                raise _Jump("return", None if node.expr is None else self.rvalue(node.expr))
            case c_ast.ExprList():
                for part in node.exprs:
                    self.statement(part)
            case _:
                self.rvalue(node)

    def _loop(self, goes_on: Any, body: Any, following: Any) -> None:
        depth = len(self.scopes)
        while goes_on():
            try:
                self.statement(body)
            except _Jump as jump:
                del self.scopes[depth:]
                if jump.kind == "break":
                    return
                if jump.kind == "return":
                    raise
            if following is not None:
                self.statement(following)

    def _switch(self, node: Any) -> None:
        value, entered = self.rvalue(node.cond).number, False
        cases = node.stmt.block_items
        matched = any(isinstance(c, c_ast.Case) and self.rvalue(c.expr).number == value for c in cases)
        depth = len(self.scopes)
        try:
            for case in cases:
                own = isinstance(case, c_ast.Case) and self.rvalue(case.expr).number == value
                entered = entered or own or (isinstance(case, c_ast.Default) and not matched)
                if entered:
                    for item in case.stmts or ():
                        self.statement(item)
        except _Jump as jump:
            del self.scopes[depth:]
            if jump.kind != "break":
                raise

    # ---- expressions ----

    def truth(self, node: Any) -> bool:
        """Whether a condition holds."""
        return bool(self.rvalue(node).number)

    def lvalue(self, node: Any) -> tuple[int, Any]:
        """The address and the type of what an expression denotes."""
        match node:
            case c_ast.ID():
                return self.find(node.name)
            case c_ast.ArrayRef():
                base, index = self.rvalue(node.name), self.rvalue(node.subscript)
                return base.number + index.number * base.type.to.size, base.type.to
            case c_ast.UnaryOp(op="*"):
                base = self.rvalue(node.expr)
                return base.number, base.type.to
            case c_ast.StructRef():
                if node.type == "->":
                    base = self.rvalue(node.name)
                    address, type_ = base.number, base.type.to
                elif isinstance(node.name, c_ast.FuncCall | c_ast.CompoundLiteral):
                    value = self.rvalue(node.name)
                    address, type_ = self.allocate(value.type.size, "", value.number), value.type
                else:
                    address, type_ = self.lvalue(node.name)
                offset, own = type_.fields[node.field.name]
                return address + offset, own
        raise NotImplementedError(type(node))

    def rvalue(self, node: Any) -> Value:
        """The value of an expression."""
        match node:
            case c_ast.Constant():
                return _constant(node)
            case c_ast.ID() if node.name in self.constants:
                return Value(self.constants[node.name], Scalar("i", 4))
            case c_ast.ID() | c_ast.ArrayRef() | c_ast.StructRef() | c_ast.UnaryOp(op="*"):
                return self.load(*self.lvalue(node))
            case c_ast.UnaryOp():
                return self._unary(node)
            case c_ast.BinaryOp(op="&&"):
                return Value(int(self.truth(node.left) and self.truth(node.right)), Scalar("i", 4))
            case c_ast.BinaryOp(op="||"):
                return Value(int(self.truth(node.left) or self.truth(node.right)), Scalar("i", 4))
            case c_ast.BinaryOp():
                return self.operate(node.op, self.rvalue(node.left), self.rvalue(node.right))
            case c_ast.TernaryOp():
                return self.rvalue(node.iftrue if self.truth(node.cond) else node.iffalse)
            case c_ast.Cast():
                value, to = self.rvalue(node.expr), self.type(node.to_type)
                if isinstance(to, Scalar) and not to.is_float:
                    return Value(int(value.number), to)
                return Value(value.number, to, value.data)
            case c_ast.Assignment():
                return self._assign(node)
            case c_ast.CompoundLiteral():
                type_ = self.type(node.type)
                address = self.allocate(type_.size)
                self._initialize(address, type_, node.init)
                return self.load(address, type_)
            case c_ast.FuncCall():
                return self._call(node)
            case c_ast.ExprList():
                return [self.rvalue(part) for part in node.exprs][-1]
        raise NotImplementedError(type(node))

    def _assign(self, node: Any) -> Value:
        """The value is read before the old one of an update is, as in the language. Gives what is stored, in the type
        of the target.
        """
        value = self.rvalue(node.rvalue)
        address, type_ = self.lvalue(node.lvalue)
        if node.op != "=":
            value = self.operate(node.op[:-1], self.load(address, type_), value)
        self.store(address, type_, value)
        if not isinstance(type_, Scalar):
            return value
        number = float(value.number) if type_.is_float else int(value.number)
        if type_.code in "BIQ":
            number %= 1 << 8 * type_.size
        return Value(struct.unpack(f"<{type_.code}", struct.pack(f"<{type_.code}", number))[0], type_, value.data)

    def _unary(self, node: Any) -> Value:
        if node.op == "&":
            address, type_ = self.lvalue(node.expr)
            return Value(address, Pointer(type_))
        if node.op == "sizeof":
            named = isinstance(node.expr, c_ast.Typename)
            return Value((self.type(node.expr) if named else self.lvalue(node.expr)[1]).size, Scalar("Q", 8))
        if node.op in ("++", "--", "p++", "p--"):
            address, type_ = self.lvalue(node.expr)
            old = self.load(address, type_)
            new = self.operate(node.op[-1], old, Value(1, Scalar("i", 4)))
            self.store(address, type_, new)
            return old if node.op[0] == "p" else new
        value = self.rvalue(node.expr)
        if node.op == "!":
            return Value(int(not value.number), Scalar("i", 4))
        return value if node.op == "+" else Value(-value.number, value.type, value.data)

    def operate(self, op: str, a: Value, b: Value) -> Value:
        """`a op b`."""
        if isinstance(a.type, Pointer) and op in "+-":
            return Value(a.number + (1 if op == "+" else -1) * b.number * a.type.to.size, a.type)
        kinds = [v.type for v in (a, b) if isinstance(v.type, Scalar) and v.type.is_float]
        data = a.data or b.data
        if op in ("<", ">", "<=", ">=", "==", "!="):
            self.operations["cmp"] += bool(kinds) and data
            x, y = a.number, b.number
            holds = {"<": x < y, ">": x > y, "<=": x <= y, ">=": x >= y, "==": x == y, "!=": x != y}[op]
            return Value(int(holds), Scalar("i", 4))
        if kinds:
            self.operations[_CLASSES[op]] += data
            type_ = max(kinds, key=lambda t: t.size)
            x, y = float(a.number), float(b.number)
            number = x + y if op == "+" else x - y if op == "-" else x * y if op == "*" else x / y if y else math.inf
            if type_.code == "f" and abs(number) < 3e38:
                number = struct.unpack("<f", struct.pack("<f", number))[0]
            return Value(number, type_, data)
        wide = max((v.type for v in (a, b) if isinstance(v.type, Scalar)), key=lambda t: t.size, default=Scalar("i", 4))
        type_ = wide if wide.size >= 4 else Scalar("i", 4)
        x, y = int(a.number), int(b.number)
        if op in "/%":
            whole = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
            return Value(whole if op == "/" else x - whole * y, type_)
        return Value({"+": x + y, "-": x - y, "*": x * y, "<<": x << max(0, min(y, 63))}[op], type_)

    def _call(self, node: Any) -> Value:
        name = node.name.name
        given = [self.rvalue(a) for a in (node.args.exprs if node.args is not None else ())]
        if name in self.functions:
            found = self.call(name, given)
            return found if found is not None else Value(0, Scalar("i", 4))
        if name == "assert":
            return given[0]
        if name in ("memset", "memcpy"):
            return self._move(name, *given)
        if name in ("malloc", "free"):
            return Value(self.allocate(given[0].number, "heap") if name == "malloc" else 0, Pointer(Scalar("b", 1)))
        stem = name.removesuffix("f") if name not in ("fabsf",) else "fabs"
        type_, data = Scalar("d" if stem == name else "f", 8 if stem == name else 4), any(g.data for g in given)
        numbers = [g.number for g in given]
        if stem == "fabs":
            return Value(abs(numbers[0]), type_, data)
        if stem in ("fmin", "fmax"):
            self.operations["min"] += data
            return Value((min if stem == "fmin" else max)(numbers), type_, data)
        self.operations["special"] += data
        try:
            return Value(_MATH[stem](numbers[0]), type_, data)
        except ValueError:
            return Value(0.0, type_, data)

    def _move(self, name: str, to: Value, second: Value, count: Value) -> Value:
        """`memset` and `memcpy`, number by number."""
        type_ = to.type.to
        while isinstance(type_, Array):
            type_ = type_.of
        for at in range(0, count.number, type_.size):
            one = second if name == "memset" else self.load(second.number + at, type_)
            self.store(to.number + at, type_, one)
        return to


def _constant(node: Any) -> Value:
    text = node.value.rstrip("uUlL") if node.type.endswith("int") else node.value
    if node.type.endswith("int"):
        return Value(int(text, 0), Scalar("q", 8) if "l" in node.value.lower() else Scalar("i", 4))
    if node.type == "char":
        return Value(ord(text[1]), Scalar("i", 4))
    return Value(float(text.rstrip("fF")), Scalar("f", 4) if text[-1] in "fF" else Scalar("d", 8))

"""The user's own function as a library of C that takes its data from an array of addresses: what `--verify` runs.

The text is the user's, as the parser has understood it, with what it needs of the file around it; nothing of it has
passed through the reading of kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Any

from pycparser import c_ast, c_generator

from roofdsl.frontends.c.harness_structures import PROTOTYPES, Filled
from roofdsl.frontends.c.kernel import Reading
from roofdsl.frontends.c.static_types import FUNCTIONS
from roofdsl.frontends.c.variables import base_name, parameters, walk
from roofdsl.lang.record import Record

ENTRY, DATA = "roofdsl_users", "roofdsl_data"
_KNOWN = {"pow": 2, "fma": 3, "fmax": 2, "fmin": 2}
_COMPLEX = ("conj", "creal", "cimag", "cabs")
_MEMORY = {
    "malloc": "void *malloc(unsigned long);", "calloc": "void *calloc(unsigned long, unsigned long);",
    "aligned_alloc": "void *aligned_alloc(unsigned long, unsigned long);", "free": "void free(void *);",
    "abs": "int abs(int);", "labs": "long labs(long);", "assert": "#define assert(x)",
    "memmove": "void *memmove(void *, const void *, unsigned long);", "alloca": "#define alloca __builtin_alloca",
}  # fmt: skip
_BUILT_IN = ("_Float16", "__bf16", "__fp16", "_Float32", "_Float64", "FILE")


class Harness(Record):
    """`text` defines `void roofdsl_users(void **)`, whose k-th address is that of the k-th of `names`.

    Parameters follow the arrays and scalars, as 64-bit integers. `given`: names whose values the user's file gives, so
    that the library writes them. `fused`: the text calls `fma`, which rounds once.
    """

    text: str
    names: tuple[str, ...]
    given: tuple[str, ...]
    fused: bool


def harness(reading: Reading) -> Harness:
    """The library of a function or region."""
    return _Writer(reading).harness()


class _Writer:
    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.print = c_generator.CGenerator()
        names = [*(name for name, _ in reading.names), *(name for name, _ in reading.parameters)]
        self.slots = {name: f"{DATA}[{k}]" for k, name in enumerate(names)}
        everything = (*reading.names, *reading.parameters)
        self.by_node: Mapping[Any, str] = {v.node: n for n, v in everything if v.owner is None}
        self.sizes = {v.node for _, v in reading.parameters if v.owner is None}
        members = {v: self.slots[n] for n, v in everything if v.owner is not None}
        types = {v.root: self._type(v.root.node.type) for v in members}
        self.structures = Filled(members, (v for _, v in reading.parameters), types)
        self.roots = {v.node: v for v in self.structures.roots}
        self.given: list[str] = []
        self.numbers = dict(reading.given)
        self.wanted = {name for item in reading.region.items for name in _used(item)}

    def harness(self) -> Harness:
        reading = self.reading
        local = self._locals()
        body = self._region() if reading.region.marked else self._call()
        before, after = self._globals()
        roots = reading.region.items if reading.region.marked else (reading.region.function,)
        needed, library = self._called(roots)
        lines = [*self._prototypes(library), *self._declared((*roots, *local)), *needed, ""]
        lines += [PROTOTYPES, f"void {ENTRY}(void **{DATA})", "{"]
        lines += [*before, *body, *after, "}", ""]
        return Harness("\n".join(lines), tuple(self.slots), tuple(self.given), bool({"fma", "fmaf"} & library))

    # ---- what stands around the function ----

    def _declared(self, roots: Sequence[Any]) -> list[str]:
        """The types and variables of the file that are needed, in order, without functions."""
        nodes = [n for n in self.reading.program.nodes if isinstance(n, c_ast.Typedef | c_ast.Decl)]
        nodes = [n for n in nodes if not isinstance(n.type, c_ast.FuncDecl) and n.name not in _BUILT_IN]
        names = {name for root in roots for name in _used(root)} | {
            v.root.name for _, v in (*self.reading.names, *self.reading.parameters)
        }
        kept: set[int] = set()
        while True:
            more = [n for n in nodes if id(n) not in kept and _defined(n) & names]
            if not more:
                break
            kept |= {id(n) for n in more}
            names = names.union(*(_used(n) for n in more))
        return [f"{self.print.visit(_exported(n))};" for n in nodes if id(n) in kept]

    def _prototypes(self, library: Iterable[str]) -> list[str]:
        return [text for name in sorted(library) for text in [_prototype(name)] if text]

    def _called(self, roots: Sequence[Any]) -> tuple[list[str], set[str]]:
        """The texts of the needed functions, with declarations before; and the names of other functions."""
        functions = self.reading.program.functions
        found: dict[str, None] = {}
        library: set[str] = set()
        pending = list(roots)
        while pending:
            for part in walk(pending.pop()):
                if isinstance(part, c_ast.FuncDef) and part.decl.name not in found:
                    found[part.decl.name] = None
                if not isinstance(part, c_ast.FuncCall) or not isinstance(part.name, c_ast.ID):
                    continue
                name = part.name.name
                if name not in functions:
                    library.add(name)
                elif name not in found:
                    found[name] = None
                    pending.append(functions[name])
        texts = [f"{self.print.visit(_bare(functions[n].decl))};" for n in functions if n in found]
        for name in functions:
            if name in found:
                whole = copy(self.reading.program.originals.get(name, functions[name]))
                whole.decl = _bare(whole.decl)
                texts.append(self.print.visit(whole))
        return texts, library

    def _globals(self) -> tuple[list[str], list[str]]:
        """Code that passes variables of the file in before the call, and copies them back after it."""
        before: list[str] = []
        after: list[str] = []
        everything = (*self.reading.names, *self.reading.parameters)
        used = {v.node: v for _, v in everything if v.place == "global" and v.owner is None}
        for root in (r for r in self.structures.roots if r.place == "global"):
            filled, back = self.structures.lines(root)
            before, after = [*before, *filled], [*after, *back]
            self.given += [n for n, v in everything if v.root is root and self.structures.is_constant(root)]
        for node, variable in used.items():
            name, slot = node.name, self.slots[self.by_node[node]]
            if variable.type.pointers:
                before.append(f"    {name} = {slot};")
            elif variable.type.const:
                before.append(f"    memcpy({slot}, (const void *) &{name}, sizeof {name});")
                self.given.append(self.by_node[node])
            elif node in self.sizes:
                before.append(f"    {name} = *(long long *) {slot};")
            else:
                before.append(f"    memcpy(&{name}, {slot}, sizeof {name});")
                after.append(f"    memcpy({slot}, &{name}, sizeof {name});")
        return before, after

    # ---- a whole function ----

    def _call(self) -> list[str]:
        function = self.reading.region.function
        given: list[str] = []
        before: list[str] = []
        after: list[str] = []
        for node in parameters(function):
            if node in self.roots:
                root = self.roots[node]
                filled, back = self.structures.lines(root)
                before, after = [*before, *filled], [*after, *back]
                name = self.structures.name(root)
                given.append(name if root.type.pointers else f"*{name}")
                continue
            slot = self.slots.get(self.by_node.get(node, ""))
            pointer = isinstance(node.type, c_ast.PtrDecl | c_ast.ArrayDecl)
            if slot is None and isinstance(getattr(node.type, "type", None), c_ast.Struct):
                given.append(f"({self._type(node.type)}) {{0}}")
            elif slot is None:
                given.append(self.numbers.get(node.name, "0") if not pointer else "(void *) 0")
            else:
                given.append(slot if pointer else f"*({self._scalar(node)} *) {slot}")
        call = f"{function.decl.name}({', '.join(given)});"
        if self.reading.result:
            returned = self.print.visit(c_ast.Typename(None, [], None, function.decl.type.type))
            name = function.decl.name
            returned = f"__typeof__({name}({', '.join(given)}))" if "(" in returned or name in returned else returned
            call = f"*({returned} *) {self.slots[self.reading.result]} = {call}"
        return [*before, f"    {call}", *after]

    def _type(self, node: Any) -> str:
        return str(self.print.visit(c_ast.Typename(None, [], None, _unnamed(node))))

    def _scalar(self, node: Any) -> str:
        """The type in which a scalar argument is passed: 64-bit integers for parameters."""
        if node in self.sizes:
            return "long long"
        return self._type(node.type)

    # ---- a region of a function ----

    def _region(self) -> list[str]:
        region = self.reading.region
        lines: list[str] = []
        back: list[str] = []
        for node in (p for p in parameters(region.function) if p.name in self.wanted):
            self._local(node, lines, back, argument=True)
        for k, node in enumerate(region.path):
            following = region.path[k + 1] if k + 1 < len(region.path) else None
            self._before(node, following, lines, back)
        for item in region.items:
            text = self.print.visit(item)
            lines.append(text if text.endswith(("}", "\n")) or isinstance(item, c_ast.Pragma) else f"{text};")
        return [*lines, *back]

    def _before(self, node: Any, following: Any, lines: list[str], back: list[str]) -> None:
        """Declarations, and assignments of integers and pointers, on the way to the region."""
        if isinstance(node, c_ast.For) and isinstance(node.init, c_ast.DeclList):
            for decl in (d for d in node.init.decls if d.name in self.wanted):
                self._local(decl, lines, back, argument=False, keep=False)
        if not isinstance(node, c_ast.Compound):
            return
        for item in node.block_items:
            if item is following or (isinstance(item, c_ast.Pragma) and (item.string or "").startswith("scop")):
                return
            if isinstance(item, c_ast.Decl) and item.name in self.wanted:
                self._local(item, lines, back, argument=False)
            elif self._is_kept(item):
                lines.append(f"{self.print.visit(item)};")

    def _is_kept(self, item: Any) -> bool:
        """Whether a statement before the region sets a variable that the region needs and that is no argument of the
        library, to the value of a simple expression.
        """
        if not isinstance(item, c_ast.Assignment) or not isinstance(item.lvalue, c_ast.ID) or not _is_simple(item):
            return False
        own = {v.name for _, v in (*self.reading.names, *self.reading.parameters)}
        return item.lvalue.name in self.wanted and item.lvalue.name not in own

    def _locals(self) -> list[Any]:
        """The declarations and assignments around the region that it needs; the names that they use are added to
        `wanted`.
        """
        region = self.reading.region
        if not region.marked:
            return []
        around = [p for node in region.path for _, p in node.children() if isinstance(p, c_ast.Decl | c_ast.Assignment)]
        around += list(parameters(region.function))
        around += [d for n in region.path if isinstance(n, c_ast.For) for d in getattr(n.init, "decls", ())]
        found: dict[int, Any] = {}
        while True:
            targets = ((getattr(p, "name", None) or base_name(getattr(p, "lvalue", None)), p) for p in around)
            more = [p for name, p in targets if id(p) not in found and name in self.wanted]
            if not more:
                return list(found.values())
            found |= {id(p): p for p in more}
            self.wanted = self.wanted.union(*(_used(p) for p in more if _is_simple(p)))

    def _local(self, node: Any, lines: list[str], back: list[str], *, argument: bool, keep: bool = True) -> None:
        if node in self.roots:
            filled, restored = self.structures.lines(self.roots[node])
            name = self.structures.name(self.roots[node])
            value = name if self.roots[node].type.pointers else f"*{name}"
            lines += [*filled, f"    {self.print.visit(_without_value(node))} = {value};"]
            address = node.name if self.roots[node].type.pointers else f"&{node.name}"
            back += [f"    {name} = (void *) {address};", *restored]
            return
        slot = self.slots.get(self.by_node.get(node, ""))
        plain = _without_value(node)
        pointer = isinstance(node.type, c_ast.PtrDecl) or (argument and isinstance(node.type, c_ast.ArrayDecl))
        if pointer and isinstance(node.type, c_ast.ArrayDecl):
            plain.type = c_ast.PtrDecl([], node.type.type)
        text = self.print.visit(plain)
        if slot is None:
            simple = node.init is not None and keep and _is_simple(node.init)
            number = f" = {self.numbers[node.name]}" if argument and node.name in self.numbers else ""
            lines.append(f"{self.print.visit(node)};" if simple else f"{text}{number};")
        elif pointer:
            lines.append(f"{text} = {slot};")
        elif isinstance(node.type, c_ast.ArrayDecl):
            lines.append(f"{text}; memcpy({node.name}, {slot}, sizeof {node.name});")
            back.append(f"memcpy({slot}, {node.name}, sizeof {node.name});")
        else:
            type_ = self._scalar(node)
            lines.append(f"{text} = *({type_} *) {slot};")
            if node not in self.sizes:
                back.append(f"*({type_} *) {slot} = {node.name};")


def _without_value(decl: Any) -> Any:
    plain = copy(decl)
    plain.storage, plain.init = [], None
    return plain


def _bare(decl: Any) -> Any:
    """A function's declaration, `static` and without `inline`, so that every compiler keeps it in the library."""
    plain = copy(decl)
    plain.storage, plain.funcspec = ["static"], []
    return plain


def _exported(node: Any) -> Any:
    """A declaration of the file for which the library itself provides the storage."""
    plain = copy(node)
    if isinstance(plain, c_ast.Decl):
        plain.storage = [s for s in node.storage or () if s != "extern"]
        plain.funcspec = []
    return plain


def _used(node: Any) -> set[str]:
    """Names of variables, types and tags in a piece of the program."""
    found: set[str] = set()
    for part in walk(node):
        if isinstance(part, c_ast.ID):
            found.add(part.name)
        elif isinstance(part, c_ast.IdentifierType):
            found |= set(part.names)
        elif isinstance(part, c_ast.Struct | c_ast.Union | c_ast.Enum) and part.name:
            found.add(f"tag {part.name}")
    return found


def _defined(node: Any) -> set[str]:
    """The names that a declaration of the file defines."""
    tags = (p for p in walk(node) if isinstance(p, c_ast.Struct | c_ast.Union | c_ast.Enum))
    found = {node.name} if node.name else set()
    for part in tags:
        inside = part.values.enumerators if isinstance(part, c_ast.Enum) and part.values is not None else ()
        found |= {f"tag {part.name}"} if inside or getattr(part, "decls", None) else set()
        found |= {one.name for one in inside}
    return found


def _is_simple(node: Any) -> bool:
    """Whether an expression calls no function, reads no structure and is no list of initial values."""
    return not any(isinstance(p, c_ast.FuncCall | c_ast.StructRef | c_ast.InitList) for p in walk(node))


def _unnamed(type_: Any) -> Any:
    """A type without the declared name, and without qualifiers."""
    plain = copy(type_)
    if isinstance(plain, c_ast.TypeDecl):
        plain.declname, plain.quals = None, []
    elif isinstance(plain, c_ast.PtrDecl | c_ast.ArrayDecl):
        plain.type = _unnamed(plain.type)
    return plain


def _prototype(name: str) -> str:
    """The declaration of a function of C's library; empty for a function that is not known here."""
    if name in _MEMORY:
        return _MEMORY[name]
    single = name.endswith("f") and (name[:-1] in FUNCTIONS or name[:-1] in _KNOWN)
    stem = name[:-1] if single else name
    if stem not in FUNCTIONS and stem not in _KNOWN:
        return ""
    type_ = "float" if single else "double"
    if stem in _COMPLEX:
        return f"{f'{type_} _Complex' if stem == 'conj' else type_} {name}({type_} _Complex);"
    return f"{type_} {name}({', '.join([type_] * _KNOWN.get(stem, 1))});"

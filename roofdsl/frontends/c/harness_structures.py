"""Structures in the library of a user's function: their members are taken from an array of addresses, and put back.

A structure that the function gets by its address lives in memory of the library. Its members are copied as bytes, since
they may be constant in the user's own type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from roofdsl.frontends.c.variables import Variable

PROTOTYPES = "void *memcpy(void *, const void *, unsigned long);\nvoid *memset(void *, int, unsigned long);"


class Filled:
    """The structures that variables of the kernel are members of. slots: the addresses of members, as C; sizes: members
    that are parameters of the kernel. types: C's type of each structure, or of the pointer to it, by its variable.
    """

    def __init__(self, slots: Mapping[Variable, str], sizes: Iterable[Variable], types: Mapping[Variable, str]) -> None:
        self.slots, self.sizes, self.types = dict(slots), set(sizes), types
        self._owners: dict[Variable, None] = {}
        for variable in slots:
            self._add(variable.owner)

    def _add(self, owner: Variable | None) -> None:
        if owner is not None:
            self._add(owner.owner)
            self._owners[owner] = None

    @property
    def roots(self) -> list[Variable]:
        """The variables of the program that are such structures, or point at one."""
        return [v for v in self._owners if v.owner is None]

    def is_constant(self, root: Variable) -> bool:
        """Whether the user's file gives the members their values."""
        return root.place == "global" and root.type.const and not root.type.pointers

    def name(self, root: Variable) -> str:
        """The name of a pointer to the structure."""
        return root.name if root.place == "global" else f"roofdsl_{root.name}"

    def lines(self, root: Variable) -> tuple[list[str], list[str]]:
        """Code that fills a structure before the call, and code that puts its members back."""
        before: list[str] = []
        if root.place != "global":
            type_ = self.types[root]
            pointed = f"__typeof__(*({type_}) 0)" if root.type.pointers else type_
            before.append(f"    __typeof__({pointed}) *{self.name(root)} = __builtin_alloca(sizeof({pointed}));")
            before.append(f"    memset((void *) {self.name(root)}, 0, sizeof *{self.name(root)});")
        elif root.type.pointers:
            before.append(f"    {root.name} = __builtin_alloca(sizeof *{root.name});")
            before.append(f"    memset((void *) {root.name}, 0, sizeof *{root.name});")
        after: list[str] = []
        for owner in (v for v in self._owners if v.root is root and v.owner is not None and v.type.pointers):
            place, k = self._place(owner), len(before)
            before.append(f"    void *roofdsl_memory{k} = __builtin_alloca(sizeof *{place});")
            before.append(f"    memset(roofdsl_memory{k}, 0, sizeof *{place});")
            before.append(f"    memcpy((void *) &{place}, &roofdsl_memory{k}, sizeof(void *));")
        for variable, slot in self.slots.items():
            if variable.root is not root:
                continue
            place = self._place(variable)
            if self.is_constant(root):
                before.append(f"    memcpy({slot}, (const void *) &{place}, sizeof {place});")
                continue
            if variable.type.pointers:
                before.append(f"    memcpy((void *) &{place}, &{slot}, sizeof(void *));")
                continue
            # Of a parameter, which is a 64-bit integer, these are the lowest bytes.
            before.append(f"    memcpy((void *) &{place}, {slot}, sizeof {place});")
            if variable not in self.sizes:
                after.append(f"    memcpy({slot}, (const void *) &{place}, sizeof {place});")
        return before, after

    def _place(self, variable: Variable) -> str:
        """A member as C writes it."""
        owner = variable.owner
        if owner is None:
            name = self.name(variable)
            return name if variable.place == "global" or variable.type.pointers else f"(*{name})"
        return f"{self._place(owner)}{'->' if owner.type.pointers else '.'}{variable.field}"

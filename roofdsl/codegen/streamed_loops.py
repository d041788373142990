"""Loops in C whose stores bypass the caches, `stream A[i] = e`.

A loop first runs to where a line of the array begins, then line by line, and then through what is left. In a line, the
values go to a small array, which compilers keep in registers, and from there to memory as a whole (`stream_line`). The
iterations keep their order; only the stores of a line wait for its last element, and nothing else in the kernel touches
their array (`roofdsl.lang.check_kernel`). Elements outside of whole lines are stored as usual.
"""

from __future__ import annotations

from collections.abc import Sequence

from roofdsl.codegen.clike import LINE_BYTES, CLike
from roofdsl.codegen.emitter import Emitter, LoopHeader
from roofdsl.codegen.syntax import SUM, Text
from roofdsl.lang.types import ElementType
from roofdsl.loops.model import Assign, Element, For


class StreamedLoops(Emitter):
    """An emitter of C that writes the loops around such stores line by line."""

    def loop(self, node: For) -> None:
        stores = [s for s in node.body if isinstance(s, Assign) and s.stream]
        if not stores:
            super().loop(node)
            return
        self.quote(node.span)
        out, var, integer = self.out, self.name(node.var), self.syntax.integer_type
        start, stop = self.integer(node.start), self.integer(node.stop)
        smallest = min(stores, key=lambda s: s.target.array.type.bytes)
        count = LINE_BYTES // smallest.target.array.type.bytes
        self.syntax.open(out, "")
        out.add(f"{integer} {var}_whole = {start.text};  // where whole lines begin")
        lead, size = self._at(smallest, node, f"{var}_whole"), f"sizeof({self._stored(smallest.target.array.type)})"
        before = f"{self.syntax.helper('before_line')}(&{lead}, {size})"
        first = self.syntax.extremum("min", [stop, Text(f"{var}_whole + {before}", SUM)])
        out.add(f"{var}_whole = {first.text};")
        rest = f"({stop.at(SUM)} - {var}_whole) / {count} * {count}"
        out.add(f"const {integer} {var}_rest = {var}_whole + {rest};  // and where they end")
        self._run(node, start, Text(f"{var}_whole"))
        header = self.headers.get(id(node)) or self.syntax.loop
        self._whole_lines(node, stores, count, header)
        self._run(node, Text(f"{var}_rest"), stop)
        self.syntax.close(out)
        self.syntax.helper("lines_stored")

    def _run(self, node: For, start: Text, stop: Text) -> None:
        """Iterations with ordinary stores."""
        self.syntax.loop(self.out, self.name(node.var), start, stop, Text("1"))
        self.block(node.body)
        self.syntax.close(self.out)

    def _whole_lines(self, node: For, stores: Sequence[Assign], count: int, header: LoopHeader) -> None:
        """The iterations whose elements fill lines, `count` of them at a time."""
        out, var = self.out, self.name(node.var)
        line = f"{var}_line"
        header(out, line, Text(f"{var}_whole"), Text(f"{var}_rest"), Text(str(count)))
        for store in stores:
            array = store.target.array
            out.add(f"{self._stored(array.type)} {self.name(array.name)}_line[{count}];")
            self.places[id(store)] = Text(f"{self.name(array.name)}_line[{var} - {line}]")
        self.syntax.loop(out, var, Text(line), Text(f"{line} + {count}", SUM), Text("1"))
        self.block(node.body)
        self.syntax.close(out)
        for k, store in enumerate(sorted(stores, key=lambda s: s.target.array.type.bytes)):
            del self.places[id(store)]
            size = store.target.array.type.bytes
            helper = self.syntax.helper("stream_part" if k else "stream_line")
            name = f"{self.name(store.target.array.name)}_line"
            for at in range(0, count, LINE_BYTES // size):
                place = self._at(store, node, line if not at else f"{line} + {at}")
                out.add(f"{helper}(&{place}, &{name}[{at}]);")
        self.syntax.close(out)

    def _at(self, store: Assign, node: For, value: str) -> str:
        """The element that a store reaches if the loop's variable has this value."""
        if not isinstance(store.target, Element):
            raise TypeError("`stream` stores an element")
        before = self.names
        self.names = {**before, node.var: value if value.isidentifier() else f"({value})"}
        try:
            return self.place(store.target).text
        finally:
            self.names = before

    def _stored(self, type_: ElementType) -> str:
        if not isinstance(self.syntax, CLike):
            raise TypeError("such loops are written in C")
        return self.syntax.storage[type_.name]

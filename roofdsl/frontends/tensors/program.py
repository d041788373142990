"""The text of a program: one kernel for each kind of operator at each size, and a launch for each operator."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence

from roofdsl.frontends.tensors.fusion import groups
from roofdsl.frontends.tensors.graph import PICKING, Graph, Node
from roofdsl.frontends.tensors.kernels import is_known, kernel_of
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.format import format_source
from roofdsl.lang.grammar import reserved
from roofdsl.lang.source import Source
from roofdsl.loops.load import load_file
from roofdsl.machine.kernel_sources import Program


class TensorProgram(Program):
    """A program of kernels, to be predicted like any other. `launches`: the kernel of each launch, in order.

    unknown: the framework's names of the unknown operators, in the order of their launches; the bytes of their
    arguments and results are counted. operators, views: their numbers in the graph; views cost nothing. first: the
    kernels of launches that read only inputs, of which no two arrays have an element in common.
    """

    launches: tuple[str, ...]
    unknown: tuple[str, ...]
    operators: int
    views: int
    first: frozenset[str]

    @property
    def text(self) -> str:
        """The `.roof` file: the kernels and the program."""
        return self.checked.source.text

    @property
    def summary(self) -> str:
        """A line that summarizes the graph."""
        counts = f"{self.operators} operators in {len(self.launches)} launches, {self.views} views, which cost nothing"
        if not self.unknown:
            return f"{self.name}: {counts}"
        missing = ", ".join(dict.fromkeys(self.unknown))
        return f"{self.name}: {counts}; NOT READ, counted as the bytes of their arguments: {missing}"


def tensor_program(graph: Graph, *, fused: bool = False, about: str = "") -> TensorProgram:
    """The program of a graph. about: the description in the file's first line.

    Raises CommandError for a graph without operators.
    """
    if not graph.nodes:
        raise CommandError(f"{graph.name} computes nothing: its graph has no operators", "return what it computes")
    chosen = groups(graph, fused)
    readers: dict[int, set[int]] = {}
    for k, nodes in enumerate(chosen):
        for tensor in (t for node in nodes for t in node.tensors):
            readers.setdefault(tensor.id, set()).add(k)
    texts: dict[tuple[str, ...], str] = {}
    blocks: list[str] = []
    launches: list[str] = []
    taken = {graph.name}
    for k, nodes in enumerate(chosen):
        own = [t.id for node in nodes for t in node.outputs]
        kept = frozenset(i for i in own if i in graph.results or readers.get(i, set()) - {k})
        written = kernel_of(nodes, kept or frozenset(own[-1:]))
        key = (written.wish, *written.lines, written.comment)
        if key not in texts:
            texts[key] = _name(written.wish, taken)
            taken.add(texts[key])
            comment = [f"# {written.comment}"] if written.comment else []
            blocks.append("\n".join([*comment, f"kernel {texts[key]}():", *written.lines]))
        launches.append(texts[key])
    unknown = tuple(n.called for nodes in chosen for n in nodes if not is_known(n))
    lines = _folded(launches)
    launched = "\n".join([f"program {graph.name}():", *lines])
    head = f"# {about}\n\n" if about else ""
    text = head + "\n\n".join([*blocks, launched]) + "\n"
    formatted = format_source(Source(f"{graph.name}.roof", text))
    checked = load_file(Source(f"{graph.name}.roof", formatted))
    made = frozenset(t.id for node in graph.nodes for t in node.outputs)
    first = frozenset(name for nodes, name in zip(chosen, launches, strict=True) if _reads_inputs(nodes, made))
    return TensorProgram(graph.name, checked, tuple(launches), unknown, len(graph.nodes), graph.views, first)


def _reads_inputs(nodes: Sequence[Node], made: Container[int]) -> bool:
    """Whether a launch reads only inputs of the graph, none of them by two views or repeatedly."""
    read = dict.fromkeys(t for node in nodes for t in node.tensors)
    ids = {t.id for t in read}
    plain = all(t.id not in made and t.stored == t.shape for t in read)
    return plain and len(ids) == len(read) and not any(node.op in PICKING for node in nodes)


def _folded(launches: list[str]) -> list[str]:
    """`run` lines; consecutive equal launches are in a `repeat`."""
    lines: list[str] = []
    k = 0
    while k < len(launches):
        count = 1
        while k + count < len(launches) and launches[k + count] == launches[k]:
            count += 1
        lines += (
            [f"    run {launches[k]}()"] if count == 1 else [f"    repeat {count}:", f"        run {launches[k]}()"]
        )
        k += count
    return lines


def _name(wish: str, taken: set[str]) -> str:
    plain = re.sub(r"\W", "_", wish)
    name, k = plain, 1
    while name in taken or name in reserved():
        k += 1
        name = f"{plain}_{k}"
    return name


def program_name(wish: str) -> str:
    """A name for the program that the language allows."""
    plain = re.sub(r"\W+", "_", wish).strip("_").lower() or "model"
    plain = plain if not plain[0].isdigit() else f"model_{plain}"
    return f"{plain}_" if plain in reserved() else plain

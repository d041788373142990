"""The text of a program: one kernel for each kind of operator at each size, and a launch for each operator."""

from __future__ import annotations

import re

from roofdsl.frontends.tensors.fusion import groups
from roofdsl.frontends.tensors.graph import Graph
from roofdsl.frontends.tensors.kernels import is_known, kernel_of
from roofdsl.lang.grammar import reserved
from roofdsl.lang.record import Record


class TensorProgram(Record):
    """`text`: a `.roof` file with kernels and the program `name`. `launches`: the kernel of each launch.

    unknown: what the framework calls the operators that are not read, in the order of their launches.
    """

    name: str
    text: str
    launches: tuple[str, ...]
    unknown: tuple[str, ...]
    operators: int
    views: int


def tensor_program(graph: Graph, *, fused: bool = False, about: str = "") -> TensorProgram:
    """The program of a graph. about: what the file's first line says of it."""
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
        made = [t.id for node in nodes for t in node.outputs]
        kept = frozenset(i for i in made if i in graph.results or readers.get(i, set()) - {k})
        text = kernel_of(nodes, kept or frozenset(made[-1:]))
        key = (text.wish, *text.lines, text.comment)
        if key not in texts:
            texts[key] = _name(text.wish, taken)
            taken.add(texts[key])
            head = [f"# {text.comment}"] if text.comment else []
            blocks.append("\n".join([*head, f"kernel {texts[key]}():", *text.lines]))
        launches.append(texts[key])
    unknown = tuple(n.called for nodes in chosen for n in nodes if not is_known(n))
    lines = _folded(launches)
    program = "\n".join([f"program {graph.name}():", *lines])
    head = f"# {about}\n\n" if about else ""
    whole = head + "\n\n".join([*blocks, program]) + "\n"
    return TensorProgram(graph.name, whole, tuple(launches), unknown, len(graph.nodes), graph.views)


def _folded(launches: list[str]) -> list[str]:
    """`run` lines; a launch that comes again at once is in a `repeat`."""
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

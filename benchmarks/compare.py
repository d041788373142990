"""Peers' answers beside ours, as Markdown."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from benchmarks.kernels import fresh, shipped
from benchmarks.measure import Timing, markdown, show_seconds, timed
from benchmarks.peers import KERNELS, Answer
from roofdsl.counts.closed_forms import ClosedForms, NoClosedForm, PlateauBytes
from roofdsl.counts.traffic_at import access_count, footprint_at, traffic_at
from roofdsl.counts.work_at import work_at
from roofdsl.loops.model import Kernel
from roofdsl.loops.sized import sized

AT = 1000
"""n at which formulas are compared."""

EXACT_AT = 64
"""n at which exact traffic stands beside layer conditions; it is found in milliseconds there."""

ELEMENT = 8
ITERATIONS: Mapping[str, Callable[[int], int]] = {
    "gemv": lambda n: n**2,
    "matmul": lambda n: n**3,
    "jacobi2d": lambda n: (n - 2) ** 2,
    "jacobi3d": lambda n: (n - 2) ** 3,
    "triad": lambda n: n,
}

OPERATORS: Mapping[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
}


def polynomial_at(text: str, n: int) -> int:
    """The value of a polynomial in n, as kerncraft prints it. Raises ValueError for anything else."""

    def value(node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int(number)):
                return number
            case ast.Name(id="n"):
                return n
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return -value(inner)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                return OPERATORS[type(op)](value(left), value(right))
        raise ValueError(f"no polynomial in n: {text}")

    return value(ast.parse(text, mode="eval").body)


def _kernels() -> dict[str, Kernel]:
    files = shipped()
    return {name: fresh(files[name], name) for name in KERNELS}


def _plateau_forms(kernel: Kernel) -> tuple[PlateauBytes, ...] | str:
    try:
        return ClosedForms(kernel, {}).plateau_forms("write_allocate")
    except NoClosedForm as error:
        return f"refused: {error}"


def layer_conditions(answer: Answer, repeats: int) -> str:
    """kerncraft's conditions and our plateaus: from which cache on an iteration moves how many elements."""
    rows: list[tuple[str, ...]] = []
    times: list[tuple[str, ...]] = []
    for name, kernel in _kernels().items():
        theirs = answer.found[name]
        ours: Timing[tuple[PlateauBytes, ...] | str] = timed(lambda k=kernel: _plateau_forms(k), repeats)  # type: ignore[misc]
        refused = theirs.get("error", "")
        times.append((name, "refused" if refused else show_seconds(theirs["seconds"]), show_seconds(ours.median)))
        if refused:
            rows.append((name, "kerncraft", "refused", "", "", ""))
        for row in sorted(theirs.get("rows", []), key=lambda r: polynomial_at(r["bytes"], AT)):
            per = row["misses"] + row["evicts"]
            asked = polynomial_at(row["bytes"], EXACT_AT)
            found = _exact(kernel, name, asked) if asked >= ELEMENT else ""
            rows.append((name, "kerncraft", row["bytes"], f"{polynomial_at(row['bytes'], AT):,}", str(per), found))
        if isinstance(ours.result, str):
            rows.append((name, "roofdsl", ours.result, "", "", ""))
            continue
        for plateau in ours.result:
            start = plateau.from_bytes.evaluate({"n": AT})
            moved = plateau.all_bytes.evaluate({"n": 10_000})
            per_iteration = Fraction(moved, ELEMENT * ITERATIONS[name](10_000))
            asked = int(plateau.from_bytes.evaluate({"n": EXACT_AT}))
            if plateau.from_bytes.names():
                asked += asked // 4  # beyond the lower orders that a leading term leaves out
            rows.append(
                (
                    name,
                    "roofdsl",
                    str(plateau.from_bytes),
                    f"{int(start):,}",
                    f"{float(per_iteration):.3g}",
                    _exact(kernel, name, asked),
                )
            )
    refusals = [f"- {n}: {answer.found[n]['error']}" for n in KERNELS if "error" in answer.found[n]]
    head = ("kernel", "tool", "from a cache of bytes", f"n = {AT}", "elements an iteration", f"exact, n = {EXACT_AT}")
    return "\n\n".join(
        [
            f"### Layer conditions ({_versions(answer)})",
            "From which cache size on an iteration moves how many elements (kerncraft: misses and evictions; roofdsl: "
            "loads and stores under write-allocate, element by element, plateau by plateau, thresholds to leading "
            "order). The last column is the exact traffic by our simulation or integer sets at "
            f"n = {EXACT_AT}, borders and cold misses included, in a cache of just the bytes kerncraft names, and for "
            "roofdsl's leading terms in one a quarter larger. kerncraft looks at a steady state, in which arrays that "
            "fit move nothing; we count their first touch and their write-back.",
            markdown(head, rows, numeric=(3, 4, 5)),
            "Seconds: kerncraft from text to conditions without its process's start, roofdsl the plateaus.",
            markdown(("kernel", "kerncraft", "roofdsl"), times, numeric=(1, 2)),
            *(["kerncraft refuses:\n\n" + "\n".join(refusals)] if refusals else []),
        ]
    )


def _exact(kernel: Kernel, name: str, cache: int) -> str:
    moved = traffic_at(kernel, {"n": EXACT_AT}, cache, None, "write_allocate").bytes
    return f"{moved / ELEMENT / ITERATIONS[name](EXACT_AT):.3g}"


def counts(loopy: Answer, dace: Answer, repeats: int) -> str:
    """Operations, accesses and footprints of all three at one size."""
    rows: list[tuple[str, ...]] = []
    refusals: list[str] = []
    dace_kernels = dace.found.get("kernels", {})
    for name, kernel in _kernels().items():
        ours = timed(lambda k=kernel: _counts(k), repeats)  # type: ignore[misc]
        work, accesses, footprint = ours.result
        rows.append((name, "roofdsl", f"{work:,}", f"{accesses:,}", f"{footprint:,}", show_seconds(ours.median)))
        for tool, found in (("loopy", loopy.found.get(name)), ("dace", dace_kernels.get(name))):
            if found is None:
                continue
            if "error" in found:
                rows.append((name, tool, "refused", "", "", ""))
                refusals.append(f"- {tool}, {name}: {found['error']}")
                continue
            cells = [_value(found, key) for key in ("operations", "accesses", "footprint_bytes")]
            rows.append((name, tool, *cells, show_seconds(found["seconds"])))
    if "error" in dace_kernels.get("gemv_for", {}):
        refusals.append(f"- dace, gemv as two `for` loops: {dace_kernels['gemv_for']['error']}")
    notes = {f["footprint_note"] for f in loopy.found.values() if f.get("footprint_note")}
    refusals += [f"- loopy, `gather_access_footprint_bytes`: {n}; taken from `gather_access_footprints`" for n in notes]
    if dace.found.get("operations"):
        refusals.append(f"- dace, operations: {dace.found['operations']}")
    head = ("kernel", "tool", "operations", "accesses", "bytes touched", "seconds")
    return "\n\n".join(
        [
            f"### Operations, accesses and footprints ({_versions(loopy)}; {_versions(dace)})",
            f"At n = {AT}; loopy and DaCe count symbolically and their formulas are taken there, roofdsl's numbers are "
            "of `work_at`, `access_count` and `footprint_at`. An update is a load and a store; DaCe counts a "
            "conflict-resolving sum as its store alone, takes the box around what is touched, and has maps instead of "
            "loops in order. Seconds are for all that a tool counts, without its process's start.",
            markdown(head, rows, numeric=(2, 3, 4, 5)),
            *(["What they refuse or cannot do:\n\n" + "\n".join(refusals)] if refusals else []),
        ]
    )


def _counts(kernel: Kernel) -> tuple[int, int, int]:
    size = {"n": AT}
    return work_at(kernel, size).total, access_count(sized(kernel, size)), footprint_at(kernel, size)


def _value(found: Mapping[str, Any], key: str) -> str:
    return f"{found[key]['value']:,}" if key in found else "none"


def _versions(answer: Answer) -> str:
    return ", ".join(f"{p} {v}" for p, v in answer.versions.items()) or answer.tool


def section(answers: list[Answer], repeats: int) -> str:
    """The part of a report."""
    kerncraft, loopy, dace = answers
    whole = ", ".join(f"{a.tool} {show_seconds(a.whole_s)} s" for a in answers if not a.failure)
    parts = ["## Peers", f"The same kernels written for other tools; all of them in one process each: {whole}."]
    parts += [f"{a.tool} ({_versions(a)}): {a.failure}" for a in answers if a.failure]
    if not kerncraft.failure:
        parts.append(layer_conditions(kerncraft, repeats))
    if not (loopy.failure and dace.failure):
        parts.append(counts(loopy, dace, repeats))
    return "\n\n".join(parts)

"""How results look in a notebook: tables with units, formulas, sources, for every record of the package."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

from roofdsl.counts.derived import Derivation
from roofdsl.lang.record import Record
from roofdsl.lang.source import Source, Span
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine, operation
from roofdsl.machine.quantities import (
    group,
    show_bandwidth,
    show_bytes,
    show_number,
    show_rate,
    show_size,
    show_time,
)
from roofdsl.predict.program import ProgramPrediction
from roofdsl.predict.time import Prediction

ROWS = 60
"""Rows of a table, at most; the others are counted."""


# ---- tables ----


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; all texts are escaped, and columns after the first stand to the right where they begin with a digit."""
    every = list(rows)
    out = ["<table>"]
    if any(head):
        out.append(f"<thead><tr>{''.join(f'<th>{html.escape(h)}</th>' for h in head)}</tr></thead>")
    for row in every[:ROWS]:
        out.append(f"<tr>{''.join(map(_cell, row))}</tr>")
    if len(every) > ROWS:
        out.append(f'<tr><td colspan="{len(head)}">and {len(every) - ROWS} more</td></tr>')
    return "".join([*out, "</table>"])


def _cell(text: str) -> str:
    side = "right" if text[:1].isdigit() else "left"
    return f'<td style="text-align: {side}">{html.escape(text)}</td>'


def _titled(title: str, *parts: str) -> str:
    return "".join(['<div class="roofdsl">', f"<h4>{html.escape(title)}</h4>", *parts, "</div>"])


def _notes(title: str, notes: Sequence[str]) -> str:
    if not notes:
        return ""
    items = "".join(f"<li>{html.escape(n)}</li>" for n in notes)
    return f"<p>{html.escape(title)}</p><ul>{items}</ul>"


# ---- predictions ----


def prediction_html(p: Prediction) -> str:
    """Counts, the terms of the time, what bounds it, and what was assumed."""
    from roofdsl.cli.predict_text import terms_rows

    at = ", ".join(f"{n} = {group(v)}" for n, v in p.parameters)
    head, *rows = terms_rows(p, p.bounds)
    rate = show_rate(p.rate_per_s, p.operation) if p.work else show_bandwidth(p.bytes_per_s)
    said = (
        f"expected {show_time(p.expected_s)}, {rate}, bound by {p.bound}; without overlap {show_time(p.no_overlap_s)}"
    )
    return _titled(
        f"{p.kernel} on {p.machine}" + (f", {at}" if at else ""),
        table(head, rows),
        f"<p>{html.escape(said)}</p>",
        _notes("assumed:", p.assumptions),
        _notes("warnings:", p.warnings),
    )


def prediction_latex(p: Prediction) -> str:
    """The terms and their maximum as aligned equations."""
    from roofdsl.tell.blocks import escape_latex

    def text(words: str) -> str:
        return f"\\text{{{escape_latex(words)}}}"

    lines = []
    if p.peak_per_s is not None:
        of = f"\\frac{{{text(f'{group(p.work)} {p.operation}')}}}{{{text(show_rate(p.peak_per_s, p.operation))}}}"
        lines.append(f"T_{{\\mathrm{{comp}}}} &= {of} = {text(show_time(p.compute_s))}")
    for level in p.levels:
        of = f"\\frac{{{text(show_bytes(level.bytes))}}}{{{text(show_bandwidth(level.rate_bytes_per_s))}}}"
        lines.append(f"T_{{{text(level.name)}}} &= {of} = {text(show_time(level.time_s))}")
    if len(p.in_turn) > 1:
        name, time = p.one_upon_another
        shares = " + ".join(text(show_time(share)) for _, share in p.in_turn)
        lines.append(f"T_{{{text(name)}}} &= {shares} = {text(show_time(time))}")
    if p.launch_s:
        lines.append(f"T_{{\\mathrm{{launch}}}} &= {text(show_time(p.launch_s))}")
    lines.append(f"T &= \\max = {text(show_time(p.expected_s))}\\quad{text(f'({p.bound})')}")
    body = " \\\\ ".join(lines)
    return f"$\\displaystyle \\begin{{aligned}} {body} \\end{{aligned}}$"


def prediction_text(p: Prediction) -> str:
    """As `prediction_html`, for a terminal."""
    from roofdsl.cli.predict_text import terms_rows
    from roofdsl.cli.text import columns

    at = ", ".join(f"{n} = {v}" for n, v in p.parameters)
    rate = show_rate(p.rate_per_s, p.operation) if p.work else show_bandwidth(p.bytes_per_s)
    lines = [f"{p.kernel} on {p.machine}" + (f", {at}" if at else "")]
    lines += [f"  {line}" for line in columns(terms_rows(p, p.bounds), right=(1, 2, 3, 4))]
    return "\n".join([*lines, f"  expected {show_time(p.expected_s)}, {rate}, bound by {p.bound}"])


def program_html(p: ProgramPrediction) -> str:
    """The whole, and its kernels by time."""
    rows = [
        (
            k.total.kernel,
            group(k.collectives or k.total.launches),
            show_time(k.total.expected_s),
            f"{show_number(100 * k.share, 3)} %",
            ", ".join(k.bounds),
        )
        for k in p.by_kernel
    ]
    return prediction_html(p.total) + table(("kernel", "launches", "time", "share", "bound"), rows)


# ---- kernels and machines ----


def kernel_html(k: Kernel) -> str:
    """The kernel's source, highlighted."""
    from roofdsl.notebook.theme import STYLE
    from roofdsl.page.article import source_html

    return f'<div class="roofdsl-source"><style>{STYLE}</style><pre>{source_html(k)}</pre></div>'


def kernel_text(k: Kernel) -> str:
    """The kernel's own lines."""
    return "\n".join(k.source.line(n) for n in range(k.span.line, k.span.end_line + 1)).rstrip()


def derivation_text(d: Derivation) -> str:
    """What `roofdsl derive` prints."""
    from roofdsl.tell.derive_text import to_text

    return to_text(d).rstrip()


def machine_text(m: Machine) -> str:
    """What `roofdsl machines show` prints."""
    from roofdsl.cli.machines import describe

    return describe(m)


def machine_html(m: Machine) -> str:
    """Peaks, levels and where they come from."""
    rows = [(f"peak {p.type} {p.cls}", show_rate(p.rate_per_s, operation(p.type)), p.source) for p in m.peaks]
    for c in m.caches:
        line = f", line {c.line_bytes} B" if c.line_bytes else ""
        what = f"{show_size(c.size_bytes)}, {show_bandwidth(c.bandwidth_bytes_per_s)}{line}"
        rows.append((f"cache {c.name}", what, c.source))
    for mem in m.memories:
        what = f"{show_size(mem.size_bytes)}, {show_bandwidth(mem.bandwidth_bytes_per_s)}"
        rows.append((f"memory {mem.name}", what, mem.source))
    if m.launch_s is not None:
        rows.append(("launch", show_time(m.launch_s), m.launch_source))
    title = f"{m.name}: {m.title}" if m.title else m.name
    source = f"<p>{html.escape(m.source)}</p>" if m.source else ""
    return _titled(title, source, table(("", "", "source"), rows))


# ---- any other result ----

_UNITS: tuple[tuple[tuple[str, ...], Callable[[Any], str]], ...] = (
    (("bytes_per_s",), show_bandwidth),
    (("per_s", "flops"), show_rate),
    (("bytes",), show_bytes),
    (("_s",), show_time),
)


def record_html(of: Any) -> str:
    """The fields of a record with their units, lists of records as tables."""
    values = _values(of)
    plain = {n: v for n, v in values.items() if not _records(v)}
    parts = [table(("", ""), [(n.replace("_", " "), shown(n, v)) for n, v in plain.items() if v not in (None, (), "")])]
    for name, value in values.items():
        found = _records(value)
        if found:
            parts += [f"<p>{html.escape(name.replace('_', ' '))}</p>", _records_table(found)]
    return _titled(type(of).__name__, *parts)


def _records_table(found: Sequence[Any]) -> str:
    heads = list(dict.fromkeys(n for each in found for n in _values(each)))
    rows = [[shown(n, _values(each).get(n)) for n in heads] for each in found]
    kept = [k for k in range(len(heads)) if any(row[k] for row in rows)]
    return table([heads[k].replace("_", " ") for k in kept], [[row[k] for k in kept] for row in rows])


def _values(of: Any) -> dict[str, Any]:
    """The fields of a record or dataclass, without what says where it stands in a file."""
    names = of.__match_args__ if isinstance(of, Record) else [f.name for f in fields(of)]
    return {n: v for n in names if not isinstance(v := getattr(of, n), (Source, Span)) and not n.startswith("_")}


def _records(value: Any) -> Sequence[Any]:
    """The records in a sequence of them; none for anything else."""
    if isinstance(value, (tuple, list)) and value and all(_is_record(v) for v in value):
        return value
    return ()


def _is_record(value: Any) -> bool:
    return isinstance(value, Record) or (is_dataclass(value) and not isinstance(value, type))


def shown(name: str, value: Any) -> str:
    """A value in words, its unit taken from the ending of its name."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int() | float() | Fraction():
            for endings, show in _UNITS:
                if name.endswith(endings):
                    return show(value)
            return group(value) if isinstance(value, int) else show_number(value)
        case str():
            return value
        case Mapping():
            return ", ".join(f"{k} = {shown(str(k), v)}" for k, v in value.items())
        case tuple() | list():
            texts = [" = ".join(map(str, v)) if isinstance(v, tuple) and len(v) == 2 else shown(name, v) for v in value]
            return ", ".join(texts[:12]) + (f", and {len(texts) - 12} more" if len(texts) > 12 else "")
    return str(getattr(value, "name", value))

"""How results look in a notebook: the output of the commands, with tables and formulas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

from roofdsl.counts.derived import Derivation
from roofdsl.lang.record import Record
from roofdsl.lang.source import Source, Span
from roofdsl.loops.model import Kernel
from roofdsl.machine.quantities import group, show_bandwidth, show_bytes, show_number, show_rate, show_time
from roofdsl.notebook.theme import STYLE
from roofdsl.tell.as_html import to_html
from roofdsl.tell.as_latex import to_latex
from roofdsl.tell.as_text import to_text
from roofdsl.tell.blocks import Block, Gap, Title, figures, items, line

# ---- what the commands print ----


def _prediction(of: Any) -> list[Block]:
    from roofdsl.tell import prediction

    return [*prediction.blocks(of), *_warnings(of.warnings)]


def _prediction_latex(of: Any) -> list[Block]:
    from roofdsl.tell.time_equations import equations

    return [*_prediction(of), equations(of)]


def _program(of: Any) -> list[Block]:
    from roofdsl.tell import program_prediction

    return [*program_prediction.blocks(of), *_warnings(of.total.warnings)]


def _machine(of: Any) -> list[Block]:
    from roofdsl.tell import machine

    return machine.blocks(of)


def _advised(of: Any) -> list[Block]:
    from roofdsl.tell import advice

    return [*advice.blocks(of), *_warnings(of.now.prediction.warnings)]


def _measurement(of: Any) -> list[Block]:
    from roofdsl.tell import measurement

    return [*measurement.blocks([of]), Gap(), *_fields(of)]


def _comparison(of: Any) -> list[Block]:
    from roofdsl.tell import validation

    return validation.blocks([of])


def _point_check(of: Any) -> list[Block]:
    from roofdsl.tell import validation

    return validation.of_points([of])


def _simulated(of: Any) -> list[Block]:
    from roofdsl.tell import simulation

    return simulation.of_traffic(of)


def _points(of: Any) -> list[Block]:
    from roofdsl.tell import measured_points

    return [*measured_points.blocks(of), *_warnings(of.notes)]


RESULTS: dict[str, Callable[[Any], list[Block]]] = {
    "roofdsl.predict.prediction:Prediction": _prediction,
    "roofdsl.predict.program:ProgramPrediction": _program,
    "roofdsl.machine.model:Machine": _machine,
    "roofdsl.advise.advise:Advised": _advised,
    "roofdsl.measure.measurement:Measurement": _measurement,
    "roofdsl.validate.compare:Comparison": _comparison,
    "roofdsl.validate.compare_points:PointCheck": _point_check,
    "roofdsl.simulate.lru_traffic:SimulatedTraffic": _simulated,
    "roofdsl.profiler.measured_points:Points": _points,
}
"""Types of results that commands print, by name so that nothing is imported early, and what makes their blocks."""

TITLED = frozenset(
    ("roofdsl.predict.prediction:Prediction", "roofdsl.predict.program:ProgramPrediction",
     "roofdsl.machine.model:Machine", "roofdsl.advise.advise:Advised")
)  # fmt: skip
"""The types whose first line names the subject; it stands for the whole inside a list."""

LATEX = {**RESULTS, "roofdsl.predict.prediction:Prediction": _prediction_latex}
"""The same for LaTeX, where a prediction also has its terms as formulas."""


def _warnings(found: Sequence[str]) -> list[Block]:
    return [Gap(), line("warnings:"), items(found)] if found else []


def as_text(blocks: Sequence[Block]) -> str:
    """The text of blocks, for a terminal."""
    return "\n".join(to_text(blocks))


def as_html(blocks: Sequence[Block]) -> str:
    """The HTML of blocks, for a notebook."""
    return "\n".join(['<div class="roofdsl">', *to_html(blocks), "</div>"])


def as_latex(blocks: Sequence[Block]) -> str:
    """The LaTeX of blocks, for a notebook that becomes a paper: a fragment that needs amsmath."""
    return "\n".join(to_latex(blocks))


# ---- kernels and derivations ----


def kernel_html(k: Kernel) -> str:
    """The kernel's source, highlighted."""
    from roofdsl.page.article import source_html

    return f'<div class="roofdsl-source"><style>{STYLE}</style><pre>{source_html(k)}</pre></div>'


def kernel_text(k: Kernel) -> str:
    """The kernel's own lines."""
    return "\n".join(k.source.line(n) for n in range(k.span.line, k.span.end_line + 1)).rstrip()


def derivation_text(d: Derivation) -> str:
    """What `roofdsl derive` prints."""
    from roofdsl.tell import derive_text

    return derive_text.to_text(d).rstrip()


# ---- any other result ----

_UNITS: tuple[tuple[tuple[str, ...], Callable[[Any], str]], ...] = (
    (("bytes_per_s",), show_bandwidth),
    (("per_s", "flops"), show_rate),
    (("bytes",), show_bytes),
    (("_s",), show_time),
)


def record_html(of: Any) -> str:
    """The fields of a record with their units, lists of records as tables."""
    return as_html(_fields(of))


def _fields(of: Any) -> list[Block]:
    values = _values(of)
    plain = {n: v for n, v in values.items() if not _records(v)}
    rows = [(n.replace("_", " "), shown(n, v)) for n, v in plain.items() if v not in (None, (), "")]
    told: list[Block] = [Title(type(of).__name__), figures(rows)]
    for name, value in values.items():
        found = _records(value)
        if found:
            told += [line(name.replace("_", " ")), _table_of(found)]
    return told


def _table_of(found: Sequence[Any]) -> Block:
    heads = list(dict.fromkeys(n for each in found for n in _values(each)))
    rows = [[shown(n, _values(each).get(n)) for n in heads] for each in found]
    return figures(rows, [h.replace("_", " ") for h in heads])


def _values(of: Any) -> dict[str, Any]:
    """The fields of a record or dataclass, without private ones and those that give its place in a file."""
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
    """A value in words, with the unit from the ending of its name."""
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

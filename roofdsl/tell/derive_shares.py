"""The parts of a derivation that depend on data: the shares alpha with their bounds, and the intervals of Q and I."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from roofdsl.counts.derived import Between, Derivation, Quantity, Ratio, Share
from roofdsl.counts.growth import growth_of
from roofdsl.counts.readable_forms import of_quantity, of_ratio
from roofdsl.formulas.writing import neat_text
from roofdsl.machine.quantities import show_number
from roofdsl.sets.plateaus import Growth
from roofdsl.tell.blocks import Code, Sentence
from roofdsl.tell.maths import name
from roofdsl.tell.quantity_rows import Rows
from roofdsl.tell.words import exact_number


def share_lines(d: Derivation, q: Quantity, shares: Sequence[Share]) -> Iterator[str]:
    """The shares that a traffic depends on, and its interval at the sizes given."""
    if not shares or q.form is None:
        return
    yield "  the data decide"
    for share in shares:
        yield f"    {share.name}: {_bounds(share, growth_of(d.kernel))}"
        yield f"      of {_meaning(share, growth_of(d.kernel))}"
    ends = d.interval(q, shares)
    if ends is not None and q.value is None:
        between = f"from {exact_number(ends[0])} to {exact_number(ends[1])} B"
        yield f"  Q lies {between}" if ends[0] != ends[1] else f"  Q is {exact_number(ends[0])} B"


def any_cache_title(between: Between) -> str:
    """The title of Q(Z) between two bounds."""
    return f"Q(Z) with Z a symbol, for every Z >= {between.from_bytes} B"


def any_share_lines(d: Derivation) -> Iterator[str]:
    """The interval of Q(Z), and the size from which it is the compulsory traffic."""
    assert d.any_cache is not None and d.between is not None
    yield from share_lines(d, d.any_cache.bytes, d.between.shares)
    whole = of_quantity(d.between.whole, growth_of(d.kernel))
    if d.between.shares:
        yield "  least: everything is loaded once; most: a line for each access, except that a stream of an"
        yield "      innermost loop takes each line once, and one more each time the loop begins"
    if whole is not None:
        yield f"  compulsory from Z = {neat_text(whole.main.expr)} B on, where all arrays fit"


def intensity_lines(d: Derivation) -> Iterator[str]:
    """The interval of the intensity."""
    ends = d.intensities() if d.shares_at_cache else None
    if ends is not None and d.intensity.value is None:
        unit = Rows(d.work, growth_of(d.kernel), d.values).operation
        between = f"from {show_number(ends[0])} to {show_number(ends[1])} {unit}/B"
        yield f"  I lies {between}" if ends[0] != ends[1] else f"  I is {show_number(ends[0])} {unit}/B"


def share_sentence(share: Share) -> Sentence:
    """A share with its bounds, for LaTeX and HTML."""
    order = Growth(frozenset())
    return (name(share.name), " of ", Code(_meaning(share, order)), ": ", Code(_bounds(share, order)))


def _meaning(share: Share, order: Growth) -> str:
    """`x[col[k]]: nnz accesses of 8 B`."""
    form = of_quantity(share.accesses, order)
    number = "all" if form is None else neat_text(form.main.expr)
    return f"{', '.join(share.references)}: {number} accesses of {share.element_bytes} B"


def _bounds(share: Share, order: Growth) -> str:
    """`1/nnz <= alpha_x <= min(n/nnz, 1)`, or what alpha is known to be."""
    if share.value is not None:
        return f"{show_number(share.value)} for these data"
    if share.stated is not None:
        return f"{show_number(share.stated)}, as the kernel assumes"
    least, most = _extreme("max", share.least, order), _extreme("min", share.most, order)
    text = f"{least} <= {share.name} <= {most}"
    if share.low is not None and share.high is not None:
        text += f", here from {show_number(share.low)} to {show_number(share.high)}"
    return text


def _extreme(kind: str, ratios: Sequence[Ratio], order: Growth) -> str:
    texts = []
    for ratio in ratios:
        form = of_ratio(ratio, order)
        texts.append("?" if form is None else neat_text(form.main.expr))
    return texts[0] if len(texts) == 1 else f"{kind}({', '.join(texts)})"

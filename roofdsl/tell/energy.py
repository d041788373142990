"""The energy of a prediction: how much, over which time, by cause, and the balances of the machine."""

from __future__ import annotations

from fractions import Fraction

from roofdsl.machine.quantities import show_energy, show_number, show_power, show_rate, show_time
from roofdsl.predict.energy_record import Energy
from roofdsl.predict.prediction import Prediction
from roofdsl.tell.blocks import Block, Gap, figures, line


def blocks(p: Prediction) -> list[Block]:
    """Energy, efficiency and balances, then the energy by cause; or why there is none."""
    found = p.energy
    if found is None:
        return [Gap(), figures([("energy", "", p.no_energy)])]
    rows = [("energy", show_energy(found.total_j), f"{show_power(found.average_w)} on average over {_time(found)}")]
    if p.work:
        per_joule = f"{show_rate(found.per_joule(p.work), p.operation)}/W"
        rows.append(("efficiency", per_joule, f"energy-delay product {show_energy(found.delay_js)} s"))
    else:
        rows.append(("", "", f"energy-delay product {show_energy(found.delay_js)} s"))
    if found.balances is not None:
        per = f"{p.operation}/B"
        half = f"half of the best efficiency at I = {show_number(found.balances.half)} {per}"
        of = f"{found.balances.type}; time balance {show_number(found.balances.time)} {per}; {half}"
        rows.append(("energy balance", f"{show_number(found.balances.energy)} {per}", of))
    whole = found.total_j
    parts = [(cause, show_energy(joules), _share(joules, whole)) for cause, joules in found.by_cause]
    return [Gap(), figures(rows), Gap(), line("energy by cause:"), figures(parts, (), (1, 2), depth=2)]


def _time(found: Energy) -> str:
    """`26.1 us, the expected time`, or what a power cap makes of it."""
    if found.is_capped and found.cap_w is not None:
        uncapped = f"the {found.of} of {show_time(found.uncapped_s)}"
        return f"{show_time(found.time_s)}: {uncapped}, stretched by the power cap of {show_power(found.cap_w)}"
    return f"{show_time(found.time_s)}, the {found.of}"


def _share(part: Fraction, whole: Fraction) -> str:
    return f"{show_number(100 * part / whole, 3)} %" if whole else ""

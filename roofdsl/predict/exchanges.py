"""The collectives of a program on a machine: the costs from `predict.collectives`, as parts of its prediction.

A collective is not a launch. It has no work and moves nothing across the memory's boundary. Its time is that of its
bytes over the link and of its steps.
"""

from __future__ import annotations

from fractions import Fraction
from typing import cast

from roofdsl.lang.diagnostics import CommandError, Diagnostic, InputError
from roofdsl.lang.findings import did_you_mean, plural
from roofdsl.lang.record import replace
from roofdsl.lang.source import Span
from roofdsl.loops.program_at_sizes import Exchanged
from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import show_time
from roofdsl.predict.collectives import Collective, Kind, Network, Topology, collective, network_of
from roofdsl.predict.prediction import LinkTime, Prediction


def exchange(e: Exchanged, machine: Machine, like: Prediction, step_s: Fraction = Fraction(0)) -> Prediction:
    """All executions of this collective, as a prediction that can be added to `like` and has its levels, without bytes.

    step_s: the latency of each step. Raises InputError if the machine has no link, or not this one, if no end of the
    link is its memory, if there are several links and none is chosen, and if a one-way link would have to send both
    ways.
    """
    found = collective_of(e, machine, step_s)
    latency = found.steps * found.latency_s
    link = LinkTime(found.link, found.link_bytes, found.bandwidth_bytes_per_s, 1, latency) * e.times
    each = f"{show_time(step_s)} for each step" if step_s else "steps without latency (--latency)"
    note = f"{found.link}: {plural(found.devices, 'device')} like {machine.name}, {found.way}; {each}"
    none = Fraction(0)
    return Prediction(
        kernel=e.label,
        machine=machine.name,
        parameters=(("bytes", e.size_bytes), ("devices", e.devices)),
        work=0,
        type=None,
        compute_s=none,
        levels=tuple(level * 0 for level in like.levels),
        launches=0,
        launch_s=none,
        bound_s=link.time_s,
        no_overlap_s=link.time_s,
        traffic=like.traffic,
        cache_bytes=like.cache_bytes,
        line_bytes=like.line_bytes,
        assumptions=(note,),
        links=(link,),
        collective=found.kind,
    )


def collective_of(e: Exchanged, machine: Machine, step_s: Fraction = Fraction(0)) -> Collective:
    """One execution of the collective. Raises InputError as `exchange` does."""
    joined = replace(network(e, machine), latency_s=step_s)
    return collective(cast(Kind, e.step.kind.text.replace("_", "-")), e.size_bytes, joined)


def network(e: Exchanged, machine: Machine) -> Network:
    """The devices and their links. Raises InputError as `exchange` does."""
    step, names = e.step, [link.name for link in machine.links]
    topology = cast(Topology, step.topology.text.replace("_", "-") if step.topology is not None else "ring")
    if step.link is not None and step.link.text not in names:
        have = f"it has {', '.join(names)}" if names else f"its machine has no line `link {step.link.text}: ...`"
        help = did_you_mean(step.link.text, names, have)
        raise _wrong(e, f"machine {machine.name} has no link `{step.link.text}`", step.link.span, help)
    if step.link is None and len(names) > 1:
        help = f"say which one joins the devices: `over {names[0]}`"
        raise _wrong(e, f"machine {machine.name} has {len(names)} links: {', '.join(names)}", step.span, help)
    try:
        found = network_of(machine, e.devices, topology=topology, link=None if step.link is None else step.link.text)
    except CommandError as error:
        if step.topology is None or not names:  # without links, no topology helps
            raise _wrong(e, error.message, step.span, error.help) from None
        help = f"omit `by {step.topology.text}`: a ring works with this link"
        raise _wrong(e, error.message, step.topology.span, help) from None
    link = next(link for link in machine.links if link.name == found.link)
    memory = machine.main_memory.name
    if memory not in (link.start, link.end):
        message = f"link {link.name} of {machine.name} joins {link.start} and {link.end}, and arrays lie in {memory}"
        joined = [x.name for x in machine.links if memory in (x.start, x.end)]
        help = f"{', '.join(joined)} leads there" if joined else f"no link of {machine.name} leads to {memory}"
        raise _wrong(e, message, step.span if step.link is None else step.link.span, help)
    return found


def _wrong(e: Exchanged, message: str, span: Span, help: str) -> InputError:
    return InputError(e.source, [Diagnostic("link-end", message, span, help)])

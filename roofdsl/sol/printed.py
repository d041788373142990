"""The best order as `.roof` text, as near as the language comes to it, and the time that `predict` gives this text.

Lines of tiles keep no sums in registers: with `tile i, j by 40`, each update still loads and stores `C[i, j]`. So a
product is also written out with a block of its results in scalars, which need no loads and stores. On cores, tiles
surround the block, as in what `advise` proposes. On multiprocessors, each thread has a block. The text with the
shortest time is printed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fractions import Fraction

from roofdsl import budget, reproducibility
from roofdsl.advise import edits
from roofdsl.advise.candidate import Candidate, Subject
from roofdsl.advise.evaluate import Case, Estimate, completed, estimate_at_most
from roofdsl.advise.kernel_text import lowered
from roofdsl.advise.loop_changes import known_extents, registers
from roofdsl.advise.register_blocks import blocked, nests_to_block
from roofdsl.advise.thread_register_blocks import in_words, keeps_updates, thread_blocks
from roofdsl.advise.traffic_upper_bound import NoBound
from roofdsl.bounds.held_reads import without_own_tiles
from roofdsl.counts.traffic_at import OutOfReach, access_count
from roofdsl.lang import tree
from roofdsl.lang.checked import CheckedKernel
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.record import Record, replace
from roofdsl.lang.write import written
from roofdsl.loops.load import READERS, load_file
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.loops.parameter_values import numbers
from roofdsl.loops.sized import sized
from roofdsl.machine.model import Machine
from roofdsl.predict.in_core_time import is_here
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.sets.library import LibraryFailure, TooHard
from roofdsl.sol.answer import (
    SpeedOfLight,
    convention_of,
    in_its_share,
    level_left_out,
    share_of_estimate,
    share_s,
)
from roofdsl.sol.schedule import Schedule
from roofdsl.store.cut_short import Ended, Limit, recall_within
from roofdsl.store.memo import FOR_MACHINES

SHARE, SHARE_OF_CALL = 2, 20
"""Predicting a text exactly gets at most this fraction (1/SHARE) of the command's remaining time, and less in a call of
a server, which others wait for.
"""

CLOSE = Fraction(101, 100)
"""No other text is tried once one takes at most this many times the time of the best order."""


class Printed(Record):
    """An order as text: lines to add to the kernel, or the whole kernel. what: in words.

    estimate: the time that `predict` gives; None if it is not found in its share of the time. traffic: the convention
    that has to be given to `predict` for this time; None for that of the text. kind: `lines`, `registers` or `sweeps`.
    accesses: their number, if there is no estimate and they are counted. why_not: why `predict` gives no time, if it is
    not for lack of time. in_place: whether the lines stand in place of the kernel's own.
    """

    kind: str
    what: str
    lines: tuple[str, ...]
    text: str
    estimate: Estimate | None
    traffic: Traffic | None = None
    accesses: int | None = None
    why_not: str = ""
    in_place: bool = False

    @property
    def time_s(self) -> Fraction | None:
        return None if self.estimate is None else self.estimate.time_s

    @property
    def is_at_most(self) -> bool:
        """Whether the time is only an upper bound."""
        return self.estimate is not None and not self.estimate.exact


def printed(found: SpeedOfLight, kernel: Kernel, parameters: Mapping[str, int], machine: Machine) -> Printed | None:
    """The text of the best order, also from an earlier command; None if it is the kernel as written.

    What finding its time leaves out is not noted: then the text has no time, or one that it takes at most.
    """
    best = found.best
    if best is None or not (best.lines or best.text):
        return None
    if not (best.directives or best.text):
        return Printed("lines", best.what, best.lines, "", None)  # the time on matrix units is that of `predict`
    asked = _Asked(kernel, parameters, machine, best)
    if is_here(machine):
        return _written_out(asked, found)[0]
    own = budget.current()
    limit = Limit(share_s(), () if own is None else (own.seconds, own.memory_bytes))
    options = dict(parameters), machine, kernel.source.text, best.lines, best.text, best.time_s
    return recall_within(
        "best order as text", kernel, options, limit, lambda: _written_out(asked, found), further=FOR_MACHINES
    )


def _written_out(asked: _Asked, found: SpeedOfLight) -> tuple[Printed, Ended]:
    """The text that takes the shortest time, and whether a limit of time cut its time short."""
    begun, time_s = reproducibility.seen(), share_s()
    with budget.noting(silently=True) as lacking:
        chosen = _of_sweeps(asked) if asked.best.text else _of_products(asked, found)
    decided = reproducibility.since(begun)
    whole = chosen.estimate is not None and chosen.estimate.exact and not lacking and not decided.clock
    return chosen, Ended(None if whole else time_s, budget.is_memory_spent())


def _of_sweeps(asked: _Asked) -> Printed:
    text = asked.best.text
    own = lowered(text, asked.kernel.name, dict(asked.kernel.constants))
    (estimate, why), accesses = asked.estimated(own), None
    if estimate is None and asked.machine.multiprocessor is None:
        with suppress(CommandError, LibraryFailure, budget.Spent), in_its_share(share_of_estimate()):
            accesses = access_count(sized(asked.kernel, numbers(asked.kernel, asked.parameters)))  # in any order
    return Printed("sweeps", asked.best.what, (), text, estimate, accesses=accesses, why_not=why)


def _of_products(asked: _Asked, found: SpeedOfLight) -> Printed:
    texts: list[Printed] = []
    for text in _texts(asked, found):
        texts.append(text)
        if asked.is_close(text) or (asked.machine.multiprocessor is not None and _is_faster(text, texts[0])):
            break  # on multiprocessors, the blocks that follow load more for each result
    return min(texts, key=lambda t: (t.time_s is None, t.time_s))


def _is_faster(text: Printed, other: Printed) -> bool:
    return text.time_s is not None and other.time_s is not None and text.time_s < other.time_s


def _texts(asked: _Asked, found: SpeedOfLight) -> Iterator[Printed]:
    """On multiprocessors, lines are no faster than the kernel as written: the first cache serves the same accesses."""
    known = False
    for text in _in_registers(asked, found):
        known = known or text.estimate is not None
        yield text
    if asked.machine.multiprocessor is None or not known:
        yield _in_lines(asked)


class _Asked(Record):
    """A kernel at its sizes on a machine, and its best order."""

    kernel: Kernel
    parameters: Mapping[str, int]
    machine: Machine
    best: Schedule

    @property
    def traffic(self) -> Traffic | None:
        """The convention, unless it is the kernel's own."""
        return convention_of(self.kernel, self.machine)

    def is_close(self, text: Printed) -> bool:
        """Whether a text takes hardly longer than the best order."""
        return text.time_s is not None and text.time_s <= CLOSE * self.best.time_s

    def case(self, kernel: Kernel) -> Case:
        return Case(numbers(kernel, self.parameters), self.machine, Options(traffic=self.traffic))

    def estimated(self, kernel: Kernel) -> tuple[Estimate | None, str]:
        """The time of a kernel: exact if it is found in its share of the time, else at most, if that is found; and why
        there is none.
        """
        case, most = self.case(kernel), None
        if self.machine.multiprocessor is None or kernel.directives:
            with suppress(CommandError, budget.Spent), in_its_share(share_of_estimate()):
                most = estimate_at_most(kernel, case)
        if most is not None and most.exact:
            return most, ""
        why = ""
        try:
            with suppress(NoBound, budget.Spent, OutOfReach, TooHard), in_its_share(_share()):
                exact = predict(kernel, case.values, case.machine, case.options)
                lacking = level_left_out(exact, self.machine)
                return (completed(exact, kernel, case) if lacking else Estimate(exact)), ""
        except CommandError as error:
            why = error.message
        return most, why


def _share() -> int:
    """Predicting a text exactly gets this fraction of the time that is left."""
    return SHARE_OF_CALL if budget.is_served() else SHARE


def _in_lines(asked: _Asked) -> Printed:
    """The lines of tiles, to be added to the kernel, in place of its own directives and loops over tiles."""
    kernel, best = asked.kernel, asked.best
    simple = without_own_tiles(kernel)
    own = bool(kernel.directives) or simple is not kernel
    tiled = replace(simple, directives=best.directives, unit=best.unit or kernel.unit)
    estimate, why = asked.estimated(tiled)
    return Printed("lines", best.what, best.lines, "", estimate, asked.traffic, why_not=why, in_place=own)


def _in_registers(asked: _Asked, found: SpeedOfLight) -> Iterator[Printed]:
    """The texts that keep a block of results in scalars; none for a kernel that is not from a `.roof` file."""
    kernel = asked.kernel
    if os.path.splitext(kernel.source.name)[1] in READERS:
        return
    given = load_file(kernel.source).kernels[kernel.name]
    given = replace(given, tree=_with_lines(given.tree, asked))
    for what, text in _of_threads(asked, given) if asked.machine.multiprocessor else _of_cores(asked, given, found):
        with suppress(InputError):
            own = lowered(text, kernel.name, dict(kernel.constants))
            estimate, why = asked.estimated(own)
            yield Printed("registers", what, (), text, estimate, why_not=why)


def _with_lines(syntax: tree.Kernel, asked: _Asked) -> tree.Kernel:
    """The kernel with lines for the convention and the matrix unit, if these are not its own, and without its own tiles
    and orders, which compute the same as the loops as they stand.
    """
    items: list[tree.Item] = []
    syntax = edits.without(edits.without(syntax, tree.Tile), tree.Order)
    if asked.traffic is not None:
        syntax = edits.without(syntax, tree.Traffic)
        items.append(tree.Traffic(edits.name(asked.traffic), edits.HERE))
    if asked.best.unit is not None:
        items.append(tree.Unit(edits.name(asked.best.unit), edits.HERE))
    return edits.with_items(syntax, items)


def _of_cores(asked: _Asked, given: CheckedKernel, found: SpeedOfLight) -> list[tuple[str, str]]:
    """What `advise` proposes, in words and as text."""
    now = Estimate(found.written) if found.written is not None else found.estimate
    if now is None:
        return []
    plain = replace(asked.kernel, directives=())
    subject = Subject(given, plain, dict(plain.constants), asked.case(plain), now)
    with suppress(CommandError, budget.Spent), in_its_share(_share()):
        return [(c.what, c.text) for c in registers(subject) if isinstance(c, Candidate)]
    return []


def _of_threads(asked: _Asked, given: CheckedKernel) -> Iterator[tuple[str, str]]:
    """Blocks of results for each thread, in words and as text, for products in three loops.

    Large blocks make texts of hundreds of lines. A block with a short text comes first, and a caller stops there if it
    is close. The others follow, those first that load least for each result.
    """
    arrays = {a.name: a for a in asked.kernel.arrays}
    for nest in nests_to_block(given.tree):
        if len(nest.clauses) == 3 and len(nest.alone) == 2 and keeps_updates(nest):
            plain = replace(asked.kernel, directives=())
            for how in thread_blocks(nest, known_extents(nest, plain, numbers(plain, asked.parameters)), arrays):
                yield in_words(nest, how), written(given, blocked(given.tree, nest, how))

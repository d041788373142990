"""The launches that the generated CUDA makes of one kernel: one for each nest that has iterations, repeated in each
iteration of the host's loops.

`codegen.cuda_kernels` decides what is launched, so that a prediction is about the code that runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from roofdsl.lang.diagnostics import InputError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.accesses import reads_in, statements
from roofdsl.loops.affine import is_positive
from roofdsl.loops.integers import Compare, Const, Sym, sub
from roofdsl.loops.model import Count, For, If, Kernel, Node
from roofdsl.loops.transform import apply
from roofdsl.machine.model import Machine
from roofdsl.predict.alike_launches import SAMPLES, alike, sampled
from roofdsl.predict.launch_count import host_symbols, launch_counts, number_of_launches
from roofdsl.predict.launch_statements import alone, in_one_launch, written
from roofdsl.predict.loops_as_launched import AsLaunched, as_launched, independent_loops, only_nest
from roofdsl.store.in_process import in_process

if TYPE_CHECKING:
    from roofdsl.codegen.launch_grids import Call, Step

MOST_SIZES = 64
"""The most launches of different sizes, made by a loop of the host, that are predicted one by one."""


SEVERAL = "it is more than one launch"

BY_DATA = "data choose how often the host launches it, and one launch is counted"

NOTHING_RUNS = "none of its loops has iterations, so nothing is launched"

MANY_LAUNCHES = 100
"""If at least this many launches bound a prediction, a warning says where they come from."""


class Launched(Record):
    """A launch and how often it is made. kernel: its statements alone; None for a block that only joins the parts of a
    sum, whose traffic does not count. how: its threads, or why its accesses are counted in the order of the loops.
    function: the name of its generated code, where a kernel becomes several launches.
    """

    kernel: Kernel | None
    times: int
    how: AsLaunched | str = ""
    function: str = ""

    @property
    def threads(self) -> AsLaunched | None:
        """Its threads, if they are known."""
        return None if isinstance(self.how, str) else self.how


class KernelLaunches(Record):
    """The launches of a kernel. If they are counted as one kernel in the order of its loops, `why` gives the reason. If
    some that differ stand for others, `sampled` says so.
    """

    each: tuple[Launched, ...]
    count: int
    why: str = ""
    sampled: str = ""


def launches_of_kernel(kernel: Kernel, values: Mapping[str, int], machine: Machine) -> KernelLaunches:
    """The launches of one execution of `kernel` at `values`. There is one on a machine without multiprocessors, and on
    one without caches, where the order of accesses does not matter.
    """
    if machine.multiprocessor is None or not machine.caches:
        return KernelLaunches((Launched(kernel, 1),), 1)
    longest = max(size for c in machine.caches for size in (c.line_bytes or 1, c.sector_bytes or 1))
    return _launches(kernel, values, longest)


def the_launch(kernel: Kernel, values: Mapping[str, int]) -> AsLaunched | str:
    """The threads of a kernel that is one launch; otherwise, why there are no such threads."""
    found = _launches(kernel, values, 1)
    if found.count != 1 or found.why:
        return found.why or (SEVERAL if found.count else NOTHING_RUNS)
    return found.each[0].how


def _launches(kernel: Kernel, values: Mapping[str, int], line_bytes: int) -> KernelLaunches:
    """The launches on a GPU whose largest line has `line_bytes` bytes."""

    def whole(why: str, count: int = 1) -> KernelLaunches:
        return KernelLaunches((Launched(kernel, 1, why),), count, why if count else "")

    steps = _steps(kernel)
    if isinstance(steps, str):
        return whole(steps)
    if _by_data(steps):
        return whole(BY_DATA)
    env = dict(kernel.constants) | dict(values)
    walk = _Walk(env, line_bytes)
    try:
        made = tuple(walk.over(steps, {}))
    except _TooMany as error:
        return whole(str(error), number_of_launches(kernel.name, steps, env))
    if all(call.parts is not None for call, _, _ in made):
        return whole(NOTHING_RUNS, len(made))
    found = _each(kernel, made, env)
    return KernelLaunches(tuple(found), sum(launch.times for launch in found), sampled=walk.sampled)


def _by_data(steps: Sequence[Step]) -> bool:
    """Whether loops over threads, or loops of the host, have bounds that read an index array."""
    from roofdsl.codegen.launch_grids import Call, HostIf, HostLoop

    def decides(step: Step) -> bool:
        match step:
            case Call(dims=dims):
                return any(True for dim in dims for _ in reads_in(dim.start, dim.stop, dim.step))
            case HostLoop(start=start, stop=stop, step=by, body=body):
                return any(True for _ in reads_in(start, stop, by)) or _by_data(body)
            case HostIf(then=then, orelse=orelse):
                return _by_data((*then, *orelse))

    return any(map(decides, steps))


def _each(kernel: Kernel, made: Sequence[tuple[Call, dict[str, int], int]], env: Mapping[str, int]) -> list[Launched]:
    """These launches, equal ones together."""
    plain = apply(kernel)
    temps = in_one_launch(plain, made, partial(_private, kernel))
    stored: set[str] = set()
    found: dict[Kernel | None, Launched] = {}
    is_one = len(made) == 1 and made[0][2] == 1
    for call, outer, times in made:
        if call.parts is not None:
            own, how = None, None
        else:
            stores = set(written(call.nodes))
            before = stored if times == 1 else stored | stores
            own = alone(plain, call.nodes, outer, before, temps)
            if is_one and _is_all(call, plain):
                own = kernel
            run = None if call.nest is None else alone(plain, (call.nest,), outer, before, temps)
            how = as_launched(call, run, {**env, **outer})
            stored |= stores
        before_it = found.get(own)
        if before_it is None:
            found[own] = Launched(own, times, how or "", call.function)
        else:
            found[own] = replace(before_it, times=before_it.times + times, how=how or "")
    return list(found.values())


def _private(kernel: Kernel, var: str) -> frozenset[str]:
    """The `temp` arrays that are private to each iteration of every loop over `var`."""
    return _private_temps(kernel).get(var, frozenset())


@in_process(64)
def _private_temps(kernel: Kernel) -> dict[str, frozenset[str]]:
    from roofdsl.checks.private_copies import private_temps

    own = private_temps(kernel)
    found: dict[str, frozenset[str]] = {}
    for placed in statements(apply(kernel).body):
        for depth, loop in enumerate(placed.loops):
            names = frozenset(own.get(placed.position[: depth + 1], {}))
            found[loop.var] = found.get(loop.var, names) & names
    return found


def _is_all(call: Call, plain: Kernel) -> bool:
    """Whether a launch executes the whole kernel as written, without accesses that copies in registers remove."""
    own, every = ([node for node in nodes if not isinstance(node, Count)] for nodes in (call.nodes, plain.body))
    return own == every


def launches_by_function(kernel: Kernel, values: Mapping[str, int]) -> Mapping[str, int]:
    """How often an execution of `kernel` launches each function of its generated CUDA, on any machine; nothing if no
    CUDA is generated for it.
    """
    steps = _steps(kernel)
    return {} if isinstance(steps, str) else launch_counts(steps, dict(kernel.constants) | dict(values))


def why_so_many(kernel: Kernel, values: Mapping[str, int], count: int) -> str:
    """The warning for a kernel whose `count` launches take longer than anything else."""
    steps = _steps(kernel)
    refused = () if isinstance(steps, str) else tuple(_refused(steps, dict(kernel.constants) | dict(values)))
    many = f"the host launches {kernel.name} {count:,} times, because"
    if 2 * sum(launches for _, _, launches in refused) > count:
        reasons = [f"share {_quoted(names)}: {reason}" for names, reason, _ in refused]
        return f"{many} iterations of its outer loops {'; others '.join(dict.fromkeys(reasons))}"
    why = f"{many} iterations of its outer loops depend on each other"
    copied = {name for names, _, _ in refused for name in names}
    shared = [a.name for a in kernel.arrays if a.intent == "temp" and a.name not in copied]
    return f"{why} or share {_quoted(shared)}; a dimension for each such loop separates them" if shared else why


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _refused(steps: Sequence[Step], env: Mapping[str, int]) -> Iterator[tuple[tuple[str, ...], str, int]]:
    """(arrays, the reason, the number of launches instead) where the host prefers several launches to one with copies
    of these arrays. Launches inside loops of the host are left out.
    """
    from roofdsl.codegen.launch_grids import Call, HostIf

    for step in steps:
        match step:
            case HostIf(condition, (Call(copied=copied),), orelse, limits) if limits and not condition.holds(env):
                reason = next(reason for limit, reason in limits if not limit.holds(env))
                yield copied, reason, launch_counts(orelse, env).total()


def is_spread(kernel: Kernel) -> bool:
    """Whether a GPU executes the kernel on the threads of many blocks, or in several launches."""
    from roofdsl.codegen.launch_grids import Call

    steps = _steps(kernel)
    return isinstance(steps, tuple) and not (len(steps) == 1 and isinstance(steps[0], Call) and not steps[0].dims)


def may_be_several(kernel: Kernel) -> bool:
    """Whether one execution of the kernel can be several launches, or none, on a GPU with caches."""
    from roofdsl.codegen.launch_grids import Call

    steps = _steps(kernel)
    if not isinstance(steps, tuple):
        return False
    (first, *others) = steps or (None,)
    if others or not isinstance(first, Call):
        return True
    least = _least_values(kernel)
    return not all(is_positive(sub(dim.stop, dim.start), least) for dim in first.dims)


def _least_values(kernel: Kernel) -> dict[str, int]:
    """The least value of each parameter: its number, 1, or what an assumption such as `n >= 4` says."""
    found = dict.fromkeys((p.name for p in kernel.parameters), 1) | dict(kernel.constants)
    for assumption in kernel.assumptions:
        match assumption:
            case Compare(">=", Sym(name), Const(value)) if name in found:
                found[name] = max(found[name], value)
    return found


class _TooMany(Exception):
    """Too many launches differ in size to be predicted one by one; the message says in which loop."""


@in_process(64)
def _steps(kernel: Kernel) -> tuple[Step, ...] | str:
    """The host's steps of the generated CUDA, or why there is none."""
    from roofdsl.checks.private_copies import private_loops
    from roofdsl.codegen.cuda_kernels import launched
    from roofdsl.codegen.generate import with_declared
    from roofdsl.codegen.targets.cuda import Cuda
    from roofdsl.codegen.threads import plan_nest

    plain = apply(kernel)
    root = only_nest(plain)
    is_declared = root is not None and root.parallel
    free = with_declared({}, plain.body) if is_declared else independent_loops(kernel)  # a proof takes time
    needs_no_copies = root is not None and plan_nest(plain, root, (plain.body.index(root),), free) is not None
    try:
        return launched(Cuda(), plain, free, {} if needs_no_copies else private_loops(kernel)).steps
    except InputError as error:
        return f"no CUDA is generated for it: {error.diagnostics[0].message}"


class _Walk:
    """The launches at the numbers `env`. line_bytes: the largest line. sampled: says which of them stand for others."""

    def __init__(self, env: Mapping[str, int], line_bytes: int) -> None:
        self._env, self._line_bytes = env, line_bytes
        self.sampled = ""

    def over(self, steps: Sequence[Step], outer: dict[str, int]) -> Iterator[tuple[Call, dict[str, int], int]]:
        """(launch, the values of the host's loops, how often) of each launch; launches that are alike are one."""
        from roofdsl.codegen.launch_grids import Call, HostIf, HostLoop, launch_with_grid

        for step in steps:
            at = {**self._env, **outer}
            match step:
                case Call():
                    if launch_with_grid(step, at) is not None:
                        yield step, outer, 1
                case HostIf(condition, then, orelse):
                    yield from self.over(then if condition.holds(at) else orelse, outer)
                case HostLoop(var, start, stop, stride, body):
                    values = range(start.evaluate(at), stop.evaluate(at), stride.evaluate(at))
                    for value, times in self._different(var, values, body, at) if values else ():
                        for own, inner, each in self.over(body, {**outer, var: value}):
                            yield own, inner, each * times

    def _different(
        self, var: str, values: Sequence[int], body: Sequence[Step], at: Mapping[str, int]
    ) -> Sequence[tuple[int, int]]:
        """(value, times): the values of the host's loop whose launches are counted, and how many each stands for."""
        if var in _deciding(body):
            if len(values) > MOST_SIZES:
                many = f"{len(values):,} times"
                raise _TooMany(f"the host launches it {many} in the loop over {var}, with different sizes")
            return [(value, 1) for value in values]
        found = alike(body, var, values, at, self._line_bytes)
        if len(found) <= MOST_SIZES:
            return found
        these = f"{SAMPLES} of {len(values):,} iterations of the loop over {var}"
        self.sampled = f"{these} are counted and stand for the others, which access arrays in other places"
        return sampled(found)


def _deciding(steps: Sequence[Step]) -> frozenset[str]:
    """The symbols that decide the sizes of launches, or whether they are made."""
    from roofdsl.codegen.launch_grids import Call, HostIf, HostLoop

    found = host_symbols(steps)
    for step in steps:
        if isinstance(step, Call):
            found |= _bounds(step.nodes)
        elif isinstance(step, HostLoop):
            found |= _deciding(step.body)
        elif isinstance(step, HostIf):
            found |= _deciding(step.then) | _deciding(step.orelse)
    return found


def _bounds(nodes: Sequence[Node]) -> frozenset[str]:
    """The symbols in bounds of loops and in conditions."""
    found: frozenset[str] = frozenset()
    for node in nodes:
        if isinstance(node, For):
            found |= node.start.symbols() | node.stop.symbols() | node.step.symbols() | _bounds(node.body)
        elif isinstance(node, If):
            found |= node.condition.symbols() | _bounds(node.then) | _bounds(node.orelse)
    return found

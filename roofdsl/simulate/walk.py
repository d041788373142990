"""Walking a kernel's loops, compiled: from one piece of straight-line code, or innermost loop around one, to the next.

A simulator calls `advance`, which leaves in the cursor which references come next, where each of them starts, how far
each moves per iteration, and how many iterations there are. The simulator then touches them itself. No trace of
accesses is stored, and the walk can stop and continue after any iteration.

Each simulator repeats the lines around `advance` and `stays`, for speed. As inlined functions (one for the blocks that
references touch next, one for continuing by several iterations), they cost up to 38% more processor time in
`general_hierarchy.py`, 5% in `plain_hierarchy.py` and `lru_list.py` and nothing in `stack.py`, depending on which of
them were shared. The compiler's code for the hot loop depends on how it is written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numpy.typing import NDArray

from roofdsl import budget
from roofdsl.simulate.compiled_kernel import (
    ADD,
    AND,
    CONST,
    EQ,
    FLOOR,
    GATHER,
    GE,
    GT,
    HALT,
    JUMP,
    LE,
    LOOP,
    LT,
    MADD,
    MAX,
    MIN,
    MOD,
    MUL,
    NE,
    NEXT,
    NOT,
    OR,
    RUN,
    SWEEP,
    UNLESS,
)

if TYPE_CHECKING:
    from roofdsl.simulate.compiled_kernel import Program

Ints = NDArray[np.int64]
Tables = tuple[Ints, ...]
Cursor = tuple[Ints, ...]

PC, STATUS, FIRST, COUNT, REMAINING, CULPRIT = range(6)  # of the cursor's control
RUNNING, DONE, OUTSIDE, BOUNDARY = range(4)  # of STATUS; OUTSIDE: an access outside the array CULPRIT
LEAST, STRIDE, ALARM, FRESH = range(4)  # columns of a cursor's loops, a row for each variable
NEVER = 1 << 62
FOR_EVER = 1 << 60
MOST_STEPS = 1 << 22  # in one call, so that a walk whose guards are mostly false can be stopped


MOST_WAIT_S = 120.0
"""How long to wait for another process that compiles the same function; then this one compiles it, too."""


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` compiled on first use, and cached on disk if numba finds a place for it."""
    return _cached(function, _nrt=False)


def internal(function: Callable[..., Any]) -> Callable[..., Any]:
    """Like `compiled`, for calls from compiled code only: it compiles faster without what a call from Python needs."""
    return _cached(function, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def _cached(function: Callable[..., Any], **options: bool) -> Callable[..., Any]:
    try:
        result: Any = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no writable directory: compile in every process
        return _once(numba.njit(**options)(function))
    # Numba compiles a function again when its own file has changed. But the compiled code also contains the functions
    # that it calls and the numbers of instructions, so it is valid only while no file of this folder changes.
    file: Any = getattr(getattr(result, "_cache", None), "_cache_file", None)
    if file is not None and hasattr(file, "_source_stamp"):
        file._source_stamp = _sources()
    return _once(result)


@lru_cache
def _sources() -> str:
    """A digest of all files of the simulator."""
    digest = sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _once(function: Any) -> Callable[..., Any]:
    """Has a function compiled once for all integer arguments; numba would compile it again for each literal 0 and 1
    that callers pass.
    """
    of_types = function.get_call_template

    def template(arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        plain = {name: numba.types.unliteral(kind) for name, kind in named.items()}
        return of_types(tuple(map(numba.types.unliteral, arguments)), plain)

    function.get_call_template = template
    result: Callable[..., Any] = function
    return result


@contextmanager
def first_call(function: Callable[..., Any]) -> Iterator[None]:
    """The context for calling a `compiled` function: the first call compiles, which no budget counts or interrupts."""
    if getattr(function, "signatures", True):
        yield
    else:
        with budget.uncounted("" if is_compiled(function) else COMPILING), _alone(function):
            yield


COMPILING = "compiling the simulation, once after installing"


def is_compiled(function: Any) -> bool:
    """Whether a `compiled` function is compiled already, in memory or on disk."""
    try:
        return bool(function.signatures or function._cache._cache_file._load_index())
    except (AttributeError, OSError):  # numba stores its files differently, or has no place for them
        return False


@contextmanager
def _alone(function: Callable[..., Any]) -> Iterator[None]:
    """Processes that need the same function at the same time compile it once: the others wait, and find it on disk."""
    folder = function.stats.cache_path  # type: ignore[attr-defined]
    if folder is None:
        yield
        return
    try:
        import fcntl

        lock = os.open(os.path.join(folder, f"{function.__name__}.lock"), os.O_CREAT | os.O_RDWR)
    except (ImportError, OSError):  # no such locks on this system, or no place for files
        yield
        return
    try:
        end = monotonic() + MOST_WAIT_S
        while monotonic() < end:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                sleep(0.1)
        yield
    finally:
        os.close(lock)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` compiled into its callers: a call that passes arrays costs more than an access."""
    return _once(numba.njit(forceinline=True, _nrt=False)(function))


def tables_of(program: Program, first: list[int], per_block: list[int]) -> Tables:
    """The program's tables as arrays: code, terms, spans, groups, references, places.

    A place is (first block, elements per block, the logarithm of that number or -1 if it is not a power of two,
    elements) of an array; `first` and `per_block` define the blocks for the simulator.
    """
    code = np.array(program.code, dtype=np.int64)
    terms = np.array(program.terms, dtype=np.int64).reshape(-1, 3)
    spans = np.array(program.spans, dtype=np.int64).reshape(-1, 2)
    groups = np.array(program.groups, dtype=np.int64).reshape(-1, 2)
    references = np.array(program.references, dtype=np.int64).reshape(-1, 4)
    rows = [
        (f, per, per.bit_length() - 1 if per & (per - 1) == 0 else -1, layout.elements)
        for f, per, layout in zip(first, per_block, program.layouts, strict=True)
    ]
    places = np.array(rows, dtype=np.int64).reshape(-1, 4)
    return code, terms, spans, groups, references, places


def cursor_of(program: Program) -> Cursor:
    """The start of a walk: env, stops, stack, flat elements, strides, left, blocks, control, loops, quick.

    env: the variables, then the values of index arrays.

    For each reference, `left` is the number of iterations that it stays in its block; `quick` has the numbers of the
    references that leave their block in every iteration.

    When a loop begins whose stop is at least LEAST above its start, its ALARM is set to its second iteration (STRIDE
    further) and FRESH to 1; the walk stops with BOUNDARY, and the loop's variable as CULPRIT, when an iteration begins
    at its ALARM.
    """
    widest = max((count for _, count in program.groups), default=1)
    env = np.zeros(max(1, program.variables), dtype=np.int64)
    loops = np.full((len(env), 4), NEVER, dtype=np.int64)
    if program.data is not None:
        env = np.concatenate([env, *program.data])
    work = np.zeros((2, max(program.variables, program.stack, 1)), dtype=np.int64)
    flat, stride, left, block, quick = (np.zeros(widest, dtype=np.int64) for _ in range(5))
    return env, work[0], work[1], flat, stride, left, block, np.zeros(6, dtype=np.int64), loops, quick


def _evaluate_terms(terms: Ints, begin: int, end: int, env: Ints, stack: Ints) -> int:
    """The value of one postfix expression."""
    top = -1
    for t in range(begin, end):
        op = terms[t, 0]
        if op == CONST:
            top += 1
            stack[top] = terms[t, 1]
        elif op == MADD:
            stack[top] += terms[t, 2] * env[terms[t, 1]]
        elif op == NOT:
            stack[top] = 1 - stack[top]
        elif op == GATHER:
            inside = 0 <= stack[top] < terms[t, 2]
            stack[top] = env[terms[t, 1] + stack[top]] if inside else -1
        else:
            top -= 1
            a, b = stack[top], stack[top + 1]
            if op == ADD:
                stack[top] = a + b
            elif op == MUL:
                stack[top] = a * b
            elif op in (MIN, AND):
                stack[top] = min(a, b)
            elif op in (MAX, OR):
                stack[top] = max(a, b)
            elif op == FLOOR:
                stack[top] = a // b
            elif op == MOD:
                stack[top] = a % b
            elif op == EQ:
                stack[top] = a == b
            elif op == NE:
                stack[top] = a != b
            elif op == LT:
                stack[top] = a < b
            elif op == LE:
                stack[top] = a <= b
            elif op == GT:
                stack[top] = a > b
            elif op == GE:
                stack[top] = a >= b
    return int(stack[0])


_evaluate = compiled(_evaluate_terms)


def _expression_value(terms: Ints, spans: Ints, number: int, env: Ints, stack: Ints) -> int:
    """The value of an expression. Sums of multiples of variables, and elements of index arrays at such places, are the
    most common kinds, and need no stack.
    """
    t, end = spans[number, 0], spans[number, 1]
    if terms[t, 0] == CONST:
        value = terms[t, 1]
        t += 1
        while t < end and terms[t, 0] == MADD:
            value += terms[t, 2] * env[terms[t, 1]]
            t += 1
        if t == end:
            return int(value)
        if t == end - 1 and terms[t, 0] == GATHER:
            return int(env[terms[t, 1] + value]) if 0 <= value < terms[t, 2] else -1
    return int(_evaluate(terms, spans[number, 0], end, env, stack))


_value = compiled(_expression_value)


def _begin_group(tables: Tables, cursor: Cursor, group: int, count: int) -> bool:
    """Places the references of a group for `count` iterations; False if one leaves its array, whose number is then in
    CULPRIT.
    """
    _, terms, spans, groups, references, places = tables
    env, _, stack, flat, stride = cursor[:5]
    control = cursor[7]
    first, n = groups[group, 0], groups[group, 1]
    for r in range(n):
        k = first + r
        flat[r] = _value(terms, spans, references[k, 0], env, stack)
        stride[r] = references[k, 3]
        last = flat[r] + stride[r] * (count - 1)
        elements = places[references[k, 1], 3]
        if flat[r] < 0 or last < 0 or flat[r] >= elements or last >= elements:
            control[CULPRIT], control[STATUS] = references[k, 1], OUTSIDE
            return False
    control[FIRST], control[COUNT], control[REMAINING] = first, n, count
    return True


_begin = inlined(_begin_group)


def _advance_to_references(tables: Tables, cursor: Cursor) -> int:
    """Continues to the next references; returns the steps taken.

    REMAINING stays 0 at the end, at a BOUNDARY, and after too many steps. Every reference is inside its array from the
    first iteration to the last; otherwise STATUS is OUTSIDE.
    """
    code, terms, spans = tables[0], tables[1], tables[2]
    env, stops, stack = cursor[0], cursor[1], cursor[2]
    control, loops = cursor[7], cursor[8]
    pc = control[PC]
    steps = 0
    while steps < MOST_STEPS:
        op = code[pc, 0]
        if op in (RUN, SWEEP):
            group, count = code[pc, 1], 1
            if op == SWEEP:
                v, group = code[pc, 1], code[pc, 5]
                start = _value(terms, spans, code[pc, 2], env, stack)
                stop = _value(terms, spans, code[pc, 3], env, stack)
                env[v] = start
                count = -((start - stop) // code[pc, 4]) if start < stop else 0
            pc += 1
            steps += 1
            if count:
                if _begin(tables, cursor, group, count):
                    break
                return steps
        elif op == NEXT:
            v = code[pc, 1]
            env[v] += code[pc, 2]
            pc = code[pc, 3] if env[v] < stops[v] else pc + 1
            steps += 1
            if env[v] == loops[v, ALARM] and env[v] < stops[v]:
                control[CULPRIT], control[STATUS] = v, BOUNDARY
                break
        elif op == LOOP:
            v = code[pc, 1]
            env[v] = _value(terms, spans, code[pc, 2], env, stack)
            stops[v] = _value(terms, spans, code[pc, 3], env, stack)
            if stops[v] - env[v] >= loops[v, LEAST]:
                loops[v, ALARM], loops[v, FRESH] = env[v] + loops[v, STRIDE], 1
            else:
                loops[v, ALARM] = NEVER
            pc = pc + 1 if env[v] < stops[v] else code[pc, 4]
        elif op == UNLESS:
            pc = pc + 1 if _value(terms, spans, code[pc, 1], env, stack) else code[pc, 2]
        elif op == JUMP:
            pc = code[pc, 1]
        elif op == HALT:
            control[STATUS] = DONE
            break
    control[PC] = pc
    return steps


def _iterations_in_block(flat: int, stride: int, per: int, shift: int) -> int:
    """The number of iterations, including this one, that a reference stays in its current block."""
    if stride == 0:
        return FOR_EVER
    if stride >= per or -stride >= per:
        return 1
    inside = flat & (per - 1) if shift >= 0 else flat % per
    if stride == 1:
        return int(per - inside)
    if stride > 0:
        return int((per - inside + stride - 1) // stride)
    return int(inside // -stride + 1)


advance = compiled(_advance_to_references)
stays = compiled(_iterations_in_block)


def _same_blocks(tables: Tables, cursor: Cursor, first: int, count: int, most: int) -> int:
    """In how many of `most` iterations all references stay in their blocks; finds the blocks of those that left."""
    references, places = tables[4], tables[5]
    flat, stride, left, block = cursor[3], cursor[4], cursor[5], cursor[6]
    same = most
    for r in range(count):
        if left[r] == 0:
            a = references[first + r, 1]
            shift = places[a, 2]
            block[r] = places[a, 0] + (flat[r] >> shift)
            left[r] = stays(flat[r], stride[r], places[a, 1], shift)
        same = min(same, left[r])
    return same


same_blocks = inlined(_same_blocks)

"""The compiled loops of the simulator: an interpreter of `program.Program` and an LRU list. Imports numba.

Both work on chunks, so that memory does not grow with the run and the caller can stop between chunks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from roofdsl.simulate.program import (
    ACCESS,
    ADD,
    AND,
    CONST,
    EQ,
    FLOOR,
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
    UNLESS,
)

Ints = NDArray[np.int64]
HELD, WRITE_FIRST, WRITTEN = 1, 2, 4  # bits of a line's state
MISSES, WRITE_MISSES, STORED = 0, 1, 2  # columns of the tallies
OUT_OF_BOUNDS = -1
MOST_ITERATIONS = 1 << 24  # of one call, so that a run whose guards let little through can be stopped


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` compiled on first use, kept on disk where numba finds a place to."""
    try:
        compiled: Callable[..., Any] = numba.njit(cache=True)(function)
    except RuntimeError:  # no directory that can be written: compile in every process
        compiled = numba.njit(function)
    return compiled


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


_evaluate = _compiled(_evaluate_terms)


def _fill(  # noqa: PLR0917 (numba calls by position)
    code: Ints, terms: Ints, spans: Ints, arrays: Ints, pc: int, env: Ints, work: Ints, out: Ints
) -> Any:
    """Run from instruction `pc` until `out` is full, many iterations have passed, or the program ends.

    Returns (accesses written, the next pc, iterations begun anew).

    An access is 2 * line + (1 where it writes). `arrays` has a row (first line, lines, elements per line, shift) each,
    shift -1 where the elements per line are no power of two. `work` is (stops of the loops; a stack).
    Where an access lies outside its array, returns OUT_OF_BOUNDS and the pc of the access.
    """
    n = iterations = 0
    stops, stack = work[0], work[1]
    while True:
        op = code[pc, 0]
        if op == ACCESS:
            if n == out.shape[0]:
                return n, pc, iterations
            t, end = spans[code[pc, 1], 0], spans[code[pc, 1], 1]
            flat = terms[t, 1]
            t += 1
            while t < end and terms[t, 0] == MADD:
                flat += terms[t, 2] * env[terms[t, 1]]
                t += 1
            if t < end:
                flat = _evaluate(terms, spans[code[pc, 1], 0], end, env, stack)
            a = code[pc, 2]
            line = flat >> arrays[a, 3] if arrays[a, 3] >= 0 else flat // arrays[a, 2]
            if line < 0 or line >= arrays[a, 1]:
                return OUT_OF_BOUNDS, pc, iterations
            out[n] = 2 * (arrays[a, 0] + line) + code[pc, 3]
            n += 1
            pc += 1
        elif op == NEXT:
            v = code[pc, 1]
            env[v] += code[pc, 2]
            pc = code[pc, 3] if env[v] < stops[v] else pc + 1
            iterations += 1
            if iterations == MOST_ITERATIONS:
                return n, pc, iterations
        elif op == LOOP:
            v, start, stop = code[pc, 1], code[pc, 2], code[pc, 3]
            env[v] = _evaluate(terms, spans[start, 0], spans[start, 1], env, stack)
            stops[v] = _evaluate(terms, spans[stop, 0], spans[stop, 1], env, stack)
            pc = pc + 1 if env[v] < stops[v] else code[pc, 4]
        elif op == UNLESS:
            held = _evaluate(terms, spans[code[pc, 1], 0], spans[code[pc, 1], 1], env, stack)
            pc = pc + 1 if held else code[pc, 2]
        elif op == JUMP:
            pc = code[pc, 1]
        elif op == HALT:
            return n, pc, iterations


def _touch(  # noqa: PLR0917 (numba calls by position)
    stream: Ints,
    owner: NDArray[np.uint16],
    line_bytes: Ints,
    cache_bytes: int,
    links: NDArray[np.int32],
    state: NDArray[np.uint8],
    held: int,
    tallies: Ints,
) -> int:
    """Take a chunk of accesses through the LRU list; returns the bytes held. `cache_bytes` < 0 is unbounded.

    `links[line]` is (next older, next newer); the last row is the end of the list: its newer is the oldest line,
    its older the newest. `tallies` counts, for each array, residencies begun, begun with a write, and stored.
    """
    end = links.shape[0] - 1
    for k in range(stream.shape[0]):
        line, write = stream[k] >> 1, stream[k] & 1
        if cache_bytes >= 0 and links[end, 0] != line:
            if state[line]:
                older, newer = links[line, 0], links[line, 1]
                links[older, 1] = newer
                links[newer, 0] = older
            newest = links[end, 0]
            links[line, 0] = newest
            links[line, 1] = end
            links[newest, 1] = line
            links[end, 0] = line
        if not state[line]:
            a = owner[line]
            tallies[a, MISSES] += 1
            tallies[a, WRITE_MISSES] += write
            state[line] = HELD + WRITE_FIRST * write
            held += line_bytes[a]
            while cache_bytes >= 0 and held > cache_bytes:
                oldest = links[end, 1]
                after = links[oldest, 1]
                links[end, 1] = after
                links[after, 0] = end
                b = owner[oldest]
                tallies[b, STORED] += 1 if state[oldest] & WRITTEN else 0
                state[oldest] = 0
                held -= line_bytes[b]
        if write:
            state[line] |= WRITTEN
    return held


fill = _compiled(_fill)
touch = _compiled(_touch)

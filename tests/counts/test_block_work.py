"""The work of thread blocks, compared with threads that are followed one by one in the generated loops."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import product

import pytest

from roofdsl.counts.block_work import block_work
from roofdsl.machine.find import load_machine
from roofdsl.predict.kernel_launches import launches_of_kernel
from roofdsl.predict.loops_as_launched import AsLaunched
from tests.predict.launch_threads import WARP, Three, followed, the_call
from tests.predict.machines import kernel_of


def drawn(seed: int) -> tuple[str, dict[str, int]]:
    """A kernel whose inner loops, or conditions, depend on loops over threads; its sizes."""
    draw = random.Random(seed)
    over = ["i", "j", "h"][: draw.choice((1, 1, 2, 2, 3))]
    choices = ((1, 40, 256, 300, 700), (1, 5, 31, 40, 70), (1, 3, 9))[len(over) - 1]
    sizes = {v: draw.choice(choices) for v in over}
    place = " + ".join(f"{draw.randint(1, 3)} * {v}" for v in over)
    if len(over) > 1 and draw.random() < 0.4:  # only one of them decides, and blocks are whole along the others
        kept = draw.choice(over)
        place, sizes = kept, {v: sizes[v] if v == kept else 64 for v in over[-2:]}
        sizes, over = (sizes, over[-2:]) if kept in sizes else ({kept: sizes[over[-1]], over[-1]: 64}, [kept, over[-1]])
    bounds = [f"range(min(9, ({place}) // 8 + 1))", f"range(({place}) % 5)", f"range(9 - ({place}) // 16, 11)"]
    text = f"kernel q({', '.join(f'n{v}' for v in over)}):\n    inout A: f64[{', '.join(f'n{v}' for v in over)}]\n"
    indent = "    "
    for v in over:
        text += f"{indent}parallel for {v} in range(n{v}):\n"
        indent += "    "
    target = f"A[{', '.join(over)}]"
    if draw.random() < 0.3:
        text += f"{indent}if ({place}) % 3 < 2:\n"
        indent += "    "
    if draw.random() < 0.3:
        text += f"{indent}{target} = 2 * {target} + 1\n"
    text += f"{indent}for k in {draw.choice(bounds)}:\n"
    if inner := draw.choice(("", "range(2)", "range(k % 3)", "range(k + 1)")):
        indent += "    "
        text += f"{indent}for l in {inner}:\n"
    text += f"{indent}    {target} += 1.5\n"
    return text, {f"n{v}": n for v, n in sizes.items()}


@pytest.mark.spread(40)
@pytest.mark.parametrize("seed", range(120))
def test_work_of_blocks(seed: int) -> None:
    text, sizes = drawn(seed)
    of = kernel_of(text)
    (launch,) = launches_of_kernel(of, sizes, load_machine("v100")).each
    assert isinstance(launch.how, AsLaunched) and launch.how.kernel is not None and launch.how.covered is not None
    _, made = the_call(of, sizes)
    trips, number = [len(values) for values in launch.how.covered], len(launch.how.loops)
    found = block_work(launch.how.kernel, sizes, launch.how.threads(), trips, WARP, made.grid[:number])

    every = followed(of, sizes)
    each: Counter[tuple[Three, Three]] = Counter((a.block, a.thread) for a in every)
    each.update(
        (block, thread) for block, thread, *_ in {(a.block, a.thread, a.turn, a.reference // 1000) for a in every}
    )
    if not every:
        assert found is None
        return
    assert found is not None
    blocks = [(x, y, z) for z, y, x in product(*(range(n) for n in reversed(made.grid)))]
    warps, present = Counter[tuple[Three, int]](), Counter[tuple[Three, int]]()
    longest = Counter[Three]()
    for block in blocks:
        for z, y, x in product(*(range(n) for n in reversed(made.block))):
            warp, work = (block, (x + made.block[0] * (y + made.block[1] * z)) // WARP), each[block, (x, y, z)]
            places = [b * n + t for b, n, t in zip(block, made.block, (x, y, z), strict=True)]
            warps[warp], longest[block] = max(warps[warp], work), max(longest[block], work)
            present[warp] += all(p < n for p, n in zip(places, trips, strict=False))
    of_blocks, alike = Counter[Three](), Counter[Three]()
    for (block, at), work in warps.items():
        of_blocks[block] += work
        alike[block] += present[block, at] > 0
    assert found.longest == tuple(longest[block] for block in blocks)
    assert found.mean == pytest.approx(each.total() / present.total()), text
    in_step = sum(work * present[warp] for warp, work in warps.items()) / each.total()
    assert found.in_step == pytest.approx(in_step), text
    assert shares(found.warps) == pytest.approx(shares([of_blocks[block] for block in blocks])), text
    assert shares(found.even) == pytest.approx(shares([alike[block] for block in blocks])), text


def shares(each: Sequence[float]) -> list[float]:
    """If only some loops decide, the work of a block is that of one slice of it."""
    return [work / sum(each) for work in each]

# %% [markdown]
# # Nine versions of GPP: the deck's trajectory, and a model of its steps
#
# A NERSC deck optimizes BerkeleyGW's GPP kernel on a V100 in nine versions, from 1.63 to 0.57 seconds. The deck's
# authors measured these times; they appear here as cited points, not as model results. Beside them is a model of
# four versions of the kernel. It covers operations, divisions and blocking.
#
# One command draws the deck's figure:
#
# ```sh
# roofdsl plot trajectory --points gpp_deck --machine v100_hierarchical -o trajectory.svg
# ```

# %%
from pathlib import Path

from roofdsl.loops.load import kernel, load_file
from roofdsl.machine.find import load_machine, shipped_names
from roofdsl.plot.board import save_figure
from roofdsl.plot.kinds.trajectory import Trajectory, draw_trajectory, measured_trajectory
from roofdsl.plot.roofline_points import point_of
from roofdsl.plot.roofs import level_roofs
from roofdsl.predict.kernel import predict
from roofdsl.predict.occupancy import Block, occupancy
from roofdsl.profiler.cited import points_named

V100 = load_machine("v100_hierarchical")
FILES = shipped_names("kernels")
ROOFS = level_roofs(V100, ["f64"])


def check(statement: str, holds: bool, numbers: str, why: str = "") -> None:
    """Print one statement of the deck and whether the model reproduces it."""
    print(
        f"{'reproduced' if holds else 'NOT reproduced':14}  {statement}\n{'':16}{numbers}" + (f"; {why}" if why else "")
    )


# %% [markdown]
# ## As measured
#
# The figure plots rate against work; dotted lines connect points of equal time. A step to the left does less work,
# and a step upward does it faster.

# %%
deck = points_named("gpp_deck")
save_figure(Path("gpp_deck.png"), draw_trajectory(ROOFS, [measured_trajectory(deck, "gpp_deck")]))
print(f"{deck.source}:")
for point in deck.points:
    work, rate = point.work_flops / 1e12, point.flops_per_s / 1e12
    print(f"  {point.label:16} {work:.2f} TFLOP in {point.time_s:.2f} s, {rate:.2f} TFLOP/s")

# %% [markdown]
# ## As modeled
#
# Versions 6 to 9 are written in the language (`roofdsl models show gpp_divides`). They use the deck's example
# sizes, cut to whole cache lines. These are not the sizes of its timings, so you can compare ratios, but not times.

# %%
VERSIONS = {
    "v6.simplify": "gpp_divides",
    "v7.divs": "gpp_reciprocals",
    "v8.abs": "gpp_squares",
    "v9.block": "gpp_blocks",
}
models = {label: predict(kernel(load_file(FILES[name]), name), {}, V100) for label, name in VERSIONS.items()}
steps = tuple(point_of(p, label) for label, p in models.items())
title = "The model's versions 6 to 9, at HBM"
save_figure(Path("gpp_model.png"), draw_trajectory(ROOFS, [Trajectory("model", steps)], ["HBM"], title))
for label, p in models.items():
    cost = f"{float(p.compute_s):.2f} s to compute, {float(p.memory.time_s):.2f} s from memory"
    print(f"  {label:12} {p.work / 1e12:.2f} TFLOP, {cost}: {float(p.bound_s):.2f} s, bound by {p.bound}")


# %% [markdown]
# ## Step by step


# %%
def cited(label: str):
    return next(p for p in deck.points if p.label == label)


def bytes_at_memory(label: str) -> int:
    return models[label].memory.bytes


V2, V3 = (occupancy(V100, block).warps for block in (Block(128, 186), Block(512, 128)))
check("v2: 186 registers per thread leave 8 warps on an SM", V2 == 8, f"{V2} warps by the limits of a multiprocessor")
check("v3: 128 registers and 512 threads per block give 16 warps", V3 == 16, f"{V3} warps")
check(
    "v1 to v5: order of loops, size of blocks, branches and indices",
    False,
    "the model has one kernel for all of them",
    "none of these changes what is computed; of their effects, the model states only the occupancy",
)
before, after = (float(models[v].compute_s) for v in ("v6.simplify", "v7.divs"))
check(
    "v7: reciprocals instead of divisions are faster",
    after < 0.9 * before,
    f"{before:.2f} to {after:.2f} s to compute (4 to 2 divisions per point); the deck's times fall by "
    f"{100 * (1 - cited('v7.divs').time_s / cited('v6.simplify').time_s):.0f} %",
)
fewer = cited("v7.divs").work_flops / cited("v6.simplify").work_flops
check(
    "v7: the work falls by more than a third, as a profiler counts it",
    models["v7.divs"].work < 0.8 * models["v6.simplify"].work,
    f"to {100 * fewer:.0f} % in the deck; the model's W changes by "
    f"{100 * (models['v7.divs'].work / models['v6.simplify'].work - 1):+.1f} %",
    "a profiler can count every instruction of a division, W counts one operation",
)
before, after = (float(models[v].compute_s) for v in ("v7.divs", "v8.abs"))
check("v8: a square instead of a root is faster", after < before, f"{before:.2f} to {after:.2f} s to compute")
saved = bytes_at_memory("v8.abs") / bytes_at_memory("v9.block")
check(
    "v9: blocking saves HBM traffic, 5.2 times in the deck",
    saved > 2,
    f"in the model, blocking adds traffic: {1 / saved:.1f} times as many bytes with blocks of 8 bands",
    "a wave of the plain launch covers all bands, so it reads wtilde and eps once; the deck does not state how many "
    "bands its blocks have",
)
check(
    "v9: blocking makes it faster",
    models["v9.block"].bound_s < models["v8.abs"].bound_s,
    f"{float(models['v8.abs'].bound_s):.2f} and {float(models['v9.block'].bound_s):.2f} s, bound by "
    f"{models['v9.block'].bound}",
    "in the model, memory was not the bottleneck before; the deck gains 8 %",
)

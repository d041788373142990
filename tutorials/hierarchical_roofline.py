# %% [markdown]
# # Hierarchical Roofline Analysis for GPUs, claim by claim
#
# Yang, Kurth and Williams (NERSC, 2019) draw a kernel with one symbol for each memory level of a V100. This
# tutorial does the same with exact models of two of their applications, GPP and HPGMG's smoother, and checks each
# statement of the paper against the models' numbers. A model cannot give the paper's measurements (performance,
# and the positions of its symbols), so they are not compared.
#
# Figures 1, 2, 4 and 5 are also single commands:
#
# ```sh
# roofdsl plot roofline --machine v100_hierarchical --type f64 -o figure1.svg
# roofdsl plot hierarchy gpp --at nw=1 --at nw=2 --at nw=3 --at nw=6 --machine v100_hierarchical -o figure2.svg
# roofdsl plot hierarchy gpp --set bands=64,ngpown=2 --at s=1 --at s=2 --at s=4 --at s=6 \
#     --machine v100_hierarchical -o figure4.svg
# roofdsl plot hierarchy gsrb_fp --at dim=16 --at dim=32 --machine v100_hierarchical -o figure5.svg
# ```
#
# The paper's third application, conv2d, is covered in more detail in the tutorial on the time-based roofline.

# %%
from pathlib import Path

from roofdsl.counts.work_at import work_at
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.transform import apply
from roofdsl.machine.find import load_machine, shipped_names
from roofdsl.plot.board import save_figure
from roofdsl.plot.kinds.hierarchy import draw_hierarchy
from roofdsl.plot.roofline_points import Point, point_of
from roofdsl.plot.roofs import level_roofs
from roofdsl.predict.kernel import predict
from roofdsl.predict.prediction import Prediction
from roofdsl.simulate.cache_levels import CacheLevel
from roofdsl.simulate.hierarchy import simulate

V100 = load_machine("v100_hierarchical")
ROOFS = level_roofs(V100, ["f64"])
FILES = shipped_names("kernels")


def model(name: str, **constants: int):
    return kernel(load_file(FILES[name]), name, constants)


def intensity(prediction: Prediction, level: str) -> float:
    return float(next(x for x in prediction.levels if x.name == level).intensity(prediction.work))


def check(statement: str, holds: bool, numbers: str, why: str = "") -> None:
    """Print one statement of the paper and whether the model reproduces it."""
    print(
        f"{'reproduced' if holds else 'NOT reproduced':14}  {statement}\n{'':16}{numbers}" + (f"; {why}" if why else "")
    )


# %% [markdown]
# ## GPP and the number of energies (figure 2)
#
# Every element of three large arrays is used for nw energies. The work grows with nw, but the bytes do not.

# %%
ENERGIES = (1, 2, 3, 6)
gpp = {nw: predict(model("gpp", nw=nw), {}, V100) for nw in ENERGIES}
kernels = [point_of(gpp[nw], f"nw={nw}") for nw in ENERGIES]
save_figure(Path("gpp_nw.png"), draw_hierarchy(ROOFS, kernels, "GPP over nw (figure 2 of the paper)"))

first, last = gpp[1], gpp[6]
for level in ("L1", "HBM"):
    grows = all(abs(intensity(gpp[nw], level) / intensity(first, level) / nw - 1) < 1e-3 for nw in ENERGIES)
    shown = f"from {intensity(first, level):.2f} to {intensity(last, level):.2f} FLOP/B"
    check(f"{level} intensity grows linearly with nw", grows, shown)
growth = intensity(last, "L2") / intensity(first, "L2")
check(
    "L2 intensity grows only slightly, from near that of HBM to near that of L1",
    growth < 3,
    f"it grows {growth:.2f} times, and equals that of L1 at every nw",
    "rows of 512 KiB never fit L1, whatever the registers hold",
)
ratio = min(intensity(p, "HBM") / intensity(p, "L1") for p in gpp.values())
check("HBM intensity is consistently much larger than that of L1", ratio > 2, f"{ratio:.2f} times at least")
check(
    "at low nw GPP is bound by HBM",
    "HBM" in first.bound,
    f"nw = 1 is bound by {first.bound}",
    f"the model counts {intensity(first, 'HBM'):.0f} FLOP for each byte of HBM, far above the machine balance",
)
check(
    "at higher nw performance saturates, far from the bandwidths of L1 and L2",
    gpp[3].bound == last.bound == "compute" and gpp[3].rate_per_s == last.rate_per_s,
    f"from nw = 3 on {float(last.rate_per_s) / 1e12:.2f} TFLOP/s, bound by {last.bound}",
)

# %% [markdown]
# ## The instruction mix (figure 3)
#
# If a share alpha of the instructions is fused, the kernel can reach (2 alpha + 1 - alpha) / 2 of the fused peak.
# The paper counts instructions, and a division takes several of them. The model counts operations, and a division
# takes as much time as eight others.

# %%
counts = work_at(model("gpp", nw=6), {"bands": 2, "ngpown": 2, "ncouls": 8})
alpha = float(counts.fma_fraction)
check(
    "60 % of the instructions are fused, which allows 80 % of the peak",
    abs(alpha - 0.6) < 0.02,
    f"{100 * alpha:.0f} % of the model's instructions are fused: {100 * (1 + alpha) / 2:.0f} % of the peak, and "
    f"{100 * float(last.peak_fraction):.0f} % with divisions at their cost",
    "how the compiler writes complex products and divisions is not in the model",
)

# %% [markdown]
# ## Strides (figure 4)
#
# The arrays hold complex numbers of 16 bytes, accessed at stride s. L1 and L2 move sectors of 32 bytes, HBM 64
# bytes at a time. The sizes here are smaller than the paper's but in the same regime: rows of `eps` and `wtilde`
# stay in L2, while all bands of `aqsn` together do not.

# %%
STRIDES = (1, 2, 4, 6)
strided = {s: predict(model("gpp", nw=6, s=s), {"bands": 64, "ngpown": 2}, V100) for s in STRIDES}
kernels = [point_of(strided[s], f"stride {s}") for s in STRIDES]
save_figure(Path("gpp_stride.png"), draw_hierarchy(ROOFS, kernels, "GPP over strides (figure 4), nw = 6"))
for level, flat in (("HBM", 4), ("L1", 2), ("L2", 2)):
    found = [intensity(strided[s], level) for s in STRIDES]
    holds = all(abs(x * min(s, flat) / found[0] - 1) < 0.01 for s, x in zip(STRIDES, found, strict=True))
    check(
        f"{level} intensity falls as 1/s up to stride {flat}, and no more beyond",
        holds,
        ", ".join(f"{x:.2f}" for x in found),
    )

# %% [markdown]
# ## HPGMG's smoother (figures 5 to 7)
#
# There are three variants of a red-black sweep over boxes of dim^3 cells with ghost zones of width two. The bytes
# are simulated: every access of the loops in order, through one L1 and one L2 with lines of 128 B and sectors of 32 B.
# (`roofdsl plot hierarchy` uses thread blocks and waves instead, and takes longer.) DIMS are the boxes of the paper's
# multigrid levels 5 to 7. Level 8, with 128, takes ten more seconds.

# %%
DIMS = (16, 32, 64)
CACHES = [CacheLevel(c.name, c.size_bytes, 128, write_miss="claim", sector_bytes=c.sector_bytes) for c in V100.caches]
bandwidths = {s.level: s.bytes_per_s for s in ROOFS.levels}


def smoother(variant: str, dim: int) -> Point:
    """One box of a variant, simulated: intensities by level, and the rate that the slowest level allows."""
    sizes = {"boxes": 1, "dim": dim}
    gsrb = model(f"gsrb_{variant}")
    work, moved = work_at(gsrb, sizes).total, simulate(apply(gsrb), sizes, CACHES)
    found = {"L1": moved.register_bytes, "L2": moved.bytes(0), "HBM": moved.bytes(1)}
    times = {level: b / bandwidths[level] for level, b in found.items()}
    bound = max(times, key=times.get)
    points = tuple((level, work / b) for level, b in found.items())
    return Point(f"{variant} {dim}", work / times[bound], points, "simulated", bounds=(bound,))


boxes = {(v, d): smoother(v, d) for v in ("fp", "branch", "stride2") for d in DIMS}
shown = [boxes[v, d] for v in ("fp", "branch") for d in DIMS]
title = "HPGMG's smoother, GSRB_FP and GSRB_BRANCH (figures 5, 6)"
save_figure(Path("hpgmg.png"), draw_hierarchy(ROOFS, shown, title))


def at(variant: str, dim: int, level: str) -> float:
    return dict(boxes[variant, dim].intensities)[level]


small, large = DIMS[0], DIMS[-1]
hbm = [at("fp", d, "HBM") for d in DIMS]
check(
    "HBM intensity increases with the box (ghost zones weigh less)",
    hbm == sorted(hbm),
    ", ".join(f"{x:.2f}" for x in hbm),
)
check(
    "performance follows HBM",
    all(k.bounds == ("HBM",) for k in boxes.values()),
    "; ".join(f"{k.label}: {' and '.join(k.bounds)}" for k in boxes.values() if k.bounds != ("HBM",))
    or "HBM bounds every variant and box",
)
twice = [at("fp", d, level) / at("branch", d, level) for d in DIMS for level in ("L2", "HBM")]
check(
    "GSRB_FP has twice the FLOPs and intensity of GSRB_BRANCH",
    all(1.8 < x < 2.1 for x in twice),
    f"{min(twice):.2f} to {max(twice):.2f} times at L2 and HBM",
    "at L1 the intensities are nearly the same: half the work needs almost half the bytes",
)
constant = {at("fp", d, "L1") for d in DIMS}
check("L1 intensity is roughly constant", len(constant) == 1, f"{constant.pop():.3f} FLOP/B")
near, far = (at("fp", large, b) / at("fp", large, a) for a, b in (("L1", "L2"), ("L2", "HBM")))
check(
    "much reuse in L1, virtually none in L2",
    near > 2 and far < 1.2,
    f"{near:.1f} times from L1 to L2, but {far:.1f} times from L2 to HBM for boxes of {large}",
    "the sequential loops reuse planes in L2, the authors' thread blocks in L1",
)
loss = at("stride2", large, "HBM") / at("stride2", small, "HBM")
check(
    "GSRB_STRIDE2 loses intensity at L2 and HBM for large boxes",
    loss < 1,
    f"its HBM intensity grows {loss:.2f} times from {small} to {large}, like that of GSRB_BRANCH",
    "the same elements are touched in nearly the same order; the paper shows the L1 misses, but not their cause",
)

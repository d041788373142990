# %% [markdown]
# # The time-based roofline, from models
#
# *Time-Based Roofline for Deep Learning Performance Analysis* (Wang, Yang, Farrell, Zhang, Kurth, Williams, 2020)
# examines two deep-learning kernels on a V100: a 2D convolution of ResNet-50's size and an LSTM, in PyTorch and
# two versions of TensorFlow. The paper measures. This tutorial predicts everything, from loops in `.roof` files
# (`models/kernels/conv2d*.roof`, `winograd.roof`, `fft.roof`, `lstm.roof`) and from the paper's own machine
# (`v100_time_paper`).
#
# Each section draws the situation of one or two of the paper's figures, with a command for each of their parts. It
# then goes through the paper's statements about them: which ones the model reproduces, and which ones it cannot know.
# The paper does not print the values of its points, and this tutorial does not invent any. A model derived from loops
# cannot predict what the frameworks chose to run (cuDNN's algorithms, conversions, padding), but it gives the cost of
# each choice.

# %%
from __future__ import annotations

import shlex
from functools import cache

from roofdsl.cli.main import run
from roofdsl.lang.checked import CheckedFile
from roofdsl.loops.load import load_file
from roofdsl.machine.find import load_machine, shipped_names
from roofdsl.predict.options import Options
from roofdsl.predict.program import ProgramPrediction, predict_launches
from roofdsl.predict.threshold import Question, program_bounds

MACHINE = "v100_time_paper"
V100 = load_machine(MACHINE)
TENSOR = Options(unit="tensor")
PLAIN = Options()


def draw(command: str, figure: str) -> None:
    """Run one roofdsl command, which writes its figure into the current folder."""
    print(f"$ roofdsl {command} -o {figure}.svg")
    assert run([*shlex.split(command), "-o", f"{figure}.svg"]) == 0
    if "get_ipython" in globals():  # in a notebook
        from IPython.display import SVG, display

        display(SVG(f"{figure}.svg"))


@cache
def file_of(program: str) -> CheckedFile:
    """The shipped file that has this program."""
    return load_file(shipped_names("kernels")[program])


@cache
def predicted(program: str, options: Options = TENSOR, **sizes: int) -> ProgramPrediction:
    """All launches of a shipped program on the paper's machine."""
    return predict_launches(file_of(program), program, sizes, V100, options)


def shown(statement: str, holds: bool) -> None:
    """Print a statement of the paper and check it against the model's numbers."""
    print(f"  reproduced: {statement}")
    assert holds, statement


def not_shown(statement: str, why: str) -> None:
    print(f"  not from a model: {statement}\n    ({why})")


# %% [markdown]
# ## The machine
#
# A launch takes 4.2 us. The Empirical Roofline Toolkit (ERT) measured 828.8 GB/s, 15.16 TFLOP/s in single precision and
# 29.18 in half precision. The paper computes the peak of the matrix units from the clock: 80 x 8 x 1.312 GHz x 4^3 x 2.
# (At that clock the chip has too few lanes for 15.16 and 29.18; `docs/errata.md` lists what in the paper does not
# follow from its own premises.)

# %%
peak = V100.rate("f16", "tensor").per_s
beta = V100.main_memory.bandwidth_bytes_per_s
launch_s = V100.launch_s
assert launch_s is not None
print(f"balance of the matrix units: {float(peak / beta):.2f} FLOP/B")
shown("the machine balance is 129.68", abs(float(peak / beta) - 129.68) < 0.005)
print(f"one launch is worth {float(peak * launch_s) / 1e9:.4f} GFLOP of matrix products")
shown(
    "0.4514 GFLOP (0.4452 is printed, from a peak of 106 TFLOP/s instead of 107.48)",
    abs(float(peak * launch_s) / 1e9 - 0.4514) < 5e-5,
)

# %% [markdown]
# ## Figure 1: run times alone
#
# A convolution with 256 filters in half precision, forward and backward. The bars show how long it takes, but not
# why.

# %%
draw(f"plot runtime conv2d_half conv2d_backward --machine {MACHINE} --set f=256 --unit tensor "
     "--at batch=16 --at batch=64", "figure_1")  # fmt: skip
forward, backward = predicted("conv2d_half", f=256), predicted("conv2d_backward", f=256)
shown("the backward pass takes longer", backward.total.bound_s > forward.total.bound_s)
not_shown("TensorFlow 2 takes far longer in the backward pass", "another algorithm was chosen; the loops are the same")

# %% [markdown]
# ## Figure 2: why FLOP/s are not enough
#
# The paper draws two unnamed kernels. The one with higher FLOP/s has the longer run time. The models contain such
# a pair: a convolution with 9 x 9 filters in single precision, by direct loops and by Fourier transforms. (a) is
# the classic roofline with launches as a ceiling, (b) the complexity plane, (c) the time plane, (d) both in one
# figure. (A warning says that the ceilings of launches lie above the roof, so that they are not drawn. Figure 8 has the
# same warnings.)

# %%
PAIR = f"conv2d_single conv2d_fft --machine {MACHINE} --set r=9,s=1"
draw(f"plot roofline {PAIR} --launches", "figure_2a")
draw(f"plot complexity {PAIR}", "figure_2b")
draw(f"plot time {PAIR}", "figure_2c")
draw(f"plot complexity-time {PAIR}", "figure_2d")
direct, fft = predicted("conv2d_single", PLAIN, r=9, s=1).total, predicted("conv2d_fft", PLAIN, r=9, s=1).total
for p in (direct, fft):
    rate, time = float(p.rate_per_s) / 1e12, float(p.bound_s) * 1e3
    print(f"  {p.kernel}: {p.work / 1e9:.1f} GFLOP at {rate:.2f} TFLOP/s in {time:.2f} ms")
shown("higher locality and FLOP/s, but slower",
      direct.rate_per_s > 5 * fft.rate_per_s and (direct.intensity or 0) > (fft.intensity or 0)
      and direct.bound_s > fft.bound_s)  # fmt: skip
shown("one is bound by compute and the other by bandwidth", (direct.bound, fft.bound) == ("compute", "HBM"))

# %% [markdown]
# ## Figure 3: the batch
#
# The images are 112 x 112 x 64, with 64 filters of 3 x 3 and stride 2. The batches are 16, 32 and 64, in half and
# single precision, and in the backward pass.

# %%
BATCHES = "--at batch=16 --at batch=32 --at batch=64"
draw(
    f"plot complexity-time conv2d_half conv2d_single conv2d_backward --machine {MACHINE} --unit tensor {BATCHES}",
    "figure_3",
)
halves = [predicted("conv2d_half", batch=n).total for n in (16, 32, 64)]
single = predicted("conv2d_single", PLAIN).total
intensities = [float(p.intensity or 0) for p in halves]
print(f"  intensities: {', '.join(f'{i:.2f}' for i in intensities)} FLOP/B")
shown("the intensity does not depend on the batch (within 0.2 %)", max(intensities) / min(intensities) < 1.002)
ratio = single.memory.bytes / halves[0].memory.bytes
print(f"  bytes in single over half precision: {ratio:.3f}")
shown("in theory twice the data in single precision", abs(ratio - 2) < 0.01)
not_shown(
    "TensorFlow moves three times as much, PyTorch nearly the same", "conversions that the frameworks add or hide"
)
kept, bare = predicted("conv2d_housekept").total, halves[0]
print(f"  with conversions and changes of layout: {kept.memory.bytes / bare.memory.bytes:.1f} times the bytes, "
      f"{float(kept.bound_s / bare.bound_s):.1f} times the time, the same W")  # fmt: skip
shown("launches without operations for padding and rearranging cost time",
      kept.work == bare.work and kept.bound_s > 5 * bare.bound_s)  # fmt: skip
slow = predicted("conv2d_half", PLAIN).total
print(f"  without matrix units: {float(slow.bound_s / bare.bound_s):.1f} times the time")
not_shown("TensorFlow 1 does not use the matrix units at small batches", "its choice; the line above shows the cost")

# %% [markdown]
# ## Figures 4 and 5: the filters
#
# With 64 to 512 filters: forward in single precision, backward in half precision. (That intensity and FLOP/s rise with
# the filters is checked with the forward pass in half precision.)

# %%
FILTERS = "--at f=64 --at f=128 --at f=256 --at f=512"
draw(f"plot complexity-time conv2d_single --machine {MACHINE} {FILTERS}", "figure_4")
draw(f"plot complexity-time conv2d_backward --machine {MACHINE} --unit tensor {FILTERS}", "figure_5")
found = [predicted("conv2d_half", f=n).total for n in (64, 128, 256, 512)]
shown("more filters, higher intensity", [p.intensity for p in found] == sorted(p.intensity or 0 for p in found))
shown("and higher FLOP/s, up to the peak", found[0].rate_per_s < found[1].rate_per_s == found[2].rate_per_s == peak)
not_shown(
    "PyTorch's single precision stays at one intensity", "its implementation moves data in proportion to its work"
)
whole, parts = program_bounds(file_of("conv2d_backward"), "conv2d_backward", {}, V100, Question("f", TENSOR))
print(f"  backward: bound by compute from {whole.first_without('HBM')} filters on")
shown("at 512 filters the backward pass is bound by compute, at 64 by memory",
      predicted("conv2d_backward", f=512).total.bound == "compute"
      and predicted("conv2d_backward").total.bound == "HBM")  # fmt: skip
not_shown("the algorithm changes with every number of filters", "cuDNN's heuristics")

# %% [markdown]
# ## Figure 6: the kernel size, on the classic roofline

# %%
draw(
    f"plot roofline conv2d_half conv2d_single --machine {MACHINE} --unit tensor --at r=3 --at r=7 --at r=9", "figure_6"
)
found = [predicted("conv2d_half", r=n).total for n in (3, 7, 9)]
moved = [p.memory.bytes for p in found]
print(
    f"  W: {', '.join(f'{p.work / 1e9:.1f}' for p in found)} GFLOP; Q: {', '.join(f'{q / 1e6:.1f}' for q in moved)} MB"
)
shown(
    "the work grows, but the data hardly change", found[2].work > 7 * found[0].work and max(moved) / min(moved) < 1.05
)
shown("so intensity and FLOP/s grow", found[0].rate_per_s < found[1].rate_per_s == found[2].rate_per_s == peak)
not_shown(
    "PyTorch's single precision does not go beyond one rate", "a limit of that implementation, below every roof here"
)
shown("an alternative algorithm may then be the better one", fft.bound_s < direct.bound_s)

# %% [markdown]
# ## Figures 7 and 8: the stride
#
# With strides of 1, 2 and 3: forward on the planes, together with the launches around it, and backward on the
# classic roofline.

# %%
STRIDES = "--at s=1 --at s=2 --at s=3"
draw(f"plot complexity-time conv2d_half conv2d_housekept --machine {MACHINE} --unit tensor {STRIDES}", "figure_7")
draw(f"plot roofline conv2d_backward conv2d_single --machine {MACHINE} --unit tensor --launches {STRIDES}", "figure_8")
one, two, three = (predicted("conv2d_half", s=s).total for s in (1, 2, 3))
less_work, less_data = one.work / three.work, one.memory.bytes / three.memory.bytes
print(f"  from stride 1 to 3 the work falls {less_work:.1f} times, the bytes {less_data:.2f} times")
shown("the work falls far more than the data (8.8 times; 25.27 to 14.06 million elements)",
      round(less_work, 1) == 8.8
      and (round(one.memory.bytes / 2e4), round(three.memory.bytes / 2e4)) == (2527, 1406))  # fmt: skip
shown("at stride 1 the forward pass is bound by compute", one.bound == "compute" and two.bound == "HBM")
kept = [predicted("conv2d_housekept", s=s).total for s in (1, 2, 3)]
shown("the number of launches stays the same, so their share grows",
      kept[0].launches == kept[2].launches
      and kept[2].launch_s / kept[2].bound_s > kept[0].launch_s / kept[0].bound_s)  # fmt: skip
in_single = predicted("conv2d_single", PLAIN, s=3).total
slower = float(in_single.bound_s / three.bound_s)
print(f"  stride 3 in single precision without matrix units: {slower:.1f} times the time")
not_shown("TensorFlow falls back to single precision at stride 3", "its choice; the line above shows the cost")

# %% [markdown]
# ## Figure 9: the LSTM over the batch
#
# The LSTM has batch 16, sequence 16, 32 features and 16 hidden units. PyTorch's 36 launches are one product and
# one elementwise kernel for each of 16 steps, 2 products in half precision, and 2 data moves. TensorFlow's 277 and
# 243 launches are cited; only their boxes are drawn. All these counts are of the forward pass, and so are the
# statements below. The figure draws the backward pass, as the paper does.

# %%
draw(f"plot complexity-time lstm_backward --machine {MACHINE} --type f16 --unit tensor --points lstm_launches "
     "--at batch=16 --at batch=32 --at batch=64 --at batch=128", "figure_9")  # fmt: skip
lstm = predicted("lstm_forward", PLAIN)
counts = {row.total.kernel: row.total.launches for row in lstm.by_kernel}
print(f"  {counts}")
shown("36 launches: 16 + 16 + 2 + 2", sorted(counts.values()) == [2, 2, 16, 16] and lstm.total.launches == 36)
print(f"  launches take {float(lstm.total.launch_s) * 1e6:.1f} us; compute and memory less than a microsecond each")
shown("every launch is bound by its overhead", lstm.time_by_bound == (("launch", lstm.total.bound_s),))
batches = {n: predicted("lstm_forward", PLAIN, batch=n).total for n in (16, 32, 64, 128)}
shown("run time does not depend on the batch", len({p.bound_s for p in batches.values()}) == 1)
shown("work and data do", batches[128].work == 8 * batches[16].work)
not_shown(
    "277 and 243 launches in TensorFlow",
    "counted in a profile, not a consequence of the LSTM's equations (the paper's equation 5)",
)
whole, parts = program_bounds(file_of("lstm_forward"), "lstm_forward", {}, V100, Question("batch"))
leaves = [b.first_without("launch") or 0 for b in parts]
print(f"  the first launch stops being bound by its overhead at a batch of {min(leaves):,}, the sum of all at "
      f"{whole.first_without('launch'):,}, the last at {max(leaves):,}")  # fmt: skip
per_sample = lstm.total.work / 16
samples = float(peak * launch_s) / per_sample
print(f"  {per_sample:,.0f} FLOP per sample: in one launch time the matrix units do {samples:,.0f} samples, in 36 "
      f"{36 * samples:,.0f}")  # fmt: skip
shown("thousands of samples in a batch would be needed (the paper's estimate is for one launch)",
      1000 < samples < 10_000)  # fmt: skip

# %% [markdown]
# On the command line, `roofdsl threshold lstm_forward --machine v100_time_paper --over batch` answers the same
# question.

# %%
assert run(shlex.split(f"threshold lstm_forward --machine {MACHINE} --over batch")) == 0

# %% [markdown]
# ## Figure 10: the LSTM over the sequence, and the two other sweeps

# %%
draw(f"plot complexity-time lstm_forward lstm_forward_fused --machine {MACHINE} "
     "--at sequence=16 --at sequence=32 --at sequence=64 --at sequence=128", "figure_10")  # fmt: skip
sequences = {n: predicted("lstm_forward", PLAIN, sequence=n).total for n in (16, 32, 64, 128)}
shown("launches, and with them the run time, are proportional to the sequence (apart from 4 launches)",
      all(p.launches == 2 * n + 4 and p.bound == "launch" for n, p in sequences.items()))  # fmt: skip
intensities = [float(p.intensity or 0) for p in sequences.values()]
shown("the intensity stays constant (within 2 %)", max(intensities) / min(intensities) < 1.02)
rates = [float(p.rate_per_s) for p in sequences.values()]
print(f"  {', '.join(f'{r / 1e9:.2f}' for r in rates)} GFLOP/s")
shown("the FLOP/s stay nearly constant; the 4 launches matter less", max(rates) / min(rates) < 1.12)
others = [predicted("lstm_forward", PLAIN, **{name: n}).total for name in ("features", "hidden") for n in (16, 32, 64)]
shown("features and hidden size: the same launches, the same time",
      {(p.launches, p.bound_s) for p in others} == {(36, lstm.total.bound_s)})  # fmt: skip
fused = predicted("lstm_forward_fused", PLAIN).total
print(f"  one launch per step: {float(fused.bound_s) * 1e6:.1f} us; one for all steps: "
      f"{float(predicted('lstm_forward_persistent', PLAIN).total.bound_s) * 1e6:.1f} us")  # fmt: skip
shown("fewer launches help", fused.bound_s < lstm.total.bound_s / 2)

# %% [markdown]
# ## What the models show, and what they do not
#
# The models reproduce the statements that follow from the computation and the data it must move: how work, bytes,
# intensity and bounds depend on batch, filters, kernel size and stride; that housekeeping costs time; that an
# algorithm with fewer FLOP/s can be faster; that the LSTM's time is launch overhead. They do not reproduce
# choices: which algorithm cuDNN takes, what a framework converts and copies, how many launches TensorFlow makes.
# These must be measured. `roofdsl import ncu` reads such measurements from a profiler, and `--points` draws them on the
# same planes.
#
# All times in this tutorial are predictions, not measurements.

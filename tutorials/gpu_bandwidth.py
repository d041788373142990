# %% [markdown]
# # From a data sheet to a measured curve
#
# A data sheet promises a GPU's memory bandwidth. A small launch gets a small part of it. This notebook goes from the
# promise to the measured curve in three steps: the data sheet, Little's law with a measured latency, and a smooth law.
# All measured points are published ones, so it needs no GPU. At the end it says what the model misses.
#
# The GPU is an A100 with 40 GB. The points are from gpu-benches (Ernst, `gpu-stream/a100_40.txt`). Two blocks are
# resident on each of the 108 multiprocessors, and each thread handles one f64 element. Larger blocks put more bytes in
# flight.

# %%
from pathlib import Path
from statistics import mean

from matplotlib.figure import Figure

from roofdsl.api import machine
from roofdsl.plot.board import save_figure
from roofdsl.predict.bytes_in_flight import sustained

a100 = machine("a100_40")
BETA = float(a100.main_memory.bandwidth_bytes_per_s)
BLOCKS = 2 * a100.units

THREADS = (32, 64, 128, 192, 256, 384, 512, 640, 768, 896, 1024)
PUBLISHED = {  # GB/s, by threads of a block
    "read": (81, 158, 304, 439, 579, 823, 1042, 1203, 1341, 1427, 1490),
    "triad": (210, 403, 743, 1002, 1231, 1346, 1359, 1371, 1367, 1363, 1360),
}
LOADED, STORED = {"read": 8, "triad": 16}, {"read": 0, "triad": 8}


def in_flight(loop: str, threads: int) -> float:
    """Bytes of all resident threads, each with one element of every array."""
    return BLOCKS * threads * (LOADED[loop] + STORED[loop])


def error(loop: str, rates: list[float]) -> float:
    """The mean of |expected / measured - 1|."""
    return mean(abs(rate / (1e9 * point) - 1) for rate, point in zip(rates, PUBLISHED[loop], strict=True))


# %% [markdown]
# ## Step 1: the data sheet
#
# A roofline takes the bandwidth of the data sheet, whatever the launch. It is a bound: no point is above it. As an
# estimate for small launches, it is useless.

# %%
sheet = {loop: [BETA for _ in THREADS] for loop in PUBLISHED}
for loop in PUBLISHED:
    print(f"{loop:6} data sheet: off by {error(loop, sheet[loop]):.0%}")
assert all(1e9 * point <= BETA for points in PUBLISHED.values() for point in points)

# %% [markdown]
# ## Step 2: Little's law
#
# A bandwidth needs bytes in flight: latency times bandwidth. With fewer, the rate is the bytes in flight over the
# latency. The machine states the latency that a pointer chase measures, one load after another.

# %%
latency_s = float(dict(a100.latencies)["HBM"])
needed = latency_s * BETA
print(f"latency {1e9 * latency_s:.0f} ns: {needed / 1e3:.0f} kB in flight sustain the bandwidth,")
print(f"that is, those of {needed / BLOCKS / 8:.0f} threads per block, each reading one f64 element")
little = {loop: [min(BETA, in_flight(loop, t) / latency_s) for t in THREADS] for loop in PUBLISHED}
for loop in PUBLISHED:
    print(f"{loop:6} Little's law: off by {error(loop, little[loop]):.0%}")
    assert error(loop, little[loop]) < error(loop, sheet[loop])

# %% [markdown]
# The shape is right: a slope, then the roof. The slope is too steep. Between the start of a thread and the start of the
# one that takes its place (a *round*), more happens than waiting for one load: addresses are computed, a block has to
# be started, and requests queue behind others. The first point of each loop says how long a round takes.

# %%
for loop in PUBLISHED:
    round_s = in_flight(loop, THREADS[0]) / (1e9 * PUBLISHED[loop][0])
    print(f"{loop:6} {1e9 * round_s:.0f} ns from one round to the next (latency: {1e9 * latency_s:.0f} ns)")
    assert round_s > 1.5 * latency_s

# %% [markdown]
# ## Step 3: a smooth law
#
# Near the corner both limits are close, and queues form before either is reached. With F the rate that the latency
# allows and B what the memory sustains, the rate is (F^-p + B^-p)^(-1/p). The machine file states latency, B and p for
# reads, writes and mixtures of both, in its `sustained` lines. They were fitted to the published curves: three
# numbers for the 32 published points of `read` (this notebook uses 11 of them), three for those of `init`, which only
# writes, and three for those of `scale` and `triad` together, which do both.

# %%
smooth = {}
for loop in PUBLISHED:
    law = sustained(a100, LOADED[loop], STORED[loop])
    assert law is not None
    rate, power = float(law.bandwidth_bytes_per_s), float(law.exponent)
    flows = [in_flight(loop, t) / float(law.latency_s) for t in THREADS]
    smooth[loop] = [(flow**-power + rate**-power) ** (-1 / power) for flow in flows]
    print(f"{loop:6} smooth law: off by {error(loop, smooth[loop]):.1%}")
    assert error(loop, smooth[loop]) < 0.05

# %%
figure = Figure(figsize=(8.4, 3.8), layout="constrained")
panels = figure.subplots(1, 2, sharey=True)
for panel, loop in zip(panels, PUBLISHED, strict=True):
    resident = [2 * t for t in THREADS]
    panel.plot(resident, [r / 1e9 for r in sheet[loop]], ":", color="0.4", label="data sheet")
    panel.plot(resident, [r / 1e9 for r in little[loop]], "--", color="0.4", label="Little's law, pointer chase")
    panel.plot(resident, [r / 1e9 for r in smooth[loop]], color="C0", label="smooth law")
    panel.plot(resident, PUBLISHED[loop], "o", color="C3", markersize=4, label="published (gpu-benches)")
    panel.set(title=f"{loop}, A100 with 40 GB", xlabel="resident threads of a multiprocessor", ylim=(0, 1700))
panels[0].set_ylabel("GB/s")
panels[1].legend(loc="lower right", fontsize="small")
save_figure(Path("gpu_bandwidth.png"), figure)

# %% [markdown]
# ## What the model misses
#
# - **The law is descriptive.** Its exponent has no derivation, and the time of a round was read off the curve. A GPU
#   whose curve nobody has measured has only the first two steps. (`roofdsl characterize --backend gpu` measures yours.)
# - **A sustained bandwidth below the data sheet's.** A triad levels off at 87 to 88 % of it. The law states that, and
#   does not explain it.
# - **Stencils on other GPUs.** On an MI210, a stencil of five points streams at a lower rate than a copy, although four
#   of its five loads hit a cache. That cache answers in order, so hits wait for misses. The model takes this into
#   account, and is still off by 11 %.
# - **Clocks.** A card lowers its clock to stay within its power limit. On a T4, batches of products shorter than 10 ms
#   run either at 3.7 or at 6.8 TFLOP/s. The machine file states one clock.
# - **Normalization on a V100.** With rows of 768 to 1280 elements, layer normalization takes a third longer there than
#   the model says, as if the first cache held half as much.
#
# `python -m benchmarks published` compares thousands of published points with these laws.
# [The benchmarks page](../docs/benchmarks.md#published-measurements-of-gpus) lists the results, and what the laws miss.

# %%
share = PUBLISHED["triad"][-1] * 1e9 / BETA
print(f"a triad sustains {share:.0%} of the data sheet's bandwidth")
assert 0.85 < share < 0.9

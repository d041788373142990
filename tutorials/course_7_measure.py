# %% [markdown]
# # 7. Your own machine
#
# Everything so far was on paper. Now the paper is held against the computer you are sitting at: its ceilings
# are measured, kernels are predicted by them, generated from the same text, verified, timed, and drawn under
# the roof. The first cell takes about half a minute; close what else is running.

# %%
from roofdsl.api import compare, measure, roofline
from roofdsl.measure.characterize_cpu import characterize_cpu
from roofdsl.measure.machine_file import machine_text, to_machine

found = characterize_cpu(quick=True, cores=1)
mine = to_machine(found)
lines = machine_text(found).splitlines()
print("\n".join(line for line in lines if line.lstrip().startswith(("peak f64", "cache", "memory"))))

# %% [markdown]
# That is a machine as in notebook 3, and every number says how it was found. Which caches were seen in the
# curve of bandwidth over working sets, and where did the system report another size? In a virtual machine it
# often does.
#
# ## Predict first
#
# For each of these, write down what will bound it, and how near to the prediction it will come:
#
# - `triad` in memory, which is nearly how the bandwidth was measured;
# - `gemv` in memory: long rows of one matrix;
# - `matmul` as three plain loops: its peak is near, is it not?

# %%
last = mine.caches[-1].size_bytes if mine.caches else 32 << 20
n_vector = 2 * last // 24  # three arrays, together twice the last cache
n_matrix = int((2 * last / 8) ** 0.5)
runs = [("triad", n_vector), ("gemv", n_matrix), ("matmul", 256)]
results = [compare(name, measure(name, n=n), mine) for name, n in runs]
for r in results:
    p = r.prediction
    print(f"{p.kernel:7} predicted {float(p.expected_s) * 1e3:8.3f} ms, measured {r.measured_s * 1e3:8.3f} ms: "
          f"{r.ratio:.2f} of the prediction, bound by {p.bound}")  # fmt: skip

# %%
roofline(*results, on=[mine], path="course_7_measured.png", title="Predicted (filled) and measured (open)")

# %% [markdown]
# ## Explain
#
# A model is an upper bound, and the ratio says how much of it a code reaches. Streams should come near to 1.
# The plain product may come near its prediction too, which is far below the peak: each step of its inner loop
# asks the first cache for more than that can deliver. What a compiler keeps in registers, the model counts all
# the same (`advise` puts tiles there). Every result was compared with an evaluation in numpy before it was
# timed:

# %%
for r in results:
    print(f"{r.prediction.kernel:7} verified against {r.measurement.verified.against}")
    assert r.measurement.verified.max_error >= 0
    assert r.ratio > 0

# %% [markdown]
# A ratio above 1 is more interesting than one below: it says that the model or the machine file is wrong. Then
# `roofdsl validate` lists the likely causes, and finding the right one teaches more than ten confirmations.
#
# ## To do
#
# - `roofdsl characterize -o mine.roof --plot sweep.svg`: all cores, in full, in under two minutes.
# - `roofdsl validate gemv matmul_blocked --set n=2000,b=40 --machine mine.roof --plot overlay.svg`.
# - With a GPU: `pip install 'roofdsl[gpu12]'`, and the same with `--backend gpu`.
# - `roofdsl exercise show measure-triad`.

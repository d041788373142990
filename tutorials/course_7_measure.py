# %% [markdown]
# # 7. Your own machine
#
# So far, everything was on paper. Now you compare it with your own computer. roofdsl measures its ceilings,
# predicts kernels, generates code from the same source, verifies and times it, and draws the results under the
# roof. The first cell takes about half a minute. Close all other programs.

# %%
from roofdsl.api import compare, measure, roofline
from roofdsl.measure.characterize_cpu import characterize_cpu
from roofdsl.measure.machine_file import machine_text, to_machine

found = characterize_cpu(quick=True, cores=1)
mine = to_machine(found)
lines = machine_text(found).splitlines()
print("\n".join(line for line in lines if line.lstrip().startswith(("peak f64", "cache", "memory"))))

# %% [markdown]
# This is a machine as in notebook 3. roofdsl measured the bandwidth for working sets of many sizes: beyond a cache, it
# falls. The `source` of each cache above says where. Where does the system report a different size? In a virtual
# machine it often does.
#
# ## Predict first
#
# For each of these kernels, write down what will bound it, and how close it will come to the prediction:
#
# - `triad` in memory, which is nearly how the bandwidth was measured;
# - `gemv` in memory, with long rows of one matrix;
# - `matmul` as three plain loops: does it come close to the peak?

# %%
last = mine.caches[-1].size_bytes if mine.caches else 32 << 20
n_vector = 2 * last // 24  # three arrays, together twice the last cache
n_matrix = int((2 * last / 8) ** 0.5)
runs = [("triad", n_vector), ("gemv", n_matrix), ("matmul", 256)]
results = [compare(name, measure(name, n=n), mine) for name, n in runs]
for r in results:
    p = r.prediction
    print(f"{p.kernel:7} bound {float(p.bound_s) * 1e3:8.3f} ms, measured {r.measured_s * 1e3:8.3f} ms: "
          f"{r.bound_ratio:.2f} of the bound, bound by {p.bound}")  # fmt: skip

# %%
roofline(*results, on=[mine], path="course_7_measured.png", title="Predicted (filled) and measured (hollow)")

# %% [markdown]
# ## Explain
#
# The bound is an upper limit on performance, and the ratio says how much of it the code reaches. Streams should come
# close to 1. The plain product may come close to its bound too, but that is far below the peak: each step of its
# inner loop asks for more than the first cache can deliver. (The bound already leaves out values that the compiled
# code keeps in a register through the inner loop. `advise` finds register blocks that avoid more accesses.) Every
# result was verified against numpy before it was timed:

# %%
for r in results:
    print(f"{r.prediction.kernel:7} verified against {r.measurement.verified.against}")
    assert r.measurement.verified.max_error >= 0
    assert r.bound_ratio > 0

# %% [markdown]
# A ratio above 1 is more interesting than one below: the model or the machine file must be wrong. `roofdsl
# validate` then lists likely causes. Finding the right one teaches more than ten confirmations. (The column `ratio` of
# `validate` compares with the expected time instead, which is the subject of notebook 8. It may be above 1.)

# %% [markdown]
# ## Check yourself
#
# The bound is 2 ms and the measurement 2.5 ms. What is the ratio?
#
# <details>
# <summary>Answer</summary>
#
# 0.8: the time of the bound over the measured one. The code reaches 80 % of what the model allows.
#
# </details>
#
# You measure a ratio of 1.3. Is the code better than the bound?
#
# <details>
# <summary>Answer</summary>
#
# No code exceeds a correct upper bound on performance. Most often, the machine file states too low a rate, or the data
# were in a cache.
#
# </details>

# %%
# The answers, checked.
r = results[0]
assert abs(r.bound_ratio - float(r.prediction.bound_s) / r.measured_s) < 1e-9
print("checked")

# %% [markdown]
# ## To do
#
# - `roofdsl characterize -o mine.roof --one-core one.roof --plot sweep.svg`: all cores and one of them, in full, in
#   one to three minutes.
# - `roofdsl validate gemv matmul_blocked --set n=2000,b=40 --machine one.roof --plot overlay.svg`. This runs the loops
#   on one core. With `--variant parallel`, all cores run; compare that with `mine.roof`.
# - With a GPU: `pip install '.[gpu12]'` in the clone, `roofdsl characterize --backend gpu -o gpu.roof`, and `validate`
#   with `--backend gpu --machine gpu.roof`.
# - `roofdsl exercise show measure-triad`.
#
# Next: `course_8_expected.py`.

# %% [markdown]
# # 3. The roofline
#
# At its simplest, a machine is two numbers: operations per second and bytes per second. A kernel is two numbers
# too: W and Q. A kernel cannot take less time than the longer of W over the first rate and Q over the second. The
# roofline is the picture of this. This notebook takes about 20 minutes.

# %%
from roofdsl.api import machine, predict, roofline

# %% [markdown]
# ## A machine
#
# Take a data sheet: 7 TFLOP/s of fused multiply-adds in double precision, and 900 GB/s. In the language every rate
# has a unit, and every number should state its source.

# %%
deck = machine("""
machine gpu "A GPU of 7 TFLOP/s and 900 GB/s":
    peak f64 fma 7 TFLOP/s source "data sheet"
    memory HBM 16 GiB, 900 GB/s source "data sheet"
""")

# %% [markdown]
# The ridge is the intensity at which compute time equals memory time: 7000 / 900 = 7.8 operations per byte. A
# kernel below it waits for memory, a kernel above it for arithmetic. On which side is a matrix-vector product?

# %%
p = predict("gemv", deck, n=4096)
print(f"I = {float(p.intensity):.3f} FLOP/byte, ridge at {float(p.ridge):.2f}")
print(f"compute {float(p.compute_s) * 1e6:.1f} us, memory {float(p.memory.time_s) * 1e6:.1f} us: bound by {p.bound}")
print(f"{float(p.rate_per_s) / 1e9:.0f} GFLOP/s, {100 * float(p.rate_per_s / 7e12):.1f} % of the peak")
assert p.bound == "HBM"

# %% [markdown]
# It reaches 3 % of the peak, and nothing is wrong with the code. This is the first lesson: compare a kernel with
# the roof above it, not with the peak of the machine.

# %%
points = [predict(name, deck, n=n) for name, n in (("gemv", 4096), ("matmul", 64), ("matmul", 1024), ("minplus", 1024))]
roofline(*points, on=[deck], path="course_3_roofline.png", title="Four points under one roof")

# %% [markdown]
# Look at `minplus`. It does as many operations on as many bytes as the matrix product, but reaches only half its
# rate. A minimum and an addition do not fuse, so its own roof is half of the peak (notebook 6).

# %% [markdown]
# ## Launches
#
# A GPU needs some microseconds to start a kernel. At small sizes the launch takes most of the time:

# %%
real = machine("v100_deck")
for n in (64, 256, 1024, 4096):
    p = predict("gemv", real, n=n)
    print(f"n = {n:5}: {float(p.bound_s) * 1e6:9.2f} us, bound by {p.bound}")

# %% [markdown]
# ## Check yourself
#
# A machine has 7 TFLOP/s and 900 GB/s. At which intensity is its ridge point?
#
# <details>
# <summary>Answer</summary>
#
# At 7000/900 = 7.78 FLOP/byte. There, computing takes as long as moving the data.
#
# </details>
#
# What is the highest rate that a kernel with I = 2 FLOP/byte can reach on it?
#
# <details>
# <summary>Answer</summary>
#
# 1.8 TFLOP/s: 2 FLOP/byte times 900 GB/s. It lies left of the ridge, so bandwidth is its bound.
#
# </details>

# %%
# The answers, checked.
p = predict("gemv", real, n=4096)
assert abs(p.machine_balance - 7000 / 900) < 1e-9
assert p.intensity < p.machine_balance and "HBM" in p.bound
print("checked")

# %% [markdown]
# ## To do
#
# - From which n on does `gemv` wait for memory rather than for the launch? Find n by hand, then run `roofdsl
#   threshold gemv --machine v100_deck --over n`.
# - Write a machine file for your own computer from its data sheet. Keep it: notebook 7 measures the same computer.
# - `roofdsl exercise show friend-gemv`: is a friend's code slow?
#
# Next: `course_4_cache.py`.

# %% [markdown]
# # 3. The roofline
#
# A machine is two numbers to begin with: operations per second, and bytes per second. A kernel is two numbers
# too: W and Q. The least time it can take is the longer of W over the one and Q over the other, and the picture
# of that is the roofline. About 20 minutes.

# %%
from roofdsl.api import machine, predict, roofline

# %% [markdown]
# ## A machine
#
# Take a data sheet: 7 TFLOP/s of fused multiply-adds in double precision, 900 GB/s. Units are part of the
# language, and every number should say where it comes from.

# %%
deck = machine("""
machine gpu "A GPU of 7 TFLOP/s and 900 GB/s":
    peak f64 fma 7 TFLOP/s source "data sheet"
    memory HBM 16 GiB, 900 GB/s source "data sheet"
""")

# %% [markdown]
# Where compute time and memory time are equal lies the ridge: at 7000 / 900 = 7.8 operations per byte. A kernel
# with less waits for memory, one with more for arithmetic. Which side is a matrix times a vector on?

# %%
p = predict("gemv", deck, n=4096)
print(f"I = {float(p.intensity):.3f} FLOP/byte, ridge at {float(p.ridge):.2f}")
print(f"compute {float(p.compute_s) * 1e6:.1f} us, memory {float(p.memory.time_s) * 1e6:.1f} us: bound by {p.bound}")
print(f"{float(p.rate_per_s) / 1e9:.0f} GFLOP/s, {100 * float(p.rate_per_s / 7e12):.1f} % of the peak")
assert p.bound == "HBM"

# %% [markdown]
# 3 % of the peak, and nothing is wrong with the code. That is the first lesson: compare with the roof over the
# kernel, not with the peak of the machine.

# %%
points = [predict(name, deck, n=n) for name, n in (("gemv", 4096), ("matmul", 64), ("matmul", 1024), ("minplus", 1024))]
roofline(*points, on=[deck], path="course_3_roofline.png", title="Four points under one roof")

# %% [markdown]
# Look at `minplus`: as much work on as many bytes as the matrix product, and half as high. Minimum and addition
# do not fuse, so that its own roof is half of the peak (notebook 6).

# %% [markdown]
# ## Launches
#
# A GPU needs some microseconds to start a kernel. For small sizes that is all the time there is:

# %%
real = machine("v100_deck")
for n in (64, 256, 1024, 4096):
    p = predict("gemv", real, n=n)
    print(f"n = {n:5}: {float(p.expected_s) * 1e6:9.2f} us, bound by {p.bound}")

# %% [markdown]
# ## To do
#
# - From which n on does `gemv` wait for memory and no longer for the launch? Find it by hand, then ask
#   `roofdsl threshold gemv --machine v100_deck --over n`.
# - Write the machine you are sitting at, from its data sheet. Keep it: notebook 7 measures it.
# - `roofdsl exercise show friend-gemv`: is a friend's code slow?
#
# Next: `course_4_cache.py`.

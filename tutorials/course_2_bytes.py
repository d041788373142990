# %% [markdown]
# # 2. Bytes, and intensity
#
# Arithmetic needs data, and data have to be moved. Q is the number of bytes between a fast memory (a cache) and
# a slow one, and I = W / Q, operations per byte, decides which of the two a machine will wait for. Here the
# cache is as large as one could wish: every datum moves once. About 15 minutes.

# %%
from matplotlib.figure import Figure

from roofdsl.api import derive

# %% [markdown]
# ## Count the data, not the accesses
#
# A matrix times a vector, y = A x + y, reads the n**2 elements of A once each. x is read n times over, but with
# room to keep it, it comes once. y is read and written. In 8-byte numbers:
#
#     8 n**2  +  8 n  +  8 n + 8 n
#
# Some textbooks count y once; others note that a result has to come in before something is added to it. Both
# are conventions, and the difference is 8 n bytes:

# %%
for convention in ("once", "load_store", "write_allocate"):
    d = derive("gemv", traffic=convention)
    print(f"{convention:15} Q = {d.compulsory.bytes.expr:16}  I = {d.intensity.expr}")

# %% [markdown]
# `write_allocate` is what most caches of processors do: a line that is to be written is loaded first. It
# changes nothing here, since y is read anyway. In a copy it does:

# %%
copies = {c: derive("copy", traffic=c).compulsory.bytes.expr for c in ("once", "load_store", "write_allocate")}
print(copies)
assert copies == {"once": "16*n", "load_store": "16*n", "write_allocate": "24*n"}

# %% [markdown]
# A copy that you believe to move 16 bytes an element may move 24. Whoever times copies and reports bandwidth
# without saying which one is meant is off by half.

# %% [markdown]
# ## Intensity has a limit, or grows
#
# For a vector kernel I is a constant. For a matrix times a vector it creeps towards 1/4. For a matrix product
# it grows with n: n**3 work on n**2 data.

# %%
sizes = [2**k for k in range(3, 13)]
figure = Figure(figsize=(7, 4.4))
axes = figure.add_subplot()
for name in ("dot_f64", "vector_add", "gemv", "matmul"):
    axes.loglog(sizes, [float(derive(name, n=size).intensity.value) for size in sizes], "o-", label=name)
axes.set_xlabel("n")
axes.set_ylabel("Intensity I (FLOP/byte), every datum moved once")
axes.legend()
axes.grid(alpha=0.3)
figure.savefig("course_2_bytes.png", dpi=110)

# %% [markdown]
# ## Half the bytes, twice the intensity
#
# W does not depend on how long a number is. Q does.

# %%
wide, narrow = derive("dot_f64", n=10**6), derive("dot", n=10**6)
print("8-byte numbers:", float(wide.intensity.value), " 2-byte numbers:", float(narrow.intensity.value))
assert abs(narrow.intensity.value / wide.intensity.value - 4) < 0.001

# %% [markdown]
# ## To do
#
# - What is I of the 5-point stencil, with every datum moved once? And of `b[j, i] = a[i, j]`?
# - `roofdsl derive gemv --steps` shows each array's part. Which term would a friend forget?
# - `roofdsl exercise show matmul-intensity`: n/12, n/16 or n/2?
#
# Next: `course_3_roofline.py`.

# %% [markdown]
# # 2. Bytes, and intensity
#
# Arithmetic needs data, and data have to be moved. Q is the number of bytes that move between a fast memory (a
# cache) and a slow one. The intensity I = W / Q, in operations per byte, decides whether a machine waits for
# arithmetic or for data. In this notebook the cache holds everything: every datum moves once. It takes about 15
# minutes.

# %%
from matplotlib.figure import Figure

from roofdsl.api import derive

# %% [markdown]
# ## Count the data, not the accesses
#
# A matrix-vector product, y = A x + y, reads each of the n**2 elements of A once. It reads x n times, but a cache
# that holds x loads it only once. y is read and written. With 8-byte numbers:
#
#     8 n**2  +  8 n  +  8 n + 8 n
#
# Some textbooks count y once (`once`). Others count it twice (`load_store`), because a result must be loaded before
# something is added to it. Both are conventions, and they differ by 8 n bytes. (The next cell also prints a
# third one, `write_allocate`, which is explained after it.)

# %%
for convention in ("once", "load_store", "write_allocate"):
    d = derive("gemv", traffic=convention)
    print(f"{convention:15} Q = {d.compulsory.bytes.expr:16}  I = {d.intensity.expr}")

# %% [markdown]
# Most CPU caches use `write_allocate`: they load a line (the 64 or so neighboring bytes that a cache moves together)
# before they write to it. Here `write_allocate` gives the same Q as `load_store`, because y is read anyway. In a copy
# it matters:

# %%
copies = {c: derive("copy", traffic=c).compulsory.bytes.expr for c in ("once", "load_store", "write_allocate")}
print(copies)
assert copies == {"once": "16*n", "load_store": "16*n", "write_allocate": "24*n"}

# %% [markdown]
# A copy may move 24 bytes per element where you expect 16. A bandwidth from a timed copy is therefore ambiguous by
# a factor of 1.5, unless it says which bytes it counts.

# %% [markdown]
# ## Intensity has a limit, or grows
#
# For a vector kernel, I hardly depends on n. For a matrix-vector product it approaches 1/4. For a matrix product it
# grows with n, because about n**3 operations use about n**2 data.

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
# ## Smaller numbers, higher intensity
#
# W does not depend on how many bytes a number has. Q does.

# %%
wide, narrow = derive("dot_f64", n=10**6), derive("dot", n=10**6)
print("8-byte numbers:", float(wide.intensity.value), " 2-byte numbers:", float(narrow.intensity.value))
assert abs(narrow.intensity.value / wide.intensity.value - 4) < 0.001

# %% [markdown]
# ## Check yourself
#
# What is I of the dot product of two vectors of 8-byte numbers?
#
# <details>
# <summary>Answer</summary>
#
# 1/8 FLOP/byte for large n: 2 operations for the 16 bytes of two numbers. The single number of the result is
# negligible.
#
# </details>
#
# A matrix product of 8-byte numbers loads every datum once, and stores C once. What is Q?
#
# <details>
# <summary>Answer</summary>
#
# 32 n**2 bytes: A, B and C are loaded, and C is stored, 8 bytes per element each time.
#
# </details>

# %%
# The answers, checked.
assert abs(derive("dot_f64", n=10**6).intensity.value - 0.125) < 1e-3
assert derive("matmul", n=100, traffic="load_store").compulsory.bytes.value == 32 * 100**2
print("checked")

# %% [markdown]
# ## To do
#
# - What is I of the 5-point stencil, if every datum moves once? And of `b[j, i] = a[i, j]`?
# - `roofdsl derive gemv --steps` shows each array's part. Which term is easy to forget?
# - `roofdsl exercise show matmul-intensity`: n/12, n/16 or n/2?
#
# Next: `course_3_roofline.py`.

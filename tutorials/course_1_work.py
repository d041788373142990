# %% [markdown]
# # 1. What is W?
#
# Before you ask how fast a kernel can be, count what it has to do. The work W is the number of floating-point
# operations, as a function of the sizes. In this notebook you count by hand, let roofdsl count, and see where the
# two could disagree. It takes about 15 minutes; nothing is measured yet.

# %%
from fractions import Fraction

from matplotlib.figure import Figure

from roofdsl.api import derive, kernel

# %% [markdown]
# ## One loop
#
# A kernel first declares which data it reads and writes. The loops follow, as you would write them in Python.

# %%
triad = kernel("""
kernel triad(n):
    in q: f64, b, c: f64[n]
    out a: f64[n]
    for i in range(n):
        a[i] = b[i] + q * c[i]
""")

# %% [markdown]
# Each iteration has one multiplication and one addition, and there are n iterations. So W = 2 n. Let roofdsl
# derive it:

# %%
d = derive(triad)
print("W =", d.work.total.expr)
assert d.work.total.expr == "2*n"

# %% [markdown]
# ## Two loops, and a triangle
#
# A matrix-vector product has n rows with n products and n additions each. A triangular solve has rows of length 0, 1,
# 2, ... n - 1: a product and a difference for each element, and a division at the end of each row. What is its W?
# Write your answer down before you run the next cell.

# %%
gemv = derive("gemv")
trsv = derive("trsv")
print("gemv: W =", gemv.work.total.expr)
print("trsv: W =", trsv.work.total.expr)

# %% [markdown]
# The triangular solve takes n**2 operations, half of what the full matrix takes. Of its operations, n are divisions, as
# the counts by class show:

# %%
for name, count in trsv.work.by_class.items():
    if count.expr != "0":
        print(f"  {name:8} {count.expr}")

# %% [markdown]
# ## Not all operations are equal
#
# A processor can fuse a product with the sum that it goes into: one instruction, two operations. The number of fused
# pairs later decides what fraction of a machine's highest rate, its peak, a kernel can reach. In a matrix product, all
# operations can be fused. The same loops over (min, +) are used to find shortest paths, and there nothing fuses: there
# is no product, and a minimum does not fuse.

# %%
product = derive("matmul", n=100)
paths = derive("minplus", n=100)
for name, each in (("matmul", product), ("minplus", paths)):
    print(f"{name:8} W = {each.work.total.expr}, fused pairs = {each.work.fused_pairs.expr}")
assert product.work.total.value == paths.work.total.value == 2 * 100**3
assert product.work.fused_pairs.value == 100**3 and paths.work.fused_pairs.value == 0

# %% [markdown]
# ## Check it
#
# Check every formula before you trust it. For a small size, count in a loop of your own:

# %%
n = 7
by_hand = 0
for i in range(n):
    for _j in range(i):
        by_hand += 2  # one product, one difference
    by_hand += 1  # one division
print("by hand:", by_hand, " derived:", derive("trsv", n=n).work.total.value)
assert derive("trsv", n=n).work.total.value == by_hand

# %% [markdown]
# ## How work grows
#
# On logarithmic axes a power law is a straight line. Its slope is the exponent.

# %%
sizes = [2**k for k in range(4, 13)]
figure = Figure(figsize=(7, 4.4))
axes = figure.add_subplot()
for name in ("dot_f64", "gemv", "trsv", "matmul"):
    work = [derive(name, n=size).work.total.value for size in sizes]
    axes.loglog(sizes, [float(Fraction(w)) for w in work], "o-", label=name)
axes.set_xlabel("n")
axes.set_ylabel("Work W (FLOP)")
axes.legend()
axes.grid(alpha=0.3)
figure.savefig("course_1_work.png", dpi=110)

# %% [markdown]
# ## Check yourself
#
# How many operations does the dot product of two vectors of n numbers take?
#
# <details>
# <summary>Answer</summary>
#
# `2 n`: a product and an addition for each of the n elements. The first addition counts too, because the sum
# starts from `s = 0`.
#
# </details>
#
# By how much does W of the matrix product grow if n doubles?
#
# <details>
# <summary>Answer</summary>
#
# By a factor of 8. W is 2 n**3: the result has n**2 elements, and each is a dot product of length n.
#
# </details>

# %%
# The answers, checked.
assert derive("dot_f64", n=1000).work.total.value == 2 * 1000
assert derive("matmul", n=200).work.total.value == 8 * derive("matmul", n=100).work.total.value
print("checked")

# %% [markdown]
# ## To do
#
# - Write the 5-point stencil as a kernel, and predict its W before you derive it.
# - What is W of `x**3`? Derive a loop over it, and find the reason in `docs/rules.md`.
# - `roofdsl exercise list` has a unit on this topic; begin with `roofdsl exercise show polynomial`.
#
# Next: `course_2_bytes.py`.

# %% [markdown]
# # 1. What is W?
#
# A kernel does arithmetic. Before asking how fast it can be, count what it has to do: the work W, the number of
# floating-point operations as a function of the sizes. This notebook counts by hand, lets the program count,
# and looks at where the two could disagree. About 15 minutes; nothing is measured yet.

# %%
from fractions import Fraction

from matplotlib.figure import Figure

from roofdsl.api import derive, kernel

# %% [markdown]
# ## One loop
#
# A kernel is written as one writes its loops. What is read and written is declared first.

# %%
triad = kernel("""
kernel triad(n):
    in q: f64, b, c: f64[n]
    out a: f64[n]
    for i in range(n):
        a[i] = b[i] + q * c[i]
""")

# %% [markdown]
# Each turn of the loop has one multiplication and one addition, and there are n turns. So W = 2 n. Ask:

# %%
d = derive(triad)
print("W =", d.work.total.expr)
assert d.work.total.expr == "2*n"

# %% [markdown]
# ## Two loops, and a triangle
#
# A matrix times a vector has n rows of n products and sums. A triangular solve has rows of 0, 1, 2, ... n - 1:
# what is the sum of that? Write your answer down before you run the next cell.

# %%
gemv = derive("gemv")
trsv = derive("trsv")
print("gemv: W =", gemv.work.total.expr)
print("trsv: W =", trsv.work.total.expr)

# %% [markdown]
# The triangular solve is n**2: about half of what the full matrix takes, plus n divisions. The classes say so:

# %%
for name, count in trsv.work.by_class.items():
    if count.expr != "0":
        print(f"  {name:8} {count.expr}")

# %% [markdown]
# ## Not every operation is equal
#
# Processors can fuse a product with the sum it goes into: one instruction, two operations. How many operations
# of a kernel can be fused decides later which part of the peak it can reach. In a matrix product all of them
# can; in the same loops over (min, +), which find shortest paths, none: there is no product, and a minimum does
# not fuse.

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
# A formula that nobody checked is a rumour. At a small size count in a loop of your own:

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
# On logarithmic axes a power is a straight line, and its exponent the slope.

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
# ## To do
#
# - Write the 5-point stencil as a kernel, and predict its W before you derive it.
# - What is W of `x**3`? Derive a loop over it, and read in `docs/language.md` why.
# - `roofdsl exercise list` has a unit on this: `roofdsl exercise show polynomial`.
#
# Next: `course_2_bytes.py`.

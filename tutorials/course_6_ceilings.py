# %% [markdown]
# # 6. Ceilings: when you cannot reach the peak
#
# The peak in a data sheet holds for one kind of instruction. Code with other instructions has a lower ceiling. If
# you know it, you do not spend weeks on tuning toward a peak that is out of reach. This notebook takes about 15
# minutes.

# %%
from fractions import Fraction

from roofdsl.api import kernel, machine, predict, roofline

# %% [markdown]
# ## Fused and unfused operations
#
# Code with F fused pairs and N other operations issues F + N instructions and does 2 F + N operations. If alpha is
# the fused share of the instructions, the code can reach (1 + alpha) / 2 of the peak. At alpha = 60 % this is 80
# %, and no tuning gains the rest.

# %%
gpu = machine("v100_deck")
horner = kernel("""
kernel horner(n):
    in x: f64[n]
    out y: f64[n]
    for i in range(n):
        let t = x[i]
        y[i] = (((t * 0.1 + 0.2) * t + 0.3) * t + 0.4) * t + 0.5
""")
sums = kernel("""
kernel sums(n):
    in x: f64[n]
    out y: f64[n]
    for i in range(n):
        let t = x[i]
        y[i] = (t + 0.1) * (t + 0.2) * (t + 0.3) * (t + 0.4)
""")
for name, source in (("horner", horner), ("sums", sums), ("minplus", "minplus")):
    p = predict(source, gpu, n=512)
    print(f"{name:8} alpha = {float(p.fma_fraction or 0):.2f}, ceiling {float(p.peak_fraction):.2f} of the peak")

# %% [markdown]
# Horner's rule consists of fused pairs only. The product of sums has none: its products take sums, but no sum takes a
# product.
#
# ## Shortest paths
#
# Replace + by min and * by + in a matrix product (this is a product over another *semiring*), and it finds the shortest
# paths of two steps. The loops, the bytes and the number of operations are the same, but the speed is not:

# %%
product, paths = predict("matmul", gpu, n=400), predict("minplus", gpu, n=400)
print(f"{float(product.rate_per_s) / 1e12:.2f} and {float(paths.rate_per_s) / 1e12:.2f} Tera-operations/s")
assert product.work == paths.work and product.rate_per_s == 2 * paths.rate_per_s
roofline(product, paths, path="course_6_semiring.png")

# %% [markdown]
# A prediction that assumes the peak of multiply-adds for this semiring is too high by a factor of two. On machines
# whose minimum has a rate of its own (`peak f64 min ...`) the factor differs; `roofdsl characterize` measures it.

# %% [markdown]
# ## Divisions
#
# A division may cost as much as eight products. If one operation in nine is a division, it takes two thirds of the
# compute time, because the other eight are fused:

# %%
one_in_nine = kernel("""
kernel ninth(n):
    in x: f64[n]
    out y: f64[n]
    for i in range(n):
        let t = x[i]
        y[i] = ((((t * t + t) * t + t) * t + t) * t + 0.5) / t
""")
p = predict(one_in_nine, gpu, n=10**6)
share = {part.cls: part.time_s / p.compute_s for part in p.parts}
print({cls: f"{float(time):.0%} of the compute time" for cls, time in share.items()})
assert share["div"] == Fraction(2, 3)
print("assumed:", *p.assumptions, sep="\n  ")

# %% [markdown]
# The cost is an assumption, and the output says so: this machine has no rate for divisions. An assumption that
# decides the answer is worth a measurement.

# %% [markdown]
# ## Check yourself
#
# A loop does one fused multiply-add and one addition for each element. What fraction of the peak can it reach?
#
# <details>
# <summary>Answer</summary>
#
# 3/4. The two instructions do 3 operations. Two fused instructions would do 4 in the same time.
#
# </details>
#
# One of 9 instructions belongs to a class with cost 8. What fraction of the compute time does it take?
#
# <details>
# <summary>Answer</summary>
#
# 8/16, one half: the one takes 8 units of time, and the other eight take one each.
#
# </details>

# %%
# The answers, checked.
fused_and_added = kernel("""
kernel fused_and_added(n):
    in x: f64[n]
    out y: f64[n]
    for i in range(n):
        let t = x[i]
        y[i] = (t * t + t) + t
""")
assert predict(fused_and_added, gpu, n=10**6).peak_fraction == Fraction(3, 4)
print("checked")

# %% [markdown]
# ## To do
#
# - Divide by an argument `q: f64` instead of `t`. Then multiply by its reciprocal, which you compute once, outside the
#   loop. How much compute time do you gain?
# - A machine with `pipes separate add mul` has a different ceiling: `roofdsl exercise show opteron-balance`.
#
# Next: `course_7_measure.py`.

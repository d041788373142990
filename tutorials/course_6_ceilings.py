# %% [markdown]
# # 6. Ceilings: when the peak is not yours
#
# The peak of a data sheet is that of one kind of instruction. A code that does not consist of it has a lower
# ceiling, and knowing which one saves weeks. About 15 minutes.

# %%
from fractions import Fraction

from roofdsl.api import kernel, machine, predict, roofline

# %% [markdown]
# ## Fused, and not
#
# With F fused pairs and N other operations a code issues F + N instructions and does 2 F + N operations. If
# alpha is the fused share of the instructions, it reaches (1 + alpha) / 2 of the peak. At alpha = 60 % that is
# 80 %, and no tuning gets the rest.

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
# Horner's rule is all pairs. Factors of sums have none: each product takes two sums, and no sum takes a
# product.
#
# ## Shortest paths
#
# Replace + by min and * by + in a matrix product and it finds shortest paths. The loops, the bytes and the
# number of operations are the same, and the speed is not:

# %%
product, paths = predict("matmul", gpu, n=400), predict("minplus", gpu, n=400)
print(f"{float(product.rate_per_s) / 1e12:.2f} and {float(paths.rate_per_s) / 1e12:.2f} Tera-operations/s")
assert product.work == paths.work and product.rate_per_s == 2 * paths.rate_per_s
roofline(product, paths, path="course_6_semiring.png")

# %% [markdown]
# Whoever promises the peak for a semiring promises a factor of two too much. On machines whose minimum runs at
# a rate of its own (`peak f64 min ...`) it is another factor, and `roofdsl characterize` measures which.

# %% [markdown]
# ## Divisions
#
# A division may cost as much as eight products. One operation in nine is then two thirds of the time, since the
# other eight are fused:

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
print({cls: f"{float(time):.0%} of the time" for cls, time in share.items()})
assert share["div"] == Fraction(2, 3)
print("assumed:", *p.assumptions, sep="\n  ")

# %% [markdown]
# The cost was assumed, and the output says so: this machine states no rate for divisions. An assumption that
# decides the answer is worth a measurement.

# %% [markdown]
# ## To do
#
# - Turn the division into a product with a reciprocal that is computed once, outside the loop. What does it buy?
# - On a machine with `pipes separate add mul` the ceiling is another one: `roofdsl exercise show opteron-balance`.
#
# Next: `course_7_measure.py`.

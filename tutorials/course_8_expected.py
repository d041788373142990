# %% [markdown]
# # 8. Why is my loop below the roof?
#
# The roof says what no code with these accesses can beat. Most loops stay far below it, for reasons that can be named
# and added up. This notebook names them for one core of a Haswell server. It takes about 15 minutes and needs no such
# machine.

# %%
from pathlib import Path

from roofdsl.api import Options, kernel, machine, predict
from roofdsl.plot.board import save_figure
from roofdsl.plot.kinds.ecm import Panel, bars_of, draw_ecm
from roofdsl.predict.in_core_time import Code

haswell = machine("haswell_e5_2695v3")
STRICT = Options(code=Code("stated", math="strict"), accesses="compiled", warm=True)
RELAXED = Options(code=Code("stated", math="relaxed"), accesses="compiled", warm=True)


def told(source, options=STRICT, **sizes):
    """The two times, and what lies between them."""
    p = predict(source, haswell, options, sizes=sizes)
    e = p.expected
    print(f"{p.kernel} {sizes}: bound {float(p.bound_s) * 1e6:.2f} us, expected {float(e.expected_s) * 1e6:.2f} us")
    for cause in e.causes:
        share = float(cause.share_s / e.expected_s)
        if abs(share) >= 0.01:
            print(f"    {share:4.0%}  {cause.cause}{f'   ({cause.remedy})' if cause.remedy else ''}")
    assert sum(c.share_s for c in e.causes) == e.expected_s - p.bound_s
    return p


# %% [markdown]
# ## A sum waits for itself
#
# `--math strict` is what a C compiler does with `-ffp-contract=off` and without `-ffast-math`. It has to add the
# products in the order of the loop.

# %%
dot = kernel("""
kernel dot(n):
    in x, y: f64[n]
    out s: f64
    s = 0
    for i in range(n):
        s += x[i] * y[i]
""")
strict = told(dot, n=1500)

# %% [markdown]
# Two causes explain nearly all of the time above the bound. Without vectors, each instruction handles one element
# instead of four. And every addition needs the result of the one before: this core takes 3 cycles for an addition, so
# an element takes 3 cycles, whatever else is free.

# %%
cycles = float(strict.expected.core_s) * 2.3e9 / 1500
print(f"{cycles:.2f} cycles an element")
assert round(cycles) == 3

# %% [markdown]
# The remedy is legal if you accept different rounding: several partial sums, added up at the end.

# %%
relaxed = told(dot, RELAXED, n=1500)
print(f"{float(strict.expected.expected_s / relaxed.expected.expected_s):.1f} times faster")
assert relaxed.expected.expected_s < strict.expected.expected_s / 4

# %% [markdown]
# ## A recurrence has no such remedy
#
# Each element needs the one before, as a value and not only as part of a sum. A product and a sum take 5 + 3 cycles.
# With relaxed math they become one fused instruction of 5 cycles, but the elements still wait for each other.

# %%
recurrence = kernel("""
kernel recurrence(n):
    in c: f64, y: f64[n]
    inout x: f64[n]
    for i in range(1, n):
        x[i] = c * x[i - 1] + y[i]
""")
for options, cycles in ((STRICT, 8), (RELAXED, 5)):
    slow = told(recurrence, options, n=1500)
    assert cycles <= float(slow.expected.core_s) * 2.3e9 / 1499 < cycles + 0.1

# %% [markdown]
# ## Strides
#
# In the order i, j, k the inner loop of a matrix product walks down a column of B. It uses one of the 8 doubles of each
# line, so no vector can be loaded. Without vectors, the compiler keeps only one sum, even with relaxed math: each
# addition waits for the one before. In the order i, k, j, B and C move by one element, A stays in a register, and no
# iteration of the inner loop needs another.

# %%
for name in ("matmul_ijk", "matmul_ikj"):
    told(name, RELAXED, n=48)

# %% [markdown]
# ## Short inner loops
#
# Sixteen iterations are four vectors. With nineteen, three are left over for scalar code, which takes almost as long as
# the vectors. Forty iterations leave no remainder, but the model assumes that the end of a loop of more than 32
# iterations, counted as written and not in vectors, is mispredicted. That costs the core 15 cycles each time.

# %%
rows = kernel("""
kernel rows(m, n):
    in A: f64[m, n], c: f64
    out B: f64[m, n]
    for i in range(m), j in range(n):
        B[i, j] = c * A[i, j]
""")
for n in (16, 19, 40):
    told(rows, RELAXED, m=40, n=n)

# %% [markdown]
# ## Levels take turns
#
# On this processor, transfers between the caches overlap neither with each other nor with the
# core's loads and stores. That is the machine's own rule (`transfers serial`), and the model built on it is called
# Execution-Cache-Memory. A stencil whose data are in memory waits for every level:

# %%
cold = Options(code=Code("stated"), accesses="compiled")
panels = []
for source, n in (("jacobi2d", 2000), ("gemv", 2000)):
    p = told(source, cold, n=n)
    lines = n * n / 8
    scale = 2.3e9 / lines
    whole, bound = float(p.expected.expected_s) * scale, float(p.bound_s) * scale
    panels.append(Panel(p.kernel, bars_of(p.expected, scale), whole, bound))
save_figure(Path("course_8_ecm.png"), draw_ecm(panels, haswell.title, "cycles for a cache line of work"))

# %% [markdown]
# Each transfer begins when the one before it ends. The arithmetic runs beside the transfers. In both kernels it is
# hidden: it ends long before the data are there.
#
# ## Check yourself
#
# The data of the dot product are in memory: n = 10 000 000, strict math. Does relaxed math help as much as in L1?
#
# <details>
# <summary>Answer</summary>
#
# No. 3 cycles an element are 24 cycles for a line of each array. From memory, the two lines take about 17 cycles with
# relaxed math, so the gain is 1.4 and not 12: once the chain is gone, the next cause shows.
#
# </details>
#
# A kernel reaches 40 % of the roof, and its largest cause is "vectors split lines". Is another order of its loops a
# remedy?
#
# <details>
# <summary>Answer</summary>
#
# No: shifted accesses are shifted in every order. The remedy is fewer loads: a stencil can keep its row in
# registers, for example.
#
# </details>

# %%
# The answers, checked.
far = [
    predict(dot, haswell, Options(code=Code("stated", math=math)), n=10_000_000).expected.expected_s
    for math in ("strict", "relaxed")
]
gain = far[0] / far[1]
print(f"a gain of {float(gain):.2f} with data in memory")
assert 1 < gain < 2

# %% [markdown]
# ## To do
#
# - `roofdsl characterize -o mine.roof --cores 1`, then `roofdsl validate gemv --set n=1000 --machine mine.roof`: the
#   bound, the expected time and the measured one, with the causes for your own machine.
# - `roofdsl plot ecm gemv --set n=1000 --machine mine.roof -o ecm.svg`.
# - [Expected times](../docs/expected.md) explains these causes, and others.

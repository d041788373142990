# %% [markdown]
# # The guide: an interactive introduction to rooflines
#
# "An Interactive Guide to Rooflines" discusses a dot product and a matrix product on an H100. This tutorial checks
# its statements against the shipped models. `roofdsl explore dot_bf16 matmul_bf16 --machine h100_guide --unit
# tensor_sparse -o page.html` makes an interactive page like it.

# %%
from roofdsl.api import derive, machine, predict, roofline
from roofdsl.predict.options import Options

h100 = machine("h100_guide")
SPARSE = Options(unit="tensor_sparse")  # the guide's peaks are those with structured sparsity


ERRATA = {"1979 TFLOP/s is the peak of a dense product"}
"""Statements that the data sheet contradicts."""


def says(statement: str, found: str, *, reproduced: bool) -> None:
    print(f"{'reproduced' if reproduced else 'NOT reproduced':15} {statement}: {found}")
    assert reproduced is (statement not in ERRATA)


# %% [markdown]
# ## The machine

# %%
peak, beta = h100.rate("bf16", "tensor_sparse").per_s, h100.main_memory.bandwidth_bytes_per_s
says(
    "the ridge lies at 590.7 operations per byte",
    f"{float(peak / beta):.1f}",
    reproduced=round(float(peak / beta), 1) == 590.7,
)
dense = h100.rate("bf16", "tensor").per_s
says(
    "1979 TFLOP/s is the peak of a dense product",
    f"{float(dense) / 1e12:.0f}; the printed rate needs 2:4 sparsity",
    reproduced=False,
)

# %% [markdown]
# ## A dot product waits for memory at any length

# %%
d = derive("dot_bf16", traffic="once")
says(
    "I = (2 N - 1) / (4 N + 2)",
    str(d.intensity),
    reproduced=d.work.total.expr == "2*n - 1" and str(d.at_cache.bytes) == "4*n + 2",
)
dot = predict("dot_bf16", h100, SPARSE, n=1048576)
ratio = dot.memory.time_s / dot.compute_s
says(
    "at N = 1048576 memory takes 1181 times as long as arithmetic",
    f"{float(ratio):.0f}",
    reproduced=round(ratio) == 1181,
)
longer, both = max(dot.compute_s, dot.memory.time_s), dot.compute_s + dot.memory.time_s
says(
    "T lies between the longer of the two and their sum",
    f"{float(longer) * 1e6:.3f} to {float(both) * 1e6:.3f} us",
    reproduced=(dot.bound_s, dot.no_overlap_s) == (longer, both),
)

# %% [markdown]
# ## A matrix product becomes compute-bound

# %%
small = predict("matmul_bf16", h100, SPARSE, n=64)
says("at N = 64: I = N/3 = 21.33, 71.5 TFLOP/s", f"{float(small.intensity):.2f}, {float(small.rate_per_s) / 1e12:.1f}",
     reproduced=round(float(small.rate_per_s) / 1e12, 1) == 71.5)  # fmt: skip
before, after = (predict("matmul_bf16", h100, SPARSE, n=n) for n in (1772, 1773))
says("compute-bound from N = 1773", f"{before.bounds[0]} at 1772, {after.bounds[0]} at 1773",
     reproduced=(before.bounds[0], after.bounds[0]) == ("HBM", "compute"))  # fmt: skip
half = [predict("matmul_bf16", h100, Options(unit="tensor"), n=n).bounds[0] for n in (885, 886)]
print(f"with the dense rate: {half[0]} at 885, {half[1]} at 886. Half the peak, half the ridge")
assert half == ["HBM", "compute"]

# %%
roofline(dot, small, predict("matmul_bf16", h100, SPARSE, n=4096), on=[h100], path="interactive_guide.png",
         title="The guide's kernels on its H100")  # fmt: skip

# %% [markdown]
# # The deck: model driven code optimization
#
# "Model Driven Code Optimization I: Roofline Model" analyzes five kernels on an NVIDIA V100. This tutorial checks
# its statements one by one against the shipped models: each is reproduced, or not, with the reason. Where slides
# contradict each other or the arithmetic, `docs/errata.md` has an entry.

# %%
from math import sqrt

from roofdsl.api import derive, machine, predict, roofline, traffic_at
from roofdsl.predict.links import stream_rate

ERRATA = {
    "vector add: 37.4 GFLOP/s, as printed",
    "I = n/2, as three slides print",
    "compute-bound from Z = 6192 B**2, as printed",
}
"""Statements that the arithmetic contradicts."""


def says(statement: str, found: str, *, reproduced: bool) -> None:
    print(f"{'reproduced' if reproduced else 'NOT reproduced':15} {statement}: {found}")
    assert reproduced is (statement not in ERRATA)


deck = machine("v100_textbook")  # 7 TFLOP/s fused, 3.5 unfused, 900 GB/s; fast memory without bound
BIG = 10**7

# %% [markdown]
# ## Four kernels, each datum counted once
#
# The fifth is the blocked product of the next section.

# %%
add = predict("vector_add", deck, n=BIG)
says("vector add: n operations on 24 n bytes, 37.5 GFLOP/s", f"{float(add.rate_per_s) / 1e9:.1f}",
     reproduced=add.rate_per_s == 37_500_000_000)  # fmt: skip
says("vector add: 37.4 GFLOP/s, as printed", "37.5 = 900/24", reproduced=False)

gemv = predict("gemv", deck, n=BIG)
says("GEMV: I tends to 1/4, and so to 225 GFLOP/s", f"{float(gemv.rate_per_s) / 1e9:.2f} at n = {BIG}",
     reproduced=abs(float(gemv.rate_per_s) / 225e9 - 1) < 1e-6)  # fmt: skip

product = derive("matmul", traffic="once")
says("matrix product: I = n/12", str(product.intensity), reproduced=product.intensity.expr == "n/12")
says("I = n/2, as three slides print", "n/12: 2 n**3 operations on 3 n**2 numbers of 8 bytes", reproduced=False)

paths = predict("minplus", deck, n=1024)
assert paths.rate_per_s == 35 * 10**11
print(f"{'answered':15} the product over (min, +), left as a question: {float(paths.rate_per_s) / 1e12:.1f} TFLOP/s, "
      "half the peak, because a minimum does not fuse")  # fmt: skip

# %%
roofline(add, gemv, predict("matmul", deck, n=64), predict("matmul", deck, n=1024), paths, on=[deck],
         path="model_driven_deck.png", title="The deck's kernels on its V100")  # fmt: skip

# %% [markdown]
# ## Blocking with cache Z
#
# With a cache of only a few numbers and the order k, i, j, A stays in a register while B and C stream: 1/8
# operation per byte. Tiles of b x b reach b/12, and three of them fill Z = 24 b**2 bytes.

# %%
n = 96
none = traffic_at("matmul_kij", 24, traffic="once", n=n).bytes
says("k, i, j with a cache of three numbers: I = 1/8", f"{2 * n**3 / none:.4f} at n = {n}",
     reproduced=abs(2 * n**3 / none - 1 / 8) < 0.001)  # fmt: skip

tiled = derive("matmul_blocked", traffic="once")
row = next(p for p in tiled.plateaus if p.intensity.expr == "b/12")
says("tiles of b x b: I = b/12", f"on the plateau from {row.from_bytes} bytes on", reproduced=True)

balance = deck.rate("f64", "fma").per_s / deck.main_memory.bandwidth_bytes_per_s
least = (24 * sqrt(6) * float(balance)) ** 2
says("compute-bound from Z = 3456 B**2", f"{least:.0f} bytes at B = {float(balance):.2f}",
     reproduced=abs(least / (3456 * float(balance) ** 2) - 1) < 1e-9)  # fmt: skip
says("compute-bound from Z = 6192 B**2, as printed", "(24 sqrt(6))**2 is 3456", reproduced=False)

# %% [markdown]
# An LRU cache reaches b/12 with less than three tiles, from 8 b**2 bytes and a few rows on, and b/8 from 32 b**2
# bytes on (`course_5_blocking.py`). Square tiles of all three matrices are not the minimum: see `roofdsl bound
# matmul`.
#
# ## Streaming into the GPUs of a node
#
# A path is as fast as its slowest part, and several paths share the bandwidth of their common parts. The rate is a
# maximum flow.

# %%
summit = machine("summit")
print([m.name for m in summit.memories])
hosts = [m.name for m in summit.memories if "DRAM" in m.name]
gpus = [m.name for m in summit.memories if m.name not in hosts]
for targets, expected in ((gpus[:1], 50), (gpus[:3], 150), (gpus[3:], 64), (gpus, 170)):
    rate = float(stream_rate(summit, hosts[:1], targets).bytes_per_s) / 1e9
    says(f"{hosts[0]} to {', '.join(targets)}: {expected} GB/s", f"{rate:.0f}", reproduced=rate == expected)

# %% [markdown]
# # 5. Blocking
#
# The staircase of notebook 4 has a long step: from a cache of three rows up to one that holds all of B, a
# larger cache does nothing. Blocking brings that step down to where our cache is. About 20 minutes.

# %%
from matplotlib.figure import Figure

from roofdsl.api import derive, kernel, machine, predict, roofline, traffic_at

# %% [markdown]
# ## Tiles
#
# Cut the matrices into tiles of b x b. Three of them fit into a cache of 24 b**2 bytes, and the product of two
# tiles does 2 b**3 operations on them: b/12 operations for each byte. A tile loop is one line of the language,
# and is checked: from the dependences, the program proves that the result stays the same.

# %%
tiled = kernel("""
kernel tiled(n, b):
    assume n % b == 0
    traffic once
    in A, B: f64[n, n]
    inout C: f64[n, n]
    tile i, j, k by b
    for i in range(n), j in range(n), k in range(n):
        C[i, j] += A[i, k] * B[k, j]
""")
for plateau in derive(tiled).plateaus:
    print(f"from Z = {plateau.from_bytes!s:12} bytes: Q is about {plateau.bytes}")

# %% [markdown]
# Both n and b are symbols here. Read it from below: a cache of about four tiles, 32 b**2 bytes, moves 16 n**3 /
# b; one of a single tile and little more, 8 b**2 bytes, moves 24 n**3 / b.
#
# ## How large?
#
# The rule of thumb is that three tiles have to fit. A cache of 8 KiB holds three of side 18. It also holds one
# of side 30, with room for some rows. Smaller tiles that stay altogether, or larger ones of which only one
# stays? Compare 16/15 with 24/30 before you look.

# %%
n = 240
sides = [5, 8, 12, 15, 20, 24, 30, 40, 60]
moved = [traffic_at(tiled, "8 KiB", n=n, b=b).bytes for b in sides]
plain = traffic_at("matmul", "8 KiB", traffic="once", n=n).bytes
best = sides[moved.index(min(moved))]
print(f"best tile: {best}, {plain / min(moved):.1f} times less traffic than without tiles")

figure = Figure(figsize=(7, 4.4))
axes = figure.add_subplot()
axes.loglog(sides, [q / 1e6 for q in moved], "o-", label="tiles of b x b")
axes.axhline(plain / 1e6, color="#D55E00", linestyle="--", label="no tiles")
for tiles, style in ((4, ":"), (1, "-.")):
    axes.axvline(
        (8192 / (8 * tiles)) ** 0.5,
        color="#666666",
        linestyle=style,
        label=f"8 KiB hold {tiles} tile{'s' if tiles > 1 else ''}",
    )
axes.set_xlabel("b")
axes.set_ylabel(f"Q(8 KiB) at n = {n} (MB)")
axes.legend()
axes.grid(alpha=0.3)
figure.savefig("course_5_tiles.png", dpi=110)
assert best == 30

# %% [markdown]
# The larger tiles win: 24/30 is less than 16/15. The rule of thumb is not the optimum, and the closed forms
# said so before anything was run. And a tile that does not fit any more loses nearly everything: at 40 the
# traffic is back where it was without tiles.

# %% [markdown]
# ## What it buys
#
# On a machine whose caches are stated, a prediction takes Q at the last of them.

# %%
laptop = machine("""
machine laptop "One core and 8 KiB":
    peak f64 fma 40 GFLOP/s
    cache L2 8 KiB, 200 GB/s
    memory RAM 16 GiB, 10 GB/s
""")
before, after = predict("matmul", laptop, n=n), predict(tiled, laptop, n=n, b=30)
roofline(before, after, on=[laptop], path="course_5_roofline.png", title="The same work on fewer bytes")
print(
    f"{float(before.expected_s):.3f} s, bound by {before.bound}; tiled {float(after.expected_s):.3f} s, {after.bound}"
)
assert after.expected_s < before.expected_s

# %% [markdown]
# ## To do
#
# - Leave `k` untiled (`tile i, j by b`). What has to fit now, and is the best side larger or smaller?
# - How little could anyone move? `roofdsl bound matmul` gives a number that no order of the loops can beat.
# - `roofdsl exercise show write-blocked`.
#
# Next: `course_6_ceilings.py`.

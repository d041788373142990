# %% [markdown]
# # 5. Blocking
#
# The staircase of notebook 4 has a long plateau: between a cache that holds about two rows and one that holds all
# of B, a larger cache saves nothing. Blocking moves the next step down to the size of a small cache, here of 8 KiB.
# This notebook takes about 20 minutes.

# %%
from matplotlib.figure import Figure

from roofdsl.api import derive, kernel, machine, predict, roofline, traffic_at

# %% [markdown]
# ## Tiles
#
# Cut the matrices into tiles of b x b. Three tiles fit into a cache of 24 b**2 bytes, and the product of two tiles
# does 2 b**3 operations on them: b/12 operations per byte. In the language, tiling is a single line. roofdsl
# proves from the dependences that the result stays the same.

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
# Both n and b are symbolic here. The two lines with b**2 matter most: a cache of slightly more than a single tile,
# 8 b**2 bytes, moves 24 n**3 / b; one of slightly more than four tiles, 32 b**2 bytes, moves 16 n**3 / b.
#
# ## How large?
#
# By a rule of thumb, three tiles must fit. A cache of 8 KiB holds three tiles of side 18. But for the same b, a cache
# of three tiles moves as much as a cache of one. By the table, to move less, four tiles must fit, and the largest
# divisor of 240 for which they do is 15. (Sides divide n = 240. Four tiles of side 16 fill the cache to the last byte,
# which is not enough.) The same cache also holds one tile of side 30, with room for a few rows. Is it better to keep
# several smaller tiles, or one larger tile? Compare 16/15 with 24/30 before you look.

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
# The larger tile wins: 24/30 is less than 16/15. The rule of thumb is not optimal, and the closed forms show this
# before you run anything. A tile that no longer fits gains nothing: at 40 the traffic is a little higher than
# without tiles.

# %% [markdown]
# ## What blocking gains
#
# If a machine states its caches, a prediction takes the bytes from memory to be Q(Z) at the size of the last one.

# %%
laptop = machine("""
machine laptop "One core and 8 KiB":
    peak f64 fma 40 GFLOP/s
    cache L2 8 KiB, 200 GB/s
    memory RAM 16 GiB, 10 GB/s
""")
before, after = predict("matmul", laptop, n=n), predict(tiled, laptop, n=n, b=30)
roofline(before, after, on=[laptop], path="course_5_roofline.png", title="The same work on fewer bytes")
first, tiles = (f"{float(p.bound_s) * 1e3:.2f} ms, bound by {p.bound}" for p in (before, after))
print(f"{first}; with tiles {tiles}")
assert after.bound_s < before.bound_s

# %% [markdown]
# ## Check yourself
#
# Three tiles of b x b numbers of 8 bytes must fit into 8 KiB. How large may b be?
#
# <details>
# <summary>Answer</summary>
#
# 18: 3 x 8 x 18**2 = 7,776 bytes, and 19 would take 8,664. The text above shows why a larger tile is still better.
#
# </details>
#
# The tiled product has the same W as the plain one. What does tiling change, then?
#
# <details>
# <summary>Answer</summary>
#
# Q, and with it the intensity: the point moves to the right under the same roof.
#
# </details>

# %%
# The answers, checked.
assert 3 * 8 * 18**2 <= 8 * 1024 < 3 * 8 * 19**2
assert after.work == before.work
assert after.intensity > before.intensity
print("checked")

# %% [markdown]
# ## To do
#
# - Leave `k` untiled (`tile i, j by b`). What has to fit now, and is the best side larger or smaller?
# - What is the minimum that any order must load? `roofdsl bound matmul --set n=240 --cache 8KiB` gives a number that no
#   order of the loops can beat.
# - `roofdsl exercise show write-blocked`.
#
# Next: `course_6_ceilings.py`.

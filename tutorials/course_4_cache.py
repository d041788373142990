# %% [markdown]
# # 4. Locality, and Q(Z)
#
# A cache does not hold everything. How many bytes move depends on its size Z and on the order of the loops: on how
# much other data is touched between two uses of a datum. This notebook takes about 20 minutes.

# %%
from random import Random

from roofdsl.api import derive, kernel, traffic_at, traffic_figure

# %% [markdown]
# ## Reuse distance
#
# In `for i: for j: for k: C[i, j] += A[i, k] * B[k, j]` every element of B is used n times, once for each i.
# Between two uses, the loops touch all of B. An LRU cache evicts the least recently used data, so it keeps the
# element only if all of B fits. An element of A is used again for the next j, after one row of A and one column of
# B. An element of C is used again immediately.
#
# So there are three reuse distances: about 3, 2 n and n**2 elements. A cache that covers one more of them saves
# n**3 loads. This is the whole staircase:

# %%
d = derive("matmul_ijk", traffic="once")
for plateau in d.plateaus:
    print(f"from Z = {plateau.from_bytes!s:8} bytes: Q is about {plateau.bytes}")

# %%
figure = traffic_figure("matmul_ijk", traffic="once", n=64, path="course_4_staircase.png")

# %% [markdown]
# The gray bars are the plateaus, the blue line is the exact closed form of Q(Z) at n = 64, and the circles are
# simulations of every access, each at one cache size. All three should agree. The two curves below them are what the
# best possible replacement moves, and what no order of the loops can beat (notebook 5).
#
# ## Count it yourself
#
# An LRU cache takes only a few lines of code. Here is one, on the same accesses in the same order.


# %%
def lru_loads(n: int, elements: int) -> int:
    """The number of elements that such an LRU cache loads, for C[i, j] += A[i, k] * B[k, j] in the order i, j, k."""
    held: dict[tuple[str, int, int], None] = {}
    loads = 0
    for i in range(n):
        for j in range(n):
            for k in range(n):
                for datum in (("A", i, k), ("B", k, j), ("C", i, j)):
                    if datum in held:
                        del held[datum]
                    else:
                        loads += 1
                    held[datum] = None  # now the most recent
                    if len(held) > elements:
                        del held[next(iter(held))]
    return loads


random = Random(1)
for _ in range(5):
    n, elements = random.randint(3, 9), random.randint(1, 90)
    derived = traffic_at("matmul_ijk", 8 * elements, traffic="load_store", n=n).loads_bytes
    mine = lru_loads(n, elements)
    print(f"n = {n}, Z = {8 * elements:3} B: {mine} elements loaded, derived {derived // 8}")
    assert 8 * mine == derived

# %% [markdown]
# They agree exactly, for each of these n and Z. roofdsl can also derive Q as a closed form in n and Z. That of a
# matrix-vector product holds for n >= 4, and for every Z that is a whole number of elements. (The last case,
# `(0, True)`, applies to no such Z.)

# %%
anything = derive("gemv", cache="Z")
print("gemv:", anything.any_cache.bytes)

# %% [markdown]
# ## Order matters
#
# Take the same work on the same data, with the loops in the order i, k, j. Which element is used again immediately
# now, and which has to wait?

# %%
ikj = kernel("""
kernel ikj(n):
    in A, B: f64[n, n]
    inout C: f64[n, n]
    for i in range(n), k in range(n), j in range(n):
        C[i, j] += A[i, k] * B[k, j]
""")
for name, source in (("i, j, k", "matmul_ijk"), ("i, k, j", ikj)):
    by_element = traffic_at(source, "8 KiB", n=200, traffic="load_store").bytes
    by_line = traffic_at(source, "8 KiB", line=64, n=200, traffic="load_store").bytes
    print(f"{name}: {by_element / 1e6:6.1f} MB by elements, {by_line / 1e6:6.1f} MB by lines of 64 B")

# %% [markdown]
# By elements, both orders move the same bytes. By lines of 8 numbers, i, j, k moves almost 9 times as many. It
# walks down a column of B, and each line brings 7 numbers that this column does not need. They would help for the
# next j, but n lines of 64 B do not fit into 8 KiB.

# %% [markdown]
# ## Check yourself
#
# A cache holds every datum of a matrix product. How many bytes does a larger cache save?
#
# <details>
# <summary>Answer</summary>
#
# None. Each datum already moves only once. This is the compulsory traffic, the last plateau.
#
# </details>
#
# Does a cache of 32 KiB hold a row of 5000 numbers of 8 bytes?
#
# <details>
# <summary>Answer</summary>
#
# No. The row has 40,000 bytes, and 32 KiB are 32,768. A reuse that needs a whole row misses.
#
# </details>

# %%
# The answers, checked.
whole = 3 * 8 * 50**2
assert traffic_at("matmul", whole, n=50).bytes == traffic_at("matmul", 10 * whole, n=50).bytes
assert 5000 * 8 > 32 * 1024
print("checked")

# %% [markdown]
# ## To do
#
# - How large must a cache be for the 5-point stencil to load every point once? Guess, then run `roofdsl derive
#   jacobi2d`.
# - `roofdsl simulate matmul_ijk --set n=256 --cache 32KiB --line 64B --ways 8`: run it with and without `--ways 8`.
#   What do 8 ways change here, and what at n = 260? (A column of B is a walk with a stride of 8 n bytes; see *conflict
#   miss* in the glossary.)
# - `roofdsl exercise show stencil-rows`.
#
# Next: `course_5_blocking.py`.

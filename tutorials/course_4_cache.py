# %% [markdown]
# # 4. Locality, and Q(Z)
#
# A cache does not hold everything. How many bytes have to be moved then depends on its size Z, and on the order
# of the loops: on how much else is touched between one use of a datum and the next. About 20 minutes.

# %%
from random import Random

from roofdsl.api import derive, kernel, traffic_at, traffic_figure

# %% [markdown]
# ## Reuse distance
#
# In `for i: for j: for k: C[i, j] += A[i, k] * B[k, j]` every element of B is used n times, once for each i.
# Between two uses the whole of B goes by. A cache that drops what was not used for longest (LRU) keeps the
# element only if all that fits. An element of A comes back for the next j: in between, one row of A and one
# column of B. An element of C comes back at once.
#
# So there are three distances, about 3, 2 n and n**2 elements, and a cache that reaches one more of them saves
# n**3 loads. That is all there is to the staircase:

# %%
d = derive("matmul")
for plateau in d.plateaus:
    print(f"from Z = {plateau.from_bytes!s:8} bytes: Q is about {plateau.bytes}")

# %%
figure = traffic_figure("matmul", n=64, path="course_4_staircase.png")

# %% [markdown]
# The grey bars are the closed forms, the blue line is every step of Q(Z) at n = 64, and the circles are a
# simulation of each access. They had better agree.
#
# ## Do not believe it: count
#
# An LRU cache takes ten lines to write. Here is one, on the same accesses in the same order.


# %%
def lru_loads(n: int, elements: int) -> int:
    """Elements that come in, for C[i, j] += A[i, k] * B[k, j] in the order i, j, k and a cache of that many."""
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
    derived = traffic_at("matmul", 8 * elements, traffic="load_store", n=n).loads_bytes
    mine = lru_loads(n, elements)
    print(f"n = {n}, Z = {8 * elements:3} B: {mine} elements loaded, derived {derived // 8}")
    assert 8 * mine == derived

# %% [markdown]
# Not nearly: exactly, for every n and Z. As a closed form in both:

# %%
anything = derive("gemv", cache="Z")
print("gemv, any n and Z:", anything.any_cache.bytes)

# %% [markdown]
# ## Order matters
#
# The same work, the same data, the loops i, k, j. Which element comes back at once now, and which has to wait?

# %%
ikj = kernel("""
kernel ikj(n):
    in A, B: f64[n, n]
    inout C: f64[n, n]
    for i in range(n), k in range(n), j in range(n):
        C[i, j] += A[i, k] * B[k, j]
""")
for name, source in (("i, j, k", "matmul"), ("i, k, j", ikj)):
    by_element = traffic_at(source, "32 KiB", n=200, traffic="load_store").bytes
    by_line = traffic_at(source, "32 KiB", line=64, n=200, traffic="load_store").bytes
    print(f"{name}: {by_element / 1e6:6.1f} MB by elements, {by_line / 1e6:6.1f} MB by lines of 64 B")

# %% [markdown]
# Memory is moved in lines of 8 numbers. Down a column of B each of them brings 7 that nobody asked for, unless
# they are still there for the next j.

# %% [markdown]
# ## To do
#
# - How large must a cache be for the 5-point stencil to load every point once? Guess, then `roofdsl derive jacobi2d`.
# - `roofdsl simulate matmul --set n=300 --cache 32KiB --line 64B --ways 8`: what do 8 ways change?
# - `roofdsl exercise show stencil-rows`.
#
# Next: `course_5_blocking.py`.

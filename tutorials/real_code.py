# %% [markdown]
# # Real code: from your own file to the roofline
#
# You have code, not `.roof` files. This notebook takes a C file to the roofline in three commands, a Python function
# to its traffic, and a PyTorch module to [planes](../docs/planes.md) that show its times. It takes about ten minutes.

# %%
from pathlib import Path

from roofdsl.api import einsum, from_python, predict
from roofdsl.cli.main import run
from roofdsl.lang.diagnostics import CommandError


def shell(command):
    """Runs a command of roofdsl, as in a terminal."""
    print(f"$ roofdsl {command}")
    assert run(command.split()) == 0


# %% [markdown]
# ## A C file, in three commands
#
# A stencil as it is often written in C: a pointer stands for a matrix, and a macro computes the linearized subscript.

# %%
Path("stencil.c").write_text("""\
#define AT(a, i, j) a[(i) * n + (j)]

void jacobi(int n, const double *restrict a, double *restrict b)
{
    for (int i = 1; i < n - 1; i++)
        for (int j = 1; j < n - 1; j++)
            AT(b, i, j) = 0.25 * (AT(a, i - 1, j) + AT(a, i + 1, j) + AT(a, i, j - 1) + AT(a, i, j + 1));
}
""")

# %% [markdown]
# First, see how it was read. The subscripts are those of a matrix again, and the intents follow from what is read and
# written. `convert --verify` would also compile your function and compare every bit of its results.

# %%
shell("convert stencil.c")

# %% [markdown]
# Second, the time on a machine: the bound, which no code that makes these accesses can beat, and the time to expect.

# %%
shell("predict stencil.c --machine haswell_e5_2695v3 --set n=6000")

# %% [markdown]
# Third, the roofline.

# %%
shell("plot roofline stencil.c --machine haswell_e5_2695v3 --set n=6000 --expected -o stencil.png")

# %% [markdown]
# What cannot be read is refused, with the line and the reason. Here the loop depends on data:

# %%
Path("search.c").write_text("""\
int first(int n, const double *x)
{
    int i = 0;
    while (x[i] < 1.0)
        i++;
    return i;
}
""")
assert run(["convert", "search.c"]) == 1

# %% [markdown]
# ## A Python function
#
# Functions as one writes them for numba or numpy are read from their text, which is never executed. Every statement on
# whole arrays becomes a loop nest, and so does every sum or maximum inside one.

# %%
Path("softmax.py").write_text("""\
import numpy as np

from roofdsl import f64


def softmax(x: f64["rows", "columns"], y: f64["rows", "columns"]):
    largest = np.max(x, axis=1, keepdims=True)
    e = np.exp(x - largest)
    y[:, :] = e / np.sum(e, axis=1, keepdims=True)
""")
shell("convert softmax.py")

# %% [markdown]
# Each of these nests is a pass over the data. A compiler could do with fewer: `--fused` shows which ones it could fuse.

# %%
as_written = predict(from_python("softmax.py"), "zen2_epyc_7452", rows=4096, columns=4096)
megabytes, milliseconds = as_written.memory.bytes / 1e6, float(as_written.bound_s) * 1e3
print(f"{megabytes:.0f} MB from and to the memory, at least {milliseconds:.1f} ms")
shell("convert softmax.py --fused")

# %% [markdown]
# An einsum is a kernel, too:

# %%
p = predict(einsum("bik,bkj->bij", "f32"), "v100", n_b=8, n_i=512, n_j=512, n_k=64)
print(f"{p.work:,} operations, at least {float(p.bound_s) * 1e6:.1f} us on a V100, bound by {p.bound}")
assert p.work == 2 * 8 * 512 * 512 * 64

# %% [markdown]
# ## A PyTorch module, on its time planes
#
# `torch.export` traces the module without running its arithmetic. Each operator becomes a kernel with its true work
# and bytes. Without PyTorch on this machine, the cell uses the program that was made with it.

# %%
MLP = """\
kernel matmul():
    traffic once
    in X: f32[4096, 1024], W: f32[1024, 4096], B: f32[4096]
    out Y: f32[4096, 4096]
    for m in range(4096), o in range(4096):
        Y[m, o] = B[o]
        for k in range(1024):
            Y[m, o] += X[m, k] * W[k, o]

# Fused: sigmoid, mul.
kernel sigmoid_mul():
    traffic once
    in X: f32[16777216]
    out Y: f32[16777216]
    for i in range(16777216):
        let x1 = X[i]
        let t1 = sigmoid(x1)
        Y[i] = x1 * t1

program mlp():
    run matmul()
    run sigmoid_mul()
"""
try:
    import torch

    from roofdsl.api import from_torch

    module = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.SiLU())
    program = from_torch(module, torch.rand(4096, 1024), fused=True).text
except (ImportError, CommandError):
    program = MLP
Path("mlp.roof").write_text(program)
shell("predict mlp.roof --machine v100")

# %% [markdown]
# The planes show work against bytes and compute time against bandwidth time: how far the program is from balance, and
# what its launches add.

# %%
shell("plot complexity-time mlp.roof --machine v100 -o planes.png")

# %% [markdown]
# # Sizing a transformer layer
#
# How fast can a GPU decode with a language model? From which batch on is it bound by compute instead of memory?
# How long a context still fits, and how many devices are worthwhile? All of this follows from counts of operations
# and bytes. This tutorial takes Llama 3 8B on an NVIDIA H100 and proceeds from one matrix product to a whole
# model; the last section splits a matrix of Llama 3 70B over several TPUs. Every number is computed from the models in
# `models/kernels/transformer.roof` and `llama.roof`.

# %%
from fractions import Fraction
from pathlib import Path

import matplotlib.pyplot as plt

from roofdsl.counts.derive import derive
from roofdsl.formulas.writing import text
from roofdsl.loops.load import kernel, load_file
from roofdsl.machine.find import load_machine, shipped
from roofdsl.plot.board import save_figure
from roofdsl.plot.kinds.roofline import draw_roofline
from roofdsl.plot.roofline_points import explained_point
from roofdsl.plot.roofs import roofs_of
from roofdsl.predict.break_even import break_even
from roofdsl.predict.collectives import network_of
from roofdsl.predict.options import Options
from roofdsl.predict.program import predict_launches
from roofdsl.predict.sharded import predict_sharded, shard
from roofdsl.predict.time_forms import program_terms, summed, terms_of

h100 = load_machine("h100_sxm")
TENSOR = Options(unit="tensor")  # contractions run on matrix units
transformer = load_file(shipped("kernels")["transformer"])
llama = load_file(shipped("kernels")["llama"])
beta = h100.main_memory.bandwidth_bytes_per_s

# %% [markdown]
# ## One projection
#
# A projection multiplies the activations of all current tokens by one weight matrix. Each weight is read once for
# all tokens, so the intensity grows with the number of tokens.

# %%
linear = kernel(transformer, "linear")
d = derive(linear, plateaus=False)
print(f"W = {d.work.total.sympy()} FLOP")
print(f"Q = {d.compulsory.bytes.sympy()} B")

terms = terms_of(linear, h100, TENSOR)
both = (terms.compute_s, terms.memory_bytes * (1 / beta))
found = break_even("HBM", both, "rows", {"inputs": 4096, "outputs": 14336})
print(f"bound by compute from rows = {text(found.form)}")
print(f"which is {found.first} for 4096 x 14336, and tends to {float(found.limit):.1f} for large matrices")

# %% [markdown]
# This limit is the machine's balance: 989.4 TFLOP/s over 3.35 TB/s. In bf16 a weight has two bytes and takes part
# in two operations per token. As long as the weights dominate the traffic, the intensity therefore equals the
# number of tokens.
#
# ## One layer, one token
#
# A decoding step takes one new token of each sequence through all layers. The following table lists the kernels of
# one layer for a single sequence with 2048 tokens in its key-value cache: the keys and values of earlier tokens, which
# lie in memory.


# %%
def layer(program="layer_decode", **sizes):
    return predict_launches(transformer, program, sizes, h100, TENSOR)


def table(found):
    for row in found.by_kernel:
        p = row.total
        intensity = "" if p.intensity is None else f"{float(p.intensity):9.3f}"
        print(f"{p.kernel:24} {p.launches:3} {p.work:15,} FLOP {p.memory.bytes:13,} B {intensity:>9} "
              f"{float(p.bound_s) * 1e6:9.2f} us {float(row.share):7.1%}  {row.bounds[0]}")  # fmt: skip


step = layer(batch=1)
table(step)
print(f"\none layer {float(step.total.bound_s) * 1e6:.1f} us: {step.total.bound}")

# %% [markdown]
# The weights dominate everything, and each weight is read for a single multiplication and addition. With 64
# sequences the projections climb the bandwidth line, but attention does not. Every sequence has a key-value
# cache of its own, and each number in it is used only for one group of queries.

# %%
many = layer(batch=64)
points = [explained_point(row.total, f"{row.total.kernel}, {float(row.share):.0%}") for row in many.by_kernel]
roofs = [roofs_of(h100, ("bf16",), ("tensor",))]
save_figure(Path("layer.png"), draw_roofline(roofs, points, "One layer, 64 sequences of 2048 tokens"))
print("layer.png shows the kernels under the roofs, with their shares of the time")

# %% [markdown]
# ## Which batch?
#
# The terms of all launches have closed forms, so a curve over hundreds of batches is cheap to compute. The time of
# a launch is the larger of its two terms.

# %%
values, launches = program_terms(llama, "llama3_8b_decode", h100, {}, TENSOR)


def step_s(batch, context):
    at = {"batch": batch, "context": context}
    return sum(max(t.compute_s.evaluate(at), t.memory_bytes.evaluate(at) / beta) for t in launches)


same = predict_launches(llama, "llama3_8b_decode", {"batch": 7, "context": 300}, h100, TENSOR)
assert step_s(7, 300) == same.total.bound_s  # exactly

batches = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
figure, axes = plt.subplots(figsize=(7, 4.5))
for context in (128, 1024, 8192):
    times = [float(step_s(b, context)) for b in batches]
    axes.loglog(
        [t * 1e3 for t in times], [b / t for b, t in zip(batches, times, strict=True)], "o-", label=f"context {context}"
    )
    print(f"context {context:5}: {batches[0] / times[0]:7.0f} tokens/s alone, {batches[-1] / times[-1]:9.0f} at 1024")
    if context == 1024:
        for batch in (1, 16, 128, 1024):
            at = (times[batches.index(batch)] * 1e3, batch / times[batches.index(batch)])
            axes.annotate(f"batch {batch}", at, xytext=(8, -10), textcoords="offset points", fontsize=8)
axes.set_xlabel("time of a step (ms)")
axes.set_title("Llama 3 8B on an H100, every launch at its roof")
axes.set_ylabel("tokens per second")
axes.legend(frameon=False)
axes.grid(alpha=0.3)
figure.savefig("decode.png", dpi=120, bbox_inches="tight")

# %% [markdown]
# More sequences cost almost nothing as long as their caches are small compared with the weights, and the projections
# are still bound by memory. Beyond that, each sequence adds its own bytes or operations, and the rate levels off. The
# batch from which compute takes as long as memory, over a whole layer, depends on the context:

# %%
values, one = program_terms(transformer, "layer_decode", h100, {}, TENSOR)
whole = summed(one)
given = {n: v for n, v in values.items() if v is not None}
for context in (32, 128, 256, 288, 289, 2048):
    at = {**given, "context": context}
    found = break_even("HBM", (whole.compute_s, whole.memory_bytes * (1 / beta)), "batch", at)
    print(f"context {context:5}: " + (f"from a batch of {found.first:,} on" if found.first else "never"))

# %% [markdown]
# **Question.** Why is 288 the longest context for which there is such a batch? Each further sequence adds the
# operations of all weights and the bytes of its own cache. If these bytes take longer than these operations, no
# number of sequences helps. What would you change in the model to allow longer contexts? (Try `group`, the number of
# queries that share a cache, or the programs with weights and cache in 8 bits.)

# %%
changes = [
    ("layer_decode", {"kv": 32, "group": 1}),
    ("layer_decode", {}),
    ("layer_decode", {"kv": 1, "group": 32}),
    ("layer_decode_f8", {}),
]
for name, sizes in changes:
    values, one = program_terms(transformer, name, h100, sizes, TENSOR)
    at = {n: v for n, v in values.items() if v is not None} | {"batch": 10**9}
    whole = summed(one)
    found = break_even("HBM", (whole.compute_s, whole.memory_bytes * (1 / beta)), "context", at)
    print(f"{name:16} kv = {values['kv']:2}, group = {values['group']:2}: up to a context of {found.intervals[0][1]:,}")

# %% [markdown]
# In 8 bits the projections run twice as fast, which leaves less time to hide the traffic of the cache. Half the
# bytes therefore do not allow longer contexts, although every step is faster.
#
# ## What fits?
#
# The key-value cache has 2 x layers x kv x dh numbers per token: a key and a value in each layer and for each of the
# kv heads. Its size is what `attention_products` reads. The weights are those that a step reads, plus the table of
# embeddings. This table has a row for each word of the vocabulary, but a step reads only one row per sequence.

# %%
one_token = {"batch": 1, "new": 1, "context": 1, "kv": 8, "group": 4, "dh": 128}
reads = derive(kernel(transformer, "attention_products"), one_token, plateaus=False).by_array
layers = 32
each = layers * int(reads["K"].value + reads["V"].value)
step = predict_launches(llama, "llama3_8b_decode", {"batch": 1, "context": 1}, h100, TENSOR).total
embeddings = 2 * 128256 * 4096
weights = step.memory.bytes + embeddings  # and a few activations
assert 0 < weights / (2 * 8_030_261_248) - 1 < 0.001  # the published number of parameters
print(f"{each / 1024:.0f} KiB per token; weights {weights / 1e9:.1f} GB of {h100.main_memory.size_bytes / 1e9:.0f} GB")
for context in (2048, 8192, 131072):
    room = (h100.main_memory.size_bytes - weights) // (each * context)
    if room:
        time = step_s(room, context)
        rates = f"a step of {float(time) * 1e3:.1f} ms, {float(room / time):,.0f} tokens/s"
        print(f"context {context:6}: {room:4} sequences fit, {rates}")

# %% [markdown]
# For all long contexts, a step with a full memory takes about the same time, whatever the context: it reads the whole
# memory once, 80 GB at 3.35 TB/s. (With the longest context, a fourth sequence does not fit. The memory is then not
# full, and a step takes less. With contexts of a few hundred tokens, so many sequences fit that the projections are
# bound by compute, and a step takes longer.)
#
# ## Prefill
#
# All tokens of a prompt go through a layer together. There are as many rows as tokens, so the projections are
# bound by compute. What remains is attention: its scores grow with the square of the number of tokens, and naive
# attention sends them to memory and back.

# %%
lengths = [512, 1024, 2048, 4096, 8192, 16384, 32768]
shares = {}
for name in ("layer_naive", "layer"):
    _, parts = program_terms(transformer, name, h100, {}, TENSOR)
    rows = []
    for n in lengths:
        at = {**given, "batch": 1, "new": n, "context": n}
        rows.append([max(t.compute_s.evaluate(at), t.memory_bytes.evaluate(at) / beta) for t in parts])
    attention = [sum(s for s, t in zip(row, parts, strict=True) if t.label.startswith("attention")) for row in rows]
    shares[name] = [float(a / sum(row)) for a, row in zip(attention, rows, strict=True)]
    times = [f"{n}: {float(sum(row)) * 1e3:.2f} ms" for n, row in zip(lengths, rows, strict=True)]
    print(f"{name:12}", "  ".join(times))

figure, axes = plt.subplots(figsize=(7, 4))
axes.semilogx(lengths, shares["layer_naive"], "o-", base=2, label="scores through memory")
axes.semilogx(lengths, shares["layer"], "o-", base=2, label="fused")
axes.set_title("What attention takes of a prefill")
axes.set_xlabel("tokens of the prompt")
axes.set_ylabel("attention's share of a layer's time")
axes.legend(frameon=False)
axes.grid(alpha=0.3)
figure.savefig("prefill.png", dpi=120, bbox_inches="tight")

# %% [markdown]
# ## Several devices
#
# This section splits the last matrix of the MLP, now of Llama 3 70B, along its summed dimension. The devices are TPUs
# (v5e), connected by links in a ring. Each device computes partial sums of the whole result, and an all-reduce adds
# them. More devices reduce the compute time of each. The communication is shorter with four devices than with two,
# since two devices have one link between them, and each device of a larger ring has two. With more than four, it takes
# longer than with four, but still less than with two.

# %%
tpu = load_machine("tpu_v5e")
down = shard(linear, "inputs")
sizes = {"rows": 512, "inputs": 28672, "outputs": 8192}
print("devices  compute (us)  links (us)  all overlapped  no overlap  bound by")
for p in (2, 4, 8, 16, 32):
    found = predict_sharded(down, sizes, tpu, network_of(tpu, p, topology="two-way-ring"), TENSOR, over="inputs")
    us = [float(t) * 1e6 for t in (found.compute_s, found.communication_s, found.bound_s, found.no_overlap_s)]
    print(f"{p:7}  {us[0]:12.0f}  {us[1]:10.0f}  {us[2]:14.0f}  {us[3]:10.0f}  {found.bounds[0]}")
    if p == 8:
        links = found.break_evens[1]

print(f"\non 8 devices the links are hidden from inputs = {links.first:,} on, whatever the rows")
assert links.form is not None and links.form.constant() == Fraction(links.limit)

# %% [markdown]
# **Question.** The break-even with the links does not depend on the number of tokens, because the product and the
# sums both grow with it. What does it depend on? (`roofdsl shard linear --split inputs --devices 8 --topology
# two-way-ring --machine tpu_v5e --unit tensor --set rows=512,inputs=28672,outputs=8192 --over inputs` prints all
# break-evens.) If communication and computation overlap perfectly (the column `all overlapped`), from how many devices
# on do further ones no longer pay off?
#
# More: `docs/transformer.md` covers the whole models, `docs/links.md` collectives and sharded products.

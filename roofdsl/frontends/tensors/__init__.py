"""Tensor programs of PyTorch and JAX as programs of kernels: each operator with its work and its bytes.

`torch_graph` and `jax_graph` read a framework's graph into `graph`, and `reference` the code of a benchmark's problem;
`kernels` writes an operator as a kernel, by the tables of `elementwise`, `contractions`, `reductions`,
`normalizations`, `pooling` and `movement`; `fusion` groups what elementwise fusion would; `program` puts the text
together.
"""

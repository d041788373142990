"""Benchmarks of roofdsl: how long derivations and commands take, and what other tools say of the same kernels."""

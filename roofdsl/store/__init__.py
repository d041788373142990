"""Data kept on disk: files that are always whole, and cached results of derivations, which are keyed by meaning and
version and trusted only with the right checksum (docs/cache.md).

`recall` is the only entry point. Analyses pass their long computations through it and know nothing about files.
"""

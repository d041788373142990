"""Data kept on disk: files that are always whole, and cached results of derivations, which are keyed by meaning and
version and trusted only with the right checksum (docs/cache.md).

Analyses pass their long computations through `recall` or `recall_within`, and know nothing about files.
"""

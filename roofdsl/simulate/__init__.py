"""Exact simulation of a kernel's accesses at given sizes: fallback and cross-check of the symbolic analyses."""

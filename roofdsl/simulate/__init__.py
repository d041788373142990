"""Exact simulation of a kernel's accesses at given sizes: the fallback and the cross-check of the symbolic analyses."""

"""Measurements: timing generated code, result files, and characterizing machines; functions import numba themselves."""

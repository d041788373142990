"""Profilers' reports as measured points: tables of kernels and metrics in, times, operations and bytes out."""

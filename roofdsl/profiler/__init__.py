"""Profilers' reports as measured points: tables of kernels and metrics become times, operations and bytes."""

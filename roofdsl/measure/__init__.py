"""Measurements: timing generated code, result files, and characterizing machines; heavy imports inside functions."""

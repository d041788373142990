"""Advice: transformations that make a kernel faster on a machine, each proven legal and predicted."""

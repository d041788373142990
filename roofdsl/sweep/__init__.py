"""Predictions over ranges of parameters, machines and cache sizes: vectorized where closed forms hold, else exact."""

"""Predictions over ranges of parameters, machines and cache sizes: vectorized if closed forms hold, exact otherwise."""

"""Many kernels on one machine: counts, traffic, lower bounds and predicted rates, kernel by kernel."""

"""Many kernels on one machine: counts, traffic, lower bounds and expected rates, kernel by kernel."""

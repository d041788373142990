"""What only a GPU can show: `benchmarks/gpu/run.sh`."""

"""From a checked kernel to source text (Python for numba, C, CUDA), and the numpy reference that it is verified by."""

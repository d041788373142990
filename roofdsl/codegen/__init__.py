"""Code generation from a checked kernel (Python for numba, C, CUDA), and the numpy reference that verifies it."""

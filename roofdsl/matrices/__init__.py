"""Data of index arrays: sparse matrices from files and generators, in the formats that kernels read them in."""

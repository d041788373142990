"""The checked loop model of kernels and programs: sizes, directives, and integer expressions."""

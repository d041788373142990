"""Python as kernels: functions with loops and numpy, parsed and never executed.

The way of a function: `read` finds it in its file, `signature` says what its arguments are, `statements` and
`expressions` follow it and write the kernel's statements through `nests`, and `kernel` adds the declarations.
"""

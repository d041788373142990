"""C by pycparser: preprocess -> places -> integers, values, statements -> a kernel's tree.

Whatever is not understood is refused (`refuse.Refused`), at the line of the user's own file; nothing is guessed.
"""

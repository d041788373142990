"""Stack distances in cache lines of uniform loop nests, exact at given sizes, for all capacities at once.

A nest is uniform where every subscript is the loop variable of its own dimension plus a number, as in stencils. A line
is reused by few references then, whose rows of iterations follow from their offsets, and what is touched in between
is a handful of blocks of rows. `uniform` reads a kernel, `groups` says what each row of iterations visits, `reuse`
finds the visit before, `windows` counts the lines in between, and `histogram` adds it all up.
"""

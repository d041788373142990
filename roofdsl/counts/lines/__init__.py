"""Stack distances in cache lines of rectangular loop nests, exact at given sizes, for all capacities at once.

Two ways lead to the same histogram (`distances`). The first is for uniform nests, where every subscript is the loop
variable of its own dimension plus a number, as in stencils. A line is reused by few references then, whose rows of
iterations follow from their offsets, and what is touched in between is a handful of blocks of rows. `uniform` reads a
kernel, `groups` says what each row of iterations visits, `previous_visits` finds the visit before, `windows` counts the
lines in between, and `histogram` adds it all up. Rows of arrays may begin anywhere in a line.

The second is for operands that have the loop variables in any order, or only some of them, as in matrix products and
transposes, in rows that begin on lines. The iterations in which an operand touches a line are a box (`nests`). So are
the data that a box of iterations touches, and only the ends of boxes are ever compared. `cells` cuts the iterations
into parts in which each comparison comes out alike, `earlier` finds the access before, `touched` counts the lines in
between, `sums` the points of a part, and `operands` adds it all up.

Both run with numbers and with `symbolic` sizes, of which `closed_forms` makes formulas.
"""

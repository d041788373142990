"""Stack distances in cache lines of rectangular loop nests: exact at given sizes, for all capacities at once.

Two methods lead to the same histogram (`distance_records`). The first is for uniform nests, in which every subscript is
the loop variable of its own dimension plus a number, as in stencils, or a number in front of these. Few references then
touch a line, and the rows of iterations in which they do so follow from the offsets. Between two visits, the nest
touches a few blocks of rows. `uniform` reads a kernel, `groups` says what each row of iterations visits,
`previous_visits` finds the previous visit, `touched_rows` and `windows` count the lines in between, and
`uniform_histogram` adds everything up. Rows of arrays may begin anywhere in a line.

The second method is for operands with the loop variables in any order, or with only some of them, as in matrix products
and transposes. Rows have to begin on lines. The iterations in which an operand touches a line form a box (`nests`), and
so do the data that a box of iterations touches, so only the ends of boxes are compared. `cells` cuts the iterations
into parts in which each comparison has one result, `earlier` finds the previous access, `touched` counts the lines in
between, `sums` counts the points of a part, and `operand_histogram` adds everything up.

Both methods run with numbers and with `symbolic` sizes. `symbolic_distances` turns symbolic results into formulas, and
`distance_terms` into those with Z a symbol.
"""

"""I/O lower bounds: the fewest loads any legal order of a kernel needs, and tiles that come near them."""

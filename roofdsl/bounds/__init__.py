"""I/O lower bounds: the fewest loads that any legal order of a kernel needs, and tiles that come close to them."""

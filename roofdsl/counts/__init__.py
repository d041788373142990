"""Exact counts of a kernel: W, Q and Q(Z), at given sizes and as closed forms, with the argument behind them."""

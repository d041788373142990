"""From counts to time: the roofline and its ceilings (counting_and_time.md, rules 12 to 19)."""

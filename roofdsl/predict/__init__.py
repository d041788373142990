"""From counts to time: the roofline and its ceilings (docs/rules.md, rules 12 to 19)."""

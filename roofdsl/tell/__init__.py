"""A derivation as text, steps, LaTeX, HTML and JSON. Nothing here computes; `derive` and `steps` facts are quoted."""

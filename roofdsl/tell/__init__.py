"""Results as text, steps, LaTeX, HTML and JSON. Nothing here computes; these modules quote results and facts."""

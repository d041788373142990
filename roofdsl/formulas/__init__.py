"""Closed forms for people: simplified, and written as text, LaTeX and sympy expressions."""

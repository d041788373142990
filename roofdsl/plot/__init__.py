"""Figures. The content of a figure is computed separately from drawing it; matplotlib is imported only to draw."""

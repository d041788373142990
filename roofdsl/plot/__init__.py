"""Figures. What a figure shows is computed apart from drawing it; matplotlib is imported only to draw."""

"""Prediction beside measurement: ratios, verdicts, and what may explain a measurement above the roof."""

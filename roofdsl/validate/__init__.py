"""Predictions compared with measurements: ratios, verdicts, and possible causes of measurements above the roof."""

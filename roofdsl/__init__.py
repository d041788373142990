"""roofdsl: exact work, traffic and intensity of loop kernels, and the roofline they live under."""

__version__ = "0.1.0"

"""Jupyter and IPython: `%load_ext roofdsl`, the cell magic `%%roof`, and the commands as functions with rich results.

%load_ext roofdsl
from roofdsl.notebook import derive, explore, predict, roofline, traffic
"""

from __future__ import annotations

from roofdsl.notebook.commands import derive, explore, machine, predict, roofline, simulate, traffic

__all__ = ["derive", "explore", "machine", "predict", "roofline", "simulate", "traffic"]

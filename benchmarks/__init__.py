"""Benchmarks of roofdsl: how long derivations and commands take, and what other tools say of the same kernels."""

import os

os.environ["ROOFDSL_CACHE"] = "off"  # everything is found anew; `startup` measures the cache by itself

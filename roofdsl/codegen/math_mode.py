"""What compilers may do to the arithmetic of generated CPU code."""

from __future__ import annotations

from typing import Literal

Math = Literal["relaxed", "strict"]
"""relaxed: reorder sums, and fuse a product with a sum. strict: neither."""

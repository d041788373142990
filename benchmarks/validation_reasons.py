"""Why an expected time is far off, for kernels whose compiled code and measurements were looked at.

A reason stands in the report beside a run outside the limits, if nobody shared its core. "Probably" marks those that no
separate measurement has confirmed.
"""

from __future__ import annotations

from collections.abc import Mapping

_SHIFTED = "probably vectors that split lines hide more of the transfers than the model lets them"
_STORED_ROWS = "probably short rows are stored and loaded again by the next iteration before they are in L1"

_SHORT_TILES = "probably the ends of short tiles are mispredicted"

REASONS: Mapping[str, str] = {
    "gsrb_fp": _SHIFTED,
    "gsrb_branch": _SHIFTED,
    "matmul_tiled": _SHORT_TILES,
    "attention_values": _STORED_ROWS,
    "attention_products": _STORED_ROWS,
}
"""By kernel."""

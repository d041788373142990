"""Why an expected time is far off, for kernels whose compiled code and measurements were looked at.

A reason stands in the report beside a run outside the limits, if nobody shared its core. "Probably" marks those that no
separate measurement has confirmed.
"""

from __future__ import annotations

from collections.abc import Mapping

_UNCHANGED = (
    "a launch after another changes nothing: its masked stores write no element, so no line is written back, which "
    "depends on the data"
)
_COLUMNS = (
    "stores along columns: probably their lines fall into fewer sets of L1 than those of the walks that `characterize` "
    "measures, and wait for each other"
)
_SHIFTED = "probably vectors that split lines hide more of the transfers than the model lets them"
_STORED_ROWS = "probably short rows are stored and loaded again by the next iteration before they are in L1"

_WAITING_CALLS = (
    "probably the calls of one element wait for each other, and the core's window holds few elements at a time: the "
    "model does not walk through functions"
)
_SHORT_TILES = "probably the ends of short tiles are mispredicted"

REASONS: Mapping[str, str] = {
    "minplus": _UNCHANGED,
    "relu": _UNCHANGED,
    "floyd_warshall": _UNCHANGED,
    "transpose": _COLUMNS,
    "nchw_to_nhwc": _COLUMNS,
    "nhwc_to_nchw": _COLUMNS,
    "gsrb_fp": _SHIFTED,
    "gsrb_branch": _SHIFTED,
    "lstm_elementwise": _WAITING_CALLS,
    "lstm_sequence": _WAITING_CALLS,
    "matmul_tiled": _SHORT_TILES,
    "attention_values": _STORED_ROWS,
    "attention_products": _STORED_ROWS,
}
"""By kernel."""

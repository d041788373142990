"""`Refused`: code in another language that cannot be read: the node, one sentence about it, what to write instead."""

from __future__ import annotations

from typing import Any


class Refused(Exception):
    """An unsupported construct. `code` is one of the codes of front ends in `roofdsl.lang.codes`."""

    def __init__(self, code: str, message: str, node: Any, help: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.node, self.help = code, message, node, help

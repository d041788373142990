"""Other people's text, such as names, titles and paths, made safe to show.

Control characters (terminal escapes among them) and characters that change the direction of writing are written as in
JSON, `\\u001b`, so documents stay valid JSON and mean the same.
"""

from __future__ import annotations

import re

_OWN = r"\x1b\[[01]m"  # bold, and its end
_UNSAFE = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
_ANY = re.compile(f"({_OWN})|{_UNSAFE}")


def visible(text: str) -> str:
    """`text` with such characters as `\\u001b`; bold face, which commands themselves use, stays."""
    if text.isascii() and text.isprintable():
        return text
    return _ANY.sub(lambda m: m[1] or f"\\u{ord(m[0]):04x}", text)

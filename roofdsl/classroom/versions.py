"""How a version of an exercise depends on the student: on the name, or on a code that needs the instructor's key.

Without a key, anybody who knows a name can compute that student's version, which suits self-study. With a course key,
a version follows from HMAC-SHA256 of the name under the key: a student who knows one code learns nothing about other
codes.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import unicodedata
from pathlib import Path

from roofdsl.lang.diagnostics import CommandError

KEY_VARIABLE = "ROOFDSL_COURSE_KEY"
LEAST_KEY = 16
LARGEST_KEY = 4096
_CODE = re.compile(r"[0-9a-f]{20}")


def plain_name(student: str) -> str:
    """The normalized name: letters with accents have a single form (NFC), which file systems do not guarantee."""
    return unicodedata.normalize("NFC", student)


def code_of(key: str, student: str) -> str:
    """The student's code under a course key: 20 hexadecimal digits."""
    name = plain_name(student).encode("utf-8", "surrogateescape")
    return hmac.new(key.encode("utf-8"), name, hashlib.sha256).hexdigest()[:20]


def version_of(student: str, key: str = "", code: str = "") -> str:
    """The text from which a student's version is drawn: the code if there is one, otherwise the name.

    Raises CommandError for a malformed code.
    """
    if code:
        plain = code.strip().lower()
        if not _CODE.fullmatch(plain):
            raise CommandError(f"`{code[:40]}` is not a version code", "a code is 20 digits and letters a to f")
        return f"code {plain}"
    return f"code {code_of(key, student)}" if key else plain_name(student)


def course_key(path: Path | None) -> str:
    """The course key from a file or from the environment variable KEY_VARIABLE; empty if there is neither.

    Raises CommandError for a key that cannot be read or is short enough to be guessed.
    """
    if path is not None:
        try:
            with path.open("rb") as file:
                data = file.read(LARGEST_KEY + 1)
            text = data.decode("utf-8")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", "") or "it is not UTF-8 text"
            raise CommandError(f"the course key `{path}` cannot be read: {reason}") from None
    elif KEY_VARIABLE in os.environ:
        text = os.environ[KEY_VARIABLE]
    else:
        return ""
    key = text.strip()
    if not LEAST_KEY <= len(key) <= LARGEST_KEY or not key.isprintable():
        raise CommandError(
            f"a course key is one line of {LEAST_KEY} to {LARGEST_KEY} characters",
            "make one with `openssl rand -hex 32 > course.key`",
        )
    return key

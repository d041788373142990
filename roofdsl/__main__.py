"""`python -m roofdsl` is `roofdsl`."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # interrupting the import of `signal` prints a traceback
import os


def _leave(number: int, frame: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(130)


def main() -> None:
    """Runs the command line. An interrupt from the keyboard while it is imported leaves no traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # if it is ignored (`&` in a script), it stays so
        signal.signal(signal.SIGINT, _leave)
    from roofdsl.cli.main import main as command_line

    command_line()


if __name__ == "__main__":
    main()

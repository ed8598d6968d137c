"""Ctrl-C in the moments before the program listens for it: it ends quietly.

The package loads this first, because every other import takes long enough to be broken
off. Where placer is a library of another program, signals stay that program's business.
"""

from __future__ import annotations

import os
import signal
import sys

INTERRUPTED = 130
_NAMES = ("placer", "placer.exe")


def listen() -> None:
    """End the process on Ctrl-C from now on, unless it was started to ignore it."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _leave)


def is_program() -> bool:
    """Whether the process was started as ``placer`` or ``python -m placer``."""
    words = [*sys.orig_argv]
    at = words.index("-m") + 1 if "-m" in words else len(words)
    script = sys.argv[0] if sys.argv else ""
    is_script = os.path.basename(script) in _NAMES  # noqa: PTH119, pathlib is slow
    return is_script or words[at : at + 1] == ["placer"]


def _leave(*_: object) -> None:
    os.write(2, b"interrupted: nothing is written\n")
    os._exit(INTERRUPTED)


if is_program():
    listen()

"""Which log is which."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from placer.base.errors import InputError, Problem
from placer.documents import files
from placer.logs import megatron, mlperf, torchtitan

if TYPE_CHECKING:
    from placer.logs.steps import Reader, Steps

# Name of a format with its pattern and reader; the first that is found counts.
LOGS: dict[str, tuple[str, Reader]] = {
    "mlperf-log": (mlperf.PATTERN, mlperf.read),
    "megatron-log": (megatron.PATTERN, megatron.read),
    "torchtitan-log": (torchtitan.PATTERN, torchtitan.read),
}
_PREFIXED = re.compile(r"([a-z-]+):(.+)", re.DOTALL)


def read_steps(source: str) -> Steps:
    """Steps of a log: a file, ``-``, or either with its format before a colon."""
    prefixed = _PREFIXED.fullmatch(source)
    named = prefixed is not None and prefixed[1] in LOGS
    path = prefixed[2] if prefixed is not None and named else source
    text, shown = files.read_text(path), files.shown_name(path)
    name = prefixed[1] if prefixed is not None and named else log_format(text)
    if not name:
        hint = f"formats of logs: {', '.join(LOGS)}"
        raise InputError([Problem("no step of a training run in it", shown, hint=hint)])
    return LOGS[name][1](text, shown)


def log_format(text: str) -> str:
    """The format that a text shows; empty when it shows none."""
    shown = (n for n, (pattern, _) in LOGS.items() if re.search(pattern, text))
    return next(shown, "")

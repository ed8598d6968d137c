"""Steps in MLPerf Training's logs (``:::MLLOG``).

Source: mlcommons/training_results_v5.0 and v5.1, ``custom_callbacks.py`` of NVIDIA's
submissions and ``callbacks.py`` of AMD's. Times of the whole run hold its evaluations:
they are not used. ``step`` counts samples in v5.0 and steps in v5.1; lines without it
sum up a block.
"""

from __future__ import annotations

import json
import re
from typing import Any

from placer.logs.steps import Kept, Steps, clean_lines, counted

PATTERN = r":::MLLOG\s*\{"
_EVENT = re.compile(r":::MLLOG\s*(\{.*\})")
_TIME, _RATE, _STATS = "train_step_time", "throughput", "tracked_stats"
_FACTS = ("global_batch_size", "gradient_accumulation_steps", "max_sequence_length")


def read(text: str, source: str) -> Steps:
    """Steps of a log, or of its blocks where it has no others."""
    times, blocks = Kept(), Kept()
    facts: dict[str, int] = {}
    for line in clean_lines(text):
        event = _event(line)
        key, value = event.get("key"), event.get("value")
        if key == "eval_start":
            times.waits = True
        elif key in _FACTS:
            facts[str(key)] = int(_positive(value))
        elif key == _STATS and isinstance(value, dict):
            number = _step(event)
            if "validation_step_time" in value:
                times.waits = True
            if number and _TIME in value:
                times.add(number, _positive(value[_TIME]))
            if number and _RATE in value:
                blocks.add(number, _positive(value[_RATE]))
    batch = facts.get(_FACTS[0], 0)
    seconds, left_out = times.plain(), times.left_out
    if not times.seen and batch:
        seconds = tuple(batch / rate for rate in blocks.plain())
        left_out = blocks.left_out
    return counted(
        Steps(
            source,
            seconds,
            batch=batch,
            accumulation=facts.get(_FACTS[1], 0),
            sequence=facts.get(_FACTS[2], 0),
            left_out=left_out,
        )
    )


def _event(line: str) -> dict[str, Any]:
    """The event of a line; nothing where it is cut."""
    found = _EVENT.search(line)
    if found is None or len(line) > 100_000:
        return {}
    try:
        event = json.loads(found[1])
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def _step(event: dict[str, Any]) -> int:
    metadata = event.get("metadata")
    number = metadata.get("step") if isinstance(metadata, dict) else None
    return int(_positive(number))


def _positive(value: object) -> float:
    """A number above 0; 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(value) if 0 < value < 1e15 else 0.0

"""Iterations of Megatron-LM, Megatron-DeepSpeed, NeMo's Megatron and Primus.

Source: NVIDIA/Megatron-LM d98e8a64, ``megatron/training/training.py``
(``training_log``): the time is the mean over a logging interval.
"""

from __future__ import annotations

import re

from placer.logs.steps import Kept, Steps, clean_lines, counted

PATTERN = r"iteration\s+\d+\s*/\s*\d+\s*\|"
_ITERATION = re.compile(r"iteration\s+(\d{1,12})\s*/\s*\d{1,12}\s*\|(.*)")
_NUMBER = r"\s*:?\s*([0-9][0-9.]{0,30}(?:[eE][-+]?\d{1,3})?)"
_TIME = re.compile(r"elapsed time per iteration \(ms\)" + _NUMBER)
_BATCH = re.compile(r"global batch size:\s*(\d{1,12})")
_SKIPPED = re.compile(r"number of skipped iterations:\s*0*[1-9]")
_RATE = re.compile(r"(?:throughput per GPU \(TFLOP/s/GPU\)|TFLOPs)" + _NUMBER)
_ELSE = re.compile(r"validation loss at|saving checkpoint|saved checkpoint|evaluating")


def read(text: str, source: str) -> Steps:
    """Steps of a log, those of its last batch size."""
    kept, rates, batches = Kept(), Kept(), {}
    for line in clean_lines(text):
        found = _ITERATION.search(line)
        if found is None:
            if _ELSE.search(line):
                kept.waits = rates.waits = True
            continue
        number, rest = int(found[1]), found[2]
        time, rate = _TIME.search(rest), _RATE.search(rest)
        batch = _BATCH.search(rest)
        if time is None:
            continue
        batches[number] = int(batch[1]) if batch else 0
        skipped = bool(_SKIPPED.search(rest))
        kept.add(number, _float(time[1]) / 1e3, skipped=skipped)
        rates.add(number, _float(rate[1]) if rate else 1e-9, skipped=skipped)
    last = list(batches.values())[-1] if batches else 0
    own = [(n, v) for n, v in kept.values if batches[n] == last]
    ours = [(n, v) for n, v in rates.values if batches[n] == last and v > 1e-6]
    return counted(
        Steps(
            source,
            tuple(value for _, value in own),
            batch=last,
            tflops=tuple(value for _, value in ours),
            left_out=len(kept.seen) - len(own),
        )
    )


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0

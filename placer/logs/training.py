"""Steps in logs of training runs: Megatron's, MLPerf's and torchtitan's.

Megatron-LM, Megatron-DeepSpeed, NeMo and Primus (NVIDIA/Megatron-LM d98e8a64,
``megatron/training/training.py``, ``training_log``) tell the mean over a logging
interval.

MLPerf Training (``:::MLLOG``; mlcommons/training_results_v5.0 and v5.1,
``custom_callbacks.py`` of NVIDIA's submissions and ``callbacks.py`` of AMD's): times of
the whole run hold its evaluations and are not used. ``step`` counts samples in v5.0 and
steps in v5.1; lines without it sum up a block.

torchtitan (pytorch/torchtitan b5bcd76c, ``torchtitan/components/metrics.py``) tells
tokens a second of one GPU, over the time since the last logged step.
"""

from __future__ import annotations

import json
import re
from typing import Any

from placer.base.errors import InputError
from placer.documents import files
from placer.logs.steps import Kept, Reader, Steps, clean_lines, counted

_ITERATION = re.compile(r"iteration\s+(\d{1,12})\s*/\s*\d{1,12}\s*\|(.*)")
_NUMBER = r"\s*:?\s*([0-9][0-9.]{0,30}(?:[eE][-+]?\d{1,3})?)"
_ELAPSED = re.compile(r"elapsed time per iteration \(ms\)" + _NUMBER)
_BATCH = re.compile(r"global batch size:\s*(\d{1,12})")
_SKIPPED = re.compile(r"number of skipped iterations:\s*0*[1-9]")
_THROUGHPUT = re.compile(r"(?:throughput per GPU \(TFLOP/s/GPU\)|TFLOPs)" + _NUMBER)
_PAUSE = re.compile(r"validation loss at|saving checkpoint|saved checkpoint|evaluating")


def read_megatron(text: str, source: str) -> Steps:
    """Steps of a log, those of its last batch size."""
    kept, rates, batches = Kept(), Kept(), {}
    for line in clean_lines(text):
        found = _ITERATION.search(line)
        if found is None:
            if _PAUSE.search(line):
                kept.waits = rates.waits = True
            continue
        number, rest = int(found[1]), found[2]
        time, rate = _ELAPSED.search(rest), _THROUGHPUT.search(rest)
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


_EVENT = re.compile(r":::MLLOG\s*(\{.*\})")
_TIME, _BLOCK, _STATS = "train_step_time", "throughput", "tracked_stats"
_FACTS = ("global_batch_size", "gradient_accumulation_steps", "max_sequence_length")


def read_mlperf(text: str, source: str) -> Steps:
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
            if number and _BLOCK in value:
                blocks.add(number, _positive(value[_BLOCK]))
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


_STEP = re.compile(r"\bstep:\s*(\d{1,12})\b")
_RATE = re.compile(r"\btps:\s*([\d,]{1,20}(?:\.\d{1,9})?)")
_TFLOPS = re.compile(r"\btflops:\s*([\d,]{1,20}(?:\.\d{1,9})?)")
_VALIDATES = re.compile(r"validate step|[Ss]aving the checkpoint|Finished saving")


def read_torchtitan(text: str, source: str) -> Steps:
    """Rates of the steps of a log."""
    kept, rates = Kept(), Kept()
    for line in clean_lines(text):
        step, rate = _STEP.search(line), _RATE.search(line)
        if _VALIDATES.search(line):
            kept.waits = rates.waits = True
        elif step and rate:
            number = int(step[1])
            kept.add(number, _float(rate[1]))
            tflops = _TFLOPS.search(line)
            if tflops:
                rates.add(number, _float(tflops[1]))
    return counted(
        Steps(
            source,
            tokens_per_gpu=kept.plain(),
            tflops=rates.plain(),
            left_out=kept.left_out,
        )
    )


def _float(text: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return 0.0


# Name of a format with its pattern and reader; the first that is found counts.
LOGS: dict[str, tuple[str, Reader]] = {
    "mlperf-log": (r":::MLLOG\s*\{", read_mlperf),
    "megatron-log": (r"iteration\s+\d+\s*/\s*\d+\s*\|", read_megatron),
    "torchtitan-log": (r"step:\s*\d+\s.*\btps:\s*[\d,]+", read_torchtitan),
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
        raise InputError("no step of a training run in it", shown, hint=hint)
    return LOGS[name][1](text, shown)


def log_format(text: str) -> str:
    """The format that a text shows; empty when it shows none."""
    shown = (n for n, (pattern, _) in LOGS.items() if re.search(pattern, text))
    return next(shown, "")

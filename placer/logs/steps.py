"""Steps in logs of training runs, without those that hold something else.

A step is left out where it is the first, was skipped, or follows an evaluation or a
checkpoint: such a step waits for what is no part of training. Logs are Megatron's,
MLPerf's and torchtitan's:

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
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from placer.base.errors import InputError
from placer.documents import files

ENOUGH = 5
# Colours, and what launchers put before each line: `vm-07: `, `[1,0]<stdout>:`, `0: `.
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Steps:
    """What a log says of its steps."""

    source: str
    # s: of steps that hold training alone; empty where the log has rates only.
    seconds: tuple[float, ...] = ()
    # 1/s: rates of the same steps, where the log has no times.
    tokens_per_gpu: tuple[float, ...] = ()
    batch: int = 0  # sequences of a step; 0 when not told
    accumulation: int = 0  # micro-batches of a replica and step; 0 when not told
    sequence: int = 0  # tokens of a sequence; 0 when not told
    # 1e12 FLOP/s: rates of a GPU as the framework counts them.
    tflops: tuple[float, ...] = ()
    left_out: int = 0  # steps that hold something else

    @property
    def count(self) -> int:
        """Steps that count."""
        return len(self.seconds or self.tokens_per_gpu)

    @property
    def scatter(self) -> float:
        """Half the range of the middle half of the steps, relative to their median."""
        values = sorted(self.seconds or self.tokens_per_gpu)
        quarter = len(values) // 4
        low, high = values[quarter], values[-1 - quarter]
        return (high - low) / 2 / median(values)


@dataclass
class Kept:
    """Values of steps as a log tells them one after the other."""

    # Number of the step and its value, each number once.
    values: list[tuple[int, float]] = field(default_factory=list)
    left_out: int = 0
    waits: bool = True  # whether the next step holds what came before it
    seen: set[int] = field(default_factory=set)

    def add(self, number: int, value: float, *, skipped: bool = False) -> None:
        """Take a step, unless it came before, is the first, or held something else."""
        if number in self.seen or not 0 < value < 1e9:
            return
        self.seen.add(number)
        if self.waits or skipped:
            self.left_out += 1
        else:
            self.values.append((number, value))
        self.waits = False

    def plain(self) -> tuple[float, ...]:
        """The values in their order."""
        return tuple(value for _, value in self.values)


def clean_lines(text: str) -> Iterable[str]:
    """Lines of a log without colours."""
    return (_COLOUR.sub("", line) for line in text.split("\n"))


def counted(steps: Steps) -> Steps:
    """The steps, if there are any."""
    if steps.count:
        return steps
    if not steps.left_out:
        message, hint = "no step is told in it", "is it a log of that program?"
        raise InputError(message, steps.source, hint=hint)
    message = f"no step to measure by ({steps.left_out} left out: warm-up, evaluation)"
    raise InputError(message, steps.source, hint="give a longer log")


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
LOGS: dict[str, tuple[str, Callable[[str, str], Steps]]] = {
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

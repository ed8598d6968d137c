"""Steps that a training run logged, without those that hold something else.

A step is left out where it is the first, was skipped, or follows an evaluation or a
checkpoint: such a step waits for what is no part of training.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from statistics import median

from placer.base.errors import InputError

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


Reader = Callable[[str, str], Steps]

"""Median step times of MLPerf Training result logs.

``python -m validation.mlperf_log result_0.txt result_1.txt result_2.txt`` prints a line
for each log: how many steps, their median, and the quarter below and above it.

A step is an MLLOG line with ``train_step_timing`` (v3.1), or with ``train_step_time``
and ``reduced_train_loss`` (v5.0 and later). The lines of v5.0 and later without a loss
hold the mean of a block of steps and are left out. Evaluations have their own timers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median, quantiles

MARK = ":::MLLOG "


def step_times(text: str) -> list[float]:
    """Seconds of every training step in a log, in its order."""
    times = []
    for line in text.splitlines():
        _, mark, entry = line.partition(MARK)
        if not mark or "train_step_tim" not in entry:
            continue
        value = json.loads(entry)["value"]
        if "train_step_timing" in value:
            times.append(float(value["train_step_timing"]))
        elif "reduced_train_loss" in value:
            times.append(float(value["train_step_time"]))
    return times


def summary(name: str, times: list[float]) -> str:
    """One line on the steps of a log."""
    if len(times) < 2:
        return f"{name}: {len(times)} steps"
    low, _, high = quantiles(times, n=4)
    return (
        f"{name}: {len(times)} steps, median {median(times):.5g} s, "
        f"half of them {low:.5g} to {high:.5g} s"
    )


if __name__ == "__main__":
    for name in sys.argv[1:]:
        sys.stdout.write(summary(name, step_times(Path(name).read_text())) + "\n")

"""Steps of torchtitan: tokens a second of a GPU.

Source: pytorch/torchtitan b5bcd76c, ``torchtitan/components/metrics.py``: ``tps`` is
over the time since the last logged step, of one GPU.
"""

from __future__ import annotations

import re

from placer.logs.steps import Kept, Steps, clean_lines, counted

PATTERN = r"step:\s*\d+\s.*\btps:\s*[\d,]+"
_STEP = re.compile(r"\bstep:\s*(\d{1,12})\b")
_RATE = re.compile(r"\btps:\s*([\d,]{1,20}(?:\.\d{1,9})?)")
_TFLOPS = re.compile(r"\btflops:\s*([\d,]{1,20}(?:\.\d{1,9})?)")
_ELSE = re.compile(r"validate step|[Ss]aving the checkpoint|Finished saving")


def read(text: str, source: str) -> Steps:
    """Rates of the steps of a log."""
    kept, rates = Kept(), Kept()
    for line in clean_lines(text):
        step, rate = _STEP.search(line), _RATE.search(line)
        if _ELSE.search(line):
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

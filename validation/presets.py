"""Job presets whose compute times come from a series, and the line that says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.calibrate.text import compute_line
from placer.documents.files import write_text
from validation.files import RATES, ROOT
from validation.steps import calibrated

if TYPE_CHECKING:
    from pathlib import Path

SERIES_OF_PRESET = {
    "llama3.1-405b-mlperf-v6": "llama3.1-405b-gb200-fp4",
    "gpt3-175b-mlperf-v3.1": "gpt3-175b-h100",
    "deepseek-v3-mlperf-v6": "deepseek-v3-gb300",
    "llama3-405b-8k": RATES,
    "llama3-405b-16k": RATES,
    "llama3-405b-16k-long": RATES,
}
MARK = "# CALIBRATION\n"


def preset_text(preset: str) -> str:
    """The file of a preset as it should be: the line below its mark is the fit."""
    text = _path(preset).read_text()
    before, mark, after = text.partition(MARK)
    _, _, rest = after.partition("\n")
    line = compute_line(calibrated(SERIES_OF_PRESET[preset]))
    return f"{before}{mark}{line}\n{rest}"


def write_presets() -> None:
    """Write the fits into the presets."""
    for preset in SERIES_OF_PRESET:
        write_text(str(_path(preset)), preset_text(preset))


def _path(preset: str) -> Path:
    return ROOT / f"jobs/{preset}.yaml"

"""Where the public points are."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from placer.calibrate.measurements import Measurements, read_measurements

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent

RATES = "llama3-405b-rates"
# In the order of the page.
SERIES = (
    "llama3.1-405b-gb200-fp4",
    "llama3.1-405b-eos",
    "llama3.1-405b-carina",
    "llama3.1-405b-theia",
    "gpt3-175b-h100",
    "deepseek-v3-gb300",
    RATES,
)


@cache
def series(name: str) -> Measurements:
    """Measured steps of the file ``points/NAME.yaml``."""
    return read_measurements(str(FOLDER / f"points/{name}.yaml"))

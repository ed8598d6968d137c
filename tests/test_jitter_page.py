"""The figures of docs/jitter.md are those of the code."""

import re
from functools import cache
from pathlib import Path

import pytest

from placer.cost.jitter import jitter_score
from placer.cost.step import StepModel
from tests.cost.azure import as_run, azure

PAGE = Path(__file__).resolve().parents[1] / "docs" / "jitter.md"
ROW = re.compile(
    r"^\| `(?P<noise>[^`]+%)` \| \+(?P<rise>[\d.]+) % \| (?P<spread>[\d.]+) % \|", re.M
)
ROWS = {match["noise"]: match for match in ROW.finditer(PAGE.read_text())}


@cache
def model_of_azure() -> StepModel:
    return StepModel(*azure())


@pytest.mark.parametrize("noise", ROWS)
def test_figures(noise: str) -> None:
    """Rise and spread of a step are as the table says, to a quarter."""
    name, _, share = noise.rpartition("=")
    deviation = float(share.removesuffix("%")) / 100
    model = model_of_azure()
    found = jitter_score(
        model, as_run(), {name: deviation} if name else deviation, samples=100
    )["step_time_s"]
    rise = 100 * (found["mean"] / model.step(as_run()).step_time_s - 1)
    spread = 100 * found["std"] / found["mean"]
    assert rise == pytest.approx(float(ROWS[noise]["rise"]), rel=0.25, abs=0.01)
    assert spread == pytest.approx(float(ROWS[noise]["spread"]), rel=0.25, abs=0.001)


def test_the_table_is_found() -> None:
    """The table has the rows that this test reads."""
    assert len(ROWS) == 8

"""The committed validation page is what the code says, and presets carry its fits."""

from __future__ import annotations

import pytest

from placer.job.read import read_job
from validation.files import ROOT
from validation.page import page
from validation.steps import calibrated


def test_the_page_is_up_to_date() -> None:
    """``python -m validation`` would change nothing in ``docs/validation.md``."""
    committed = (ROOT / "docs/validation.md").read_text()
    assert page() == committed, "run python -m validation and read what changed"


@pytest.mark.parametrize(
    ("preset", "series"),
    [
        ("llama3.1-405b-mlperf-v6", "llama3.1-405b-gb200-fp4"),
        ("gpt3-175b-mlperf-v3.1", "gpt3-175b-h100"),
        ("deepseek-v3-mlperf-v6", "deepseek-v3-gb300"),
        ("llama3-405b-8k", "llama3-405b-rates"),
        ("llama3-405b-16k", "llama3-405b-rates"),
        ("llama3-405b-16k-long", "llama3-405b-rates"),
    ],
)
def test_presets_carry_their_calibration(preset: str, series: str) -> None:
    """The compute times of a preset are those that its head says were fitted."""
    compute, fit = read_job(preset).compute, calibrated(series)
    if compute.tflops_per_gpu:
        assert compute.tflops_per_gpu == pytest.approx(fit.tflops_per_gpu, rel=1e-4)
    else:
        assert compute.micro_batch_time == pytest.approx(fit.micro_batch_s, rel=1e-4)
    assert compute.fixed_time == pytest.approx(fit.fixed_s, rel=1e-4)

"""The committed validation page is what the code says, and presets carry its fits."""

import pytest

from placer.cost import DIFFERENCE
from placer.job.read import read_job
from validation import steps
from validation.files import ROOT
from validation.page import page
from validation.presets import SERIES_OF_PRESET, preset_text


@pytest.mark.slow
def test_the_page_is_up_to_date():
    """``python -m validation`` would change nothing in it."""
    committed = (ROOT / "docs/evidence/validation.md").read_text()
    assert page() == committed, "run python -m validation and read what changed"


@pytest.mark.parametrize("preset", SERIES_OF_PRESET)
def test_presets_carry_their_calibration(preset):
    """The compute line of a preset is the one of the fit that its head names."""
    committed = (ROOT / f"jobs/{preset}.yaml").read_text()
    assert f"validation/points/{SERIES_OF_PRESET[preset]}.yaml" in committed
    assert preset_text(preset) == committed, "run python -m validation"
    assert read_job(preset).compute.micro_batch_time or "rates" in committed


def test_points_predict_each_other():
    """Leave-one-out errors of the four series are as small as promised."""
    assert steps.left_out_rms() <= 0.0065
    inside, every = steps.covered()
    assert every == 23
    assert inside >= 21  # of 23, 95 % are 21.9


def test_the_noise_of_a_difference_is_the_one_measured():
    """What ``place`` and ``diff`` call noise is what equal compute leaves."""
    measured, degrees = steps.difference_noise()
    assert degrees >= 6
    assert measured == pytest.approx(DIFFERENCE, abs=0.0025)

"""What placer and Calculon are told is the same, and published choices are read."""

from __future__ import annotations

import pytest

from benchmarks.choices import held_out, runs
from placer.cost.footprint.stages import footprint


@pytest.mark.slow
def test_published_choices_are_timed_as_they_ran() -> None:
    """Those that are not calibrated take the step that their throughput says."""
    reported = [run for run in runs() if not run.is_calibrated]
    assert len(reported) == 16
    assert all(run.job.compute.tflops_per_gpu < 10_000 for run in reported)


@pytest.mark.slow
def test_what_ran_fits_but_where_activations_lay_in_the_hosts_memory() -> None:
    """Runs that were found when the model was finished, recomputed as they were."""
    found = list(held_out())
    assert len(found) == 41
    needs = {run.title: footprint(run.job) for run in found}
    large = [
        run.title
        for run in found
        if (need := needs[run.title]) is None or need.total > run.memory
    ]
    assert large == [
        "Llama 3.1 405B FP8, 128 GB200, Bridge 25.09",
        "Llama 3 70B FP8, 64 GB200, Bridge 26.04.01",
    ]
    assert all(run.job.compute.tflops_per_gpu < 10_000 for run in found)

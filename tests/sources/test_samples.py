"""A script with a file that it lacks."""

import pytest

import placer


def test_a_missing_file_is_named(samples):
    """What a script sources and is not there is told with the job."""
    path = samples / "jobs" / "megatron/sc21/run_table_1.sh"
    with pytest.warns(UserWarning, match=r"SBATCH\.sh .* it is not there"):
        placer.read_job(path, gpus=32, tflops=100.0)

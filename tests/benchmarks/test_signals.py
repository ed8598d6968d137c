"""The benchmark of signals, on a machine of a moment."""

import pytest

from benchmarks.signals import main


@pytest.mark.slow
def test_from_end_to_end(capsys: pytest.CaptureFixture[str]) -> None:
    """It stops a run and prints a row."""
    assert main(["--case", "node:2 gpu:8", "quickstart", "--moments", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3

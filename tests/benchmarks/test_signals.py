"""The benchmark of signals, on a machine of a moment."""

import pytest

from benchmarks.signals import Stop, main, table


def test_table() -> None:
    """The longest latency is shown, and how many runs left a plan."""
    found = [Stop(0.1, 0.2, 143, False), Stop(1.0, 0.75, 143, True)]
    assert list(table([("m", "j", found)]))[2:] == ["| m | j | 2 | 0.75 s | 1 | 143 |"]


@pytest.mark.slow
def test_from_end_to_end(capsys: pytest.CaptureFixture[str]) -> None:
    """It stops a run and prints a row."""
    assert main(["--case", "node:2 gpu:8", "quickstart", "--moments", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3

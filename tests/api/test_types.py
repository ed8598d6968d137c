"""What a type checker knows of the library: names of a choice, fields of a score."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")

RIGHT = """
import placer
result = placer.place("dgx-h100-4x8", "quickstart", objective="time", effort="quick")
step: float = result.score.step_time_s
hops: float | None = result.score.hop_cost
busy: float = result.score.hottest_links[0]["busy_s"]
text: str = placer.emit(result.plan, "slurm-hostfile")
picture: placer.Picture = placer.draw(result.plan, "pipeline", theme="dark")
page: str = placer.report_html(result.plan, "sorted-hosts")
before: placer.Plan = placer.predict("dgx-h100-4x8", "quickstart", "slurm")
"""
# A line that is wrong -> what the checker must say of it.
WRONG = {
    'placer.place("t", "j", objective="speed")': '"objective"',
    'placer.place("t", "j", effort="lazy")': '"effort"',
    'placer.sweep("t", "j", dp=[1], objective="speed")': '"objective"',
    'placer.allocate("t", ["j"], objective="speed")': '"objective"',
    'placer.tune("t", "j", framework="horovod")': '"framework"',
    'placer.tune("t", "j", recompute=["some"])': "List item 0",
    'placer.emit(result.plan, "slurm")': "emit",
    'placer.draw(result.plan, "chart")': 'Argument 2 to "draw"',
    'placer.draw(result.plan, theme="blue")': '"theme"',
    "placer.report_html(result.plan, 1)": "Argument 2",
    'placer.predict("t", "j", "mpi")': "Argument 3",
    "result.score.step_time": 'no attribute "step_time"',
    'result.score.hottest_links[0]["busy"]': 'no key "busy"',
}


@pytest.mark.slow
def test_a_type_checker_knows_the_names(tmp_path: Path) -> None:
    """Right names pass; of wrong ones each line is refused, and no other."""
    snippet = tmp_path / "snippet.py"
    snippet.write_text(RIGHT + "\n".join(WRONG) + "\n")
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(snippet)],
        capture_output=True,
        text=True,
        check=False,
    )
    first = RIGHT.count("\n") + 1
    told = dict(re.findall(r"^.*?:(\d+): error: (.*)$", run.stdout, re.MULTILINE))
    assert [*map(int, told)] == [*range(first, first + len(WRONG))], (
        run.stdout + run.stderr
    )
    for message, expected in zip(told.values(), WRONG.values(), strict=True):
        assert expected in message

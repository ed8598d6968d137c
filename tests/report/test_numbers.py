"""Numbers in texts: one gap everywhere, no minus before zero, shares that agree."""

import re
from pathlib import Path

import pytest

import placer
from placer.base.units import format_bytes, format_seconds, parse_duration
from placer.report.columns import PLAIN
from placer.report.gains_text import gain_lines
from placer.report.summary import summarise
from placer.report.sweep_table import cell
from placer.report.words import gap_text

PACKAGE = Path(placer.__file__).parent


@pytest.mark.parametrize(
    ("gap", "shown"),
    [
        (0.0, "0.000%"),
        (0.00036, "0.036%"),
        (0.000361, "0.037%"),
        (0.0999, "9.990%"),
        (0.37001, "37.1%"),
    ],
)
def test_gap_is_rounded_up(gap: float, shown: str) -> None:
    """A gap is never shown smaller than it is, and alike in all texts."""
    assert gap_text(gap) == shown
    assert cell({"gap": gap}, "gap") == shown


def test_no_minus_before_zero() -> None:
    """What rounds to zero has no sign, in times, sizes and all percentages."""
    assert format_seconds(-1e-15) == format_seconds(1e-15) == "0 s"
    assert format_bytes(-1e-6) == "0 B"
    signed = re.compile(r"\{[^{}\n]*:[^z{}\n]*\.\d%\}")
    texts = [p for f in ("report", "draw") for p in (PACKAGE / f).glob("*.py")]
    assert [p.name for p in texts if signed.search(p.read_text())] == []


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("1m", 60), ("5min", 300), ("2h", 7200), ("500ms", 0.5)],
)
def test_durations(text: str, seconds: float) -> None:
    """Limits take the usual units; m is minutes."""
    assert parse_duration(text) == seconds


def test_share_and_gpu_hours_agree() -> None:
    """The hours are the share saved, of a day of all GPUs."""
    plan = placer.place("rack:4 node:4 gpu:4", "quickstart").plan
    own = plan.score["step_time_s"]
    plan.baselines["given-order"]["step_time_s"] = 2 * own
    (line,) = [line for line in gain_lines(plan, PLAIN) if line.startswith("  given")]
    assert "+50.00%" in line
    assert f"+{plan.world_size * 12:,}" in line


def test_launcher_is_no_rule_of_the_job() -> None:
    """What only the launcher cannot number is not called a broken rule."""
    result = placer.place("rack:2 node:2 gpu:4", "quickstart")
    for entry in result.plan.baselines.values():
        entry["violates"] = ["1 of 4 nodes does not hold consecutive ranks: the first"]
    assert "* cannot be launched: the job's launcher" in summarise(
        result.plan, in_full=True
    )
    entry["violates"].append("1 of 2 tp groups leaves its node: the first")
    assert "* breaks rules of the job, or cannot" in summarise(
        result.plan, in_full=True
    )

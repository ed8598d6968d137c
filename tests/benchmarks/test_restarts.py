"""The comparison of rules of numbering after a failure, as the page shows it."""

from __future__ import annotations

from pathlib import Path

from benchmarks.restarts import CASES, RULES, by_placer, row, table

PAGE = Path(__file__).resolve().parents[2] / "docs/in-the-job.md"


def test_the_page_shows_the_table() -> None:
    """Each row is what the rules do today."""
    shown = PAGE.read_text().splitlines()
    assert [line for line in table() if line not in shown] == []


def test_the_public_figure() -> None:
    """By segments 112 of 128 nodes are renumbered; by placer 16 ranks of nodes move."""
    case = CASES[-1]
    after = RULES["nvidia-resiliency-ext 0.7, `--ft-segment`"](case)
    assert row(case, "", case.before, after).endswith("| 128 | 112 | 0 |")
    assert row(case, "", *by_placer(case)).endswith("| 16 | 0 | 0 |")

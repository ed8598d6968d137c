"""Hottest links and critical paths before and after, by hand."""

from dataclasses import replace

from placer.report.before_after import link_changes, path_changes
from placer.report.diff import diff
from placer.report.diff_text import diff_text
from placer.testing.strategies import tiny_plan


def link(domain: str, busy_s: float) -> dict:
    name = {"tier": "block", "domain": domain, "direction": "up"}
    return {**name, "bytes": busy_s * 1e9, "busy_s": busy_s}


OLD = tiny_plan(
    score={
        "hottest_links": [link("r0", 3.0), link("r1", 2.0)],
        "critical_path": [
            {"operation": "compute", "seconds": 2.0, "replica": 1},
            {"operation": "pipeline messages (pp)", "seconds": 0.5},
        ],
    }
)
NEW = replace(
    OLD,
    score={
        "hottest_links": [link("r2", 2.5), link("r0", 1.5)],
        "critical_path": [
            {"operation": "compute", "seconds": 2.0, "replica": 0},
            {"operation": "gradient reduction (dp)", "seconds": 0.25},
        ],
    },
)


def test_links() -> None:
    """Links are paired by name, the busiest first; where one is not listed is None."""
    found = [change.to_dict() for change in link_changes(OLD, NEW)]
    name = {"tier": "block", "direction": "up"}
    assert found == [
        {
            **name,
            "domain": "r0",
            "old": {"bytes": 3e9, "busy_s": 3.0},
            "new": {"bytes": 1.5e9, "busy_s": 1.5},
        },
        {
            **name,
            "domain": "r2",
            "old": None,
            "new": {"bytes": 2.5e9, "busy_s": 2.5},
        },
        {**name, "domain": "r1", "old": {"bytes": 2e9, "busy_s": 2.0}, "new": None},
    ]


def test_path() -> None:
    """Operations are paired by name, the longest first, with all said of them."""
    found = [change.to_dict() for change in path_changes(OLD, NEW)]
    assert found == [
        {
            "operation": "compute",
            "old": {"seconds": 2.0, "replica": 1},
            "new": {"seconds": 2.0, "replica": 0},
        },
        {
            "operation": "pipeline messages (pp)",
            "old": {"seconds": 0.5},
            "new": None,
        },
        {
            "operation": "gradient reduction (dp)",
            "old": None,
            "new": {"seconds": 0.25},
        },
    ]


def test_text() -> None:
    """The text shows both lists in columns, with what each placement lacks."""
    text = diff_text(diff(OLD, NEW))
    _, _, after = text.partition("\n\n")
    assert after.startswith(
        "critical path               old     new    change\n"
        "compute                     2 s     2 s\n"
        "pipeline messages (pp)   500 ms     0 s  -100.00%\n"
        "gradient reduction (dp)     0 s  250 ms\n"
        "\n"
        "busiest links         old       new   change\n"
        "r0 up, block tier     3 s     1.5 s  -50.00%\n"
        "r2 up, block tier  <= 2 s     2.5 s\n"
        "r1 up, block tier     2 s  <= 1.5 s\n"
    )

"""Hottest links and critical paths before and after, by hand."""

from dataclasses import replace

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

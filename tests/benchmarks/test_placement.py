"""Results of the placement benchmark, as its page tells them."""

from dataclasses import replace

from benchmarks.attempt import PLACER, Attempt, Spec
from benchmarks.page import page
from benchmarks.results import Report, Result, Row
from benchmarks.tables import case_table


def row(tool, value, **fields):
    spec = Spec(tool, variant="replica-major" if tool == "orders" else "")
    made = Attempt(spec, value=value, crossings={"dp": [6, 1, 1]}, wall_s=1.0)
    return Row(replace(made, **fields), 1, value)


def result(*others, name="X"):
    ours = row(PLACER, 110.0, lower_bound=100.0, wall_s=2.0, note="a | b; feasible")
    return Result(
        name,
        "hop-cost",
        8,
        16,
        2,
        {"tp": 1, "dp": 8},
        {"dp": 2.0},
        50.0,
        [ours, *others],
    )


def test_losses_are_told():
    """A better tool is in the table above placer and on the page as a loss."""
    report = Report("2 shared cores", {}, 60.0, [result(row("METIS", 105.0))])
    lines = list(case_table(report.results[0]))
    assert lines[2].startswith("| METIS | 105 | 4.762% | 1.100 | 2 |")
    assert r"a \| b; feasible" in lines[3]
    text = page(report)
    assert "* **X, hop-cost**: METIS (**-4.545%**)." in text
    assert "Not installed: orders" in text
    assert "nowhere" not in text

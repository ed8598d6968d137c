"""Words, numbers, lists of hosts and lines in texts."""

import pytest

from placer.base.units import format_bytes, format_seconds
from placer.report.columns import wrapped
from placer.report.tune_words import tight
from placer.report.words import gap_text, hosts_text, share_text, unbeaten
from placer.sweep.result import cell, sweep_text

TEXT = "1.559 s a step, 8.4 % of 12 GB in 20.1 ms, 2 sites, 3 Boxes and 45 us"
LONG = [f"n{i}" for i in range(0, 2000, 2)]


def test_a_number_stays_with_its_unit():
    """No line begins with a unit, whatever the width, and no word is lost."""
    for width in range(12, 90):
        lines = wrapped(TEXT, "  ", width)
        assert " ".join(line.strip() for line in lines) == TEXT
        firsts = {line.split()[0].rstrip(",") for line in lines}
        assert not firsts & {"s", "%", "GB", "ms", "us"}


@pytest.mark.parametrize(
    ("hosts", "text"),
    [
        (["n1"], "n1"),
        (["a1", "a2", "a4", "b"], "a[1-2,4], b"),
        ([f"b{i:02}-r{j}" for i in (1, 2, 9) for j in (1, 2)], "b[01-02,09]-r[1-2]"),
        (["b1-r7", "b2-r7", "c-r7"], "b[1-2]-r[7], c-r7"),
        (["x" * 250, "y"], "x" * 250 + " and 1 more"),
        (LONG, f"n[{','.join(str(i) for i in range(0, 126, 2))}] and 937 more"),
    ],
)
def test_text(hosts, text):
    """Hosts are joined in brackets; only commas between brackets are followed by one.

    At least one host is shown.
    """
    assert hosts_text(hosts) == text


@pytest.mark.parametrize(
    ("gap", "shown"),
    [
        (0.0, "0.000%"), (0.00036, "0.036%"), (0.000361, "0.037%"),
        (0.0999, "9.990%"), (0.37001, "37.1%"),
    ],
)  # fmt: skip
def test_gap_is_rounded_up(gap, shown):
    """A gap is never shown smaller than it is, and alike in all texts."""
    assert gap_text(gap) == shown
    assert cell({"gap": gap}, "gap") == shown


def test_what_costs_nothing_is_optimal():
    """A bound of 0 proves nothing, but of a placement that costs 0."""
    bound = {"objective": "hop-cost", "lower_bound": 0.0, "gap": 0.0}
    assert unbeaten(bound | {"status": "optimal"}).startswith("no placement on these")
    assert unbeaten(bound | {"status": "feasible"}).startswith("nothing is proved")


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0844, "8.4 %"), (0.007, "0.7 %"), (0.00274, "0.27 %"),
        (0.00004, "less than 0.01 %"), (0.5, "50 %"), (12.5, "1,250 %"),
    ],
)  # fmt: skip
def test_shares(share, text):
    """Two digits, none of them nothing but noise."""
    assert share_text(share) == text


def test_no_minus_before_zero():
    """What rounds to zero has no sign."""
    assert format_seconds(-1e-15) == format_seconds(1e-15) == "0 s"
    assert format_bytes(-1e-6) == "0 B"


@pytest.mark.parametrize(
    ("needs", "said"),
    [
        ([71e9, 60e9], ""),
        ([73e9, 60e9], "row 1 fills more than 90% of"),
        ([60e9, 79e9, 73e9], "rows 2, 3 fill more than 90% of"),
    ],
)
def test_rows_near_the_limit_of_memory_are_told(needs, said):
    """With the option that leaves a tenth free; where no limit is known, nothing."""
    rows = [{"memory_bytes": each} for each in needs]
    told = tight(rows, 80e9)
    assert said in told
    assert ("--memory 72GB" in told) == bool(said)
    assert not tight(rows, 0.0)


def test_a_wide_table_says_once_what_all_rows_share():
    """Swept keys stay, the status that all points have is said below."""
    rates = "nic_rate_bytes_per_s"
    same = {
        "step_time_s": 1.3008,
        "exposed_scale_out_s": 0.05046,
        "gap": 0.0,
        "rank": 1,
    }
    rows = [
        {"dp": dp, "micro_batches": 8, rates: rate, "world_size": 64 * dp}
        | {"global_batch": 8 * dp, "status": "optimal", **same}
        for dp in (16, 32)
        for rate in (50e9, 100e9)
    ]
    text = sweep_text(rows, ["dp", "micro_batches", rates])
    assert max(map(len, text.splitlines())) <= 80
    assert text.startswith("dp ")
    assert text.endswith("in every row: status optimal")

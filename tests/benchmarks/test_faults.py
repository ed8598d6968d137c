"""The replay of faults: its books, its policies, and that it says what it ran."""

import json

import pytest

from benchmarks.fault_page import Replay, page, picture
from benchmarks.fault_placer import Placer, all_left, best, best_of_all
from benchmarks.fault_policies import BestFit, Cluster, SortedHosts, WholeRacks
from benchmarks.fault_replay import (
    Change,
    Terms,
    account,
    random_map,
    read_trace,
    timeline,
)

HOUR = 1 / 24


@pytest.fixture(scope="module")
def cluster():
    return Cluster.of_presets()


@pytest.fixture
def trace_file(tmp_path):
    """Six faults of three servers, two of them repaired."""
    rows = [("a", 1.0, 1), ("b", 2.0, 1), ("a", 3.0, -1), ("c", 3.5, 1), ("a", 4.5, 1)]
    rows += [("b", 6.0, -1)]
    kinds = {1: "fault_start", -1: "fault_end"}
    path = tmp_path / "trace.json"
    path.write_text(
        json.dumps(
            [
                {"node_id": name, "event_time": day, "event_type": kinds[sign]}
                for name, day, sign in rows
            ]
        )
    )
    return path


def test_books_of_a_fault():
    """A fault costs the restart and what was trained since the last checkpoint."""
    changes = [
        Change(0.0, False, 10, 0, 2.0, 0.0),
        Change(1.0 + 1.5 * HOUR, True, 8, 4, 2.0, 0.0),
    ]
    terms = Terms(checkpoint_s=3600, restart_s=900, micro_batches=1)
    found = account(changes, 2, terms)
    # From 0.25 h the job makes 5 sequences a second; the fault comes a quarter of
    # an hour after the 25th checkpoint.
    assert found.lost_s == pytest.approx(900)
    first = 5 * 3600 * 23.75
    second = 5 * 3600 * (1.5 - 0.25) + 4 * 3600 * (24 - 1.5 - 0.25)
    assert found.samples == pytest.approx([first, second])
    assert found.productive_s == pytest.approx(3600 * (48 - 0.25 - 0.25 - 0.25))
    assert found.replicas == pytest.approx([10, 10 * 1.5 / 24 + 8 * 22.5 / 24])


@pytest.mark.slow
def test_the_page(cluster, trace_file):
    """The page has a row for each policy, and the picture a line."""
    trace = read_trace(trace_file)
    maps = dict.fromkeys(("0", "clustered"), random_map(trace, 0))
    known = best_of_all(
        all_left(trace, maps.values()),
        lambda batch, count: [best(cluster, state, count) for state in batch],
    )
    policies = (WholeRacks(cluster), SortedHosts(cluster), BestFit(cluster))
    # Long enough for a picture: the last state lasts for three weeks.
    found = [
        Replay(name, policy.name, timeline(trace, servers, policy), 30.0)
        for name, servers in maps.items()
        for policy in (*policies, Placer(cluster, known))
    ]
    text = page(found, 1.26, cluster.micro_batch_s)
    for name in ("whole racks", "sorted hosts", "best fit", "placer"):
        assert f"\n| {name} |" in text
    assert picture(found, 1.26).count("<polyline") == 7

"""The main job end to end, and every job preset on the machines it names."""

import re
from collections import Counter

import numpy as np
import pytest

import placer
from placer.documents.presets import preset_names, preset_path
from tests.marks import slow

AZURE = "azure-gb200-mlperf-v6"
LLAMA = "llama3.1-405b-mlperf-v6"


def runs_on():
    """The topologies of the `Runs on` line of every job preset."""
    found = {}
    for job in preset_names("jobs"):
        text = preset_path("jobs", job).read_text()
        for line in re.findall(r"^# Runs on: (.*)$", text, re.MULTILINE):
            found[job] = line.split(", ")
    return found


FIRST = [(job, first) for job, (first, *_) in runs_on().items()]
VAST = ("h100-131k", "meta-llama3-24k", "azure-ndh100-v5", "gb200-nvl72-8x72")
HUGE = [case for case in FIRST if case[1] in VAST]
OTHERS = [(job, other) for job, (_, *others) in runs_on().items() for other in others]
SMALL = [case for case in OTHERS if case[0] == "quickstart"]
LARGE = [case for case in OTHERS if case[0] != "quickstart" and case[1] != VAST[0]]


@pytest.mark.parametrize(
    "case",
    [*(case for case in FIRST if case not in HUGE), *SMALL, *slow(HUGE + LARGE)],
    ids=" on ".join,
)
def test_every_job_preset_places(case):
    """Each job preset places on each topology it names, checked, with a true bound."""
    job, topology = case
    machine, work = placer.read_topology(topology), placer.read_job(job)
    result = placer.place(machine, work, effort="quick")
    placer.check(result.plan, machine, work)
    assert 0 < result.bound["lower_bound"] <= result.bound["value"]


def test_every_job_preset_names_a_topology_and_each_of_these_is_named():
    """No job is left without a machine, and no machine without a job."""
    assert set(runs_on()) == set(preset_names("jobs"))
    named = {name for machines in runs_on().values() for name in machines}
    assert named == set(preset_names("topologies"))


def test_tables_come_together():
    """Shards of a group of tables share a host, which hosts in order never do."""
    machine, work = placer.read_topology("dgx-h100-4x8"), placer.read_job("dlrm-tables")
    result = placer.place(machine, work, time_limit=2)
    before = result.plan.baselines["given-order"]["step_time_s"]
    assert result.score["step_time_s"] < 0.4 * before
    for group in (f"tables_{k}_forward" for k in range(1, 5)):
        assert result.score["crossings"][group] == {"node": 1}


def assert_one_replica_a_rack(plan):
    """All tp, cp and pp groups inside a rack, 64 ranks in each of 128 racks."""
    assert plan.score["crossings"]["tp"] == {"node": 2048}
    assert plan.score["crossings"]["cp"] == {"rack": 4096}
    assert plan.score["crossings"]["pp"] == {"rack": 1024}
    racks = Counter(plan.domains["rack"][node] for node in plan.node_of_rank)
    assert sorted(racks.values()) == [64] * 128


def test_azure_is_proved_optimal_and_beats_the_host_order():
    """The record's placement is found and proved; sorted hosts cost milliseconds."""
    result = placer.place(placer.read_topology(AZURE), placer.read_job(LLAMA))
    assert result.status == "optimal"
    assert_one_replica_a_rack(result.plan)
    by_name = result.plan.baselines["sorted-hosts"]
    assert by_name["step_time_s"] > result.score["step_time_s"] + 0.005
    # About 20 ms are seen; what is hidden slows work by 3 ms more.
    assert 0.016 < result.score["exposed_scale_out_s"] < 0.026


@pytest.mark.parametrize("seed", [0, *slow([1, 2])])
def test_azure_with_two_trays_missing_in_every_rack(seed):
    """Sixteen trays of eighteen are enough: still one replica a rack, still proved."""
    machine = placer.read_topology(AZURE)
    rng = np.random.default_rng(seed)
    missing = [
        machine.node_names[rack * 18 + tray]
        for rack in range(128)
        for tray in rng.choice(18, 2, replace=False)
    ]
    result = placer.place(machine, placer.read_job(LLAMA), exclude=missing)
    assert result.status == "optimal"
    assert_one_replica_a_rack(result.plan)
    assert not set(missing) & set(result.plan.nodes)

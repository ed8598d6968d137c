"""The text of a difference."""

import re
from dataclasses import replace

import numpy as np
import pytest

import placer
from placer import testing
from placer.cost import JITTER
from placer.job.axes import Parallelism
from placer.placement.build import build_plan
from placer.placement.placement import Placement
from placer.report.diff import diff
from placer.report.diff_text import diff_text
from placer.testing.strategies import machine, tiny, tiny_plan
from tests.texts import data


def link(domain, busy_s):
    name = {"tier": "block", "domain": domain, "direction": "up"}
    return {**name, "bytes": busy_s * 1e9, "busy_s": busy_s}


OLD_SCORE = {
    "step_time_s": 1.25,
    "exposed_s": {"tp": 0.01, "pp": 0.02},
    "crossings": {"pp": {"rack": 8}},
    "traffic_bytes": {"pp": {"rack": 3_000_000}},
    "hottest_links": [link("r0", 3.0), link("r1", 2.0)],
    "critical_path": [
        {"operation": "compute", "seconds": 2.0, "replica": 1},
        {"operation": "pipeline messages (pp)", "seconds": 0.5},
    ],
}
NEW_SCORE = {
    "step_time_s": 1.5,
    "exposed_s": {"tp": 0.01, "pp": 0.03},
    "crossings": {"pp": {"rack": 4, "cluster": 4}},
    "traffic_bytes": {"pp": {"rack": 1_500_000, "cluster": 1_500_000}},
    "hottest_links": [link("r2", 2.5), link("r0", 1.5)],
    "critical_path": [
        {"operation": "compute", "seconds": 2.0, "replica": 0},
        {"operation": "gradient reduction (dp)", "seconds": 0.25},
    ],
}


def nodes_swapped():
    """The tiny plan with its second and seventh node swapped."""
    topology, job = tiny()
    gpus = np.arange(16).reshape(8, 2)[[0, 6, 2, 3, 4, 5, 1, 7]].ravel()
    return build_plan(topology, job, Placement(gpus), score=NEW_SCORE)


def test_whole_text():
    """Cost, groups and ranks are told in words, in columns, with units."""
    text = diff_text(diff(tiny_plan(score=OLD_SCORE), nodes_swapped()))
    assert text == data("report/diff.txt")


def test_no_difference():
    """Equal plans are told to be so in one line."""
    text = diff_text(diff(tiny_plan(), tiny_plan()))
    assert text == "no difference: 16 ranks on the same GPUs\n"
    plan = tiny_plan(score=OLD_SCORE)
    assert diff(plan, plan).is_empty
    for change in ({"step_time_s": 1.5}, {"hottest_links": []}):
        other = tiny_plan(score=OLD_SCORE | change)
        assert "no difference" not in diff_text(diff(plan, other))


def test_other_inputs_and_nodes():
    """Other inputs, world size and nodes are told by name."""
    topology, job = tiny()
    old = replace(tiny_plan(), topology={**tiny_plan().topology, "sha256": "f" * 64})
    fewer = replace(job, parallelism=replace(job.parallelism, dp=3))
    new = build_plan(topology, fewer, Placement(np.arange(12)))
    text = diff_text(diff(old, new))
    assert "another topology: machine (ffffffffffff) -> machine (digest of [(" in text
    assert "world size: 16 -> 12 (12 ranks compared)" in text
    assert "nodes lost: 2 (n[006-007])" in text
    assert "ranks moved: 0 of 12" in text


def test_long_lists_are_cut():
    """Many folds and hosts are cut, and the text says how many more there are."""
    topology = machine([("b0", [1] * 50)])
    job = replace(tiny()[1], parallelism=Parallelism(dp=25), require={})
    old = build_plan(topology, job, Placement(np.arange(25)))
    new = build_plan(topology, job, Placement(np.arange(25) + 25))
    names = tuple(f"{'x' * 9}{chr(97 + i)}" for i in range(25))
    text = diff_text(diff(old, replace(new, nodes=names)))
    assert "  DP replica 19, 1 node: in r0 (1 rank)\n" in text
    assert "  and 5 more; --format json lists every rank\n" in text
    assert "nodes gained: 25 (xxxxxxxxxa, xxxxxxxxxb, " in text
    assert "xxxxxxxxxr and 7 more)\n" in text  # 18 names take 197 characters


@pytest.mark.parametrize("width", [30, 48, 80])
def test_narrow(width):
    """No line is wider than asked, and every number is still there."""
    whole = diff_text(diff(tiny_plan(score=OLD_SCORE), nodes_swapped()), 1_000)
    text = diff_text(diff(tiny_plan(score=OLD_SCORE), nodes_swapped()), width)
    assert max(map(len, text.splitlines())) <= width
    numbers = re.compile(r"[0-9][0-9.,]*[0-9]|[0-9]")
    assert sorted(numbers.findall(text)) == sorted(numbers.findall(whole))


def test_what_a_difference_saves_has_an_interval():
    """Of two placements of a job on a machine, and of nothing else."""
    thin, other = (testing.racks([4] * n, 8, False, 8, nvlink=450e9) for n in (2, 3))
    old, new = (
        placer.predict(thin, "quickstart", "slurm", hosts)
        for hosts in ("r0n1,r1n1", "r0n1,r0n2")
    )
    found = diff(old, new)
    told = found.to_dict()["verdict"]
    low, high = told["saved_s_interval"]
    assert low <= told["saved_s"] <= high
    is_better = low > JITTER * old.score["step_time_s"]
    assert told["advice"] == ("move" if is_better else "keep")
    assert told["text"] in " ".join(diff_text(found).split())
    assert "a step (" in told["text"]
    unlike = diff(old, placer.predict(other, "quickstart", "slurm", "r0n1,r0n2"))
    assert "saved_s" not in unlike.to_dict()["verdict"]

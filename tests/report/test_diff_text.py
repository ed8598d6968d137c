"""The text of a difference."""

from dataclasses import replace

import numpy as np
from hypothesis import given

from placer.job.axes import Parallelism
from placer.placement.build import build_plan
from placer.placement.placement import Placement
from placer.placement.plan import Plan
from placer.report.diff import diff
from placer.report.diff_text import diff_text
from tests.plan_cases import tiny, tiny_plan

OLD_SCORE = {
    "step_time_s": 1.25,
    "exposed_s": {"tp": 0.01, "pp": 0.02},
    "crossings": {"pp": {"rack": 8}},
    "traffic_bytes": {"pp": {"rack": 3_000_000}},
}
NEW_SCORE = {
    "step_time_s": 1.5,
    "exposed_s": {"tp": 0.01, "pp": 0.03},
    "crossings": {"pp": {"rack": 4, "cluster": 4}},
    "traffic_bytes": {"pp": {"rack": 1_500_000, "cluster": 1_500_000}},
}


def nodes_swapped() -> Plan:
    """The tiny plan with its second and seventh node swapped."""
    topology, job = tiny()
    gpus = np.arange(16).reshape(8, 2)[[0, 6, 2, 3, 4, 5, 1, 7]].ravel()
    return build_plan(topology, job, Placement(gpus), score=NEW_SCORE)


def test_whole_text() -> None:
    """Cost, groups and ranks are told in words, in columns, with units."""
    text = diff_text(diff(tiny_plan(score=OLD_SCORE), nodes_swapped()))
    assert text == (
        "cost                         old     new   change\n"
        "step time                 1.25 s   1.5 s  +20.00%\n"
        "exposed pp                 20 ms   30 ms  +50.00%\n"
        "pp groups in one rack          8       4       -4\n"
        "pp groups in one cluster       0       4       +4\n"
        "pp traffic, rack            3 MB  1.5 MB  -50.00%\n"
        "pp traffic, cluster          0 B  1.5 MB\n"
        "\n"
        "groups in another lowest common domain\n"
        "  tp: 2 of 8\n"
        "  pp: 4 of 8\n"
        "    rack -> cluster: 4\n"
        "\n"
        "ranks moved: 4 of 16\n"
        "  DP replica 0: 1 node r0 -> r3 (2 ranks)\n"
        "  DP replica 3: 1 node r3 -> r0 (2 ranks)\n"
    )


def test_no_difference() -> None:
    """Equal plans are told to be so in one line."""
    text = diff_text(diff(tiny_plan(), tiny_plan()))
    assert text == "no difference: 16 ranks on the same GPUs\n"


def test_other_inputs_and_nodes() -> None:
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


def test_long_lists_are_cut() -> None:
    """Many folds and hosts are cut, and the text says how many more there are."""
    topology, job = tiny()
    many = replace(job, parallelism=Parallelism(dp=16))
    old = build_plan(topology, many, Placement(np.arange(16)))
    new = build_plan(topology, many, Placement(np.arange(16)[::-1].copy()))
    wide = replace(old, nodes=tuple(f"{c}-{'x' * 40}" for c in "abcdefgh"))
    text = diff_text(diff(old, replace(new, domains={})))
    assert "DP replica 15: 1 node n007 -> n000 (1 rank)" in text
    assert "more" not in text
    text = diff_text(diff(old, wide))
    assert "...)\n" in text
    assert max(map(len, text.splitlines())) < 240

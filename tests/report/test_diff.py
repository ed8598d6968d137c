"""Plan differences against naive loops, mirrored, by hand, and in words."""

import json
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import placer
from placer import testing
from placer.base.errors import InputError
from placer.cost import JITTER
from placer.job.axes import Parallelism
from placer.placement.build import build_plan
from placer.placement.placement import Placement
from placer.report.diff import diff
from placer.report.diff_text import diff_text
from placer.testing.strategies import (
    jobs,
    machine,
    machines,
    placements,
    tiny,
    tiny_plan,
)
from tests.page.plans import bare
from tests.texts import data

LEVELS = ("node", "rack", "block", "cluster")


@st.composite
def two_plans(draw):
    """Two plans of one job on one machine."""
    job = draw(jobs())
    topology = draw(machines(job.world_size))
    seated = placements(topology, job.world_size)
    return tuple(build_plan(topology, job, draw(seated)) for _ in range(2))


def seats(plan):
    return [f"{row['host']}:{row['gpu']}" for row in plan.rows]


def lowest(plan, ranks):
    """Lowest common tier of some ranks, and the name of the domain there."""
    nodes = {plan.node_of_rank[rank] for rank in ranks}
    for tier in LEVELS[:-1]:
        names = plan.nodes if tier == "node" else plan.domains[tier]
        domains = {names[node] for node in nodes}
        if len(domains) == 1:
            return tier, domains.pop()
    return "cluster", "all"


def rack_or_above(plan, ranks):
    """The innermost domain from the rack on that holds some ranks."""
    tier, domain = lowest(plan, ranks)
    if tier == "node":
        return "rack", plan.domains["rack"][plan.node_of_rank[ranks[0]]]
    return tier, "cluster" if tier == "cluster" else domain


@given(two_plans())
def test_moved_ranks(plans):
    """Ranks moved are those whose host and GPU a loop finds changed.

    They are folded by axis and rack, with their nodes and ranks counted.
    """
    old, new = plans
    found = diff(old, new)
    before, after = seats(old), seats(new)
    expected = [
        (rank, before[rank], after[rank])
        for rank in range(old.world_size)
        if before[rank] != after[rank]
    ]
    assert [(m["rank"], m["old"], m["new"]) for m in found.moved] == expected
    assert all(m["rank"] == m["new_rank"] for m in found.moved)
    assert set(found.nodes_gained) == set(new.nodes) - set(old.nodes)
    assert set(found.nodes_lost) == set(old.nodes) - set(new.nodes)
    assert diff(old, old).is_empty
    assert diff(old, old).to_dict()["same"] is True
    axes = old.axes
    for axis, folds in found.folds.items():
        nodes = {}
        ranks = Counter()
        for move in found.moved:
            rank = move["rank"]
            before, after = old.node_of_rank[rank], new.node_of_rank[rank]
            index = axes.coordinates[axis][rank]
            key = (index, old.domains["rack"][before], new.domains["rack"][after])
            nodes.setdefault(key, set()).add(before)
            ranks[key] += 1
        told = [tuple(fold.values()) for fold in folds]
        rows = {key[:3]: key[3:] for key in told}
        assert rows == {key: (len(nodes[key]), ranks[key]) for key in ranks}
        assert len(rows) == len(folds)
        assert [index for index, *_ in told] == sorted(index for index, *_ in told)
    assert set(found.folds) == {"dp"} | {
        axis for axis in ("tp", "cp", "pp", "ep") if axes.size(axis) > 1
    }


@given(two_plans())
def test_tier_changes(plans):
    """Groups that changed domain or tier are those that a loop over groups finds."""
    old, new = plans
    axes = old.axes
    for axis, change in diff(old, new).axes.items():
        groups = axes.ranks_of_group[axis].tolist()
        pairs = [(lowest(old, ranks), lowest(new, ranks)) for ranks in groups]
        steps = [(LEVELS.index(a[0]), LEVELS.index(b[0])) for a, b in pairs]
        assert change["groups"] == len(groups)
        assert change["changed_domain"] == sum(a != b for a, b in pairs)
        assert change["entered"] == sum(b < a for a, b in steps)
        assert change["left"] == sum(b > a for a, b in steps)
        tiers = {(c["old"], c["new"]): c["groups"] for c in change["tiers"]}
        assert tiers == Counter((a[0], b[0]) for a, b in pairs if a != b)
        outer = [
            (rack_or_above(old, ranks), rack_or_above(new, ranks)) for ranks in groups
        ]
        rows = [tuple(domains.values()) for domains in change["domains"]]
        assert {(row[:2], row[2:4]): row[4] for row in rows} == Counter(
            pair for pair in outer if pair[0] != pair[1]
        )


def replicas(dp, order, start=0):
    """Replica d of tp 2 x pp 2 fills rack ``start + d``, whatever the numbering."""
    topology, job = tiny()
    axes = Parallelism(tp=2, pp=2, dp=dp, etp=2, order=tuple(order.split("-")))
    at = axes.coordinates
    gpus = 4 * (at["dp"] + start) + 2 * at["pp"] + at["tp"]
    return build_plan(topology, replace(job, parallelism=axes), Placement(gpus))


@pytest.mark.parametrize("order", ["tp-cp-ep-pp-dp", "tp-cp-ep-dp-pp"])
def test_other_data_parallel_size(order):
    """With fewer replicas, those in common are compared, by coordinates."""
    found = diff(replicas(4, order), replicas(3, order))
    assert found.ranks_compared == 12
    assert found.moved == []
    assert found.nodes_lost == ["n006", "n007"]
    assert {axis: facts["groups"] for axis, facts in found.axes.items()} == {
        "tp": 6,
        "pp": 6,
        "dp": 4,
    }
    assert not any(facts["changed_domain"] for facts in found.axes.values())
    assert not found.is_empty


def test_bare_plans_are_compared_rank_by_rank():
    """Without axes and domains, moves are told and groups are not."""
    order = "tp-cp-ep-pp-dp"
    old, new = bare(replicas(2, order)), bare(replicas(2, order, start=1))
    found = diff(old, new)
    assert len(found.moved) == 8
    assert found.axes == {}
    assert {(f["replica"], f["old"], f["new"]) for f in found.folds["dp"]} == {
        (None, f"n00{i}", f"n00{i + 2}") for i in range(4)
    }


@pytest.mark.parametrize(
    ("new", "wanted"),
    [
        (bare(replicas(3, "tp-cp-ep-pp-dp")), "16 ranks against 12"),
        (
            replace(
                tiny_plan(), job={**tiny_plan().job, "parallelism": {"tp": 4, "dp": 4}}
            ),
            "tp 2 against 4, pp 2 against 1, etp 2 against 1",
        ),
        (
            replace(
                tiny_plan(),
                topology={**tiny_plan().topology, "tiers": ["node", "rack", "all"]},
            ),
            "tiers node, rack, block, cluster against node, rack, all",
        ),
    ],
)
def test_what_cannot_be_compared_is_said(new, wanted):
    """Plans whose ranks or tiers do not correspond are refused with the reason."""
    with pytest.raises(InputError, match=f"cannot be compared: .*{wanted}"):
        diff(tiny_plan(), new)


def test_json_form():
    """The JSON form nests costs like a score and lists every moved rank."""
    order = "tp-cp-ep-pp-dp"
    old = replace(replicas(2, order), score={"crossings": {"pp": {"rack": 4}}})
    new = replace(
        replicas(2, order, start=1), score={"crossings": {"pp": {"block": 4}}}
    )
    shown = json.loads(json.dumps(diff(old, new).to_dict()))
    assert shown == json.loads(data("report/diff.json"))


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

"""The NCCL report, against a simulation of how NCCL numbers nodes.

The simulation follows ``initTransportsRank`` (NCCL, ``src/init.cc``): ranks in turn, a
new number for each system that was not seen yet; and ``connectRings``
(``src/graph/connect.cc``): system n sends to system n + 1, the last to the first.
"""

import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from placer.emit import emit
from placer.emit.nodes import axes_of
from tests.emit.readback import FREE, TIERS, plan_of, tiered, tiered_plans


def section(text, name):
    """The paragraph of one kind of communicator."""
    return next(part for part in text.split("\n\n") if part.startswith(f"{name}: "))


def shapes(text, name):
    """How many communicators have so many systems and such hops, by the report."""
    found = Counter()
    numbers = re.findall(r"  (\d+) like this", section(text, name))
    parts = section(text, name).split("  members  ")[1:]
    for number, part in zip(numbers, parts, strict=True):
        systems = re.match(r".* in (?:one|each of (\d+)) system", part)
        hops = re.search(r"    hops     (.*)\n", part + "\n")
        pairs = [item.split(" in ") for item in hops[1].split(", ")] if hops else []
        assert systems
        counts = sorted((tier, int(count)) for count, tier in pairs)
        found[int(systems[1] or 1), tuple(counts)] += int(number)
    return found


def place(plan, rank, tier):
    """Names of the domains of a rank, from ``tier`` outwards."""
    node = plan.node_of_rank[rank]
    names = {"node": plan.nodes[node], "cluster": ""}
    names |= {tier: of_node[node] for tier, of_node in plan.domains.items()}
    return tuple(names[outer] for outer in TIERS[TIERS.index(tier) :])


def simulated(plan, ranks, pipeline=False):
    """Systems and hops of one communicator, as NCCL would number them."""
    system_tier = TIERS[plan.topology["scale_up"] - 1]
    first_rank = {}
    for rank in ranks:
        first_rank.setdefault(place(plan, rank, system_tier), rank)
    stops = ranks if pipeline else list(first_rank.values())
    pairs = list(pairwise(stops if pipeline else [*stops, stops[0]]))
    hops = [
        next(t for t in TIERS if place(plan, a, t) == place(plan, b, t))
        for a, b in (pairs if len(stops) > 1 else [])
    ]
    return len(first_rank), tuple(sorted(Counter(hops).items()))


@given(tiered_plans(), st.data())
def test_rings_are_those_of_the_simulation(plan, data):
    """Every communicator of every axis has the systems and hops that NCCL finds."""
    ranks = plan.world_size
    tp = data.draw(st.sampled_from([k for k in range(1, ranks + 1) if ranks % k == 0]))
    rest = ranks // tp
    pp = data.draw(st.sampled_from([k for k in range(1, rest + 1) if rest % k == 0]))
    order = data.draw(st.sampled_from(["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"]))
    sizes = {"tp": tp, "pp": pp, "dp": rest // pp}
    shuffled = np.array(data.draw(st.permutations(range(ranks))))
    plan = replace(
        plan,
        job={**plan.job, "order": order, "parallelism": sizes},
        node_of_rank=plan.node_of_rank[shuffled],
        gpu_of_rank=plan.gpu_of_rank[shuffled],
    )
    text = emit(plan, "nccl")
    assert shapes(text, "world") == Counter([simulated(plan, list(range(ranks)))])
    groups = axes_of(plan, "nccl").ranks_of_group
    for axis, size in sizes.items():
        if size == 1 or "the groups of" in section(text, axis):
            continue
        wanted = Counter(
            simulated(plan, row, axis == "pp") for row in groups[axis].tolist()
        )
        assert shapes(text, axis) == wanted, axis


def test_plans_that_name_little():
    """Without axes and tiers there is one communicator, on systems that are nodes."""
    text = emit(plan_of(FREE), "nccl")
    assert "(here: nodes)" in text
    assert "rings    n3 > n1 > n4 > n2, and back" in text
    assert "no sizes of axes" in text
    assert "NCCL_MNNVL" not in text
    nameless = tiered(["r0", "r0"], scale_up=2)
    nameless = replace(nameless, domains={})
    assert "names no NVLink domains" in emit(nameless, "nccl")
    whole = emit(tiered(["r0", "r1"], scale_up=4), "nccl")
    assert "the whole machine, one NVLink domain" in whole
    assert "inside one system" in section(whole, "world")


def test_large_plans_stay_readable():
    """8,192 ranks on 2,048 nodes are told in some sixty lines of a screen's width."""
    plan = tiered(
        [f"r{k // 16}" for k in range(2048)],
        [f"b{k // 128}" for k in range(2048)],
        gpus=4,
        scale_up=2,
        order="tp-cp-ep-pp-dp",
        tp=4,
        cp=2,
        pp=8,
        dp=128,
    )
    lines = emit(plan, "nccl").splitlines()
    assert len(lines) < 70
    assert max(map(len, lines)) < 100
    # A dp_cp group: 2 ranks in each of 128 racks, 16 blocks of 8 racks, one after
    # another: 7 hops inside each block, 16 between blocks.
    dp_cp = section("\n".join(lines), "dp_cp")
    assert "cliques  r0 r1" in dp_cp
    assert "members  2 in each of 128 systems" in dp_cp
    assert "hops     112 in block, 16 in cluster" in dp_cp

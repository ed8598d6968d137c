"""Bounds that are the optimum, by hand, and those that larger machines need."""

from dataclasses import replace
from functools import partial
from math import inf

import numpy as np
import pytest

from benchmarks.cluster_jobs import drawn
from benchmarks.generate import random_case
from benchmarks.instances import load
from benchmarks.traffic_graphs import stencil
from placer import testing
from placer.cost.hop_cost import HopCost
from placer.cost.least_cases import priced_step
from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.job.models import Model
from placer.job.parallel import EndStages
from placer.placement.hop_bound import priced_hop_cost
from placer.placement.placement import Placement
from placer.solve.bounds.certificate import lower_bound
from placer.solve.bounds.hop_cuts import HopCuts
from placer.solve.bounds.hop_prices import prices_of
from placer.solve.problem.compiled import Problem
from placer.solve.problem.params import Params
from placer.solve.run.budget import ENDLESS
from placer.testing.oracle import gpus_of
from placer.topology.model import Tier
from placer.topology.read import parse_topology
from tests.marks import slow
from tests.solve.bounds.draws import ORDER
from tests.solve.construct.test_whole_groups import job as with_experts
from tests.solve.construct.test_whole_groups import machine as cluster
from tests.solve.machines import MODEL
from tests.solve.oracle import distinct, hop_costs, legal_placements
from tests.solve.random_cases import machine_of
from tests.solve.solving import own_job as job_of
from tests.solve.solving import solve
from tests.texts import file_text


def cut_bound(topology, job, incumbent=inf):
    """No placement has a smaller hop cost; it stops at that of a known one."""
    return HopCuts.of(topology, job, Params()).together(incumbent)


def apart(gpus, rows, distances):
    """A machine by its distances; rows are the domains of each node above the node."""
    tiers = [
        Tier(f"t{i}", 1e9, 1e-6, i == 0, 1.0, 1.0, float(distance))
        for i, distance in enumerate(distances)
    ]
    return machine_of(gpus, rows, tiers)


def hops(axes, weights):
    axes = Parallelism(**axes, order=ORDER)
    return Job("j", axes, weights=weights, launcher="free")


THREE = apart([2, 2, 2], [[0, 0, 0]], [0, 1])
TWO_BLOCKS = apart([2, 3, 3], [[0, 1, 1], [0, 0, 0]], [0, 2, 3])


@pytest.mark.parametrize(
    ("job", "machine", "value"),
    [
        # Rings of three: four parts, and two of the three edges between them across.
        (hops({"cp": 2, "dp": 3}, {"cp": 1, "dp": 10}), THREE, 4 * 10 + 2),
        # Two groups of four: 3 + 1 and 3 + 1 part six pairs of nodes, all of blocks;
        # two of one in the first block part four of those, and seven of nodes.
        (hops({"ep": 4, "dp": 8}, {"ep": 2}), TWO_BLOCKS, 2 * (2 * 7 + 4)),
        # Two stages of four: 4 + 1, four runs of pipelines, and 3.
        (
            hops({"ep": 4, "dp": 4, "pp": 2}, {"ep": 64, "pp": 5}),
            apart([5, 3], [[0, 0]], [0, 1]),
            3 * 64 + 3 * 5,
        ),
        # Attained: pairs of ranks across lines, on blocks of one and seven.
        (
            hops(
                {"tp": 2, "ep": 2, "etp": 1, "dp": 4},
                {"tp": 1, "ep": 64, "dp": 20, "edp": 20},
            ),
            apart([1, 3, 4], [[0, 1, 1], [0, 0, 0]], [1, 1, 10]),
            1_885,
        ),
        # Attained: lines on two tiers, whose costs are counted once.
        (
            hops({"ep": 2, "dp": 4, "pp": 2}, {"ep": 64, "pp": 3, "dp": 20}),
            apart([3, 3, 2], [[0, 0, 1], [0, 0, 0]], [0, 9, 10]),
            1_423,
        ),
        # Two pairs of tp, joined by dp, on either node: the lightest edges are cut.
        (
            hops({"tp": 2, "cp": 2, "dp": 2}, {"tp": 20, "cp": 1, "dp": 5}),
            apart([4, 4], [[0, 0]], [0, 1]),
            4,
        ),
    ],
)
def test_hops_by_hand(job, machine, value):
    """The bound is the least of all placements."""
    every = np.array(legal_placements(machine, job))
    assert cut_bound(machine, job) == value
    assert hop_costs(machine, job, every).min() == value


def whole_tp_groups():
    """Two tp groups a node are halves of two ep groups: each cuts 4 x 4 pairs."""
    axes = Parallelism(tp=4, ep=8, etp=2, dp=16)
    weights = {"tp": 4000.0, "ep": 64.0, "edp": 4.0}
    job = Job("moe", axes, launcher="free", weights=weights, require={"tp": "t0"})
    return apart([8] * 8, [[0] * 8], [1, 9]), job


def with_holes():
    """Units of hosts hold no whole number of rings of 16."""
    topology, job = random_case(26)
    return topology, replace(job, require={"tp": "node"})


def priced_ends():
    """Prices on the ends of pipelines go either way."""
    draw = drawn(8)
    return draw.topology, draw.job


@pytest.mark.parametrize(
    ("case", "tier", "least"),
    [
        (whole_tp_groups, 0, 8 * 4 * 4 * 64),
        (with_holes, 1, 47_104),
        (priced_ends, 1, 3_016),
    ],
)
def test_hops_between_domains_of_larger_machines(case, tier, least):
    """Each is lower by a fifth or more without the idea that its name says."""
    cuts = HopCuts.of(*case(), Params())
    value = cuts.together(inf)
    assert (value if tier is None else cuts.least(tier)) >= least


@pytest.mark.parametrize("tensor", slow([1, 8]))
def test_a_ring_of_a_million_ranks(tensor):
    """Rings over a regular machine of 1,048,576 GPUs are proved optimal in order."""
    nodes = np.arange(131_072)
    rows = [nodes // 512, nodes // 8_192, 0 * nodes]
    topology = apart([8] * len(nodes), [r.tolist() for r in rows], [1, 3, 9, 12])
    axes = Parallelism(tp=tensor, dp=1_048_576 // tensor, etp=tensor, order=ORDER)
    job = Job("rings", axes, weights={"tp": 4_000, "dp": 4})
    in_order = Placement(np.arange(job.world_size))
    assert cut_bound(topology, job) == HopCost(topology, job).cost(in_order.gpu_of_rank)


OUTER = 50e9
FAST, FAR = Tier("node", 400e9, 1e-6, True), Tier("cluster", OUTER, 8e-6, False)


def spare_nodes(gpus, launcher, **axes):
    """Groups of eight on nodes of four GPUs, a few of which are spare."""
    job = Job("runs", Parallelism(**axes, pp=2, dp=2), MODEL, micro_batches=4)
    job = replace(job, compute=Compute(micro_batch_time=0.05), launcher=launcher)
    return machine_of(gpus, [[0] * len(gpus)], [FAST, FAR]), job


@pytest.mark.parametrize(
    ("topology", "job"),
    [
        # No pp or dp neighbour shares a node in runs of ranks.
        spare_nodes([4] * 9, "node-contiguous", tp=8),
        # Keys and values of a ring that no node holds pass a NIC.
        spare_nodes([4] * 9, "free", cp=8),
        spare_nodes([4] * 9, "node-contiguous", cp=8),
    ],
)
def test_what_no_node_holds_is_proved(topology, job):
    """With spares or without, the bound is what is found."""
    assert solve(topology, job, objective="time").status == "optimal"


DENSE = {"hidden": 1024, "ffn": 4096, "heads": 8, "kv_heads": 8, "vocab": 32000}
SPARSE = {**DENSE, "experts": 16, "top_k": 2, "expert_ffn": 1024, "moe_layers": 2}


def on_islands(model, **changes):
    """A job by nodes on two hosts of two islands of four, all one scale-up domain."""
    fast = {"scale_up": True, "latency": 1e-6}
    tiers = [
        {"name": "island", "size": 4, "bandwidth": 450e9, **fast},
        {"name": "node", "size": 2, "bandwidth": 100e9, **fast},
        {"name": "cluster", "bandwidth": OUTER, "latency": 5e-6},
    ]
    nodes = [{"names": "h[0-1]", "gpus": [4, 4]}]
    topology = parse_topology(file_text("topology", tiers=tiers, nodes=nodes), "t.json")
    model, compute = {"layers": 2, **model}, {"tflops_per_gpu": 400}
    given = {"sequence": 4096, "micro_batches": 8, "compute": compute, **changes}
    return Problem.of(topology, testing.job(model=model, **given), "time")


def behind_leaves():
    """Three leaves of three, two and one of six hosts, a unit on two, thin uplinks."""
    hosts = cluster([8] * 6, [0, 0, 0, 1, 1, 2])
    thin = replace(hosts.tiers[-1], oversubscription=2.0)
    hosts = replace(hosts, tiers=(*hosts.tiers[:-1], thin))
    units = with_experts(tp=1, ep=16, pp=1, dp=48, vp=1)
    return Problem.of(hosts, replace(units, launcher="node-contiguous"), "time")


@pytest.mark.parametrize(
    ("problem", "near"),
    [
        # The ring could leave the host on four faster NICs, but for the rule.
        (on_islands(DENSE, tp=8, dp=2, require={"tp": "node"}), 0.01),
        # Four of seven peers of each expert are on the other island.
        (on_islands(SPARSE, ep=8, dp=16), 0.02),
        (behind_leaves(), 0.02),
    ],
)
def test_ranks_in_order_are_as_good_as_can_be(problem, near):
    """The bound is that near to what they cost."""
    value = problem.goal.value(np.arange(problem.job.world_size))
    bound = lower_bound(problem, problem.forced_block).value
    assert (1 - near) * value < bound <= value * (1 + 1e-9)


def cut_in_its_lightest_stage():
    """Two tp groups on nodes of two, one and one: that of the last layer is cut."""
    machine = machine_of([2, 1, 1], [[0] * 3], [FAST, replace(FAR, bandwidth=1e9)])
    job = Job("cut", Parallelism(tp=2, pp=2), MODEL, micro_batches=2, launcher="free")
    job = replace(job, compute=Compute(1e-5), stages=EndStages(0, 8))
    return Problem.of(machine, job, "time")


def blocks_of_two_stages():
    """Nodes have a stage of one replica, or two halves: racks hold one group whole.

    With cp rings of two, three stages and nodes of three, two racks of two nodes hold
    all of the first stage and of the last; only the second has rings on their uplinks.
    """
    rack = replace(FAR, name="rack", latency=1e-6)
    tiers = [FAST, rack, replace(rack, name="cluster", oversubscription=6.0)]
    machine = machine_of([3] * 4, [[0, 0, 1, 1], [0] * 4], tiers)
    axes = Parallelism(cp=2, pp=3, dp=2, order=("cp", "pp", "tp", "ep", "dp"))
    small = Model("m", 6, 1024, 4096, 16, 16, 32000)
    job = Job("blocks", axes, small, sequence=512, micro_batches=3)
    job = replace(job, compute=Compute(4e-3), launcher="node-contiguous")
    return Problem.of(machine, job, "time")


def experts_in_two_stages(ep, outer):
    """Nodes of three, three and two full of a stage of four ranks each."""
    machine = machine_of([3, 3, 2], [[0] * 3], [FAST, replace(FAR, bandwidth=outer)])
    return Problem.of(machine, with_experts(tp=1, ep=ep, pp=2, dp=4, vp=2), "time")


@pytest.mark.parametrize(
    ("problem", "near"),
    [
        (cut_in_its_lightest_stage(), 0.02),
        (blocks_of_two_stages(), 0.05),
        # A group in halves shares an uplink with a part of another that sends more.
        (experts_in_two_stages(4, 50e9), 0.015),
        # A whole group leaves its rings of gradients one member in its node.
        (experts_in_two_stages(2, 5e9), 0.05),
    ],
)
def test_what_differs_by_stage_bounds_the_best_placement(problem, near):
    """No stage counts as slow but where every placement has one as slow."""
    topology, job = problem.machine, problem.job
    legal = distinct(topology, job, legal_placements(topology, job))
    least = min(problem.goal.value(np.array(gpus_of(topology, at))) for at in legal)
    bound = lower_bound(problem, problem.forced_block).value
    assert (1 - near) * least <= bound * (1 + 1e-9)
    assert bound <= least * (1 + 1e-9)


@pytest.mark.parametrize(
    ("shape", "room", "out"), [((6, 6), 4, 2), ((6, 8), 8, 2), ((4, 4, 4), 8, 3)]
)
def test_a_stencil_has_a_corner_in_every_node(shape, room, out):
    """Some rank of a square has two neighbours elsewhere, of a cube three."""
    senders, receivers, size = (ends.tolist() for ends in stencil(*shape))
    sent = {"from": senders, "to": receivers, "bytes": size}
    ranks = int(np.prod(shape))
    nodes = -(-ranks // room)
    tiers = [replace(tier, latency=0.0) for tier in (FAST, FAR)]
    machine = machine_of([room] * nodes, [[0] * nodes], tiers)
    bound = lower_bound(Problem.of(machine, job_of(ranks, traffic=sent)), 1)
    assert bound.value == pytest.approx(out * 1e7 / 50e9)


# Placement benchmark definitions: lower bounds, and the cost of known placements. On
# Araw tp x dp16 in racks and cp x dp4 of those in blocks is optimal, as is proved here.
PUBLISHED = {
    "A": (35_307_520, 35_307_520),
    "Araw": (34_551_808, 34_551_808),
    "B": (35_521_952, 35_623_456),
    "C": (72_038_400, 72_038_400),
    "D": (45_072_384, 45_072_384),
    "E": (22_462_464, 22_462_464),
    "F": (436_600_832, 436_600_832),
    "G": (440_082_688, 440_716_256),
    "H": (42_928_768, 42_938_240),
    "S64": (263_296, 263_296),
    "S128": (526_592, 526_592),
    "S256": (1_053_184, 1_053_184),
}


@pytest.mark.parametrize("is_full", [False, *slow([True])])
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_bound_is_reached(name, is_full):
    """Equal where it is tight; no more is worked out than that takes.

    Worked out to the end the bound exceeds no known cost of a placement. Its prices
    prove as much in code that shares nothing with the solver.
    """
    published, known = PUBLISHED[name]
    topology, job = load(name)
    cuts = HopCuts.of(topology, job, Params())
    bound = cuts.together(inf if is_full else published)
    assert published <= bound <= known
    prices = prices_of(cuts, published, ENDLESS)
    assert published <= priced_hop_cost(topology, job, prices) <= bound


@pytest.mark.parametrize("cut", [0, 1])
def test_cases_by_hand(cut):
    """Four pairs of stages on nodes of four, or of three, three and two.

    No counts prove more, and nothing is proved when a case is left out: that some
    pipeline is cut, or that none is, for which nodes of three have no room.
    """
    gpus = [3, 3, 2] if cut else [4, 4]
    machine = machine_of(gpus, [[0] * len(gpus)], [FAST, FAR])
    job = Job("two", Parallelism(pp=2, dp=4), MODEL, micro_batches=4, launcher="free")
    job = replace(job, compute=Compute(micro_batch_time=1e-3))
    proof = lower_bound(Problem.of(machine, job, "time"), 1)
    assert [case.leaves for case in proof.cases] == ["pp", ""][: 2 - cut]
    proved = partial(priced_step, machine, job)
    assert proved(proof.cases) == pytest.approx(proof.value)
    assert proved(proof.cases[1:]) < proof.value
    assert cut or proved(proof.cases[:1]) == 0.0
    for more in (-2, -1, 1, 2):
        first, *others = proof.cases
        counts = tuple(tuple(max(1, n + more) for n in row) for row in first.counts)
        assert proved([first._replace(counts=counts), *others]) <= proof.value * (
            1 + 1e-9
        )


def test_prices_of_parts_by_hand():
    """Expert groups of four on nodes of three, three and two: no claim of more holds.

    Without prices, or at others, less is proved.
    """
    problem = experts_in_two_stages(4, 50e9)
    proof = lower_bound(problem, 1)
    proved = partial(priced_step, problem.machine, problem.job)
    assert proved(proof.cases) == pytest.approx(proof.value)
    (case,) = (case for case in proof.cases if case.times)
    flat = tuple((0.0, *[1.0] * (len(row) - 1)) for row in case.prices)
    for worse in (
        case._replace(seconds=case.seconds * 1.01),
        case._replace(prices=flat),
        case._replace(times=(), prices=()),
        case._replace(times=tuple(1.01 * time for time in case.times)),
    ):
        cases = [worse if one == case else one for one in proof.cases]
        assert proved(cases) < proof.value * (1 - 1e-6)

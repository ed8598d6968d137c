"""All-reduces and trees on machines worked out by hand."""

import numpy as np
import pytest

from placer.cost.communicators import CollectiveCost, Communicators
from placer.cost.exchange import all_to_all_cost
from placer.cost.fabric import Fabric
from placer.cost.rings import build_rings
from placer.cost.trees import double_tree
from placer.topology.model import Topology
from tests.cost.machines import machine, racks, tier

S = 1e9
NVLINK, NIC = 900e9, 100e9
IN, OUT = 0.5e-6, 3e-6  # latency of a hop inside a rack and between racks


def groups(topology: Topology, members: np.ndarray) -> Communicators:
    return Communicators(build_rings(Fabric.of(topology), members))


def all_reduce(
    topology: Topology, members: list[int], name: str, size: float = S
) -> CollectiveCost:
    return groups(topology, np.array([members])).all_reduce(size, name)


def hosts(count: int, oversubscription: float = 1.0) -> Topology:
    """Hosts of one GPU on a flat fabric."""
    return racks(count, oversubscription, gpus=1)


ONE_RACK = {
    "ring": 2 * (3 / 4 * S / NVLINK + 3 * IN),
    "tree": 2 * S / NVLINK + 2 * 3 * IN,
    "nvls": (S + 2 * 16 * 4 * 131072) / (0.74 * NVLINK) + 25 / 3.4 * IN,
}


@pytest.mark.parametrize(("name", "seconds"), ONE_RACK.items())
def test_inside_a_rack(name: str, seconds: float) -> None:
    """Four GPUs of one rack: ring 3/4 S twice, chain 2 S, switch S at 74 %.

    The switch first fills 16 channels of 4 chunks on the way in and on the way out.
    """
    assert all_reduce(racks(), [0, 1, 2, 3], name).seconds == pytest.approx(seconds)


# Two members in each of four racks: two NICs a group, two levels of trees.
FOUR_RACKS = {
    "ring": 2 * (7 / 8 * S / (2 * NIC) + 3 * OUT + 4 * IN),
    "tree": 2 * S / (2 * NIC) + 2 * (1 * IN + 2 * OUT),
    "nvls": 2 * (S + 6 * 16 * 2 * 65536) / (2 * NIC) + 25 / 3.4 * IN + 2 * 2 * OUT,
}


@pytest.mark.parametrize(("name", "seconds"), FOUR_RACKS.items())
def test_over_four_racks(name: str, seconds: float) -> None:
    """Eight GPUs, two in each of four racks."""
    members = [0, 1, 4, 5, 8, 9, 12, 13]
    assert all_reduce(racks(4), members, name).seconds == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("size", "group", "name"),
    [
        (1e2, [0, 1, 8, 9, 16, 17, 24, 25], "tree"),
        (1e11, list(range(32)), "ring"),
        (1e9, list(range(8)), "nvls"),
        (1e9, [0, 1], "ring"),
    ],
)
def test_the_fastest_is_taken(size: float, group: list[int], name: str) -> None:
    """Small buffers take the fewest steps, large ones the fewest bytes.

    Nodes of eight: a switch at 74 % beats a ring of eight (S against 14/8 S), but does
    not reduce for two.
    """
    topology = racks(4, gpus=8)
    found = all_reduce(topology, group, "auto", size)
    assert found.algorithm == name
    assert found.seconds == all_reduce(topology, group, name, size).seconds


def test_every_group_takes_its_fastest() -> None:
    """Two groups of a call, one in a rack and one over two, each by its own.

    Their bytes are those of both algorithms.
    """
    both = np.array([[0, 1, 2, 3], [4, 8, 9, 5]])
    for size in (1e3, 1e10):
        found = groups(racks(4), both).all_reduce(size, "auto")
        names = ("ring", "tree", "nvls")
        times = [groups(racks(4), both).all_reduce(size, n).seconds for n in names]
        # A switch does not reduce for the second group, which is spread.
        assert found.seconds[0] == np.min([time[0] for time in times])
        assert found.seconds[1] == np.min([time[1] for time in times[:2]])
    alone = [groups(racks(4), both[i : i + 1]).all_reduce(1e10, "auto") for i in (0, 1)]
    assert found.algorithm == "auto"
    assert [cost.algorithm for cost in alone] == ["nvls", "tree"]
    sent = sum(cost.bytes_by_tier for cost in alone)
    assert found.bytes_by_tier == pytest.approx(sent)
    assert found.load.up[1] == pytest.approx(sum(cost.load.up[1] for cost in alone))


# Bus bandwidths, GB/s, by buffer from 0.54 GB on, each twice the one before.
GB200_RACKS = {
    1: (586, 681, 758, 839, 835),
    2: (494, 596, 680, 743, 793, 810),
    20: (151, 219, 287, 346, 381, 406),
}


@pytest.mark.parametrize("count", GB200_RACKS)
def test_racks_of_gb200_as_measured(count: int) -> None:
    """Racks of 72 GB200 on 400 Gb/s a GPU, NCCL 2.26.2: within 25 %, above 8 GB 5 %.

    Source: coreweave/nccl-tests cb865533, README, out of place.
    """
    tiers = [tier("rack", 720e9, 1e-6, scale_up=True), tier("cluster", 49.7e9, 8e-6)]
    members = 72 * count
    for power, measured in enumerate(GB200_RACKS[count]):
        size = 2.0 ** (29 + power)
        topology = machine([72, count], tiers)
        found = all_reduce(topology, list(range(members)), "auto", size)
        bandwidth = 2 * (members - 1) / members * size / found.seconds.item() / 1e9
        assert found.algorithm == "nvls"
        within = 0.05 if size > 8e9 else 0.25
        assert bandwidth == pytest.approx(measured, rel=within)


@pytest.mark.parametrize(
    ("gpus", "name", "measured"),
    [(4, "ring", 197), (4, "tree", 234), (8, "ring", 394), (8, "tree", 486)],
)
def test_three_domains_as_measured(gpus: int, name: str, measured: float) -> None:
    """Three NVLink domains of GB200 without NVLS, 17 GB: NVIDIA/nccl issue 1801."""
    tiers = [tier("rack", 720e9, 1e-6, scale_up=True), tier("cluster", 49.7e9, 8e-6)]
    members, size = 3 * gpus, 2.0**34
    found = all_reduce(machine([gpus, 3], tiers), list(range(members)), name, size)
    bandwidth = 2 * (members - 1) / members * size / found.seconds.item() / 1e9
    assert bandwidth == pytest.approx(measured, rel=0.05)


@pytest.mark.parametrize(
    ("domains", "size", "taken"),
    [(2, 1e10, "tree"), (3, 1e10, "ring"), (3, 1e3, "tree"), (4, 1e10, "ring")],
)
def test_over_three_domains_nccl_takes_the_slower_ring(
    domains: int, size: float, taken: str
) -> None:
    """Its tuner counts a tree over three domains as one over more, as in issue 1801.

    Pairs, for which no switch reduces. A tree by name is the faster one.
    """
    members = [4 * rack + gpu for rack in range(domains) for gpu in (0, 1)]
    found = all_reduce(racks(domains), members, "auto", size)
    assert found.algorithm == taken
    tree = all_reduce(racks(domains), members, "tree", size)
    assert (tree.seconds < found.seconds) == (domains == 3)


def test_trees_share_uplinks() -> None:
    """Eight hosts in two pods, 1:8: what crosses is counted edge by edge.

    The first tree hangs 1 and 3 below 2, 5 and 7 below 6, 2 and 6 below 4 and 4 below
    0; the second is its mirror image. Between 0-3 and 4-7 run 2-4 and 4-0, and 5-3 and
    3-7: half a buffer each way on four edges, 2 S in all through 4 x 100 / 8 GB/s.
    """
    tiers = [
        tier("host", NIC, scale_up=True),
        tier("pod", NIC),
        tier("cluster", NIC, oversubscription=8.0),
    ]
    topology = machine([1, 4, 2], tiers)
    found = all_reduce(topology, list(range(8)), "tree")
    assert found.load.up[2].tolist() == [2 * S, 2 * S]
    assert found.seconds == pytest.approx(2 * S / (4 * NIC / 8))


@pytest.mark.parametrize(("oversubscription", "buffers"), [(1, 1.5), (2, 3.5)])
def test_uplinks_as_wide_as_their_nics_hold_no_tree_back(
    oversubscription: int, buffers: float
) -> None:
    """A tree of three racks and one of four meet in a rack of two GPUs.

    There the one has three edges and the other four. Its own NIC sends 3/2 S for the
    first. Through half of two NICs, all seven halves go as fast as each other.
    """
    topology = racks(6, oversubscription, gpus=2)
    both = groups(topology, np.array([[2, 0, 1, 4], [6, 3, 8, 10]]))
    seconds = both.all_reduce(S, "tree").bandwidth_seconds
    assert seconds[0] == pytest.approx(buffers * S / NIC)
    alone = groups(topology, np.array([[2, 0, 1, 4]])).all_reduce(S, "tree")
    assert alone.bandwidth_seconds[0] == pytest.approx(1.5 * S / NIC)


def parents(count: int) -> list[tuple[list[int], list[int]]]:
    """(children, parents) of both trees, read off the flows towards the parents."""
    edges = double_tree(build_rings(Fabric.of(hosts(count)), np.arange(count)[None]))
    half = len(edges.sources) // 2
    pairs = zip(edges.sources[:half], edges.targets[:half], strict=True)
    flat = [(int(child), int(parent)) for child, parent in pairs]
    return [
        tuple(map(list, zip(*part, strict=True)))
        for part in (flat[: count - 1], flat[count - 1 :])
    ]


@pytest.mark.parametrize("count", range(2, 40))
def test_double_binary_trees(count: int) -> None:
    """Both trees hold every vertex, are binary, and inner vertices are leaves in one.

    Their depth is within two levels of log2.
    """
    inner = []
    for children, above in parents(count):
        up = dict(zip(children, above, strict=True))
        assert len(up) == count - 1
        depths = []
        for vertex in range(count):
            depth = 0
            while vertex in up:
                vertex, depth = up[vertex], depth + 1
                assert depth < count
            depths.append(depth)
        assert max(depths) <= np.ceil(np.log2(count)) + 1
        assert max(above.count(vertex) for vertex in range(count)) <= 2
        inner.append(set(above))
    # Roots, and the vertex whose place the odd count shifts, may be inner in both.
    assert len(inner[0] & inner[1]) <= 2


@pytest.mark.parametrize("name", ["ring", "tree", "nvls"])
def test_bytes_of_an_all_reduce(name: str) -> None:
    """Bytes by tier, two members in each of four racks, counted on paper."""
    found = all_reduce(racks(4), [0, 1, 4, 5, 8, 9, 12, 13], name)
    inside, outside = {
        "ring": (4 * 2 * 7 / 8, 4 * 2 * 7 / 8),
        "tree": (4 * 2, 2 * 3),  # a chain up and down; two trees of three edges
        "nvls": (8 * (1 + 1 / 2), 2 * 3),
    }[name]
    assert found.bytes_by_tier.tolist() == pytest.approx([inside * S, outside * S])


def test_deduplicated_all_to_all_by_hand() -> None:
    """Two racks of two, four copies of each token: 2 (1 - 1/2^4) / 4 of them cross.

    Of a buffer of 4 GB half is for the other rack, 15/8 / 4 of that crosses; of the
    tokens that arrive half are for the neighbour, who gets each once, 175/256 of the
    copies. A member sends one message to the neighbour and one to the other rack.
    """
    topology = racks(2, 4.0, gpus=2)
    members = np.arange(4)[None]
    cost = all_to_all_cost(Fabric.of(topology), members, 4e9, 4)
    crossing = 2e9 * 15 / 8 / 4
    expected = 2 * crossing / (2 * NIC / 4) + IN + OUT
    assert cost.seconds == pytest.approx(expected)
    assert cost.bytes_by_tier.tolist() == pytest.approx(
        [4 * 2e9 * 175 / 256, 4 * crossing]
    )
    flat = all_to_all_cost(Fabric.of(topology), members, 4e9)
    assert cost.seconds < flat.seconds


def test_a_member_of_a_rack_gets_a_token_once() -> None:
    """Two copies of each token over four members: 4 (1 - 9/16) / 2 of them are sent.

    A dispatcher that sends a token to every member that has one of its experts
    (deepseek-ai/DeepEP dd758ca). Its kernels reach 0.82 of NVLink's rate.
    """
    fabric = Fabric.of(racks())
    inside = np.arange(8).reshape(2, 4)
    plain = all_to_all_cost(fabric, inside, S)
    once = all_to_all_cost(fabric, inside, S, 2)
    latency = 3 * IN
    transfer = (plain.seconds - latency) * 7 / 8 / 0.82
    assert once.seconds - latency == pytest.approx(transfer)
    assert once.bytes_by_tier == pytest.approx(plain.bytes_by_tier * 7 / 8)

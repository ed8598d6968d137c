"""DLRover's rerank cases (intelligent-machine-learning/dlrover, commit 156526d178).

``dlrover/python/tests/test_topology_rerank.py``. A slot is some consecutive nodes of
one stage, a column the slots in the same place of every stage. Straddles are slots over
two switch groups; hops are node lanes whose next stage lies in another group. Fewest
straddles come first, then fewest hops.
"""

from __future__ import annotations

import pytest

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.placement.baselines import baseline
from tests.conformance.machines import Host, crossings, domains_of, machine, varied
from tests.solve.solving import solve

TIERS = ("node", "group", "cluster")
FIRST_STRADDLES = {"tp": 1000.0, "ep": 1000.0, "pp": 1.0}


def slots(world: int, stages: int, width: int) -> Job:
    """One-GPU nodes: slots of ``width`` nodes, numbered stage by stage."""
    columns = world // stages // width
    axes = Parallelism(tp=width, pp=stages, dp=columns, etp=width)
    return Job("slots", axes, launcher="free", weights=FIRST_STRADDLES)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("groups", "stages", "width", "straddles", "hops"),
    [
        ([4, 4], 2, 2, 0, 0),
        ([2, 2], 2, 1, 0, 0),
        # Ours. Three slots and one: the mixed column hops with both its lanes.
        ([6, 2], 2, 2, 0, 2),
        # Two slots, one, and one over both groups, whose column hops with one lane.
        ([5, 3], 2, 2, 1, 1),
        # A slot each and one over two groups: one column hops once, the other twice.
        ([3, 3, 2], 2, 2, 1, 3),
        # Two slots each for two columns of three: one hop of both lanes a column.
        ([4, 4, 4], 3, 2, 0, 4),
    ],
)
def test_slots_and_columns(
    groups: list[int], stages: int, width: int, straddles: int, hops: int, seed: int
) -> None:
    """As few slots over two groups as can be, and of those the fewest hops."""
    hosts = domains_of({f"g{i}": [1] * size for i, size in enumerate(groups)})
    topology = machine(TIERS, varied(hosts, seed))
    case = slots(sum(groups), stages, width)
    found = solve(topology, case)
    crossed = crossings(topology, case, found.placement, "group")
    assert crossed.get("tp", 0) == straddles
    assert crossed["pp"] == hops
    assert found.status == "optimal"


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["free", "node-contiguous"])
def test_expert_slots_of_two_nodes(launcher: str) -> None:
    """Slots of 16 ranks on two nodes of 8, two stages: nothing leaves its group.

    Ranks in order put each stage into a group of its own: every lane hops.
    """
    hosts = [Host(f"n{n}", 8, (f"g{n // 4}",)) for n in range(8)]
    topology = machine(TIERS, hosts)
    axes = Parallelism(tp=2, ep=8, etp=2, pp=2, dp=16)
    case = Job("experts", axes, launcher=launcher, weights=FIRST_STRADDLES)
    given = baseline("given-order", topology, case)
    assert crossings(topology, case, given, "group")["pp"] == 32
    found = solve(topology, case, time_limit=3.0)
    assert set(crossings(topology, case, found.placement, "group").values()) == {0}

"""One mistake at a time on Azure's MLPerf v6.0 run: what it costs, within wide bounds.

The bounds are arithmetic from public figures (volumes, NIC and NVLink rates), not
results of this model.
"""

from dataclasses import replace

import pytest

from placer.cost.network import PlacedNetwork
from placer.cost.step import Step, StepModel
from placer.explain.score import score
from placer.job.model import Job
from placer.placement.placement import Placement
from placer.topology.model import Topology
from tests.cost.azure import as_run, as_run_step_s, azure, spread


def slowdown(step: Step) -> float:
    return step.step_time_s / as_run_step_s() - 1


def with_slower_nics(share: float) -> tuple[Topology, Job]:
    topology, job = azure()
    tiers = tuple(
        t if t.scale_up else replace(t, bandwidth=t.bandwidth * share)
        for t in topology.tiers
    )
    return replace(topology, tiers=tiers), job


def test_the_run_itself() -> None:
    """About 1.27 s a step, about 20 ms of it exposed cross-rack time (published)."""
    result = score(*azure(), Placement(as_run()))
    assert result["step_time_s"] == pytest.approx(1.2712, rel=0.02)
    assert 0.015 < result["exposed_scale_out_s"] < 0.025


def test_tensor_parallel_off_nvlink() -> None:
    """Every TP group over four racks: 101.5 GB at one NIC, at least 65 % slower."""
    assert 0.65 < slowdown(StepModel(*azure()).step(spread("tp"))) < 0.90


def test_pipeline_off_nvlink() -> None:
    """Every hop between racks: 2 to 4 % slower."""
    assert 0.02 < slowdown(StepModel(*azure()).step(spread("pp"))) < 0.04


def test_context_parallel_off_nvlink() -> None:
    """Every CP pair over two racks: at most about 1 %; here attention hides it all."""
    assert 0.0 <= slowdown(StepModel(*azure()).step(spread("cp"))) < 0.015


def test_no_overlap_of_gradients() -> None:
    """254 ms of reduction and gather fully seen: about 19 % slower."""
    topology, job = azure()
    mode = replace(job.data_parallel, overlap_reduce=False, overlap_gather=False)
    exposed = StepModel(topology, replace(job, data_parallel=mode)).step(as_run())
    assert 0.16 < slowdown(exposed) < 0.22


@pytest.mark.parametrize(
    ("share", "least", "most"), [(0.5, 0.015, 0.035), (0.25, 0.20, 0.30)]
)
def test_slower_nics(share: float, least: float, most: float) -> None:
    """Half the rate still hides, a quarter is past the cliff."""
    step = StepModel(*with_slower_nics(share)).step(as_run())
    assert least < slowdown(step) < most


def test_a_split_pair_halves_its_gradient_group() -> None:
    """One CP partner moved to a spare GPU of another rack: its group loses a NIC.

    The ring of that gradient group has one NIC left in the first rack, so its transfer
    takes twice as long, and the pair itself talks over the fabric.
    """
    topology, job = azure()
    model = StepModel(topology, job)
    moved = as_run()
    rack = topology.domain_of_gpu[topology.tier_index("rack")]
    spare = [
        g for g in range(topology.num_gpus) if rack[g] == 1 and g not in set(moved)
    ]
    moved[4] = spare[0]  # rank 4 is the cp partner of rank 0
    groups = job.parallelism.ranks_of_group
    gradients = groups["dp_cp"][(groups["dp_cp"] == 4).any(axis=1)]
    pair = groups["cp"][(groups["cp"] == 4).any(axis=1)]
    before = PlacedNetwork(model.fabric, as_run())
    after = PlacedNetwork(model.fabric, moved)
    one_nic = after.gather(gradients, 1e9).bandwidth_seconds
    assert one_nic == pytest.approx(2 * before.gather(gradients, 1e9).bandwidth_seconds)
    over_fabric = after.send(pair, pair[:, ::-1], 1e9).seconds
    nvlink_over_nic = 900 * 0.8 / (100 * 0.98)
    over_nvlink = before.send(pair, pair[:, ::-1], 1e9).seconds
    assert over_fabric == pytest.approx(nvlink_over_nic * over_nvlink, rel=1e-2)

"""The machine and the job of one point."""

from pathlib import Path

import pytest

from placer.base.errors import InputError
from placer.sweep.grid import NIC_RATE, Axis
from placer.sweep.inputs import check_axes, job_at, machine_at
from placer.topology.read import read_topology
from tests.sweep.cases import job, machine


def test_the_job_is_that_of_a_file_with_the_sizes(tmp_path: Path) -> None:
    """Sweeping dp and micro-batches gives the very job that a file would give."""
    found = job_at(job(tmp_path), {"dp": 7, "micro_batches": 3})
    assert found.sha256 == job(tmp_path, dp=7, micro_batches=3).sha256


def test_nic_rate_changes_every_scale_out_tier() -> None:
    """NVLink keeps its rate; distances that follow the rate follow it again."""
    before, after = machine(), machine_at(machine(), {NIC_RATE: 25e9})
    inner = before.scale_up_tier + 1
    assert after.tiers[:inner] == before.tiers[:inner]
    for tier in after.tiers[inner:]:
        assert tier.bandwidth == 25e9
        assert tier.distance == before.tiers[0].bandwidth / 25e9


def test_oversubscription_of_one_tier() -> None:
    """Without a name it is the outermost tier's."""
    outermost = machine_at(machine(), {"oversubscription": 4})
    assert [tier.oversubscription for tier in outermost.tiers][-1] == 4
    block = machine_at(machine(), {"oversubscription_block": 2})
    named = {tier.name: tier.oversubscription for tier in block.tiers}
    assert named.pop("block") == 2
    assert set(named.values()) == {1.0}


@pytest.mark.parametrize(
    ("topology", "axes", "what"),
    [
        ("block:2 node:2 gpu:4", ["oversubscription_rack"], 'no tier "rack"'),
        ("nvl72", ["oversubscription_rack"], "above NVLink"),
        ("nvl72", [NIC_RATE], "above NVLink"),
        ("azure-gb200-mlperf-v6", ["oversubscription_rack"], "NVLink"),
        (
            "azure-gb200-mlperf-v6",
            ["oversubscription", "oversubscription_cluster"],
            "twice",
        ),
    ],
)
def test_axes_that_the_machine_lacks(topology: str, axes: list[str], what: str) -> None:
    """What no point could have is refused before the first."""
    with pytest.raises(InputError, match=what):
        check_axes(read_topology(topology), [Axis(key, (2.0,)) for key in axes])

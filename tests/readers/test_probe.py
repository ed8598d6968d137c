"""A machine of probes, and the nodes that stand out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import placer
from placer.base.errors import InputError
from tests.injob.stand_ins import line
from tests.readers.cases import GB200, machine_of

if TYPE_CHECKING:
    from pathlib import Path


def address(spine: int, leaf: int, host: str) -> dict[str, str]:
    """Slurm's address of a node under two switches."""
    return {
        "topology_addr": f"s{spine}.l{leaf}.{host}",
        "topology_pattern": "switch.switch.node",
    }


def rack(number: int, **more: object) -> str:
    """Four nodes of one NVLink domain."""
    hosts = [f"n{4 * number + k}" for k in range(4)]
    return "".join(line(host, nvlink_domain=f"u.{number}", **more) for host in hosts)


def test_domains_and_switches(tmp_path: Path) -> None:
    """NVLink domains and switches are tiers; numbers before the lines do no harm."""
    hosts = [(k, f"n{k}") for k in range(8)]
    text = "".join(
        f"{k}: " + line(host, nvlink_domain=f"u.{k // 2}", **address(0, k // 4, host))
        for k, host in hosts
    )
    machine, notes = machine_of(tmp_path, text)
    assert [tier.name for tier in machine.tiers][:3] == ["node", "rack", "leaf"]
    assert machine.node_names == tuple(host for _, host in hosts)
    assert machine.num_gpus == 32
    assert machine.gpu is not None
    assert machine.gpu.name == "GB200"
    assert [len(names) for names in machine.domain_names[1:3]] == [4, 2]
    assert not any("instead of" in note for note in notes)


def test_joins_with_slurm(tmp_path: Path) -> None:
    """Probes give the NVLink domains, topology.conf the switches."""
    conf = tmp_path / "topology.conf"
    conf.write_text(
        "SwitchName=spine Switches=leaf[1-2]\n"
        "SwitchName=leaf1 Nodes=n[0-7]\nSwitchName=leaf2 Nodes=n[8-15]\n"
    )
    probes = tmp_path / "probes.jsonl"
    probes.write_text("".join(map(rack, range(4))))
    machine = placer.read_topology(
        [f"slurm:{conf}", str(probes)], note=lambda _note: None
    )
    names = [tier.name for tier in machine.tiers]
    assert names == ["node", "rack", "leaf", "spine"]
    assert [len(of_tier) for of_tier in machine.domain_names] == [16, 4, 2, 1]


def test_nodes_that_differ_are_named(tmp_path: Path) -> None:
    """A probe that failed, 7 of 8 GPUs, another GPU and another clique are told."""
    text = "".join(map(rack, range(4)))
    text += line("x1", nvlink_domain="u.1", gpus=3)
    text += line("x2", nvlink_domain="u.2", gpu="NVIDIA H100")
    text += line("x3", nvlink_domain="u.99")
    text += line("x4", gpus=0, gpu="", problems=["nvidia-smi: no answer in 5 s"])
    machine, notes = machine_of(tmp_path, text)
    said = "\n".join(notes)
    assert "x4: nvidia-smi: no answer in 5 s" in said
    assert "3 GPUs instead of 4 GPUs: x1" in said
    assert "NVIDIA H100 instead of NVIDIA GB200: x2" in said
    assert "alone in their NVLink domain: x3" in said
    assert "in no NVLink domain, as others are: x4" in said
    assert machine.num_gpus == 4 * 19 + 3  # where a probe failed, as the others


def test_clouds_join_by_instance(tmp_path: Path) -> None:
    """The instance id of a probe is the node's name in what AWS prints."""
    aws = tmp_path / "aws.json"
    rows = [
        {
            "InstanceId": f"i-{k}",
            "InstanceType": "p5",
            "NetworkNodes": ["a", f"b{k // 2}"],
        }
        for k in range(4)
    ]
    aws.write_text(json.dumps({"Instances": rows}))
    probes = tmp_path / "p.jsonl"
    clouds = [{"name": "aws", "instance_id": f"i-{k}"} for k in range(4)]
    probes.write_text("".join(line(f"n{k}", cloud=clouds[k]) for k in range(4)))
    machine = placer.read_topology([str(aws), str(probes)], note=lambda _note: None)
    assert sorted(machine.node_names) == ["n0", "n1", "n2", "n3"]


def test_what_is_not_used_hinders_nobody(tmp_path: Path) -> None:
    """Of what only people read, and of nulls, a machine is read as without them."""
    odd = {"memory": 4.0, "nics": "two", "rails": [None, 3], "cloud": {"a": None}}
    nulls = dict.fromkeys(("gpu", "nics", "rails", "labels", "problems"))
    for more in (odd, nulls):
        plain = "".join(line(f"n{k}") for k in range(2))
        text = "".join(line(f"n{k}", **more) for k in range(2))
        (tmp_path / "a").mkdir(exist_ok=True)
        found, wanted = machine_of(tmp_path, text), machine_of(tmp_path / "a", plain)
        assert found[0].node_names == wanted[0].node_names
        assert found[0].num_gpus == wanted[0].num_gpus


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no probe in it"),
        ("slurmstepd: error\n", "there is no probe in it"),
        (line("n1")[:60] + "\n", "1:1: this probe is cut or malformed"),
        (line("n1") + "7: " + line("a b"), "2:4: host: "),
        (line("n1", version=2), "version: expected 1"),
        (line("n1", gpus=-1), "gpus: -1 is not between 0 and 1024"),
        (line("n1", labels=[1]), "labels: expected a mapping"),
        (line("n1", nvlink_domain=7), "nvlink_domain: expected a printable text"),
        (line("n1") + line("n1", nvlink_domain="u"), 'line 1 says otherwise of "n1"'),
    ],
)
def test_what_cannot_be_used(tmp_path: Path, text: str, message: str) -> None:
    """Every probe that cannot be used is named with its place."""
    path = tmp_path / "p.jsonl"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        placer.read_topology(f"probe:{path}", hardware=GB200)
    assert message in str(caught.value)

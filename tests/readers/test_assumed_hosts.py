"""Hosts of a machine whose sources do not say how fast they are."""

import json

import pytest

import placer
from placer.base.errors import InputError
from placer.topology.gpu_kinds import kind_of_gpu
from placer.topology.write import compact_document
from tests.readers import cases
from tests.readers.cases import tier_names
from tests.texts import table


@pytest.fixture
def read(tmp_path):
    """Reads the machine of one text, without a word on stderr."""

    def machine(text, name="source", **options):
        path = tmp_path / name
        path.write_text(text)
        return placer.read_topology(path, note=lambda _remark: None, **options)

    return machine


def told(machine):
    return {each.key: (each.value, each.option) for each in machine.assumed}


@pytest.mark.parametrize(*table("readers/assumed_hosts.yaml", "names_of_gpus"))
def test_names_of_gpus(name, kind):
    """As vendors, labels, Slurm and clouds write them; cards are no such hosts."""
    assert kind_of_gpu(name) == kind


def test_a_gpu_that_is_given_is_not_assumed(read):
    """Neither are uplinks that are given; an unknown GPU names the nearest."""
    machine = read(cases.TREE, gpu="h200", oversubscription={"spine": 2})
    assert machine.assumed == ()
    assert machine.gpu.name == "H200"
    with pytest.raises(InputError) as caught:
        read(cases.TREE, gpu="h2000")
    assert 'did you mean "H200"?' in caught.value.problems[0].hint
    with pytest.raises(InputError, match="gpu: the hardware says"):
        read(cases.TREE, gpu="h100", hardware="nvl72")


def test_a_text_of_trays_in_racks_is_of_nvlink_racks():
    """The racks are NVLink domains, and that is told; larger ones are not."""
    machine = placer.read_topology("rack:3 node:18 gpu:4")
    assert [tier.scale_up for tier in machine.tiers] == [True, True, False]
    assert machine.gpu.name == "GB200"
    assert told(machine)["hardware"] == ("GB200", "--gpu NAME")
    for other in (
        "rack:3 node:20 gpu:4",
        "rack:3 node:18 gpu:8",
        "leaf:3 node:18 gpu:4",
    ):
        assert placer.read_topology(other).scale_up_tier == 0


@pytest.mark.parametrize(*table("readers/assumed_hosts.yaml", "a_text_takes_hardware"))
def test_a_text_takes_hardware(given, bandwidths):
    """Figures are those of the hardware, names and counts those of the text."""
    machine = placer.read_topology("pod:3 host:18 gpu:4", **given)
    assert [tier.bandwidth for tier in machine.tiers] == bandwidths
    assert tier_names(machine) == ["host", "pod", "cluster"]
    assert machine.name == "pod:3 host:18 gpu:4"
    assert machine.num_gpus == 3 * 18 * 4
    assert "hardware" not in told(machine)


def test_uplinks_of_a_complete_machine_can_be_given(tmp_path):
    """Of a preset and of a text; the machine is another one then."""
    for source in ("azure-ndh100-v5", "rack:3 node:8 gpu:8"):
        plain = placer.read_topology(source)
        thin = placer.read_topology(source, oversubscription={"cluster": 4})
        assert thin.tiers[-1].oversubscription == 4
        assert thin.sha256 != plain.sha256
        assert "oversubscription" not in told(thin)
        path = tmp_path / "again.json"
        path.write_text(json.dumps(compact_document(thin)))
        assert placer.read_topology(path).sha256 == thin.sha256


def test_a_file_without_uplinks_assumes_them_and_its_gpu_can_be_given(read):
    """What a file of placer says of either is known."""
    text = (
        "format: placer/topology\nversion: 1\nname: own\ntiers:\n"
        "  - {name: node, size: 8, bandwidth: 450GB/s, scale_up: true}\n"
        "  - {name: leaf, bandwidth: 50GB/s}\n"
        "  - {name: cluster, bandwidth: 50GB/s%s}\n"
        'layout: "cluster:1 leaf:2 node:4"\n'
    )
    assert list(told(read(text % ""))) == ["oversubscription"]
    assert told(read(text % ", oversubscription: 1")) == {}
    assert read(text % "", gpu="h100").gpu.name == "H100"
    with pytest.raises(InputError, match="has its own bandwidths and GPUs"):
        read(text % "" + "gpu: {name: H100}\n", gpu="h100")

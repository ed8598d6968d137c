"""What labels mean: known ones, those of a user or a Topology object, and others."""

from __future__ import annotations

import json
from uuid import NAMESPACE_DNS, uuid5

import pytest
from click.testing import CliRunner

from placer.base.errors import InputError
from placer.cli.main import main
from placer.documents.recognise import recognise
from placer.formats.machines.node_labels import is_like_topology
from placer.formats.machines.registry import FORMATS
from tests.readers import cases
from tests.readers.cases import machine_of, node, nodes, nodes_of_domains, tier_names
from tests.texts import table

AWS = "topology.k8s.aws/network-node-layer-"
COREWEAVE = "backend.coreweave.cloud/"
NEBIUS = "topology.nebius.com/"
BLOCK, RACK = "example.com/topology-block", "example.com/topology-rack"


def at(number, labels):
    return node(f"n{number}", {key: f"v{value}" for key, value in labels.items()})


def kubernetes(count, sizes):
    """Nodes n0, n1, ... with labels of which a value holds so many neighbours."""
    return nodes(
        *(at(i, {key: i // size for key, size in sizes.items()}) for i in range(count))
    )


def domains(machine):
    """How many domains each tier has, innermost first."""
    return [len(names) for names in machine.domain_names]


def test_four_layers_of_aws(tmp_path):
    """p6-b200 nodes have a fourth layer, the bottom one: network-node-layer-4."""
    text = kubernetes(16, {AWS + "4": 2, AWS + "3": 4, AWS + "2": 8, AWS + "1": 16})
    machine, _ = machine_of(tmp_path, text, hardware=cases.H100)
    assert tier_names(machine)[1:] == [f"network-node-{n}" for n in (4, 3, 2, 1)]
    assert domains(machine) == [16, 8, 4, 2, 1]


def test_three_and_four_layers_of_aws(tmp_path):
    """Nodes with three layers lie under the third one, beside those with four."""
    of_four = [at(i, {AWS + "4": i // 2, AWS + "3": 0, AWS + "1": 0}) for i in range(4)]
    of_three = [at(i, {AWS + "3": 1, AWS + "1": 0}) for i in range(4, 6)]
    machine, notes = machine_of(
        tmp_path, nodes(*of_four, *of_three), hardware=cases.H100
    )
    assert nodes_of_domains(machine, "network-node-3") == {
        "v0": ["n0", "n1", "n2", "n3"],
        "v1": ["n4", "n5"],
    }
    assert any("network-node-4" in note and "kept apart" in note for note in notes)


def test_layers_of_aws_that_do_not_nest(tmp_path):
    """A bottom node below two others is refused, as it is for the EC2 answer."""
    text = kubernetes(8, {AWS + "4": 4, AWS + "3": 2})
    with pytest.raises(InputError, match='network-node-4 "v0" has 2 nodes in "v0"'):
        machine_of(tmp_path, text, hardware=cases.H100)


def test_coreweave(tmp_path):
    """NVLink domains make the racks; leaf groups, superpods and fabrics lie above."""
    text = kubernetes(
        16,
        {
            "ds.coreweave.com/nvlink.domain": 2,
            COREWEAVE + "leafgroup": 4,
            COREWEAVE + "superpod": 8,
            COREWEAVE + "fabric": 16,
        },
    )
    machine, _ = machine_of(tmp_path, text)
    assert tier_names(machine) == ["node", "rack", "leafgroup", "superpod", "fabric"]
    assert domains(machine) == [16, 8, 4, 2, 1]
    assert machine.scale_up_tier == 1


@pytest.mark.parametrize("start", ["backend.coreweave.cloud/", "ib.coreweave.cloud/"])
def test_numbers_of_coreweave_count_within(tmp_path, start):
    """Leaf group 0 of superpod 0 and that of superpod 1 are two, and this is said."""
    text = nodes(
        *(
            at(i, {start + "leafgroup": i // 2 % 2, start + "superpod": i // 4})
            for i in range(8)
        )
    )
    machine, notes = machine_of(tmp_path, text, hardware=cases.H100)
    assert nodes_of_domains(machine, "leafgroup") == {
        f"v{pod}/v{group}": [f"n{4 * pod + 2 * group + k}" for k in (0, 1)]
        for pod in (0, 1)
        for group in (0, 1)
    }
    assert any("assumed that leafgroup counts within superpod" in n for n in notes)


def test_nebius(tmp_path):
    """Tier 0 is the rack where the hardware has NVLink racks, the others switches."""
    sizes = {NEBIUS + "tier-0": 2, NEBIUS + "tier-1": 4, NEBIUS + "tier-2": 8}
    text = kubernetes(16, sizes)
    machine, notes = machine_of(tmp_path, text)
    assert tier_names(machine) == ["node", "rack", "leaf", "spine", "cluster"]
    assert domains(machine) == [16, 8, 4, 2, 1]
    assert any("NVLink within a nvl-domain" in note for note in notes)
    flat, _ = machine_of(tmp_path, text, hardware=cases.H100)
    assert flat.scale_up_tier == 0


def test_oracle_racks(tmp_path):
    """OKE's rack label is a tier below the blocks of the RDMA network."""
    oci = "oci.oraclecloud.com/"
    text = kubernetes(8, {oci + "host.rack_id": 2, oci + "rdma.local_block_id": 4})
    machine, _ = machine_of(tmp_path, text, hardware=cases.H100)
    assert tier_names(machine) == ["node", "rack", "local-block", "cluster"]


@pytest.mark.parametrize(
    *table("readers/node_labels.yaml", "keys_that_look_like_topology")
)
def test_keys_that_look_like_topology(key, is_like):
    """Racks, switches and NVLink do; zones, hosts and products do not."""
    assert is_like_topology(key) is is_like


def test_unused_labels_are_named(tmp_path):
    """A flat machine of labelled nodes says which labels it did not read."""
    text = kubernetes(8, {"example.com/rack": 2, "nvidia.com/gpu.product": 8})
    machine, notes = machine_of(tmp_path, text, hardware=cases.H100)
    assert tier_names(machine) == ["node", "cluster"]
    (note,) = [note for note in notes if "not used" in note]
    assert "example.com/rack" in note
    assert 'labels={"example.com/rack": "TIER"}' in note
    assert "gpu.product" not in note
    assert any("ignored 1 label" in note for note in notes)


CLIQUE = "nvidia.com/gpu.clique"


def with_ids(text: str) -> str:
    """Cliques called by the UUID of a fabric and a number, as drivers call them."""
    content = json.loads(text)
    for item in content["items"]:
        labels = item["metadata"]["labels"]
        clique = labels[CLIQUE]
        labels[CLIQUE] = f"{uuid5(NAMESPACE_DNS, clique)}.1"
    return json.dumps(content)


@pytest.mark.parametrize("labels", [{}, {"example.com/rack": "rack"}])
def test_ids_have_the_names_of_a_label_that_goes_with_them(tmp_path, labels):
    """Domains called by UUIDs are called as the racks are that they are."""
    text = with_ids(kubernetes(8, {CLIQUE: 4, "example.com/rack": 4}))
    racks = {
        item["metadata"]["labels"]["example.com/rack"]
        for item in json.loads(text)["items"]
    }
    machine, notes = machine_of(tmp_path, text, hardware=cases.GB200, labels=labels)
    assert domains(machine) == [8, 2, 1]
    assert set(machine.domain_names[1]) == racks
    assert any("the names of" in note for note in notes)
    assert not any("not used" in note for note in notes)


def test_ids_stay_where_no_label_goes_with_them(tmp_path):
    """A label that puts two of the domains into one gives no names."""
    text = with_ids(kubernetes(8, {CLIQUE: 2, "example.com/rack": 4}))
    machine, _ = machine_of(tmp_path, text, hardware=cases.GB200)
    names = {name for row in machine.domain_names for name in row}
    assert sum(len(name) > 36 for name in names) == 4


def test_labels_with_a_value_a_node_are_no_news(tmp_path):
    """One that differs on every node groups none."""
    text = kubernetes(4, {"example.com/rack-slot": 1})
    _, notes = machine_of(tmp_path, text, hardware=cases.H100)
    assert not any("not used" in note for note in notes)


def test_label_option(tmp_path):
    """A label of the user's is a tier, in its place by nesting."""
    text = kubernetes(16, {"example.com/row": 8, "example.com/rack": 2})
    machine, notes = machine_of(
        tmp_path,
        text,
        hardware=cases.H100,
        labels={"example.com/row": "row", "example.com/rack": "shelf"},
    )
    assert tier_names(machine) == ["node", "shelf", "row", "cluster"]
    assert not any("not used" in note for note in notes)


def test_label_named_as_the_hardware_names_nvlink(tmp_path):
    """A label called rack on NVL72 hardware is the rack that shares NVLink."""
    text = kubernetes(8, {"example.com/rack": 2, "example.com/row": 4})
    labels = {"example.com/rack": "rack", "example.com/row": "row"}
    machine, notes = machine_of(tmp_path, text, labels=labels)
    assert machine.scale_up_tier == 1
    assert tier_names(machine) == ["node", "rack", "row", "cluster"]
    assert any("NVLink within a rack" in note for note in notes)


def test_label_left_out(tmp_path):
    """A known label that cuts across others can be left out."""
    sizes = {COREWEAVE + "leafgroup": 4, "oci.oraclecloud.com/host.rack_id": 3}
    text = kubernetes(8, sizes)
    with pytest.raises(InputError, match="cut across each other"):
        machine_of(tmp_path, text, hardware=cases.H100)
    machine, _ = machine_of(
        tmp_path,
        text,
        hardware=cases.H100,
        labels={"oci.oraclecloud.com/host.rack_id": ""},
    )
    assert tier_names(machine) == ["node", "leafgroup", "cluster"]


def test_label_that_no_node_has(tmp_path):
    """A mistyped key is an error with the one that was meant."""
    text = kubernetes(4, {"example.com/rack": 2})
    with pytest.raises(InputError, match="no node has the label") as caught:
        machine_of(tmp_path, text, labels={"example.com/rak": "rack"})
    assert "example.com/rack" in caught.value.problems[0].hint


@pytest.mark.parametrize("text", [cases.TREE, cases.AWS])
def test_labels_without_kubernetes(tmp_path, text):
    """Where no source has labels, the option is an error."""
    with pytest.raises(InputError, match="no source has labels"):
        machine_of(tmp_path, text, labels={"example.com/rack": "rack"})


@pytest.mark.parametrize("api", ["kueue.x-k8s.io/v1beta2", "kai.scheduler/v1alpha1"])
@pytest.mark.parametrize("position", [0, 1])
def test_topology_objects(tmp_path, api, position):
    """Kueue's and KAI's objects give the order, whichever file comes first."""
    order = cases.ORDER.replace("kueue.x-k8s.io/v1beta2", api)
    texts = [kubernetes(8, {BLOCK: 4, RACK: 2})]
    texts.insert(position, order)
    machine, notes = machine_of(tmp_path, *texts, hardware=cases.H100)
    assert tier_names(machine) == ["node", "rack", "block", "cluster"]
    assert domains(machine) == [8, 4, 2, 1]
    assert any(f"outermost first: {BLOCK} > {RACK}" in note for note in notes)
    assert any("3 labels in order" in note for note in notes)


def test_label_of_an_object_that_no_node_has(tmp_path):
    """A level without nodes is noted, and the others are read."""
    listed = kubernetes(8, {RACK: 2})
    machine, notes = machine_of(tmp_path, listed, cases.ORDER, hardware=cases.H100)
    assert tier_names(machine) == ["node", "rack", "cluster"]
    assert any(f"that no node has: {BLOCK}" in note for note in notes)


def test_topology_object_in_the_list_of_nodes(tmp_path):
    """``kubectl get nodes,topologies`` prints both in one list."""
    listed = json.loads(kubernetes(8, {BLOCK: 4, RACK: 2}))
    listed["items"].append(
        {
            "kind": "Topology",
            "metadata": {"name": "default"},
            "spec": {"levels": [{"nodeLabel": BLOCK}, {"nodeLabel": RACK}]},
        }
    )
    text = json.dumps(listed, indent=1)
    assert recognise(text, FORMATS.values()) == ["kubernetes"]
    machine, _ = machine_of(tmp_path, text, hardware=cases.H100)
    assert tier_names(machine) == ["node", "rack", "block", "cluster"]


def test_values_count_within_those_above(tmp_path):
    """Rack v0 of block v0 is not rack v0 of block v1: so Kueue tells domains apart."""
    listed = nodes(*(at(i, {BLOCK: i // 4, RACK: i // 2 % 2}) for i in range(8)))
    machine, notes = machine_of(tmp_path, listed, cases.ORDER, hardware=cases.H100)
    assert domains(machine) == [8, 4, 2, 1]
    assert machine.domain_names[1][0] == "v0/v0"
    assert any("rack counts within block" in note for note in notes)


@pytest.mark.parametrize(*table("readers/node_labels.yaml", "bad_topology_objects"))
def test_bad_topology_objects(tmp_path, old, new, message):
    """What is wrong with an object is said."""
    path = tmp_path / "order.yaml"
    path.write_text(cases.ORDER.replace(old, new))
    with pytest.raises(InputError, match=message):
        machine_of(tmp_path, cases.ORDER.replace(old, new), hardware=cases.H100)


def test_label_on_the_command_line(tmp_path):
    """``--label KEY=TIER``, more than once; what it means is printed to stderr."""
    path = tmp_path / "nodes.json"
    path.write_text(kubernetes(8, {"example.com/row": 4, "example.com/rack": 2}))
    words = ["topo", "convert", str(path), "--hardware", cases.H100]
    words += ["--label", "example.com/row=row", "--label", "example.com/rack=rack"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0
    assert "8 nodes, 32 GPUs; 2 rows, 4 racks\n" in done.stderr
    assert {"name": "row"}.items() <= json.loads(done.stdout)["tiers"][2].items()
    quiet = CliRunner().invoke(main, [*words, "-q"])
    assert (quiet.stdout, quiet.stderr) == (done.stdout, "")


@pytest.mark.parametrize("text", ["rack", "=rack", "a=b\n"])
def test_bad_label_options(text):
    """What is no KEY=TIER is a usage error."""
    words = ["topo", "show", "dgx-h100-4x8", "--label", text]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2

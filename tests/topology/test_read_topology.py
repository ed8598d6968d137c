"""Reading topology files: what the compiled machine is."""

import json
from pathlib import Path

import numpy as np
import pytest

from placer.documents.presets import preset_names, preset_path
from placer.report.machine_text import draw
from placer.topology.affinity import Affinity
from placer.topology.read import parse_topology, read_topology
from placer.topology.write import compact_document, to_document
from tests.texts import data, table

ROOT = Path(__file__).resolve().parents[2]

# Blocks come back after others, racks are uneven, one node is weak, one is slow.
UNEVEN = data("topology/uneven.yaml")
HEAD = UNEVEN[: UNEVEN.index("nodes:")]


def test_explicit_machine_worked_by_hand():
    """Nodes keep the order of the file; domains are numbered by first appearance."""
    machine = parse_topology(UNEVEN, "small.yaml")
    assert machine.name == "small"
    assert machine.sources == ("the test",)
    assert machine.node_names == ("x2", "x1", "y1", "z1", "y2", "y3")
    assert machine.gpus_of_node.tolist() == [4, 4, 2, 4, 4, 4]
    assert machine.bandwidth_factor.tolist() == [1, 1, 1, 0.5, 1, 1]
    assert machine.domain_of_node.tolist() == [
        [0, 1, 2, 3, 4, 5],
        [0, 0, 1, 2, 1, 1],
        [0, 0, 1, 0, 1, 1],
        [0, 0, 0, 0, 0, 0],
    ]
    assert machine.domain_names[1:] == (("r1", "r2", "r3"), ("b1", "b2"), ("cluster",))
    assert (machine.num_nodes, machine.num_gpus) == (6, 22)
    assert machine.first_gpu_of_node.tolist() == [0, 4, 8, 10, 14, 18, 22]


def test_digest_is_of_the_content():
    """Layout of the file, prose and unavailable nodes do not change the digest."""
    digest = parse_topology(UNEVEN, "small.yaml").sha256
    same = [
        UNEVEN.replace("{names: y1", "{names:  'y1'").replace("400Gb/s", "50GB/s"),
        UNEVEN.replace("name: small", "name: other\ndescription: a machine"),
        UNEVEN.replace(
            "  - {names: y1", "  - {names: w1, rack: r1, block: b1}\n  - {names: y1"
        )
        + "unavailable: {w1: broken}\n",
        UNEVEN.replace("size: 4", "size: 2")
        .replace(", gpus: 2", "")
        .replace("rack: r1", "gpus: 4, rack: r1")
        .replace("names: z1", "gpus: 4, names: z1")
        .replace('names: "y[2-3]"', 'gpus: 4, names: "y[2-3]"'),
    ]
    assert {parse_topology(text, "small.yaml").sha256 for text in same} == {digest}


@pytest.mark.parametrize(
    *table("topology/read.yaml", "digest_changes_with_the_machine")
)
def test_digest_changes_with_the_machine(old, new):
    """Whatever a placement may depend on, order of nodes included, is in the digest."""
    assert old in UNEVEN
    changed = parse_topology(UNEVEN.replace(old, new), "small.yaml")
    assert changed.sha256 != parse_topology(UNEVEN, "small.yaml").sha256


SAME = ("name", "tiers", "sources", "description", "sha256", "node_names")
SAME += ("domain_names", "domain_of_node", "gpus_of_node", "bandwidth_factor")


def same_machine(one, other):
    for name in SAME:
        assert np.all(getattr(one, name) == getattr(other, name)), name


@pytest.mark.parametrize("write", [to_document, compact_document])
def test_every_key_is_read_back(write):
    """As ``topology show`` writes it, and as plans keep it."""
    text = (ROOT / "tests/schemas/topology.yaml").read_text()
    machine = parse_topology(text, "full.yaml")
    again = parse_topology(json.dumps(write(machine)), "again.json")
    same_machine(again, machine)
    for name in ("links", "budgets", "affinity", "gpu", "scheduler"):
        assert getattr(again, name) == getattr(machine, name), name
    assert again.links
    assert again.budgets
    assert again.by_island.domain_names == machine.by_island.domain_names
    assert again.speed_of_node.tolist() == machine.speed_of_node.tolist()


# What vendors say of the memory of their GPUs, in GB.
SOLD = {"H100": 80, "H200": 141, "B200": 180, "B300": 288, "GB200": 186, "GB300": 288}
SOLD |= {"MI300X": 192, "A100": 80, "MI455X": 432}


@pytest.mark.parametrize("name", preset_names("topologies"))
def test_presets_read(name):
    """Every preset is a valid machine, has a description and names its sources.

    Its GPUs hold what they are sold as, within a tenth.
    """
    machine = read_topology(name)
    assert machine.num_gpus > 0
    assert machine.description
    assert machine.sources
    assert machine.gpu.memory == pytest.approx(SOLD[machine.gpu.name] * 1e9, rel=0.1)
    assert machine.gpu.peak.get("fp8", 1e30) > machine.gpu.peak["bf16"] > 0
    same_machine(machine, read_topology(preset_path("topologies", name)))


NEAR = "affinity: {numa: [0, 0, 1, 1], nics: [[a, b], [a, b], [c], []]}\n"


def test_affinity_is_of_no_effect():
    """A plan stays good when only this is added."""
    machine = parse_topology(UNEVEN + NEAR, "small.yaml")
    nics = ("a", "b"), ("a", "b"), ("c",), ()
    assert machine.affinity == Affinity((0, 0, 1, 1), nics)
    assert machine.sha256 == parse_topology(UNEVEN, "small.yaml").sha256


@pytest.mark.parametrize("name", ["uneven", "many"])
def test_a_machine_is_a_page_of_text(name):
    """Tiers in columns, the commonest sizes, slow nodes and links, what is left out."""
    text = data(f"topology/{name}.yaml") + NEAR * (name == "uneven")
    page = data(f"topology/drawn-{name}.txt")
    assert f"{draw(parse_topology(text, 'm.yaml'))}\n" == page
    fewer = text.replace("  - {between: [r1, r4], bandwidth: 11GB/s}\n", "")
    assert "faster" not in draw(parse_topology(fewer, "m.yaml"))
    even = draw(read_topology("rack:2 node:3 gpu:4"))
    assert "\ncluster: 2 racks x 3 nodes x 4 GPUs\n" in even


def budget_of(entry):
    """The budget of an entry; a GPU draws 1.2 kW."""
    text = f'{HEAD}layout: "cluster:1 block:2 rack:6 node:2"\ngpu: {{power: 1.2kW}}\n'
    (budget,) = parse_topology(f"{text}budgets: [{entry}]\n", "t.yaml").budgets
    return budget


def test_budgets_name_hosts_by_their_beginning():
    """An item that ends in ``*`` means every node that begins so; others are names.

    Watts and GPUs limit the same GPUs; what a share of a GPU draws is no GPU.
    """
    budget = budget_of('{hosts: "b1-r[1-2]*,b2-r1-n1", watts: 2.4kW}')
    racks = {"b1-r1-n1", "b1-r1-n2", "b1-r2-n1", "b1-r2-n2"}
    assert budget.names == racks | {"b2-r1-n1"}
    assert budget.most_gpus == 2
    shown = "at most 2.4 kW at 1.2 kW a GPU on b1-r[1-2]*,b2-r1-n1"
    assert str(budget) == shown
    budget = budget_of('{hosts: "*", watts: 9.5kW, gpus: 9, replicas: 1}')
    assert (budget.most_gpus, budget.replicas, len(budget.names)) == (7, 1, 24)

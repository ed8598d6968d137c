"""topograph's simulation models and its graph."""

from __future__ import annotations

import json

import pytest

from placer.base.errors import InputError
from placer.formats.machines.registry import read
from tests.readers import cases
from tests.readers.cases import machine_of, nodes_of_domains, sizes, tier_names


def racks(first, switches, per_rack, missing=(), short=()):
    """Racks of consecutive nodes: switch name and node list of each that has any."""
    number = first
    for rack in switches:
        span = list(range(number, number + per_rack))
        number += per_rack
        if rack not in missing:
            yield rack, [n for n in span if n not in short]


def model_text(tree, blocks):
    """A model: a map of switches, and (switch, nodes, domain, sub-domain) blocks."""
    switches = {name: {"switches": children} for name, children in tree.items()}
    listed = [
        {
            "switch": switch,
            "nodes": nodes,
            "annotations": {
                "accelerator.topology.test/domain": domain,
                "accelerator.topology.test/sub-domain": switch,
            }
            if domain != switch
            else {"accelerator.topology.test/domain": domain},
        }
        for switch, nodes, domain in blocks
    ]
    document = {"switches": switches, "blocks": listed}
    # Every JSON value is YAML; the key at the start of a line shows the format.
    return "".join(f"{key}:\n  {json.dumps(v)}\n" for key, v in document.items())


def test_names_of_digits(tmp_path):
    """A bare range and a bare number are node names (NVIDIA/topograph, medium.yaml).

    Two blocks of three nodes, each a domain; the third leaf is empty, which is legal.
    """
    machine, _ = machine_of(tmp_path, cases.MODEL)
    assert nodes_of_domains(machine, "rack") == {
        "nvl1": ["1101", "1102", "1103"],
        "nvl2": ["1201", "1202", "1203"],
    }
    assert tier_names(machine) == ["node", "rack", "spine"]


def test_two_level_domains_irregular(tmp_path):
    """Case T1: 255 nodes, domains of 124 and 131, racks of 9 but one of 7 and one of 5.

    Of 31 racks two have no nodes (NVIDIA/topograph e2b62507,
    tests/models/dual-xclr-irregular.yaml, rebuilt from its description).
    """
    one = [f"rack-1-{i:02}" for i in range(1, 17)]
    two = [f"rack-2-{i:02}" for i in range(1, 17) if i != 11]
    blocks = []
    for domain, racks_of, first, empty, gone in (
        ("domain-01", one, 1, ("rack-1-03", "rack-1-13"), (31, 33)),
        ("domain-02", two, 145, (), (267, 268, 269, 270)),
    ):
        for rack, found in racks(first, racks_of, 9, empty, gone):
            blocks.append((rack, [f"node{n:04}" for n in found], domain))
    tree = {"core": ["sw-01", "sw-02"], "sw-01": one, "sw-02": two}
    machine, _ = machine_of(tmp_path, model_text(tree, blocks))
    assert machine.num_nodes == 255
    assert {k: len(v) for k, v in nodes_of_domains(machine, "rack").items()} == {
        "domain-01": 124,
        "domain-02": 131,
    }
    assert sizes(machine, "sub-domain") == {9: 27, 7: 1, 5: 1}


def test_graph(tmp_path):
    """Layers are closest first: eight instances, leaves of two, spines of four.

    Every instance is its own sub-domain, so that level repeats the node.
    """
    machine, notes = machine_of(tmp_path, cases.GRAPH)
    assert tier_names(machine) == ["node", "rack", "spine", "cluster"]
    assert sizes(machine, "rack") == {2: 4}
    assert sizes(machine, "spine") == {4: 2}
    assert any("sub-domain" in note and "same as node" in note for note in notes)


def test_graph_with_other_depths(tmp_path):
    """An instance without layers, or with fewer, is kept apart and reported."""
    instances = [
        {"id": "a", "network_layers": ["l1", "s1"]},
        {"id": "b", "network_layers": ["l1"]},
        {"id": "c", "network_layers": ["l2"]},
        {"id": "d", "network_layers": None},
        {"id": "e", "network_layers": ["l3", "s1"]},
    ]
    text = json.dumps({"instances": instances})
    machine, notes = machine_of(tmp_path, text, hardware=cases.H100)
    leaves = nodes_of_domains(machine, "leaf")
    assert leaves == {"l1": ["a", "b"], "l2": ["c"], "l3": ["e"], "d": ["d"]}
    spines = nodes_of_domains(machine, "spine")
    assert spines == {"s1": ["a", "b", "e"], "l2": ["c"], "d": ["d"]}
    assert any("leaf" in note and "kept apart: d" in note for note in notes)


def test_leaf_below_two_spines(tmp_path):
    """A leaf with nodes of two spines is refused, not taken for the wider of both."""
    paths = [["l1", "s1"], ["l1", "s2"], ["l1", "s2"], ["l2", "s3"]]
    instances = [
        {"id": f"i-{i}", "network_layers": path} for i, path in enumerate(paths)
    ]
    text = json.dumps({"instances": instances})
    with pytest.raises(InputError, match='leaf "l1" has 1 node in "s1"') as caught:
        machine_of(tmp_path, text, hardware=cases.H100)
    (problem,) = caught.value.problems
    assert problem.hint == "a leaf lies in one spine; like it: 1"


def test_graph_answer_ok():
    """The answer of a topograph that wrote a file is refused with the reason."""
    with pytest.raises(InputError):
        read("topograph", "OK", "answer")
    with pytest.raises(InputError, match="answers just OK"):
        read("topograph", "{}", "answer")

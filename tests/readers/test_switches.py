"""Switches that are no tree: several above the same ones, and trees apart."""

from __future__ import annotations

import json
import random

import pytest

from placer.base.errors import InputError
from placer.formats.machines.registry import read
from placer.report.machine_text import draw
from placer.topology.allocation import allocate
from placer.topology.read import parse_topology
from placer.topology.write import to_document
from tests.readers import cases
from tests.readers.cases import machine_of, nodes_of_domains, tier_names
from tests.texts import table

APART = """\
SwitchName=a Switches=leaf[1-2]
SwitchName=b Switches=leaf[3-4]
SwitchName=leaf1 Nodes=n[1-2]
SwitchName=leaf2 Nodes=n[3-4]
SwitchName=leaf3 Nodes=n[5-6]
SwitchName=leaf4 Nodes=n[7-8]
"""


def fabric(switches):
    """A topology.conf of switches by name: the names below each, or its nodes."""
    return "".join(
        f"SwitchName={name} {'Nodes' if below[0][0] == 'n' else 'Switches'}="
        f"{','.join(below)}\n"
        for name, below in switches.items()
    )


def divisions(findings):
    """The sets of nodes that each level makes, without the names of domains."""
    names = list(findings.nodes)
    return [
        {
            frozenset(name for name in names if findings.nodes[name].domains[k] == own)
            for own in {findings.nodes[name].domains[k] for name in names} - {""}
        }
        for k in range(len(findings.levels))
    ]


def test_two_spines_over_the_same_leaves_are_one(tmp_path):
    """The usual fabric: every leaf hangs on both spines, so all nodes share a tier."""
    machine, notes = machine_of(tmp_path, cases.TWO_SPINES, hardware=cases.H100)
    assert tier_names(machine) == ["node", "leaf", "spine"]
    assert nodes_of_domains(machine, "spine") == {
        "spine1+spine2": ["n1", "n2", "n3", "n4"]
    }
    assert any("are one domain: spine1+spine2" in note for note in notes)


@pytest.mark.parametrize("seed", range(40))
def test_several_switches_for_one_change_no_domain(seed):
    """A tree, each upper switch written as several in any order, is the same tree."""
    rng = random.Random(seed)
    level = [f"l{i}" for i in range(rng.randint(1, 12))]
    one = {name: [f"n{name}-{i}" for i in range(rng.randint(1, 3))] for name in level}
    many = {name: [*nodes] for name, nodes in one.items()}
    copies = {name: [name] for name in level}
    for height in range(rng.randint(1, 3)):
        upper: dict[str, list[str]] = {}
        for name in level:
            at = rng.randrange(max(1, len(level) // 2))
            upper.setdefault(f"h{height}-{at}", []).append(name)
        for name, below in upper.items():
            one[name] = below
            copies[name] = [f"{name}x{k}" for k in range(rng.randint(1, 4))]
            for number, copy in enumerate(copies[name]):
                # Every copy of a child hangs on one, and one of each child on all.
                many[copy] = [
                    part
                    for child in below
                    for k, part in enumerate(copies[child])
                    if k == 0 or k % len(copies[name]) == number
                ]
        level = list(upper)
    lines = list(many.items())
    rng.shuffle(lines)
    expected = divisions(read("slurm", fabric(one), "one.conf"))
    assert divisions(read("slurm", fabric(dict(lines)), "many.conf")) == expected


def test_leaves_with_the_same_nodes_are_one(tmp_path):
    """Hosts on two leaves each, as with two rails, are joined by what is above."""
    text = fabric(
        {
            "rail1": ["n1", "n2"],
            "rail2": ["n2", "n1"],
            "rail3": ["n3", "n4"],
            "up": ["rail2", "rail3"],
        }
    )
    machine, notes = machine_of(tmp_path, text, hardware=cases.H100)
    assert tier_names(machine) == ["node", "leaf", "spine"]
    assert nodes_of_domains(machine, "leaf")["rail1+rail2"] == ["n1", "n2"]
    assert not any("several switches" in note for note in notes)


@pytest.mark.parametrize(
    *table("readers/switches.yaml", "every_reader_of_switches_takes_two_spines")
)
def test_every_reader_of_switches_takes_two_spines(name, text):
    """Whoever writes the switches, those over the same ones are one domain."""
    findings = read(name, text, "source")
    assert {facts.domains[-1] for facts in findings.nodes.values()} == {"s1+s2"}
    assert any("are one domain: s1+s2" in note for note in findings.notes)


def test_names_of_joined_switches_are_their_own():
    """A switch called as two others together is not taken for them."""
    text = fabric({"a": ["l1"], "b": ["l1"], "a+b": ["l2"], "l1": ["n1"], "l2": ["n2"]})
    findings = read("slurm", text, "topology.conf")
    first, second = (facts.domains[1] for facts in findings.nodes.values())
    assert first != second


def test_trees_that_no_switch_joins(tmp_path):
    """Both are read, a note says so, and no job has hosts of both.

    Slurm, topology.conf manual page: jobs can only span nodes connected by the same
    switch fabric.
    """
    machine, notes = machine_of(tmp_path, APART, hardware=cases.H100)
    assert tier_names(machine) == ["node", "leaf", "spine", "cluster"]
    assert any(
        "trees that no switch joins: a (4 nodes), b (4 nodes)" in note for note in notes
    )
    assert [
        line.split()[-1] for line in draw(machine).split("\n") if "spine " in line
    ] == ["apart"]
    with pytest.raises(InputError, match="in 2 parts that nothing joins") as caught:
        allocate(machine)
    assert "a: n[1-4]; b: n[5-8]" in caught.value.problems[0].hint
    with pytest.raises(InputError, match="nothing joins"):
        allocate(machine, "n[4-5]")
    assert allocate(machine, "n[5-8]").num_nodes == 4
    assert allocate(machine, exclude="n[1-4]").num_nodes == 4


def test_nodes_that_topograph_knows_no_switch_of(tmp_path):
    """They share nothing, and Slurm runs no job on them and on others: left out.

    NVIDIA/topograph e2b62507, pkg/topology/graph.go; alone they are all there is.
    """
    text = "SwitchName=no-topology Nodes=cpu[1-2]\n"
    machine, notes = machine_of(tmp_path, cases.TWO_SPINES + text, hardware=cases.H100)
    assert machine.node_names == ("n1", "n2", "n3", "n4")
    assert "nodes left out, no switch known: 2 (cpu1, cpu2)" in notes
    assert allocate(machine) is machine
    alone, _ = machine_of(tmp_path, text, hardware=cases.H100)
    assert alone.node_names == ("cpu1", "cpu2")


def test_trees_stay_apart_in_a_topology_file(tmp_path):
    """What was read and written is read again as such; the digest tells the two."""
    machine, _ = machine_of(tmp_path, APART, hardware=cases.H100)
    again = parse_topology(json.dumps(to_document(machine)), "again.json")
    assert [tier.apart for tier in again.tiers] == [False, False, True, False]
    assert again.sha256 == machine.sha256
    joined, _ = machine_of(
        tmp_path, APART + "SwitchName=root Switches=a,b\n", hardware=cases.H100
    )
    assert joined.sha256 != machine.sha256
    allocate(joined)


@pytest.mark.parametrize("nodes", [1, 2])
def test_trees_of_one_leaf_each_stay_apart(tmp_path, nodes):
    """Where a spine repeats its leaf, or its only node, the trees are still two."""
    leaves = {f"l{k}": [f"n{k}-{i}" for i in range(nodes)] for k in range(2)}
    text = fabric({"a": ["l0"], "b": ["l1"], **leaves})
    machine, _ = machine_of(tmp_path, text, hardware=cases.H100)
    with pytest.raises(InputError, match="nothing joins"):
        allocate(machine)

"""Allocations: hosts in launch order, exclusions, and the files that list them."""

import pytest

from placer.topology.allocation import allocate, parse_hosts
from placer.topology.read import parse_topology, read_topology
from placer.topology.suggest import Suggester
from tests.problems import problems_of
from tests.texts import table

MACHINE = read_topology("rack:3 node:3 gpu:2")
WITH_BROKEN = parse_topology(
    """\
format: placer/topology
version: 1
name: small
tiers:
  - {name: node, size: 4, bandwidth: 1GB/s}
  - {name: cluster, bandwidth: 1GB/s}
nodes: [{names: "n[1-4]"}]
unavailable: {n2: "xid 79"}
""",
    "small.yaml",
)


def test_hosts_are_in_launch_order():
    """The allocation has exactly the hosts given, in the order given."""
    machine = allocate(MACHINE, ["r2-n3", "r1-n1", "r2-n1"], ["r1-n1"])
    assert machine.node_names == ("r2-n3", "r2-n1")
    assert machine.domain_names[1] == ("r2",)
    assert machine.sha256 == MACHINE.sha256
    assert machine.unavailable["r1-n1"] == "excluded"
    assert machine.unavailable["r2-n2"] == "outside the allocation"
    assert len(machine.unavailable) == 7


def test_unknown_hosts_are_all_named():
    """Every unknown host is reported with the nearest host there is.

    What differs in leading zeros, or the domain, alone is nearest. Names of another
    kind are told once how hosts are called, and a long list is cut.
    """
    problems = problems_of(allocate, MACHINE, ["r1-n1", "r1n2", "zz"], ["r9-n1"])
    assert [(p.key, p.message) for p in problems] == [
        (key, f'the topology has no host "{name}"')
        for key, name in (("exclude", "r9-n1"), ("hosts", "r1n2"), ("hosts", "zz"))
    ]
    assert 'did you mean "r1-n2"?' in problems[1].hint
    assert problems[2].hint == ""
    padded = read_topology("node:20 gpu:2")
    found = problems_of(allocate, padded, ["worker7", "worker8", "n1", "n010"], [])
    assert [p.hint for p in found] == [
        'hosts are called like "n01" and "n20"',
        "",
        'did you mean "n01"?',
        'did you mean "n10"?',
    ]
    (found,) = problems_of(allocate, padded, ["n07.hpc.example.com"], [])
    assert found.hint == 'did you mean "n07"?'
    names = Suggester(f"n{i}.hpc.example.com" for i in range(20))
    assert names.hint("n1") == 'did you mean "n1.hpc.example.com"?'
    many = problems_of(allocate, MACHINE, [f"q{i}" for i in range(5000)], [])
    assert (len(many), "4980 more" in many[-1].message) == (21, True)


def test_what_is_no_allocation_is_refused():
    """A host given twice, or one that must not be used, is an error with its reason.

    No host at all, or none after exclusion, is one that says which.
    """
    problems = problems_of(allocate, WITH_BROKEN, ["n1", "n2", "n1"], [])
    assert [p.message for p in problems] == [
        'host "n2" is unavailable: xid 79',
        'host "n1" is given twice',
    ]
    assert allocate(WITH_BROKEN, None, ["n2"]).num_nodes == 3
    (none,) = problems_of(allocate, MACHINE, [], [])
    assert "names no host" in none.message
    (excluded,) = problems_of(allocate, MACHINE, ["r1-n1"], ["r1-n1"])
    assert "every host is excluded" in excluded.message
    (all_of_it,) = problems_of(allocate, MACHINE, None, MACHINE.node_names)
    assert "every host is excluded" in all_of_it.message


def test_hosts_from_a_file(tmp_path):
    """Lists, comments, slots and repeated lines give each host once, in order."""
    path = tmp_path / "hosts"
    path.write_text(
        "# the allocation\n\n  n[3-4]  # first\nn1 slots=4\nn1 slots=4 max_slots=8\n"
        "n3\nn2\tslots=4\r\n"
    )
    assert parse_hosts(f"@{path}") == ["n3", "n4", "n1", "n2"]


@pytest.mark.parametrize(
    *table("topology/allocation.yaml", "hosts_from_a_table_of_slurm")
)
def test_hosts_from_a_table_of_slurm(tmp_path, table):
    """What sinfo and squeue print gives its nodes."""
    path = tmp_path / "table"
    path.write_text(table)
    assert parse_hosts(f"@{path}") == ["n3", "n4", "n1"]


@pytest.mark.parametrize(
    *table("topology/allocation.yaml", "a_table_of_several_answers_is_none")
)
def test_a_table_of_several_answers_is_none(tmp_path, table, message):
    """Nodes in several states, or of several jobs, are not taken together."""
    path = tmp_path / "table"
    path.write_text(table)
    (problem,) = problems_of(parse_hosts, f"@{path}")
    assert message in problem.message


def test_bad_lines_of_a_file_are_all_named(tmp_path):
    """Every malformed line is reported with its place."""
    path = tmp_path / "hosts"
    path.write_text("n1\n  n[2\nn3 gpus=4\n$(reboot)\n")
    problems = problems_of(parse_hosts, f"@{path}")
    assert [(p.source, p.line, p.column) for p in problems] == [
        (str(path), 2, 3),
        (str(path), 3, 1),
        (str(path), 4, 1),
    ]
    (missing,) = problems_of(parse_hosts, f"@{path}.missing")
    assert "cannot be read" in missing.message


def test_hosts_as_a_text(tmp_path):
    """Hosts and exclusions may be host lists, or files of them.

    A malformed one is named by its argument.
    """
    path = tmp_path / "hosts"
    path.write_text("r2-n[1-3] # the second rack\n")
    found = allocate(MACHINE, f"@{path}", "r2-n2")
    assert found.node_names == ("r2-n1", "r2-n3")
    for key, lists in (("hosts", ("r2-n[1",)), ("exclude", (None, "n[1"))):
        (problem,) = problems_of(allocate, MACHINE, *lists)
        assert problem.key == key
        assert "never closed" in problem.message

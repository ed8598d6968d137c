"""Slurm's topology.conf, topology.yaml and ``scontrol show topology``."""

from __future__ import annotations

import pytest

from placer.base.errors import InputError
from placer.formats.machines.blocks import block_sizes, sizes_problem
from placer.formats.machines.machine import read_topology
from placer.formats.machines.registry import read
from placer.topology.allocation import allocate, parse_hosts
from tests.readers import cases
from tests.readers.cases import machine_of, nodes_of_domains, sizes, tier_names
from tests.texts import table


def problems_of(text, format_name="slurm"):
    with pytest.raises(InputError) as caught:
        read(format_name, text, "topology.conf")
    return caught.value.problems


def test_tree_with_comments_quotes_and_blanks(tmp_path):
    """Keys in any case, quotes, blanks and comments read as in slurmctld; s1 is east.

    Node s1 holds n1-n4 and s2 n5-n8; the spine holds both, so it is the whole machine.
    """
    machine, notes = machine_of(tmp_path, cases.TREE, hardware=cases.H100)
    assert tier_names(machine) == ["node", "leaf", "spine"]
    assert nodes_of_domains(machine, "leaf") == {
        "east": ["n1", "n2", "n3", "n4"],
        "s2": ["n5", "n6", "n7", "n8"],
    }
    assert [note.partition("source0: ")[2] for note in notes] == [
        "8 nodes, 64 GPUs; 2 leaves, 1 spine; assumed 8 GPUs a node, as on dgx-h100-4x8"
    ]


def test_blocks_become_racks_where_nodes_share_nvlink(tmp_path):
    """On racks of NVLink a block is one; the larger size is a tier of its own."""
    machine, _ = machine_of(tmp_path, cases.BLOCKS)
    assert tier_names(machine) == ["node", "rack", "blocks-2", "cluster"]
    assert machine.tiers[machine.scale_up_tier].name == "rack"
    assert sizes(machine, "rack") == {2: 4}
    assert nodes_of_domains(machine, "blocks-2")["b3..b4"] == ["n5", "n6", "n7", "n8"]


def test_blocks_are_scale_out_on_single_hosts(tmp_path):
    """Where NVLink ends at the node a block is only near, not scale-up."""
    machine, _ = machine_of(tmp_path, cases.BLOCKS, hardware=cases.H100)
    assert tier_names(machine)[:2] == ["node", "block"]
    assert machine.scale_up_tier == 0


def test_tree_and_blocks_join(tmp_path):
    """The natural merge: the switches of one file and the blocks of another."""
    machine, notes = machine_of(tmp_path, cases.TREE, cases.BLOCKS)
    assert tier_names(machine) == ["node", "rack", "leaf", "spine"]
    assert sizes(machine, "rack") == {2: 4}
    assert sizes(machine, "leaf") == {4: 2}
    assert any("blocks-2" in note for note in notes)


def test_yaml_holds_both_halves(tmp_path):
    """A topology.yaml with a tree and blocks is the same machine as the two files."""
    machine, notes = machine_of(tmp_path, cases.YAML)
    halves, _ = machine_of(tmp_path, cases.TREE, cases.BLOCKS)
    for tier in ("rack", "leaf"):
        found = nodes_of_domains(machine, tier).values()
        assert list(found) == list(nodes_of_domains(halves, tier).values())
    assert any("the topology plain is not used" in note for note in notes)


def test_scontrol_tree(tmp_path):
    """The nodes that an upper switch repeats are not its own."""
    machine, _ = machine_of(tmp_path, cases.SCONTROL, hardware=cases.H100)
    assert tier_names(machine) == ["node", "leaf", "spine"]
    assert sizes(machine, "leaf") == {4: 2}


def test_scontrol_blocks_in_index_order(tmp_path):
    """Larger blocks follow BlockIndex, not the order of lines: b1 and b2, then b3."""
    machine, _ = machine_of(tmp_path, cases.SCONTROL_BLOCKS)
    assert nodes_of_domains(machine, "blocks-2") == {
        "b1..b2": ["n1", "n2", "n3", "n4"],
        "b3..b3": ["n5", "n6"],
    }


def test_scontrol_cut_line():
    """A host list that scontrol cut says which variable lengthens it."""
    text = "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-4,6"
    (problem,) = problems_of(text, "scontrol")
    assert "never closed" in problem.message
    assert "SLURM_TOPO_LEN" in problem.hint


@pytest.mark.parametrize(*table("readers/slurm.yaml", "inferred_block_sizes"))
def test_inferred_block_sizes(count, sizes):
    """Case T3: doubling from 8 up to the largest power of two of domains.

    NVIDIA/topograph e2b62507, docs/engines/slurm.md.
    """
    assert block_sizes(8, count) == sizes


def test_missing_block_sizes_are_said(tmp_path):
    """Without BlockSizes no tier of larger blocks is invented, and a note says so."""
    text = cases.BLOCKS.replace("BlockSizes=2,4\n", "")
    machine, notes = machine_of(tmp_path, text)
    assert tier_names(machine) == ["node", "rack", "cluster"]
    assert any("2,4,8 would fit" in note for note in notes)


@pytest.mark.parametrize("sizes", [[30, 120], [2], [18, 36, 72]])
def test_good_block_sizes(sizes):
    """Powers of two times the first; 30 is a planning size of blocks of 32."""
    assert sizes_problem(sizes) == ""


@pytest.mark.parametrize("sizes", [[2, 6], [0, 0], [4, 2], [3, 7]])
def test_bad_block_sizes(sizes):
    """What slurmctld refuses is refused."""
    assert sizes_problem(sizes)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("SwitchName=s1 Nodes=n9", 'switch "s1" comes twice'),
        ("SwitchName=s3 Switches=s9", 'has no child "s9"'),
        ("SwitchName=s3 Nodes=n9 Switches=s1", "both Nodes and Switches"),
        ("SwitchName=s3 Nodes=n9 Colour=red", "Colour does not belong"),
        ("SwitchName=s[3-4] Nodes=n9", "cannot name one switch"),
        (f"SwitchName={'s' * 65} Nodes=n9", "at most 64 characters"),
        ("SwitchName=s3 Nodes=ALL", "Nodes=ALL names no node"),
        ("SwitchName=s3 Nodes=n[1-", "never closed"),
        ("SwitchName=s3 Nodes=n9 LinkSpeed=1Gb", "a number without a unit"),
        ("SwitchName=s3;Nodes=n9", "cannot name one switch"),
        ("SwitchName=s3 Nodes=n9 rest", '"rest" is not understood'),
        ("SwitchName=s3 Nodes=n9 Nodes=n10", "is not understood"),
        ("NodeName=n1 CPUs=8", "is not understood"),
        ("RingName=r0 Nodes=n[1-8]", "rings"),
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a", "above itself"),
        ("BlockName=b1 Nodes=n1\nBlockName=b2 Nodes=n1", 'node "n1" is in block'),
        ("BlockName=b1 Nodes=n1\nBlockName=b1 Nodes=n2", 'block "b1" comes twice'),
        ("BlockSizes=2,x", "expected sizes"),
        ("BlockSizes=2,6", "power of two"),
        ("Include nowhere.conf", "nowhere.conf cannot be read"),
    ],
)
def test_what_slurm_refuses(line, message):
    """Each fatal fault has a sentence and stands at the line it is on."""
    problems = problems_of(cases.TREE + line)
    assert any(message in problem.message for problem in problems)
    first = next(problem for problem in problems if message in problem.message)
    assert first.line >= 5 or "s1" in line


def test_all_faults_at_once():
    """Every bad line is reported, in order."""
    text = "Foo=1\nSwitchName=s1 Nodes=n[1-\nSwitchName=s2 Bar=1"
    assert [problem.line for problem in problems_of(text)] == [1, 2, 3]


def test_only_a_note_for_what_slurm_warns_of(tmp_path):
    """A node on two leaves, several roots and an empty switch are legal."""
    text = (
        "SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n[2-3]\n"
        "SwitchName=s3\nSwitchName=up Switches=s3\n"
    )
    machine, notes = machine_of(tmp_path, text, hardware=cases.H100)
    assert nodes_of_domains(machine, "leaf") == {"s1": ["n1", "n2"], "s2": ["n3"]}
    assert tier_names(machine) == ["node", "leaf", "cluster"]
    assert any("several switches" in note and "n2" in note for note in notes)


def test_uneven_tree(tmp_path):
    """A leaf right under the core is a domain of its own beside the spines."""
    text = (
        "SwitchName=core Switches=spine,l3\nSwitchName=spine Switches=l[1-2]\n"
        "SwitchName=l1 Nodes=n1,n2\nSwitchName=l2 Nodes=n3,n4\n"
        "SwitchName=l3 Nodes=n5,n6\n"
    )
    machine, _ = machine_of(tmp_path, text, hardware=cases.H100)
    assert nodes_of_domains(machine, "spine") == {
        "spine": ["n1", "n2", "n3", "n4"],
        "l3": ["n5", "n6"],
    }


def test_include_and_continuation(tmp_path):
    """An included file and a continued line read as if written out."""
    (tmp_path / "more.conf").write_text("SwitchName=s2 \\\n  Nodes=n[3-4]\n")
    text = "Include more.conf\nSwitchName=s1 Nodes=n[1-2]\n"
    machine, _ = machine_of(tmp_path, text, hardware=cases.H100)
    assert machine.node_names == ("n3", "n4", "n1", "n2")


def test_file_that_includes_itself(tmp_path):
    """A loop of files is an error at the line that closes it."""
    (tmp_path / "a.conf").write_text("Include b.conf\n")
    (tmp_path / "b.conf").write_text("Include a.conf\n")
    with pytest.raises(InputError, match=r"b\.conf:1:1: Include: a\.conf includes"):
        read("slurm", "Include b.conf\n", str(tmp_path / "a.conf"))


def test_order_of_nodes_is_kept(tmp_path):
    """Case S4: registration order stays, never a sort of strings.

    SchedMD/slurm 284c3b95, testsuite/python/tests/test_150_4.py.
    """
    text = "SwitchName=s1 Nodes=node[102,12,101,11]\n"
    machine, _ = machine_of(tmp_path, text, hardware=cases.H100)
    assert machine.node_names == ("node102", "node12", "node101", "node11")
    hosts = parse_hosts("node[11-12,101-102]")
    assert allocate(machine, hosts).node_names == (
        "node11",
        "node12",
        "node101",
        "node102",
    )


def test_default_tree_counts():
    """Of two trees the cluster's default is read and the other reported."""
    text = (
        "- topology: a\n  tree: {switches: [{switch: s, nodes: 'n[1-2]'}]}\n"
        "- topology: b\n  cluster_default: true\n"
        "  tree: {switches: [{switch: s, nodes: 'n[3-4]'}]}\n"
    )
    findings = read("slurm-yaml", text, "topology.yaml")
    assert list(findings.nodes) == ["n3", "n4"]
    (note,) = findings.notes
    assert note.startswith("the topology a is not used: another tree")


@pytest.mark.parametrize(
    *table("readers/slurm.yaml", "a_block_without_nodes_takes_its_place")
)
def test_a_block_without_nodes_takes_its_place(tmp_path, format_name, text):
    """A placeholder holds no node, and the larger blocks after it lie one further."""
    (tmp_path / "source").write_text(text)
    machine = read_topology(
        f"{format_name}:{tmp_path / 'source'}", hardware=cases.GB200, note=print
    )
    assert nodes_of_domains(machine, "rack") == {"b1": ["n1", "n2"], "b2": ["n3", "n4"]}
    findings = read(format_name, text, "source")
    assert {facts.domains for facts in findings.nodes.values()} == {
        ("b1", "b1..pad1"),
        ("b2", "pad2..b2"),
    }


def test_nodes_that_fill_blocks_up_are_none(tmp_path):
    """topograph's fake nodes are no machines; a cluster of such names alone is one.

    NVIDIA/topograph a23ca7a, pkg/translate.
    """
    text = "BlockName=b1 Nodes=n[1-2],fake[100-101]\nBlockName=b2 Nodes=n3,fake-07\n"
    machine, notes = machine_of(tmp_path, text)
    assert machine.node_names == ("n1", "n2", "n3")
    assert any("fill blocks up, left out: 3 (fake100" in note for note in notes)
    text = cases.SCONTROL_BLOCKS.replace("n[5-6]", "n5,fake1")
    text = text.replace("Nodes=n[1-4]", "Nodes=n[1-4],fake2")
    assert list(read("scontrol", text, "t").nodes) == ["n1", "n2", "n3", "n4", "n5"]
    assert len(read("slurm", "BlockName=b1 Nodes=fake[1-4]\n", "t").nodes) == 4


def test_unknown_lines_of_scontrol_are_counted():
    """A prompt or a message in a pasted answer is reported, not read."""
    findings = read("scontrol", "$ scontrol show topology\n" + cases.SCONTROL, "pasted")
    assert [problem.line for problem in findings.ignored] == [1]
    assert len(findings.nodes) == 8


@pytest.mark.parametrize(
    ("text", "lost", "line"),
    [
        (cases.SCONTROL.replace("n[5-8]", "n[5-7]"), "n8", 1),
        (
            cases.SCONTROL_BLOCKS.replace("b2 BlockIndex=1 Nodes=n[3-4]", "b9"),
            "n3, n4",
            4,
        ),
    ],
)
def test_cut_answer_of_scontrol(text, lost, line):
    """Nodes that only an upper switch or a larger block lists are missed, not lost."""
    with pytest.raises(InputError, match=f"no leaf and no block has {lost}") as caught:
        read("scontrol", text, "topology.txt")
    assert caught.value.problems[0].line == line


def test_slurm_job_nodelist(tmp_path):
    """What SLURM_JOB_NODELIST holds serves as --hosts."""
    machine, _ = machine_of(tmp_path, cases.TREE, hardware=cases.H100)
    hosts = parse_hosts("n[3-5,8]")
    assert allocate(machine, hosts).node_names == ("n3", "n4", "n5", "n8")

"""Slurm's topology.conf, topology.yaml and ``scontrol show topology``."""

import pytest

from placer.base.errors import InputError
from placer.formats.machines.registry import read
from placer.formats.machines.slurm_machine import block_sizes
from placer.topology.allocation import allocate, parse_hosts
from tests.problems import problems_of
from tests.readers import cases
from tests.readers.cases import machine_of
from tests.texts import table

_, REFUSED = table("readers/slurm.yaml", "refused")


def problems(text):
    return problems_of(read, "slurm", text, "topology.conf")


@pytest.mark.parametrize(*table("readers/slurm.yaml", "inferred_block_sizes"))
def test_inferred_block_sizes(count, sizes):
    """Case T3: doubling from 8 up to the largest power of two of domains.

    NVIDIA/topograph e2b62507, docs/engines/slurm.md.
    """
    assert block_sizes(8, count) == sizes


@pytest.mark.parametrize(("line", "ours"), [row[:2] for row in REFUSED])
def test_what_is_refused(line, ours):
    """Each fatal fault has a sentence and stands at the line it is on."""
    found = problems(cases.TREE + line)
    first = next(problem for problem in found if ours in problem.message)
    assert first.line >= 5 or "s1" in line


def test_all_faults_at_once():
    """Every bad line is reported, in order."""
    text = "Foo=1\nSwitchName=s1 Nodes=n[1-\nSwitchName=s2 Bar=1"
    assert [problem.line for problem in problems(text)] == [1, 2, 3]


def test_include_and_continuation(tmp_path):
    """An included file and a continued line read as if written out.

    A loop of files is an error at the line that closes it.
    """
    (tmp_path / "more.conf").write_text("SwitchName=s2 \\\n  Nodes=n[3-4]\n")
    text = "Include more.conf\nSwitchName=s1 Nodes=n[1-2]\n"
    machine, _ = machine_of(tmp_path, text, hardware=cases.H100)
    assert machine.node_names == ("n3", "n4", "n1", "n2")
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
    names = allocate(machine, hosts).node_names
    assert names == ("node11", "node12", "node101", "node102")

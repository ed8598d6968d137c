"""Host files in their three spellings, and what is wrong with others."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.base.errors import InputError
from placer.placement.rank_maps import placement_of_hostfile
from placer.testing.strategies import machines, tiny
from placer.topology.model import Topology


@given(machines(), st.data())
def test_lines_are_ranks(topology: Topology, data: st.DataObject) -> None:
    """Line r is the node of rank r; a node's ranks take its GPUs in order."""
    nodes = data.draw(st.permutations(topology.node_of_gpu.tolist()))
    text = "".join(f"{topology.node_names[node]}\n" for node in nodes)
    placement = placement_of_hostfile(text, topology, len(nodes))
    used = [0] * topology.num_nodes
    for rank, node in enumerate(nodes):
        first = topology.gpus_of_node[:node].sum()
        assert placement.gpu_of_rank[rank] == first + used[node]
        used[node] += 1


@pytest.mark.parametrize(
    "text",
    [
        "n002\nn002\nn000\nn002x\n".replace("n002x", "n000"),
        "n002:2\nn000:2\n",
        "n002 slots=2\nn000\tslots = 2\n",
        "# in rank order\n\n n002 : 2\nn000:2  # the rest\n".replace(" : ", ":"),
        "n002:1\nn002\r\nn000 slots=1\nn000",
    ],
)
def test_spellings(text: str) -> None:
    """Repeated lines, ``host:N`` and ``host slots=N`` say the same."""
    topology, _ = tiny()
    assert placement_of_hostfile(text, topology, 4).gpu_of_rank.tolist() == [4, 5, 0, 1]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("n000\nx1\n", "hosts:2:1: topology machine has no node x1"),
        ("n000\nn01\n", "did you mean n001?"),
        ("n000:3\n", "hosts:1:1: n000 has 2 GPUs, more ranks are put on it"),
        ("n000\nn000\n\nn000\n", "hosts:4:1: n000 has 2 GPUs"),
        ("n000 slots=999999999\n", 'hosts:1:1: not a line of a host file: "n000 slots'),
        ("n000 gpus=2\n", "hosts:1:1: not a line of a host file"),
        ("n[000-001]\n", "topology machine has no node n[000-001]"),
        ("\x1b[31m\n", "\N{REPLACEMENT CHARACTER}[31m"),
        ("n007\n", "hosts:1:1: n007 must not be used: xid 79"),
        ("n000\n", "hosts: the lines place 1 ranks, the job has 4"),
        ("", "hosts: the lines place 0 ranks, the job has 4"),
        ("n000:2\nn001:2\nn002:2\n", "the lines place 6 ranks, the job has 4"),
    ],
)
def test_problems_have_lines(text: str, wanted: str) -> None:
    """What is wrong is told with the line it stands on."""
    topology, _ = tiny()
    topology = replace(topology.select(np.arange(7)), unavailable={"n007": "xid 79"})
    with pytest.raises(InputError) as caught:
        placement_of_hostfile(text, topology, 4, "hosts")
    assert wanted in str(caught.value)


def test_all_problems_at_once() -> None:
    """Many bad lines give the first 20 problems and a count of the rest."""
    topology, _ = tiny()
    with pytest.raises(InputError) as caught:
        placement_of_hostfile("what is this\n" * 25, topology, 4)
    assert len(caught.value.problems) == 21
    assert str(caught.value.problems[-1]) == "hostfile: and 5 more problems"

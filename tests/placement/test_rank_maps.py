"""Host files, rankfiles and rank maps as placements: what they say and cannot."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.base.errors import EmitError, InputError
from placer.emit import emit
from placer.emit.registry import FORMATS
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.placement.build import build_plan
from placer.placement.placement import Placement
from placer.placement.rank_maps import placement_of_hostfile
from placer.testing.strategies import machines, tiny
from placer.topology.model import Topology

# Formats of one file that say where every rank is, or all but its GPU.
READ_BACK = (
    *("slurm-hostfile", "openmpi-seq", "openmpi-rankfile", "deepspeed"),
    *("torchrun-map", "csv", "json"),
)

RANK_MAP = """\
{"format": "placer/rank-map", "version": 1, "ranks": [
  {"rank": 1, "host": "n000", "gpu": 1}, {"rank": 0, "host": "n001", "gpu": 0},
  {"rank": 2, "host": "n000", "gpu": 0}]}
"""


def gpus(text: str, ranks: int = 3) -> list[int]:
    """Global GPUs on the tiny machine: two a node, n000 has 0 and 1, n001 2 and 3."""
    topology, _ = tiny()
    found = placement_of_hostfile(text, topology, ranks, "map")
    return [int(gpu) for gpu in found.gpu_of_rank]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("rank 0=n001 slot=0\nrank 2=n000 slot=9\nrank 1=n000 slot=3-5,7\n", [2, 0, 1]),
        ("# v4\n\nrank 0 = n001\nrank 1=n000 slots=1:0\nrank 2=n001\n", [2, 0, 3]),
        ("rank,host,node_rank,local_rank,gpu\n0,n001,0,0,1\n1,n000,1,0,1\n2,n000,1,1,0\n",
         [3, 1, 0]),
        ('"rank","gpu","host"\r\n1, 1,n000\r\n0,0,n001\r\n2,1,n001\r\n', [2, 1, 3]),
        (RANK_MAP, [2, 1, 0]),
        ('{"format": "placer/node-map", "version": 1, "nodes": '
         '[{"host": "n001", "processes": 1}, {"host": "n000", "processes": 2}]}',
         [2, 0, 1]),
    ],
    ids=["rankfile", "slots", "csv", "columns", "json", "nodes"],
)  # fmt: skip
def test_by_hand(text: str, wanted: list[int]) -> None:
    """Ranks may stand in any order; only CSV and rank maps say which GPU."""
    assert gpus(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("rank 0=n000 slot=0\nrank 2=n000\n", "map:2:1: rank 2 follows rank 0"),
        ("rank 0=n000\nrank 0=n001\n", "map:2:1: rank 0 stands there twice"),
        ("rank 0=n000\nn001\n", 'map:2:1: not a line of a rankfile: "n001"'),
        ("rank 0=n000\nrank 1=x slot=0\n", "map:2:1: topology machine has no node x"),
        ("rank,host\n0,n000\n", "map:1:1: no column gpu"),
        ("rank,host,gpu\n0,n000\n", 'map:2:1: not a row of rank, host and gpu: "0,n'),
        ("rank,host,gpu\n0,n000,-1\n", "map:2:1: not a row of rank"),
        ("rank,host,gpu\n0,n000,2\n", "map:2:1: GPU 2 of n000 is none of 2"),
        ("rank,host,gpu\n0,n000,1\n1,n000,1\n", "map:3:1: GPU 1 of n000 is taken"),
        ("rank,host,gpu\n0,n000,1\n", "map: the lines place 1 ranks, the job has 3"),
        ("{", "map: not JSON: "),
        ("{" * 100_000, "map: not JSON: "),
        ('{"format": "placer/plan"}', "map: neither a rank map nor a node map"),
        (RANK_MAP.replace("1, ", "2, ", 1), "neither a rank map nor a node map of ver"),
        (RANK_MAP.replace('"n001"', '"x"'), "map: ranks[1]: topology machine has no"),
        (RANK_MAP.replace('"gpu": 0', '"gpu": true', 1), "ranks[1].gpu: expected a"),
        (RANK_MAP.replace('"gpu": 0', '"gpu": 5', 1), "ranks[1]: GPU 5 of n001"),
        (RANK_MAP.replace('"rank": 2', '"rank": 1'), "rank 1 stands there twice"),
        (RANK_MAP.replace('"ranks"', '"rank"'), 'map: the key "ranks" is missing'),
        ('{"format": "placer/rank-map", "version": 1, "ranks": [3]}',
         "map: ranks[0]: expected a mapping"),
        ('{"format": "placer/node-map", "version": 1, "nodes": '
         '[{"host": "n000", "processes": 0}]}', "nodes[0].processes: 0 is not"),
        ('{"format": "placer/node-map", "version": 1, "nodes": '
         '[{"host": "n000", "processes": 1000000000}]}', "n000 has 2 GPUs, more ranks"),
    ],
)  # fmt: skip
def test_problems(text: str, wanted: str) -> None:
    """What is wrong is told with the line or key it stands at, never a traceback."""
    with pytest.raises(InputError) as caught:
        gpus(text)
    assert wanted in str(caught.value)


@given(machines(), st.data())
def test_emitted_files_give_the_placement(
    topology: Topology, data: st.DataObject
) -> None:
    """What can be written and read gives the same placement, for every such format."""
    ranks = data.draw(st.integers(1, topology.num_gpus))
    gpu_of_rank = np.arange(ranks)
    if data.draw(st.booleans()):
        order = data.draw(st.permutations(range(topology.num_gpus)))
        gpu_of_rank = np.array(order[:ranks])
    job = Job("j", Parallelism(dp=ranks))
    plan = build_plan(topology, job, Placement(gpu_of_rank))
    for format in READ_BACK:
        try:
            text = emit(plan, format)
        except EmitError:
            assert format not in ("csv", "json")
            continue
        found = placement_of_hostfile(text, topology, ranks)
        assert found.gpu_of_rank.tolist() == gpu_of_rank.tolist(), format


def test_hydra_s_machine_file() -> None:
    """Hydra's lines are read as well; GPUs, which its script picks, go in turn."""
    assert {*READ_BACK} <= {*FORMATS}
    assert gpus("n001:1\nn000:2\n") == [2, 0, 1]


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
def test_problems_of_host_files(text: str, wanted: str) -> None:
    """What is wrong is told with the line it stands on."""
    topology, _ = tiny()
    topology = replace(topology.select(np.arange(7)), unavailable={"n007": "xid 79"})
    with pytest.raises(InputError) as caught:
        placement_of_hostfile(text, topology, 4, "hosts")
    assert wanted in str(caught.value)

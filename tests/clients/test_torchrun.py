"""The emitted torchrun and env files under real torchrun and real gloo processes.

At the end `placer.launch` in processes of a torchrun whose own map is wrong.
"""

import json
import sys

import pytest

from placer.emit import emit
from placer.placement.plan_file import read_plan, write_plan
from tests.clients import processes as local
from tests.clients.torch_jobs import (
    gloo_worker,
    need_torchrun,
    on_hosts,
    probe,
    read_sums,
    sums_of,
)
from tests.commands import run as typed
from tests.emit.readback import CONTIGUOUS, FREE, plan_of

# As in FREE, ranks anywhere; here nodes have consecutive ranks on GPUs in any order.
PERMUTED = [(host, gpu ^ (host in ("n1", "n2"))) for host, gpu in CONTIGUOUS]
# Sorted as text n10 comes first, by number n2; the plan has neither.
MIXED = [("n9", 0), ("n9", 1), ("n10", 0), ("n10", 1), ("n2", 0), ("n2", 1)]
# Commands are started by name, as a parallel shell would.
BY_NAME = ("n1", "n2", "n3", "n4")
MACHINE = """\
format: placer/topology
version: 1
name: three
tiers:
  - {name: node, size: 2, bandwidth: 450GB/s, latency: 1us, scale_up: true}
  - {name: cluster, bandwidth: 50GB/s, latency: 4us}
nodes:
  - {names: "n9,n10,n2"}
"""
JOB = """\
format: placer/job
version: 1
name: small
parallelism: {tp: 2, dp: 3}
weights: {tp: 100, dp: 1}
"""

# Shows the launcher's rank and what placer.launch makes of the process.
ASK = """\
import json, os, sys
from placer.launch import device_of_rank, rank_of_this_process, torch_arguments
from placer.launch import node_rank_of_this_process
from placer.placement.plan_file import read_plan, write_plan
plan = read_plan(sys.argv[1])
rank = rank_of_this_process(sys.argv[1])
found = [torch_arguments(plan), device_of_rank(plan, rank)]
found += [node_rank_of_this_process(plan), os.environ["PLACER_HOST"]]
print("asked", os.environ["RANK"], json.dumps(found))
"""


@pytest.fixture(autouse=True)
def torchrun():
    need_torchrun()


def by_backend(path, nodes):
    """torchrun of two workers a node, whose nodes are numbered by a node map."""
    command = ["torchrun", f"--nnodes={nodes}", "--nproc-per-node=2"]
    endpoint = f"--rdzv-endpoint=127.0.0.1:{local.free_port()}"
    return [*command, "--rdzv-backend=placer", f"--rdzv-conf=map={path}", endpoint]


def prove_gloo(folder, plan, map, text):
    """Ranks are on their seats, their groups are the plan's, and placer agrees."""
    assert read_sums(text) == sums_of(map)
    check_seats(folder, plan, map, text)


def check_seats(folder, plan, map, text):
    """Ranks are on their seats, by what they tell and by placer."""
    assert local.seats(text) == map
    found = local.verdict(folder, plan, text)
    assert (found["reported"], found["unknown_gpus"]) == (len(map), 0)
    assert found["ok"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format", "map"), [("torchrun", PERMUTED), ("torchrun-wrapper", FREE)]
)
def test_gloo_under_a_script(tmp_path, format, map):
    """Eight torchrun workers have the plan's ranks, and all groups the plan's GPUs."""
    plan = plan_of(map)
    script = emit(plan, format, tmp_path / "torchrun.sh")
    python = [sys.executable] if format == "torchrun-wrapper" else []
    commands = on_hosts(BY_NAME, ["bash", str(script), *python, *gloo_worker(8)])
    text = local.output(local.run_all(tmp_path / "run", commands))
    prove_gloo(tmp_path, plan, map, text)


@pytest.mark.slow
def test_gloo_under_the_backend(tmp_path):
    """torchrun's rendezvous backend ``placer`` numbers nodes by the emitted map."""
    plan = plan_of(CONTIGUOUS)
    path = emit(plan, "torchrun-map", tmp_path / "nodes.json")
    command = [*by_backend(str(path), 4), *gloo_worker(8)]
    text = local.output(local.run_all(tmp_path / "run", on_hosts(BY_NAME, command)))
    prove_gloo(tmp_path, plan, CONTIGUOUS, text)


@pytest.mark.slow
def test_gloo_by_env(tmp_path):
    """Eight processes of the env script meet by env:// with the ranks of a free map."""
    plan = plan_of(FREE)
    script = emit(plan, "env", tmp_path / "env.sh")
    command = ["bash", str(script), sys.executable, *gloo_worker(8)]
    commands = [
        (argv, environ | {"PLACER_LOCAL_INDEX": index})
        for argv, environ in on_hosts(BY_NAME, command)
        for index in ("0", "1")
    ]
    text = local.output(local.run_all(tmp_path / "run", commands))
    prove_gloo(tmp_path, plan, FREE, text)


@pytest.mark.slow
def test_unequal_nodes(tmp_path):
    """Nodes of three, one and two ranks on permuted GPUs have them under torchrun."""
    map = [("n9", 2), ("n9", 0), ("n9", 1), ("n10", 0), ("n2", 1), ("n2", 0)]
    plan = plan_of(map)
    script = emit(plan, "torchrun", tmp_path / "torchrun.sh")
    commands = on_hosts(plan.nodes, ["bash", str(script), *probe(tmp_path)])
    text = local.output(local.run_all(tmp_path / "run", commands))
    check_seats(tmp_path, plan, map, text)


@pytest.mark.slow
def test_swapped_nodes(tmp_path):
    """The map of another plan starts, and verify says that hosts are in reverse."""
    swapped = [(host, gpu) for host in ("n2", "n10", "n9") for gpu in (0, 1)]
    path = emit(plan_of(swapped), "torchrun-map", tmp_path / "nodes.json")
    command = [*by_backend(str(path), 3), *probe(tmp_path)]
    hosts = ("n10", "n2", "n9")
    text = local.output(local.run_all(tmp_path / "run", on_hosts(hosts, command)))
    assert local.seats(text) == swapped
    found = local.verdict(tmp_path, MIXED, text)
    assert [row["rank"] for row in found["wrong"]] == [0, 1, 4, 5]
    assert found["habits"] == ["reversed"]


@pytest.mark.slow
def test_c10d_sorts_addresses_as_text(tmp_path):
    """The c10d backend numbers nodes as predict says; verify names its habit."""
    (tmp_path / "t.yaml").write_text(MACHINE)
    (tmp_path / "j.yaml").write_text(JOB)
    files = ("-t", tmp_path / "t.yaml", "-j", tmp_path / "j.yaml")
    plan = ("-o", tmp_path / "p.json")
    typed("predict", "-q", *files, "--launcher", "torchrun-c10d", *plan)
    command = ["torchrun", "--nnodes=3", "--nproc-per-node=2", "--rdzv-backend=c10d"]
    command.append(f"--rdzv-endpoint=127.0.0.1:{local.free_port()}")
    commands = [
        ([*argv, f"--local-addr={address}", *probe(tmp_path)], environ)
        for address, (argv, environ) in zip(
            ("127.0.0.9", "127.0.0.10", "127.0.0.2"),
            on_hosts(("n9", "n10", "n2"), command),
            strict=True,
        )
    ]
    text = local.output(local.run_all(tmp_path / "run", commands))
    predicted = read_plan(tmp_path / "p.json")
    assert list(predicted.host_of_rank) == [host for host, _ in local.seats(text)]
    found = local.verdict(tmp_path, predicted, text)
    assert (found["ok"], found["reported"]) == (True, 6)
    found = local.verdict(tmp_path, MIXED, text)
    assert len(found["wrong"]) == 6
    assert found["habits"] == ["text-order"]


@pytest.mark.slow
def test_a_missing_node(tmp_path):
    """Without a node the script ends with status 1 once torchrun is tired of it."""
    plan = plan_of(MIXED)
    script = emit(plan, "torchrun", tmp_path / "torchrun.sh")
    command = ["bash", str(script), *probe(tmp_path)]
    commands = on_hosts(["n9"], command, PET_RDZV_CONF="timeout=2")
    (ended,) = local.run_all(tmp_path / "run", commands)
    assert (ended.status, ended.output) == (1, "")
    assert "1/3 clients joined" in ended.error


@pytest.mark.parametrize("format", ["torchrun", "torchrun-wrapper"])
@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"PLACER_HOST": "n3"}, "placer: host 'n3' is not in the plan\n"),
        ({"SLURM_LOCALID": "1"}, "placer: task 1 of n9: torchrun starts the others"),
        (
            {"SLURM_LOCALID": "0", "OMPI_COMM_WORLD_LOCAL_RANK": "2"},
            "placer: task 2 of n9: torchrun starts the others",
        ),
    ],
)
def test_what_starts_nothing(tmp_path, format, environ, message):
    """A host outside the plan and a second agent of a node stop and say so."""
    script = emit(plan_of(MIXED), format, tmp_path / "torchrun.sh")
    command = ["bash", str(script), *probe(tmp_path)]
    commands = on_hosts(["n9"], command)
    commands = [(argv, known | environ) for argv, known in commands]
    (ended,) = local.run_all(tmp_path / "run", commands)
    assert (ended.status, ended.output) == (1, "")
    assert ended.error.startswith(message)


@pytest.mark.slow
def test_the_backend_refuses_a_host_outside_the_map(tmp_path):
    """torchrun ends with status 1 and names the host that the map does not have."""
    path = emit(plan_of(MIXED), "torchrun-map", tmp_path / "nodes.json")
    command = [*by_backend(str(path), 3), *probe(tmp_path)]
    (ended,) = local.run_all(tmp_path / "run", on_hosts(["n3"], command))
    assert (ended.status, ended.output) == (1, "")
    assert "host 'n3' is not in the map" in ended.error


def by_hand(hosts, *arguments, **environ):
    """torchrun of static rendezvous on every host, node ranks in this order."""
    return [
        (
            ["torchrun", f"--nnodes={len(hosts)}", f"--node-rank={k}", *arguments],
            known | {"PET_MASTER_ADDR": "127.0.0.1"},
        )
        for k, (_, known) in enumerate(on_hosts(hosts, [], **environ))
    ]


@pytest.mark.slow
def test_ranks_under_a_wrong_map(tmp_path):
    """Host and device decide the rank, whatever ranks and devices torchrun gives.

    torchrun has a before b, and b lists its devices as 2, 0, 1.
    """
    map = [("b", 1), ("a", 0), ("a", 2), ("b", 0), ("a", 1), ("b", 2)]
    path = tmp_path / "plan.json"
    write_plan(plan_of(map), path)
    commands = by_hand(
        ["a", "b"],
        "--nproc-per-node=3",
        "--no-python",
        *(sys.executable, "-c", ASK, str(path)),
    )
    commands[1][1]["CUDA_VISIBLE_DEVICES"] = "2,0,1"
    text = local.output(local.run_all(tmp_path / "run", commands))
    lines = [line.split(" ", 2) for line in text.splitlines()]
    asked = {int(given): json.loads(found) for _, given, found in lines}
    places = [("a", 0), ("a", 1), ("a", 2), ("b", 2), ("b", 0), ("b", 1)]
    node_rank = {"b": 0, "a": 1}
    assert asked == {
        given: [
            {"init_method": "env://", "rank": map.index(place), "world_size": 6},
            given % 3,
            node_rank[place[0]],
            place[0],
        ]
        for given, place in enumerate(places)
    }


@pytest.mark.slow
def test_gloo_by_the_plan(tmp_path):
    """init_process_group takes torch_arguments, and all groups are the plan's.

    torchrun has the hosts by name, with consecutive ranks; the plan has a free map.
    """
    map = [("n2", 1), ("n1", 0), ("n2", 0), ("n1", 1)]
    path = tmp_path / "by-plan.json"
    write_plan(plan_of(map), path)
    worker = gloo_worker(4, str(path))
    commands = by_hand(["n1", "n2"], "--nproc-per-node=2", *worker)
    text = local.output(local.run_all(tmp_path / "run", commands))
    assert local.seats(text) == [("n1", 0), ("n1", 1), ("n2", 0), ("n2", 1)]
    assert read_sums(text) == sums_of(map)
    found = local.verdict(tmp_path, map, text)
    assert not found["ok"]
    assert len(found["wrong"]) == 3

"""placer.launch in processes of real torchrun whose own map is wrong."""

import json
import sys
from pathlib import Path

import pytest

from placer.placement.plan_file import write_plan
from tests.clients import processes as local
from tests.clients.torch_jobs import (
    gloo_worker,
    need_torchrun,
    on_hosts,
    read_sums,
    sums_of,
)
from tests.emit.readback import plan_of

# Shows the launcher's rank and what placer.launch makes of the process.
ASK = """\
import json, os, sys
from placer.launch import device_of_rank, rank_of_this_process, torch_arguments
from placer.launch import node_rank_of_this_process
from placer.placement.plan_file import read_plan
plan = read_plan(sys.argv[1])
rank = rank_of_this_process(sys.argv[1])
found = [torch_arguments(plan), device_of_rank(plan, rank)]
found += [node_rank_of_this_process(plan), os.environ["PLACER_HOST"]]
print("asked", os.environ["RANK"], json.dumps(found))
"""


@pytest.fixture(autouse=True)
def torchrun() -> None:
    need_torchrun()


def by_hand(hosts: list[str], *arguments: str, **environ: str) -> list[local.Command]:
    """torchrun of static rendezvous on every host, node ranks in this order."""
    return [
        (
            ["torchrun", f"--nnodes={len(hosts)}", f"--node-rank={k}", *arguments],
            known | {"PET_MASTER_ADDR": "127.0.0.1"},
        )
        for k, (_, known) in enumerate(on_hosts(hosts, [], **environ))
    ]


@pytest.mark.slow
def test_ranks_under_a_wrong_map(tmp_path: Path) -> None:
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
def test_gloo_by_the_plan(tmp_path: Path) -> None:
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

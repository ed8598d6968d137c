"""Predicted launch orders: public cases, and a tiny machine that tells rules apart."""

import json
from pathlib import Path

import pytest

from placer import testing
from placer.api.predict import predict
from placer.base.errors import InfeasibleError, InputError
from placer.topology.read import parse_topology
from tests.commands import data, run
from tests.texts import file_text, table


def machine_text(rows, gpus=1):
    """One rack tier; a (rack, host) for every node, in the file's order."""
    tier = {"bandwidth": 1e9, "latency": 1e-6}
    tiers = [
        {"name": "node", "size": gpus, "scale_up": True, **tier},
        {"name": "rack", "distance": 5, **tier},
        {"name": "cluster", "distance": 9, **tier},
    ]
    nodes = [{"names": host, "rack": rack} for rack, host in rows]
    return file_text("topology", tiers=tiers, nodes=nodes)


def machine(rows, gpus=1):
    return parse_topology(machine_text(rows, gpus), "m.json")


def ring(ranks):
    return testing.job("ring", dp=ranks, weights={"dp": 1})


def order(launcher, rows, hosts=None):
    """Hosts by rank as the launcher is said to order them, one rank a host."""
    plan = predict(machine(rows), ring(len(hosts or rows)), launcher, hosts)
    return " ".join(plan.host_of_rank)


@pytest.mark.parametrize(*table("api/tables.yaml", "published_orders"))
def test_published_orders(nodes, hosts, orders):
    """Hosts by rank as each launcher orders them, given in this order or another."""
    rows = [(node.split("/")[0], node.split("/")[1]) for node in nodes.split()]
    for launcher, expected in orders.items():
        assert order(launcher, rows, hosts and hosts.split()) == expected, launcher


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("kubernetes", "the scheduler chooses"),
        ("torchrun-c10", 'did you mean "torchrun-c10d"'),
        ("x", "known: torchrun-c10d"),
    ],
)
def test_what_cannot_be_predicted(name, message):
    """An unknown launcher and one without an order are errors that say so."""
    with pytest.raises(InputError, match=message):
        order(name, [("r", "n1")])


def test_ranks_fill_hosts_in_turn():
    """With two GPUs a host, host after host gets two consecutive ranks."""
    topology = machine([("r", "n2"), ("r", "n10"), ("r", "n1")], gpus=2)
    plan = predict(topology, ring(4), "torchrun-c10d", "n2,n10")
    assert plan.host_of_rank == ("n10", "n10", "n2", "n2")
    assert plan.gpu_of_rank.tolist() == [0, 1, 0, 1]
    with pytest.raises(InfeasibleError, match="the hosts 2 usable GPUs"):
        predict(topology, ring(4), "slurm", ["n2"])


@pytest.fixture
def inputs(tmp_path, monkeypatch):
    """Two racks of two hosts; names and labels have numbers of mixed width."""
    monkeypatch.chdir(tmp_path)
    rows = [("r9", "node7"), ("r9", "node8"), ("r10", "node66"), ("r10", "node70")]
    Path("m.json").write_text(machine_text(rows))
    job = file_text("job", parallelism={"dp": 4}, weights={"dp": 1})
    Path("job.json").write_text(job)
    return "-t", "m.json", "-j", "job.json"


def test_command(inputs):
    """The plan is written, warned about, scored and compared."""
    asked = ("score", "launcher:torchrun-c10d", *inputs)
    found = run(*asked, "-o", "before.json")
    assert "hosts by rank: node[66,7,70,8]" in found.stdout
    assert found.stderr == (
        "warning: torchrun-c10d sorts host names as text and these have numbers of "
        "mixed width: node66 before node7\nwrote before.json\n"
    )
    assert run(*asked, "-q", "-o", "-").stdout == Path("before.json").read_text()
    # Every edge of the ring 66 7 70 8 crosses the racks: 4 x 9; in order 2 x 9 + 2 x 5.
    assert data("score", "before.json", *inputs)["hop_cost"] == 36
    found = run("score", "launcher:slurm", *inputs, "-o", "after.json")
    assert found.stderr == "wrote after.json\n"
    assert json.loads(Path("after.json").read_text())["score"]["hop_cost"] == 28
    run("diff", "before.json", "after.json", code=1)
    run("check", "after.json", *inputs)
    assert run("score", "launcher:kueue", *inputs).stderr == (
        "warning: kueue sorts labels as text and these have numbers of mixed width: "
        "r10 before r9\n"
    )

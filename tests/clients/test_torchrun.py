"""The emitted torchrun and env files under real torchrun and real gloo processes.

At the end `placer.launch` in processes of a torchrun whose own map is wrong.
"""

import json
import sys

import pytest

import placer
from placer.emit import emit
from placer.placement.plan_file import write_plan
from tests.api.test_predict import machine, ring
from tests.clients import needs
from tests.clients import processes as local
from tests.emit.readback import CONTIGUOUS, FREE, plan_of


def on_hosts(hosts, command, **environ):
    """One command for every host, all to meet at a port of their own."""
    port = str(local.free_port())
    shared = {"PET_MASTER_PORT": port, "MASTER_PORT": port} | environ
    return [(command, local.environment(PLACER_HOST=host, **shared)) for host in hosts]


def probe(folder):
    """Arguments of torchrun that make its workers show their seats."""
    (folder / "probe.sh").write_text(local.PROBE)
    return ["--no-python", "bash", str(folder / "probe.sh")]


def gathered(text):
    """Host and GPU of every rank, of which all ranks have learned the same."""
    lines = [line for line in text.splitlines() if line.startswith("gathered ")]
    (found,) = {*lines}
    seats = [(host, gpu) for host, gpu in json.loads(found.partition(" ")[2])]
    assert len(lines) == len(seats)
    return seats


WORKER = local.ROOT / "tests/clients/gloo_worker.py"
# Nodes of three, one and two consecutive ranks, on GPUs in any order.
UNEQUAL = [("n9", 2), ("n9", 0), ("n9", 1), ("n10", 0), ("n2", 1), ("n2", 0)]
# Commands are started by name, as a parallel shell would.
BY_NAME = ("n1", "n2", "n3", "n4")


@pytest.fixture(autouse=True)
def torchrun():
    needs.torchrun()


def prove_gloo(folder, map, commands):
    """Ranks are on their seats, collectives find them there, and placer agrees."""
    text = local.output(local.run_all(folder / "run", commands))
    assert gathered(text) == local.seats(text) == map
    found = local.verdict(folder, map, text)
    assert (found["reported"], found["unknown_gpus"]) == (len(map), 0)
    assert found["ok"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format", "map"), [("torchrun", UNEQUAL), ("torchrun-wrapper", FREE)]
)
def test_gloo_under_a_script(tmp_path, format, map):
    """Workers of torchrun have the plan's ranks, and collectives the plan's GPUs."""
    script = emit(plan_of(map), format, tmp_path / "torchrun.sh")
    python = [sys.executable] if format == "torchrun-wrapper" else []
    command = ["bash", str(script), *python, str(WORKER)]
    prove_gloo(tmp_path, map, on_hosts(sorted({host for host, _ in map}), command))


@pytest.mark.slow
def test_gloo_under_the_backend(tmp_path):
    """torchrun's rendezvous backend ``placer`` numbers nodes by the emitted map."""
    path = emit(plan_of(CONTIGUOUS), "torchrun-map", tmp_path / "nodes.json")
    command = [
        *("torchrun", "--nnodes=4", "--nproc-per-node=2", "--rdzv-backend=placer"),
        *(f"--rdzv-conf=map={path}", f"--rdzv-endpoint=127.0.0.1:{local.free_port()}"),
        str(WORKER),
    ]
    prove_gloo(tmp_path, CONTIGUOUS, on_hosts(BY_NAME, command))


@pytest.mark.slow
def test_gloo_by_env(tmp_path):
    """Eight processes of the env script meet by env:// with the ranks of a free map."""
    script = emit(plan_of(FREE), "env", tmp_path / "env.sh")
    command = ["bash", str(script), sys.executable, str(WORKER)]
    commands = [
        (argv, environ | {"PLACER_LOCAL_INDEX": index})
        for argv, environ in on_hosts(BY_NAME, command)
        for index in ("0", "1")
    ]
    prove_gloo(tmp_path, FREE, commands)


@pytest.mark.slow
def test_c10d_sorts_addresses_as_text(tmp_path):
    """The c10d backend numbers nodes as predict says; verify names its habit."""
    topology = machine([("r", "n9,n10,n2")], gpus=2)
    predicted = placer.predict(topology, ring(6), "torchrun-c10d")
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
    assert list(predicted.host_of_rank) == [host for host, _ in local.seats(text)]
    found = local.verdict(tmp_path, predicted, text)
    assert (found["ok"], found["reported"]) == (True, 6)
    mixed = [(host, gpu) for host in ("n9", "n10", "n2") for gpu in (0, 1)]
    found = local.verdict(tmp_path, mixed, text)
    assert len(found["wrong"]) == 6
    assert found["habits"] == ["text-order"]


@pytest.mark.slow
def test_gloo_by_the_plan(tmp_path):
    """init_process_group takes torch_arguments, and collectives are the plan's.

    torchrun has the hosts by name, with consecutive ranks; the plan has a free map.
    """
    map = [("n2", 1), ("n1", 0), ("n2", 0), ("n1", 1)]
    path = tmp_path / "by-plan.json"
    write_plan(plan_of(map), path)
    agent = ["torchrun", "--nnodes=2", "--nproc-per-node=2"]
    hosts = on_hosts(["n1", "n2"], agent, PET_MASTER_ADDR="127.0.0.1")
    commands = [
        ([*argv, f"--node-rank={k}", str(WORKER), str(path)], environ)
        for k, (argv, environ) in enumerate(hosts)
    ]
    text = local.output(local.run_all(tmp_path / "run", commands))
    assert local.seats(text) == [("n1", 0), ("n1", 1), ("n2", 0), ("n2", 1)]
    assert gathered(text) == map
    found = local.verdict(tmp_path, map, text)
    assert not found["ok"]
    assert len(found["wrong"]) == 3

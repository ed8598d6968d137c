"""Real nvidia-resiliency-ext: in-process restarts, and where it copies checkpoints.

Its wheels from 0.5 on need glibc 2.39, so it is no requirement of the tests: they run
where it can be imported (PYTHONPATH may name it), seen with 0.6.0 and 0.7.
"""

from importlib.util import find_spec

import pytest

from placer.placement.robust import Copies, cliques
from tests.clients import processes as local
from tests.clients.processes import ranks_in_domains

WORKER = """\
import os, sys, time
from datetime import timedelta as seconds

from nvidia_resiliency_ext import inprocess
from placer.injob.resiliency import rank_assignment

HOST = os.environ["PLACER_HOST"]
HALF = seconds(seconds=0.5)


@inprocess.Wrapper(
    store_kwargs={"port": int(os.environ["STORE"]), "host_name": "127.0.0.1"},
    rank_assignment=rank_assignment(4, time_limit=60),
    abort=None,
    monitor_process_interval=HALF,
    monitor_thread_interval=HALF,
    heartbeat_interval=HALF,
)
def train(call: inprocess.CallWrapper = None) -> None:
    said = os.environ["RANK"], os.environ["WORLD_SIZE"]
    print("seat", call.iteration, *said, HOST, flush=True)
    if call.iteration == 0 and HOST == "n2":
        time.sleep(2)
        os._exit(9)
    end = time.time() + (60 if call.iteration == 0 else 1)
    while time.time() < end:
        time.sleep(0.1)
        call.ping()


train()
"""


@pytest.fixture(autouse=True)
def package():
    try:
        found = find_spec("nvidia_resiliency_ext.inprocess")
    except ImportError as error:
        pytest.skip(f"nvidia-resiliency-ext cannot be imported: {error}")
    if not found:
        pytest.skip("nvidia-resiliency-ext is not installed")


@pytest.mark.slow
def test_in_process_restart(tmp_path):
    """Ranks follow NVLink domains; a spare takes a lost node's ranks, others stay."""
    ports = {name: str(local.free_port()) for name in ("MASTER_PORT", "STORE")}
    commands = ranks_in_domains(tmp_path, WORKER, 10, 2, **ports)
    ended = local.run_all(tmp_path / "run", commands)
    assert [one.status for one in ended if one.status] == [9, 9], ended
    found = {"0": {}, "1": {}}
    for one in ended:
        for line in one.output.splitlines():
            if line.startswith("seat "):
                _, round_, rank, world, host = line.split()
                assert world == "8"
                found[round_][int(rank)] = host
    before, after = ([rows[k] for k in range(8)] for rows in found.values())
    assert before[::2] in (["n0", "n2", "n1", "n3"], ["n1", "n3", "n0", "n2"])
    assert after == ["n4" if host == "n2" else host for host in before]


def test_cliques_are_the_package_s():
    """Copies lie where its own rule for local checkpoints puts them."""
    from nvidia_resiliency_ext.checkpointing.local.replication import group_utils

    for ranks, jump, factor in ((16, 4, 2), (24, 2, 3), (64, 16, 4), (8, 1, 2)):
        theirs = group_utils.parse_group_sequence(jump, factor, ranks)
        assert sorted(map(tuple, cliques(ranks, Copies(jump, factor)))) == theirs

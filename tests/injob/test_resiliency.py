"""In-process restarts of nvidia-resiliency-ext, with a double of what it asks for."""

import os
import sys
from dataclasses import dataclass
from enum import Enum, auto
from random import Random
from types import ModuleType, SimpleNamespace

import pytest

from placer.base.errors import InputError
from placer.injob import resiliency
from tests.injob.at_once import Store, at_once, on_hosts


class Mode(Enum):
    INITIALIZED = auto()
    ACTIVE = auto()
    INACTIVE = auto()


@dataclass
class State:
    rank: int
    world_size: int
    active_rank: int | None = None
    active_world_size: int | None = None
    mode: Mode = Mode.INITIALIZED


class RankAssignment:
    pass


class RankDiscarded(Exception):  # noqa: N818 (its own name)
    pass


@pytest.fixture(autouse=True)
def package(monkeypatch):
    """The names of nvidia-resiliency-ext 0.7 that a rank assignment has to do with."""
    name = "nvidia_resiliency_ext"
    contents = {
        "rank_assignment": (RankAssignment, RankDiscarded),
        "state": (Mode, State),
    }
    for part in ("", ".inprocess"):
        monkeypatch.setitem(sys.modules, name + part, ModuleType(name + part))
    for module, names in contents.items():
        made = ModuleType(f"{name}.inprocess.{module}")
        vars(made).update({one.__name__: one for one in names})
        monkeypatch.setitem(sys.modules, made.__name__, made)
    monkeypatch.setattr(sys, "argv", ["train.py"])
    monkeypatch.setenv("PLACER_MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_ADDR", "given")  # and put back
    on_hosts(monkeypatch, resiliency, 2)


def asked_for(state, store, gone=()):
    """The context in which ranks are asked for."""
    return SimpleNamespace(state=state, store=store, terminated_ranks={*gone})


class Job:
    """Processes of two a host that start, lose some of them and start again."""

    def __init__(self, count, **options):
        self.hosts = [f"n{k // 2}" for k in range(2 * count)]
        self.base = self.store = Store()
        self.asked = [
            resiliency.rank_assignment(time_limit=60, **options) for _ in self.hosts
        ]
        self.states = [State(k, len(self.hosts)) for k in range(len(self.hosts))]

    def round(self, gone=None):
        """Active ranks by host, after the processes of these ranks have gone.

        Each is there once, and the living are numbered anew.
        """
        lost = gone or set()

        def one(rank):
            if rank in lost:
                return None
            return self.asked[rank](
                asked_for(self.states[rank], self.store, lost)
            ).state

        found = at_once(self.hosts, one)
        kept = [k for k, state in enumerate(found) if isinstance(state, State)]
        out = [found[k] for k in range(len(found)) if k not in kept and k not in lost]
        assert all(isinstance(error, RankDiscarded) for error in out), out
        self.hosts = [self.hosts[k] for k in kept]
        self.asked = [self.asked[k] for k in kept]
        self.states = [found[k] for k in kept]
        self.store = Store()  # of the next round, as its prefix makes it
        states = self.states
        assert [state.rank for state in states] == [*range(len(states))]
        assert {state.world_size for state in states} == {len(states)}
        active = [state for state in states if state.mode is Mode.ACTIVE]
        assert {state.active_world_size for state in states} == {len(active)}
        ranks = sorted(state.active_rank or 0 for state in active)
        assert ranks == [*range(len(active))]
        found = {}
        for host, state in zip(self.hosts, states, strict=True):
            if state.mode is Mode.ACTIVE and state.active_rank is not None:
                found.setdefault(host, []).append(state.active_rank)
        return found


def test_the_start_and_a_lost_node():
    """Domains lie together; a spare takes the place of a lost node, others stay."""
    job = Job(6, nodes=4)
    before = job.round()
    domains = [int(host[1:]) % 2 for host in sorted(before, key=before.__getitem__)]
    assert domains in ([0, 0, 1, 1], [1, 1, 0, 0])
    lost = sorted(before)[1]
    after = job.round({job.hosts.index(lost)})  # one of its two processes
    assert lost not in after
    (new,) = after.keys() - before.keys()
    assert int(new[1:]) % 2 == int(lost[1:]) % 2
    assert after == {host: before[host] for host in after if host != new} | {
        new: before[lost]
    }


def test_nodes_of_unequal_numbers_of_processes():
    """They are refused: two processes would have one rank."""
    job = Job(2)
    hosts = job.hosts[:3]
    states = [State(k, 3) for k in range(3)]

    def one(rank):
        return job.asked[rank](asked_for(states[rank], job.store))

    for error in at_once(hosts, one):
        assert "nodes run 1 and 2 processes" in str(error)


def test_master_follows_rank_0(monkeypatch):
    """Where no agent keeps the store, processes meet at the host of rank 0."""
    monkeypatch.setenv("PLACER_MASTER_ADDR", "10.0.0.1")
    monkeypatch.setenv("MASTER_ADDR", "stale")
    Job(2).round()
    assert os.environ["MASTER_ADDR"] == "10.0.0.1"
    monkeypatch.setenv("MASTER_ADDR", "agent")
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    Job(2).round()
    assert os.environ["MASTER_ADDR"] == "agent"


@pytest.mark.parametrize("seed", range(2))
def test_failures_at_random(seed):
    """However processes go, no two have one rank and spares fill up to the wish."""
    random = Random(seed)
    job = Job(8, nodes=6, multiple_of=2)
    job.round()
    while len(set(job.hosts)) > 2:
        count = random.choice([1, 1, 2])
        gone = set(random.sample(range(len(job.hosts)), count))
        if len({*job.hosts} - {job.hosts[k] for k in gone}) < 2:
            break
        active = job.round(gone)
        left = len(set(job.hosts))
        assert len(active) == min(6, left) // 2 * 2


def test_too_few_are_left():
    """Fewer nodes than must take part is an error in words."""
    job = Job(3, multiple_of=2)
    job.round()
    with pytest.raises(InputError, match="1 node left, not the 2 needed"):
        job.asked[0](asked_for(job.states[0], Store(), {2, 4}))


def test_without_an_order_it_is_the_given_one(capsys):
    """No time for a placement: the nodes as they are, the last ones spare."""
    job = Job(4, nodes=3)
    job.asked = [resiliency.rank_assignment(3, time_limit=1e-9) for _ in job.hosts]
    assert job.round() == {"n0": [0, 1], "n1": [2, 3], "n2": [4, 5]}
    assert "the nodes keep their order" in capsys.readouterr().err

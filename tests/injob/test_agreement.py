"""What nodes agree on through a store, whoever is gone or silent; without torch."""

import time
from threading import Barrier

import pytest

from placer.injob import agreement
from placer.injob.agreement import Agreed, MeetAgainError, Round
from tests.injob.at_once import Store, at_once


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Nodes that wait for fractions of a second."""
    for name, seconds in (("_LOOK_S", 0.1), ("MUTE_S", 0.4), ("LOAD_S", 0.2)):
        monkeypatch.setattr(agreement, name, seconds)


def backwards(probes):
    """The last node first."""
    return [*range(len(probes))][::-1]


def never(_probes):
    raise ValueError("no order\nat all")


def silent(probes):
    time.sleep(1.5)
    return backwards(probes)


def met(size, gone=(), ranks_of=backwards, *, shows=False, store=None):
    """What each node that is left learns, and what was told.

    Those that are gone never come; heartbeats show it, or not.
    """
    there = store or Store()
    told = []
    left = [number for number in range(size) if number not in gone]
    start = Barrier(len(left))

    def learn(own):
        here = (f"n{left[own]}", left[own])
        nodes = Round(there, left[own], size, lambda: here, lambda: shows, told.append)
        start.wait()
        return nodes.agree({"host": here[0]}, ranks_of, 0.1)

    return at_once([f"n{number}" for number in left], learn), told


def test_all_learn_one_order():
    """Each node learns its rank and where rank 0 is."""
    found, told = met(5)
    assert found == [Agreed(rank, ("n4", 4), True) for rank in (4, 3, 2, 1, 0)]
    assert told == []


def test_many_nodes_ask_little():
    """64 nodes agree with a few requests each, and fast: nobody asks for all."""
    store = Store()
    found, _ = met(64, store=store)
    assert sorted(one.rank for one in found if isinstance(one, Agreed)) == [*range(64)]
    assert store.requests < 64 * 60


@pytest.mark.parametrize("gone", [[0], [3], [0, 1, 4]])
def test_a_node_that_is_gone(gone):
    """Whoever is gone, all others meet again, at once, and one of them says so."""
    started = time.monotonic()
    found, told = met(5, gone, shows=True)
    assert time.monotonic() - started < 2
    assert all(isinstance(one, MeetAgainError) for one in found)
    assert len(told) == 1
    assert "the nodes meet again" in told[0]


def test_a_node_that_is_silent():
    """A node that lives but does not tell of itself gets the others c10d's order."""
    found, told = met(4, [2])
    assert found == [Agreed(rank, ("n0", 0), False) for rank in (0, 1, 3)]
    assert told == ["the order is c10d's: a node has not told of itself in 0.4 s"]


def test_no_order():
    """Where there is none it is c10d's, said once, with the first line of why."""
    found, told = met(4, ranks_of=never)
    assert found == [Agreed(rank, ("n0", 0), False) for rank in range(4)]
    assert told == ["the order is c10d's: no order"]


def test_the_first_node_hangs():
    """An order that comes too late does not count, at the first node either."""
    found, told = met(4, ranks_of=silent)
    assert found == [Agreed(rank, ("n0", 0), False) for rank in range(4)]
    assert told == ["the order is c10d's: the first node does not work one out"]


@pytest.mark.parametrize("shows", [True, False])
def test_a_node_lost_after_the_order(shows):
    """Nobody starts with a node that died with the order unread; one that is late may.

    That one lives is what heartbeats show.
    """

    class Losing(Store):
        """Of a node that never says that it has read the order."""

        def add(self, key, number):
            return super().add(key, number) - 1

    found, told = met(3, shows=shows, store=Losing())
    if shows:
        assert all(isinstance(one, MeetAgainError) for one in found)
        assert told == ["a node is gone before it read the order: the nodes meet again"]
    else:
        assert [one.rank for one in found if isinstance(one, Agreed)] == [2, 1, 0]
        assert told == []

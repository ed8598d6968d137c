"""Rounds of agents that are killed while they agree on ranks.

The agents are light (`tests.clients.light_agents`): torch's real rendezvous and store,
and no workers.
"""

import json
import random
import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.clients import needs
from tests.clients.light_agents import LightAgents, hosts_by_rank

pytestmark = pytest.mark.slow
HOSTS = tuple(f"n{k}:u.{k % 4}" for k in range(8))
# Longer than a lost node's heartbeats, a last call and a machine that is busy take.
LIMIT_S = 90


@contextmanager
def light(folder, nodes="4:8", more=""):
    """Light agents in a folder of their own, stopped in the end."""
    needs.torchrun()
    folder.mkdir(exist_ok=True)
    agents = LightAgents(folder, nodes, more)
    try:
        yield agents
    finally:
        agents.stop()


def checked(agents):
    """Ranks that moved, in all rounds that started; each as `replace` counted them.

    Each order starts from that of the round that started before, whoever was killed.
    """
    moved_at_all = 0
    before = []
    for number, rows in sorted(agents.rounds().items()):
        if len(rows) < int(rows[0].size):
            continue  # somebody was killed before it wrote its line
        hosts = hosts_by_rank(rows)
        order = json.loads((agents.folder / f"order.{number}").read_text())
        assert planned(order["kept"]) == hosts
        if order["last"] is not None and before:
            assert planned(order["last"]) == before
            moved = sum(one != other for one, other in zip(hosts, before, strict=False))
            said = re.search(r"([0-9,]+) ranks move", "\n".join(order["told"]))
            if said:
                assert int(said[1]) == 2 * moved
            if len(hosts) == len(before):
                assert moved == len({*before} - {*hosts})
            moved_at_all += moved
        before = hosts
    return moved_at_all


def planned(kept):
    """Hosts by node rank, of what a round keeps."""
    plan = kept["plan"]
    return [plan["nodes"][node] for node in dict.fromkeys(plan["node_of_rank"])]


def killed_at_random(folder, seed, rounds):
    """So many rounds of kills and joins at random moments; ranks that moved."""
    draw = random.Random(seed)
    with light(folder, more=draw.choice(("", ",order_s=1"))) as agents:
        agents.start(*HOSTS)
        agents.met(8, LIMIT_S)
        for number in range(rounds):
            after = agents.round()
            if draw.random() < 0.5:
                agents.meet_again()
                time.sleep(draw.uniform(0, 4))
            for host in draw.sample(sorted(agents.running), draw.choice((1, 1, 2, 3))):
                agents.kill(host)
                name = draw.choice((host, f"{host[:2]}x{number}"))
                if len(agents.running) < 7 or draw.random() < 0.7:
                    agents.start(f"{name}:u.{int(host[1]) % 4}")
                time.sleep(draw.choice((0, draw.uniform(0, 1))))
            agents.meet_again()
            agents.met(min(8, len(agents.running)), LIMIT_S, after)
        return checked(agents)


def test_a_hundred_rounds_of_kills(tmp_path):
    """None hangs, none gives two nodes one rank, and ranks move as `replace` says."""
    with ThreadPoolExecutor(5) as pool:
        games = [
            pool.submit(killed_at_random, tmp_path / f"{seed}", seed, 20)
            for seed in range(5)
        ]
        assert sum(game.result() for game in games) > 0


def test_sixty_four_agents_agree(tmp_path):
    """They start within three seconds of the rendezvous closing, and work little."""
    with light(tmp_path, "64:64", ",keep_alive_interval=5") as agents:
        agents.start(*(f"n{k}:u.{k % 16}" for k in range(64)))
        agents.met(64, LIMIT_S)
        rows = agents.rounds()[0]
        closed = min(float(row.closed) for row in rows)
        assert max(float(row.started) for row in rows) - closed < 3
        # With joining, which torch does, and an order, which one of them works out.
        assert sum(map(agents.cpu_s, agents.running)) < 20


def test_the_first_node_is_lost_while_it_works(tmp_path):
    """The others meet again as soon as its heartbeats end, and start without it."""
    with light(tmp_path, more=",order_s=4") as agents:
        agents.start(*HOSTS)
        agents.has_closed(*(f"n{k}" for k in range(8)))
        agents.kill("n0")
        assert "n0" not in agents.met(7, LIMIT_S)
        assert agents.said().count("the nodes meet again") == 1
        assert "c10d" not in agents.said()


def test_the_store_is_lost(tmp_path):
    """No agent hangs: each ends with torch's error, in the exchange and after it."""
    with light(tmp_path, more=",order_s=30") as agents:
        agents.start(*HOSTS[:4])
        agents.has_closed("n0", "n3")
        agents.lose_store()
        agents.have_ended(LIMIT_S)
        assert "RendezvousConnectionError" in agents.said()

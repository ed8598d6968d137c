"""Rounds of agents that are killed while they agree on ranks.

The agents are light (`tests.clients.light_agents`): torch's real rendezvous and store,
and no workers.
"""

from __future__ import annotations

import json
import random
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.light_agents import LightAgents, hosts_by_rank
from tests.clients.torch_jobs import need_torchrun

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow
HOSTS = tuple(f"n{k}:u.{k % 4}" for k in range(8))
# Longer than a lost node's heartbeats, a last call and a machine that is busy take.
LIMIT_S = 90


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[LightAgents]:
    need_torchrun()
    found = LightAgents(tmp_path, "4:8")
    yield found
    found.stop()


def checked(agents: LightAgents) -> int:
    """Ranks that moved, in all rounds that started; each as `replace` counted them.

    Each order starts from that of the round that started before, whoever was killed.
    """
    moved_at_all = 0
    before: list[str] = []
    for number, rows in sorted(agents.rounds().items()):
        if len(rows) < int(rows[0].size):
            continue  # somebody was killed before it wrote its line
        hosts = hosts_by_rank(rows)
        order: dict[str, Any] = json.loads(
            (agents.folder / f"order.{number}").read_text()
        )
        assert planned(order["kept"]) == hosts
        if order["last"] is not None and before:
            assert planned(order["last"]) == before
            moved = sum(one != other for one, other in zip(hosts, before, strict=False))
            by_replace = re.search(r"([0-9,]+) ranks move", "\n".join(order["told"]))
            if by_replace:
                moved = sum(a != b for a, b in zip(hosts, before, strict=False))
                assert int(by_replace[1]) == 2 * moved, (before, hosts)
                assert moved == len({*before} - {*hosts}) or len(before) != len(
                    hosts
                ), (before, hosts, order["told"])
            elif {*hosts} == {*before}:
                assert not moved
            moved_at_all += moved
        before = hosts
    return moved_at_all


def planned(kept: dict[str, Any]) -> list[str]:
    """Hosts by node rank, of what a round keeps."""
    plan = kept["plan"]
    return [plan["nodes"][node] for node in dict.fromkeys(plan["node_of_rank"])]


def killed_at_random(folder: Path, seed: int, rounds: int) -> int:
    """So many rounds of kills and joins at random moments; ranks that moved."""
    draw = random.Random(seed)
    folder.mkdir()
    agents = LightAgents(folder, "4:8", order_s=draw.choice((0, 0, 1)))
    try:
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
    finally:
        agents.stop()


def test_a_hundred_rounds_of_kills(tmp_path: Path) -> None:
    """None hangs, none gives two nodes one rank, and ranks move as `replace` says."""
    need_torchrun()
    with ThreadPoolExecutor(5) as pool:
        games = [
            pool.submit(killed_at_random, tmp_path / f"{seed}", seed, 20)
            for seed in range(5)
        ]
        assert sum(game.result() for game in games) > 0

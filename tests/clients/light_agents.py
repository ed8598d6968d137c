"""Agents that only meet: torch's rendezvous with placer's ranks, and no workers.

Run as a program it loads torch once and forks an agent for each line that it reads,
``HOST FOLDER ENDPOINT NODES CONF``; it prints its process id. ``HOST`` names a domain
too: ``n3:u.1``. Of CONF, ``order_s`` is a delay before a node works out an order.

An agent adds a line ``ROUND RANK SIZE MASTER CLOSED STARTED`` to its file in FOLDER
each time that it has met the others. It meets them again once somebody waits or
``FOLDER/again`` has grown, as agents of torch do whose workers fail. Who worked out an
order writes it to ``FOLDER/order.ROUND``.
"""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.clients import processes as local

DEGREES = ("--tensor-model-parallel-size", "2", "--context-parallel-size", "2")
CONF = "is_host=0,limit=60,last_call_timeout=4,keep_alive_interval=1,"
CONF += "keep_alive_max_attempt=8,join_timeout=100,read_timeout=30"


class Row(NamedTuple):
    """What an agent knows of a round."""

    host: str
    rank: str
    size: str
    master: str
    closed: str
    started: str
    is_last: bool


def hosts_by_rank(rows):
    """The hosts of a round, all of whose agents know it alike."""
    by_rank = {int(row.rank): row.host for row in rows}
    assert sorted(by_rank) == [*range(len(rows))], rows
    assert {int(row.size) for row in rows} == {len(rows)}, rows
    assert {row.master for row in rows} == {f"{by_rank[0]}.there"}, rows
    return [by_rank[rank] for rank in range(len(rows))]


class LightAgents:
    """Agents by host on this machine, and a store that none of them keeps."""

    def __init__(self, folder, nodes, more=""):
        self.folder, self.nodes, self.conf = folder, nodes, CONF + more
        self.endpoint = f"127.0.0.1:{local.free_port()}"
        for name in ("again", "closed"):
            (folder / name).touch()
        self._log = (folder / "log").open("ab")
        self._parent = subprocess.Popen(
            [sys.executable, "-m", "tests.clients.light_agents"],
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,
        )
        self.running = {}
        self.store = self._start("-")

    def start(self, *names):
        """One agent for each name, ``HOST:DOMAIN``."""
        for name in names:
            self.running[name.partition(":")[0]] = self._start(name)

    def _start(self, name):
        stdin, stdout = self._parent.stdin, self._parent.stdout
        words = (name, self.folder, self.endpoint, self.nodes, self.conf)
        print(*words, file=stdin, flush=True)
        return int(stdout.readline())

    def kill(self, *hosts):
        """These agents are gone at once."""
        for host in hosts:
            os.kill(self.running.pop(host), signal.SIGKILL)

    def meet_again(self):
        """All agents' workers have failed, as they do when a peer is gone."""
        with (self.folder / "again").open("a") as file:
            file.write("x")

    def lose_store(self):
        """The store is gone at once."""
        os.kill(self.store, signal.SIGKILL)

    def have_ended(self, seconds):
        """Wait until no agent runs any more."""
        end = time.monotonic() + seconds
        while any(Path(f"/proc/{pid}").exists() for pid in self.running.values()):
            assert time.monotonic() < end, self.said()[-3000:]
            time.sleep(0.1)

    def met(self, size, seconds, after=-1):
        """Hosts by rank, once ``size`` agents that run are in a round after that one.

        No two of them have one rank, and all know the same master.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.1)
            number = self.round()
            rows = [row for row in self.rounds().get(number, []) if row.is_last]
            are_alive = {row.host for row in rows} <= self.running.keys()
            if number > after and len(rows) == size and are_alive:
                return hosts_by_rank(rows)
        said = self.said()[-3000:]
        raise AssertionError(f"they did not meet: {self.rounds()}\n{said}")

    def round(self):
        """The latest round that an agent has started in."""
        return max(self.rounds(), default=-1)

    def rounds(self):
        """What agents know of each round that they started in."""
        found = {}
        for path in self.folder.glob("met.*"):
            lines = [line for line in path.read_text().split("\n")[:-1] if line]
            for k, line in enumerate(lines, 1):
                number, *rest = line.split()
                row = Row(path.name[4:].partition("@")[0], *rest, k == len(lines))
                found.setdefault(int(number), []).append(row)
        return found

    def has_closed(self, *hosts):
        """Wait until torch's rendezvous is over for these, and not yet placer's."""
        end = time.monotonic() + 60
        while not {*hosts} <= {*(self.folder / "closed").read_text().split()}:
            assert time.monotonic() < end, self.said()[-3000:]
            time.sleep(0.05)

    def said(self):
        """What all agents have logged."""
        return (self.folder / "log").read_text()

    def cpu_s(self, host):
        """Seconds that an agent has worked."""
        stat = Path(f"/proc/{self.running[host]}/stat").read_text().rsplit(")", 1)[1]
        return sum(map(int, stat.split()[11:13])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        with suppress(OSError):
            os.killpg(self._parent.pid, signal.SIGKILL)
        self._parent.communicate()
        self._log.close()


def agent(name, folder, endpoint, nodes, conf):
    """Meet the others until somebody kills this process."""
    from torch.distributed.elastic.rendezvous import RendezvousParameters

    from placer.injob import rendezvous

    host, _, domain = name.partition(":")
    config = dict(item.split("=", 1) for item in conf.split(","))
    order_s = float(config.pop("order_s", "0"))
    sys.argv = ["torchrun", "--nproc-per-node=2", "train.py", *DEGREES]
    told = rendezvous.probe()
    told |= {"host": host, "gpu": "NVIDIA GB200", "nvlink_domain": domain or None}
    placed_again = rendezvous.placed_again

    def placed_late(probes, last, command, limit, tell):
        time.sleep(order_s)
        said = []
        found = placed_again(probes, last, command, limit, said.append)
        for text in said:
            tell(text)
        number = handler._inner._state_holder.state.round
        written = json.dumps({"last": last, "kept": found.kept, "told": said})
        (folder / f"order.{number}").write_text(written)
        return found

    rendezvous.probe = lambda: told
    rendezvous.placed_again = placed_late
    least, _, most = nodes.partition(":")
    handler = rendezvous.create(
        RendezvousParameters(
            backend="placer",
            endpoint=endpoint,
            run_id="j",
            min_nodes=int(least),
            max_nodes=int(most or least),
            local_addr=f"{host}.there",
            **config,
        )
    )
    meet = handler._inner.next_rendezvous
    closed = 0.0

    def met():
        nonlocal closed
        info = meet()
        closed = time.time()
        with (folder / "closed").open("a") as file:
            print(host, file=file)
        return info

    handler._inner.next_rendezvous = met
    while True:
        info = handler.next_rendezvous()
        number = handler._inner._state_holder.state.round
        master = info.bootstrap_store_info.master_addr
        with (folder / f"met.{host}@{os.getpid()}").open("a") as file:
            words = (number, info.rank, info.world_size, master, closed, time.time())
            print(*words, file=file)
        failures = (folder / "again").stat().st_size
        while (
            not handler.num_nodes_waiting()
            and (folder / "again").stat().st_size == failures
        ):
            time.sleep(0.1)


def keep_store(endpoint):
    """Keep the store of all agents."""
    from torch.distributed import TCPStore

    host, _, port = endpoint.partition(":")
    _store = TCPStore(host, int(port), is_master=True, wait_for_workers=False)
    signal.pause()


def main():
    from torch.distributed.elastic.rendezvous import dynamic_rendezvous

    # What agents need for an order is there before they are.
    from placer.api import replace  # noqa: F401
    from placer.solve import advice, orders  # noqa: F401

    # For its log torch looks at the whole stack at each step, which takes most of it.
    dynamic_rendezvous.get_method_name = lambda *_: ""
    dynamic_rendezvous.construct_and_record_rdzv_event = lambda **_: None
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        name, folder, endpoint, nodes, conf = line.split()
        pid = os.fork()
        if pid:
            print(pid, flush=True)
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        sys.stdin.close()
        if name == "-":
            keep_store(endpoint)
        else:
            agent(name, Path(folder), endpoint, nodes, conf)


if __name__ == "__main__":
    main()

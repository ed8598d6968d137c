"""torchrun's backend ``placer`` without a map: real agents, ranks by probes."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.clients import processes as local
from tests.clients.processes import tell_domains
from tests.clients.torch_jobs import need_torchrun

DEGREES = (
    *("--tensor-model-parallel-size", "2", "--context-parallel-size", "2"),
    *("--pipeline-model-parallel-size", "2"),
)
# Shows its seat, then lives until the test says that it is enough.
WORKER = """\
echo "seat $GROUP_RANK $RANK $WORLD_SIZE $PLACER_HOST $MASTER_PORT" >> $SEATS.$PPID
while [ ! -e $SEATS.end ]; do sleep 0.2; done
"""


class Agents:
    """Agents of two workers each on this machine, node k in NVLink domain k mod 4."""

    def __init__(self, folder):
        tell_domains(folder, 4)
        (folder / "worker.sh").write_text(WORKER)
        self.folder = folder
        self.seats_file = folder / "seats"
        self.port = local.free_port()
        self.running = {}

    def start(
        self,
        hosts,
        nodes,
    ):
        """One agent a host."""
        environ = local.environment(SEATS=str(self.seats_file))
        environ["PATH"] = f"{self.folder}:{environ['PATH']}"
        # A machine that runs so many is busy.
        conf = "limit=60,last_call_timeout=30,keep_alive_interval=5"
        for host in hosts:
            command = (
                *(sys.executable, "-m", "torch.distributed.run"),
                *(f"--nnodes={nodes}", "--nproc-per-node=2", "--max-restarts=9"),
                *("--monitor-interval=0.2", "--local-addr=127.0.0.1"),
                *("--rdzv-backend=placer", f"--rdzv-conf={conf}", "--rdzv-id=j"),
                f"--rdzv-endpoint=127.0.0.1:{self.port}",
                *("--no-python", "bash", "worker.sh", *DEGREES),
            )
            with (self.folder / f"{host}.err").open("ab") as log:
                self.running[host] = subprocess.Popen(
                    command,
                    cwd=self.folder,
                    env=environ | {"PLACER_HOST": host},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            if host == hosts[0]:
                time.sleep(3)  # it keeps the store, and is not the one that dies

    def kill(self, hosts):
        """The agents and their workers are gone at once."""
        for host in hosts:
            process = self.running.pop(host)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            self._forget(process.pid)

    def _forget(self, pid):
        self.seats_file.with_suffix(f".{pid}").unlink(missing_ok=True)

    def hosts_by_rank(self, nodes, other_than=()):
        """The host of each node rank, once so many nodes have started alike.

        Each worker writes a line at each start; the last one of an agent counts.
        """
        limit = time.monotonic() + 300
        while time.monotonic() < limit:
            time.sleep(0.3)
            rows = [row for row in map(self._last, self.running) if row]
            # Each round has a port of its own; a spare's last line is of an older one.
            for port in {row[5] for row in rows}:
                ranks = sorted((int(row[1]), row[4]) for row in rows if row[5] == port)
                hosts = [host for _, host in ranks]
                if len(ranks) == nodes and hosts != [*other_than]:
                    assert [rank for rank, _ in ranks] == [*range(nodes)]
                    return hosts
        raise AssertionError({host: self._log(host)[-600:] for host in self.running})

    def said(self):
        """What all agents that run have logged."""
        return "".join(map(self._log, self.running))

    def _last(self, host):
        path = self.seats_file.with_suffix(f".{self.running[host].pid}")
        return path.read_text().splitlines()[-1].split() if path.exists() else None

    def _log(self, host):
        return (self.folder / f"{host}.err").read_text()

    def stop(self):
        self.seats_file.with_suffix(".end").touch()
        for host in [*self.running]:
            self.kill([host])


@pytest.fixture
def agents(tmp_path):
    need_torchrun()
    found = Agents(tmp_path)
    yield found
    found.stop()


def racks_of(hosts):
    return [int(host[1:]) % 4 for host in hosts]


@pytest.mark.slow
def test_nodes_of_a_domain_are_together(agents):
    """Sixteen agents get ranks that keep each replica in an NVLink domain."""
    hosts = [f"n{k}" for k in range(1, 17)]
    agents.start(hosts, "16")
    racks = racks_of(agents.hosts_by_rank(16))
    # A replica is two neighbours of each half.
    assert racks[:8] == racks[8:]
    assert racks[::2] == racks[1::2]
    said = agents.said()
    assert said.count("16 nodes in order") == 1
    assert "assumed: usual weights for tp 2 cp 2 pp 2" in said


@pytest.mark.slow
def test_restarts_keep_ranks(agents):
    """A spare takes the place of a lost node; the others keep their ranks."""
    hosts = [f"n{k}" for k in range(1, 9)]
    agents.start([*hosts, "n9"], "6:8")
    before = agents.hosts_by_rank(8)
    spare = next(host for host in agents.running if host not in before)
    lost = next(host for host in hosts[1:] if host in before)
    agents.kill([lost])
    after = agents.hosts_by_rank(8, before)
    assert sorted(after) == sorted({*before, spare} - {lost})
    moved = sum(one != other for one, other in zip(before, after, strict=True))
    assert f"lost 1 nodes, 1 new: {2 * moved} ranks move" in agents.said()

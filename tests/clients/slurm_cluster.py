"""A Slurm cluster of sixteen nodes on this machine, for anyone: no root is needed.

Every node is a ``slurmd`` of its own; munged and slurmctld are its own too. Processes
are children of the test run and die with it; ports and files are private, so that
several clusters can run at once.
"""

import ctypes
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from placer.base.hostlist import expand
from tests.clients import needs

NODES = "n[1-16]"
GPUS = 4
ROOT = Path(__file__).resolve().parents[2]
PACKAGES = "slurmctld, slurmd, slurm-client, munge"
# Below the ports that Linux hands out by itself (32768 and up).
_PORTS = range(20000, 32000, 64)
_MUNGE_FILES = ("key", "pid", "log", "seed")
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG, <sys/prctl.h>
_LIBC = ctypes.CDLL(None)

# Four leaf switches of four nodes under one spine; a leaf's nodes are not neighbours
# by name.
TOPOLOGY = """\
SwitchName=leaf1 Nodes=n[1,5,9,13]
SwitchName=leaf2 Nodes=n[2,6,10,14]
SwitchName=leaf3 Nodes=n[3,7,11,15]
SwitchName=leaf4 Nodes=n[4,8,12,16]
SwitchName=spine Switches=leaf[1-4]
"""

_CONF = """\
ClusterName=placer
SlurmctldHost=localhost
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdSpoolDir={folder}/spool/%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
KillWait=1
GresTypes=gpu
NodeName={nodes} NodeHostname=localhost NodeAddr=127.0.0.1 \
Port=[{first}-{last}] CPUs=8 Gres=gpu:{gpus}
PartitionName=all Nodes=ALL Default=YES State=UP
"""

# What a task tells of itself: one line, so that lines of tasks do not mix.
_PROBE = """\
#!/bin/bash
line=task
for name in RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK MASTER_ADDR \\
  SLURM_PROCID SLURM_LOCALID SLURMD_NODENAME SLURM_HOSTFILE CUDA_VISIBLE_DEVICES \\
  PLACER_PLAN; do
  line+=" $name=${!name-}"
done
echo "$line arguments=$#"
"""


class StartError(Exception):
    """The cluster did not come up; the message holds the ends of the logs."""


@dataclass
class Slurm:
    """A running cluster."""

    folder: Path  # private, short, gone afterwards
    environ: dict[str, str]  # for its commands: nothing else is inherited
    port: int  # one that is free for the jobs

    @property
    def probe(self):
        """A program for `tasks` to read the output of."""
        return self.folder / "probe"

    def run(self, *command, cwd=None):
        """The finished command, whatever its exit code."""
        return subprocess.run(
            [str(word) for word in command],
            cwd=cwd or self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def output(self, *command, cwd=None):
        """What a command prints that must succeed."""
        done = self.run(*command, cwd=cwd)
        assert done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def allocate(self, script, *options, cwd=None):
        """What a bash script prints in an allocation, by default of 64 tasks."""
        wanted = options or ("-N16", "-n64")
        return self.output(
            *("salloc", "-Q", *wanted, f"--gpus-per-node={GPUS}", "--exclusive"),
            *("bash", "-euc", script),
            cwd=cwd,
        )

    def submit(self, *command, cwd):
        """What a batch job prints that is submitted and must end well."""
        job = self.output("sbatch", "--parsable", *command, cwd=cwd).strip()
        state, limit = "PENDING", time.monotonic() + 90
        while state in ("PENDING", "RUNNING", "CONFIGURING", "COMPLETING"):
            assert time.monotonic() < limit, self.output("scontrol", "show", "job", job)
            time.sleep(0.1)
            shown = self.output("scontrol", "show", "job", job)
            state = re.findall(r"JobState=(\w+)", shown)[0]
        printed = (cwd / f"slurm-{job}.out").read_text()
        assert state == "COMPLETED", f"{state}:\n{printed}"
        return printed


def tasks(output):
    """The variables of every task that became the probe, by ``SLURM_PROCID``."""
    lines = [line.split() for line in output.splitlines() if line.startswith("task ")]
    found = [dict(word.split("=", 1) for word in words[1:]) for words in lines]
    return sorted(found, key=lambda task: int(task["SLURM_PROCID"]))


def seats_by_rank(output):
    """Node and GPU of every rank, from the variables that scripts and torchrun set."""
    found = {int(task["RANK"]): task for task in tasks(output)}
    assert sorted(found) == list(range(len(tasks(output))))
    return [_seat(found[rank]) for rank in range(len(found))]


def _seat(task):
    index = int(task["LOCAL_RANK"])
    visible = task["CUDA_VISIBLE_DEVICES"].split(",")
    return task["SLURMD_NODENAME"], int(visible[index]) if any(visible) else index


@contextmanager
def cluster(nodes=NODES, topology=TOPOLOGY, gpus=GPUS):
    """A running cluster of up to sixty nodes, gone with all its processes afterwards.

    Without a ``topology.conf`` the nodes are all alike.
    """
    for name in ("munged", "slurmctld", "slurmd", "srun", "sbatch", "salloc"):
        needs.program(name, PACKAGES)
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        needs.missing(f"Slurm needs a name for user {os.getuid()}")
    for attempts_left in (2, 1, 0):
        started = _Started(nodes, topology, gpus)
        try:
            try:
                slurm = started.start()
            except StartError:
                # Another program may have taken a port in the meantime.
                if not attempts_left:
                    raise
                continue
            yield slurm
            return
        finally:
            started.stop()


def version():
    """Year and month of the installed Slurm."""
    command = (needs.program("slurmctld", PACKAGES), "-V")
    text = subprocess.run(command, capture_output=True, text=True).stdout
    return tuple(map(int, re.findall("[0-9]+", text)[:2]))


class _Started:
    """The processes and the folder of one cluster."""

    def __init__(self, nodes, topology, gpus):
        self.nodes, self.gpus = nodes, gpus
        self.names = expand(nodes)
        self.topology = topology
        self.processes = {}
        self.port = _free_ports(len(self.names) + 2)
        # Not the test's own folder: a socket's path has at most 107 characters.
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
        path = os.environ.get("PATH", os.defpath)
        inherited = {k: os.environ[k] for k in ("HOME", "LANG") if k in os.environ}
        self.environ = inherited | {
            "PATH": f"{Path(sys.executable).parent}:{path}:/usr/sbin:/sbin",
            "PYTHONPATH": str(ROOT),
            "SLURM_CONF": str(self.folder / "slurm.conf"),
        }

    def start(self):
        self._write_files()
        files = [f"--{k}-file={self.folder}/munge.{k}" for k in _MUNGE_FILES]
        socket_option = f"--socket={self.folder}/munge.socket"
        self._spawn("munged", "--foreground", "--force", socket_option, *files)
        self._until("munged", (self.folder / "munge.socket").exists)
        self._spawn("slurmctld", "-D", "-c")
        for name in self.names:
            self._spawn("slurmd", "-D", "-N", name)
        slurm = Slurm(self.folder, self.environ, self.port + len(self.names) + 1)
        # Every call of sinfo would wait long for a controller that is not there yet.
        self._until("slurmctld", lambda: _listens(self.port))
        self._until(
            "slurmd",
            lambda: slurm.run("sinfo", "-h", "-o", "%T").stdout.split() == ["idle"],
        )
        return slurm

    def stop(self):
        """End every process that has this cluster's folder in its environment."""
        limit = time.monotonic() + 10
        while (left := self._left()) and time.monotonic() < limit:
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        for process in self.processes.values():
            process.wait(5)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _left(self):
        """Processes of this cluster: daemons, steps, and what those started."""
        mark = f"SLURM_CONF={self.folder}/".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if mark in path.read_bytes():
                    found.append(int(path.parent.name))
        return [pid for pid in found if pid != os.getpid()]

    def _write_files(self):
        last = self.port + len(self.names)
        text = _CONF.format(
            folder=self.folder,
            user=pwd.getpwuid(os.getuid()).pw_name,
            nodes=self.nodes,
            gpus=self.gpus,
            port=self.port,
            first=self.port + 1,
            last=last,
        )
        if self.topology:
            text += "TopologyPlugin=topology/tree\n"
            (self.folder / "topology.conf").write_text(self.topology)
        (self.folder / "slurm.conf").write_text(text)
        devices = f"Name=gpu File={self.folder}/gpu[0-{self.gpus - 1}]"
        (self.folder / "gres.conf").write_text(f"NodeName={self.nodes} {devices}\n")
        for k in range(self.gpus):
            (self.folder / f"gpu{k}").symlink_to("/dev/null")  # must be a device
        for name in self.names:
            (self.folder / "spool" / name).mkdir(parents=True)
        if version() >= (23, 11):  # before, control groups are used only if asked for
            (self.folder / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
        (self.folder / "state").mkdir()
        (self.folder / "probe").write_text(_PROBE)
        (self.folder / "probe").chmod(0o755)
        key = self.folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))

    def _spawn(self, *command):
        """Start a daemon in the foreground; its log is named after its last word."""
        name = command[-1] if command[0] == "slurmd" else command[0]
        path = shutil.which(command[0], path=self.environ["PATH"])
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [path or command[0], *command[1:]],
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )

    def _until(self, what, ready):
        limit = time.monotonic() + 60
        while not ready():
            dead = [name for name, p in self.processes.items() if p.poll() is not None]
            if dead or time.monotonic() > limit:
                names = dead or ["slurmctld", self.names[0]]
                ends = [self._log_end(name) for name in names[:2]]
                raise StartError(f"{what} did not come up\n" + "\n".join(ends))
            time.sleep(0.05)

    def _log_end(self, name):
        log = self.folder / f"{name}.log"
        return f"{log.name}: {log.read_text()[-1500:] if log.exists() else 'no log'}"


def _die_with_parent():
    """Let the kernel end this process when the test run is killed."""
    _LIBC.prctl(_DEATH_SIGNAL, signal.SIGKILL)


def _listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_ports(count):
    """The first of ``count`` free ports, of a block that other runs begin elsewhere."""
    start = os.getpid() % len(_PORTS)
    for first in (*_PORTS[start:], *_PORTS[:start]):
        if not any(_listens(first + k) for k in range(count)):
            return first
    raise StartError("no free ports")

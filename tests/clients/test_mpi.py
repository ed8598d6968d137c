"""Open MPI 4 and 5 and Hydra start every rank where the plan has it.

``verify`` sees it if they do not. Hosts are host names on this machine: a stand-in for
ssh drops the options and runs the command where ``uname -n`` says the host's name, in a
UTS namespace of its own, which root may make, and other users inside a user namespace.
hwloc shows every host eight cores, so that a rankfile can name them anywhere.
"""

import os
import random
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from placer.emit import emit
from tests.clients.needs import missing, program
from tests.clients.processes import (
    REPORT,
    environment,
    reported_seats,
    reports,
    run,
    verdict,
)
from tests.emit.readback import CONTIGUOUS, FREE, INTERLEAVED, counted, plan_of, started

WAYS = (["--uts"], ["--map-current-user", "--keep-caps", "--uts"])
# ssh, as the launchers call it: flags without values, the host, a shell's command.
STAND_IN = """\
#!/bin/sh
while :; do
  case "$1" in
    (-*) shift ;;
    (*) break ;;
  esac
done
host=$1
shift
exec {unshare} sh -c 'hostname "$1" && shift && exec sh -c "$*"' sh "$host" "$@"
"""


@cache
def way():
    """The ``unshare`` command that gives a program a host name; empty when none may."""
    unshare = program("unshare", "util-linux")
    for options in WAYS:
        command = (unshare, *options)
        done = run([*command, "sh", "-c", "hostname fake-host && uname -n"])
        if (done.status, done.output) == (0, "fake-host\n"):
            return command
    return ()


def ssh_stand_in(folder):
    """The stand-in for ssh, written into the folder.

    Where the kernel forbids host names the test is skipped, in continuous integration
    too: the tests of a launcher's own map need none.
    """
    if not way():
        pytest.skip("the kernel lets this user make no UTS namespace")
    path = folder / "ssh"
    path.write_text(STAND_IN.format(unshare=" ".join(way())))
    path.chmod(0o755)
    return path


ROOT_TOO = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
CORES = {"HWLOC_SYNTHETIC": "pack:1 core:8 pu:1"}
# Host names are looked up; a name server that does not answer costs a second, not ten.
NO_WAIT = {"RES_OPTIONS": "timeout:1 attempts:1"}
MAP_ONLY = ("--rtos", "donotlaunch", "--display", "map")
PACKAGES = {4: "the system package openmpi-bin", 5: "the Python package openmpi"}


@dataclass(frozen=True)
class OpenMpi:
    """An installed Open MPI."""

    version: int
    mpirun: str

    def agent(self, ssh):
        """Options that start daemons with the stand-in for ssh, on this machine."""
        if self.version == 5:
            options = "--prtemca plm_ssh_agent {} --prtemca plm_ssh_no_tree_spawn 1"
        else:
            options = (
                "--mca plm_rsh_agent {} --mca plm_rsh_no_tree_spawn 1 "
                "--mca oob_tcp_if_include lo --mca btl_tcp_if_include lo"
            )
        return tuple(options.format(ssh).split())

    def map_by(self, format, file, hosts):
        """Options that make ranks follow an emitted file."""
        if format == "openmpi-seq":
            return ("--map-by", "seq", "--hostfile", str(file), "--bind-to", "none")
        if self.version == 5:
            return ("--hostfile", str(hosts), "--map-by", f"rankfile:file={file}")
        return ("--rankfile", str(file))

    def run(self, *arguments):
        """``mpirun`` with these arguments."""
        surroundings = environment(**ROOT_TOO, **CORES, **NO_WAIT)
        return run([self.mpirun, *arguments], surroundings)


@cache
def open_mpi(version):
    """The first installed ``mpirun`` of this version."""
    folders = [str(Path(sys.prefix) / "bin"), *os.get_exec_path(), "/usr/bin"]
    for folder in dict.fromkeys(folders):
        for name in ("mpirun", "mpirun.openmpi"):
            path = shutil.which(name, path=folder)
            if path and f"(Open MPI) {version}." in run([path, "--version"]).output:
                return OpenMpi(version, path)
    return missing(f"Open MPI {version} is not installed ({PACKAGES[version]})")


@pytest.fixture(params=[4, 5], ids=["v4", "v5"])
def mpi(request):
    return open_mpi(request.param)


def start(mpi, folder, *arguments):
    """What eight started processes print."""
    done = mpi.run(*mpi.agent(ssh_stand_in(folder)), "-n", "8", *arguments)
    assert done.status == 0, done.error
    return done.output


@pytest.mark.slow
@pytest.mark.parametrize("seats", [CONTIGUOUS, INTERLEAVED], ids=["nodes", "free"])
@pytest.mark.parametrize("format", ["openmpi-seq", "openmpi-rankfile"])
def test_ranks_are_where_the_plan_has_them(mpi, tmp_path, format, seats):
    """Every process reports the host and local rank of its rank; verify agrees."""
    file = emit(plan_of(seats), format, tmp_path / "ranks.txt")
    hosts = emit(plan_of(seats), "openmpi-seq", tmp_path / "hosts.txt")
    output = start(mpi, tmp_path, *mpi.map_by(format, file, hosts), *REPORT)
    assert reported_seats(output) == seats
    assert verdict(tmp_path, seats, output)["ok"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seats", "options", "habit"),
    [
        # The plan's host file without the mapper that goes by its lines.
        (INTERLEAVED, (), "consecutive"),
        (CONTIGUOUS, ("--map-by", "node"), "cyclic-planned"),
    ],
    ids=["no-mapper", "by-node"],
)
def test_wrong_launches_are_caught(mpi, tmp_path, seats, options, habit):
    """Verify names the wrong ranks and the habit that did it."""
    file = emit(plan_of(seats), "openmpi-seq", tmp_path / "hosts.txt")
    output = start(mpi, tmp_path, "--hostfile", file, *options, *REPORT)
    found = verdict(tmp_path, seats, output)
    ran = dict(enumerate(host for host, _ in reported_seats(output)))
    assert {row["rank"] for row in found["wrong"] if row["gpu"] is None} == {
        rank for rank, (host, _) in enumerate(seats) if ran[rank] != host
    }
    assert not found["ok"]
    assert habit in found["habits"]


def test_env_script(mpi, tmp_path):
    """However mpirun orders hosts, the script gives each process the plan's rank."""
    script = emit(plan_of(FREE), "env", tmp_path / "env.sh")
    hosts = ("--host", "n1:2,n2:2,n3:2,n4:2", "--map-by", "ppr:2:node")
    output = start(mpi, tmp_path, *hosts, "bash", script, *REPORT)
    assert reported_seats(output) == FREE
    assert verdict(tmp_path, FREE, output)["ok"]


def launcher_map(*arguments):
    """Host and local rank of every rank in the map of Open MPI 5; nothing starts."""
    done = open_mpi(5).run(*arguments, *MAP_ONLY, "true")
    assert done.status == 0, done.error
    found = {}
    host = ""
    for line in done.output.splitlines():
        if match := re.match(r"Data for node: (\S+)", line):
            host = match[1]
        elif match := re.search(r"Local rank: (\d+).*App rank: (\d+)", line):
            found[int(match[2])] = (host, int(match[1]))
    return [found[rank] for rank in range(len(found))]


def mapped(seats, format, folder):
    """The map that Open MPI 5 makes of a plan's file."""
    file = emit(plan_of(seats), format, folder / "ranks.txt")
    hosts = emit(plan_of(seats), "openmpi-seq", folder / "hosts.txt")
    options = open_mpi(5).map_by(format, file, hosts)
    return launcher_map("-n", str(len(seats)), *options)


@pytest.mark.parametrize("format", ["openmpi-seq", "openmpi-rankfile"])
def test_large_maps(tmp_path, format):
    """4,096 shuffled ranks on 512 hosts of eight GPUs: the launcher's map is the plan.

    No host name is needed for it, so it runs wherever Open MPI does.
    """
    hosts = [f"gpu-{k:03}" for k in range(512) for _ in range(8)]
    random.Random(7).shuffle(hosts)
    seats = counted(hosts)
    assert mapped(seats, format, tmp_path) == seats


@pytest.mark.parametrize("format", ["openmpi-seq", "openmpi-rankfile"])
def test_odd_names(tmp_path, format):
    """Names that are emitted come back as they are, or without their domain."""
    names = "1abc 0x10 12-3 10.0.0.9 10.0.0.10 gpu_1 NODE1 host user _n n-1.b_c a.1 no"
    seats = counted([*names.split(), *names.split()])
    short = {"n-1.b_c": "n-1", "a.1": "a"}
    expected = [(short.get(host, host), local_rank) for host, local_rank in seats]
    assert mapped(seats, format, tmp_path) == expected


# A host with ranks in two places of the machine file has them counted from 0 twice.
SPLIT = [("a", 0), ("a", 1), ("b", 1), ("b", 0), ("a", 2), ("b", 2)]


def mpiexec(folder, machines, ranks, *command):
    """What Hydra's processes print, started over the stand-in for ssh."""
    launcher = ("-launcher", "ssh", "-launcher-exec", ssh_stand_in(folder))
    hydra = (program("mpiexec.hydra", "mpich"), *launcher, "-iface", "lo")
    return run([*hydra, "-f", machines, "-n", str(ranks), *command], environment())


@pytest.mark.slow
@pytest.mark.parametrize(
    "seats",
    [CONTIGUOUS, INTERLEAVED, FREE, SPLIT],
    ids=["nodes", "in-order", "free", "split"],
)
def test_ranks_and_gpus(tmp_path, seats):
    """Every process reports the host and the GPU of its rank; verify agrees."""
    folder = emit(plan_of(seats), "hydra", tmp_path / "hydra")
    command = ("bash", folder / "gpu-wrapper.sh", *REPORT)
    done = mpiexec(tmp_path, folder / "machines.txt", len(seats), *command)
    assert reported_seats(done.output) == seats, done.error
    assert verdict(tmp_path, seats, done.output)["ok"]


@pytest.mark.slow
@pytest.mark.parametrize("seats", [CONTIGUOUS, FREE], ids=["nodes", "free"])
def test_a_patched_script(tmp_path, seats):
    """Its own options for hosts are gone; every process has the host of its rank."""
    (tmp_path / "old").write_text("n9\n")
    hydra = program("mpiexec.hydra", "mpich")
    command = f"-launcher ssh -launcher-exec {ssh_stand_in(tmp_path)} -iface lo"
    script = tmp_path / "train.sh"
    report = f"LOCAL_RANK=${{LOCAL_RANK:-$MPI_LOCALRANKID}} {shlex.join(REPORT)}"
    script.write_text(
        f"{hydra} -f old -ppn 1 {command} -n {len(seats)} \\\n  bash -c '{report}'\n"
    )
    patch = emit(started(seats, "hydra", str(script), 1), "patch")
    patched = ["patch", "-p1", "-d", str(tmp_path)]
    subprocess.run(patched, input=patch, text=True, check=True)
    done = run(["bash", str(script)], environment())
    assert reported_seats(done.output) == seats, done.error
    assert verdict(tmp_path, seats, done.output)["ok"]


def test_local_ranks_do_not_say_the_gpu(tmp_path):
    """Hydra's local rank is 0 where lines are apart; verify says all share a GPU."""
    folder = emit(plan_of(FREE), "hydra", tmp_path / "hydra")
    done = mpiexec(tmp_path, folder / "machines.txt", 8, *REPORT)
    assert {row["local_rank"] for row in reports(done.output)} == {0}
    found = verdict(tmp_path, FREE, done.output)
    assert found["habits"] == ["one-gpu"]
    # Rank 1 has GPU 1 of its host in the plan, and so on.
    assert [row["rank"] for row in found["wrong"]] == [
        rank for rank, (_, gpu) in enumerate(FREE) if gpu == 1
    ]

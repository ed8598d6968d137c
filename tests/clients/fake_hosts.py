"""Hosts of any name on one machine, for launchers that start programs over ssh.

A stand-in for ssh drops the options and runs the command where ``uname -n`` says the
host's name: in a UTS namespace of its own, which root may make, and other users inside
a user namespace.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.clients.needs import program

if TYPE_CHECKING:
    from pathlib import Path

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
# What would pass for the surroundings of another launcher.
FOREIGN = ("SLURM", "OMPI_", "PMI", "PRTE_", "MPI_", "PET_", "PLACER_", "CUDA_", "JAX_")
SINGLE = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "GROUP_RANK", "JOB_COMPLETION_INDEX")


@dataclass(frozen=True)
class Done:
    """What a command printed, and how it ended."""

    status: int
    output: str
    error: str


def clean_environment(**more: str) -> dict[str, str]:
    """This environment without any launcher's variables."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(FOREIGN) and name not in SINGLE
    }
    return kept | more


def run(
    command: Sequence[str | Path], environment: Mapping[str, str] | None = None
) -> Done:
    """The command, run to its end; after a minute it and its children are killed."""
    process = subprocess.Popen(
        list(map(str, command)),
        env=clean_environment() if environment is None else environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, error = process.communicate(timeout=60)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return Done(process.returncode, output, error)


@cache
def way() -> tuple[str, ...]:
    """The ``unshare`` command that gives a program a host name; empty when none may."""
    unshare = program("unshare", "util-linux")
    for options in WAYS:
        command = (unshare, *options)
        done = run([*command, "sh", "-c", "hostname fake-host && uname -n"])
        if (done.status, done.output) == (0, "fake-host\n"):
            return command
    return ()


def ssh_stand_in(folder: Path) -> Path:
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

"""Hosts of any name on one machine, for launchers that start programs over ssh.

A stand-in for ssh drops the options and runs the command where ``uname -n`` says the
host's name: in a UTS namespace of its own, which root may make, and other users inside
a user namespace.
"""

from functools import cache

import pytest

from tests.clients.needs import program
from tests.clients.processes import run

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

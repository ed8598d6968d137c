"""The real ``ibnetdiscover`` over ibsim's simulated fabric, where installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.readers import cases
from tests.readers.cases import machine_of, nodes_of_domains, rail_fabric

PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
FOLDERS = ("/usr/lib", *os.environ.get("LD_LIBRARY_PATH", "").split(":"))


@pytest.fixture
def discover(tmp_path):
    """What ibnetdiscover prints of a fabric that ibsim simulates."""
    ibsim, tool = (shutil.which(name, path=PATH) for name in ("ibsim", "ibnetdiscover"))
    libraries = [
        path
        for folder in FOLDERS
        if folder
        for path in Path(folder).glob("**/umad2sim/libumad2sim.so")
    ]
    if not (ibsim and tool and libraries):
        pytest.skip("ibsim-utils, libumad2sim0 and infiniband-diags are not installed")
    servers = []

    def answer(net, host):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        path = tmp_path / "net"
        path.write_text(net)
        names = {"IBSIM_SERVER_PORT": str(port), "IBSIM_SOCKNAME": f"placer{port}"}
        environment = os.environ | names
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        server = subprocess.Popen(
            [ibsim, "-s", path], stdin=subprocess.PIPE, env=environment, **quiet
        )
        servers.append(server)
        environment |= {"LD_PRELOAD": str(libraries[0]), "SIM_HOST": host}
        return first_answer(tool, environment)

    yield answer
    for server in servers:
        server.kill()
        server.communicate()


def first_answer(tool, environment):
    """The answer of the tool, once the simulator takes connections."""
    for _ in range(20):
        time.sleep(0.2)
        found = subprocess.run(
            [tool], env=environment, capture_output=True, text=True, timeout=20
        )
        if found.returncode == 0 and "Switch" in found.stdout:
            return found.stdout
    pytest.skip(f"ibnetdiscover does not answer: {found.stderr[:200]}")


def test_real_answer(discover, tmp_path):
    """Three units of two hosts on two rails each come back from the real tool."""
    text = discover(rail_fabric(num_units=3).text(), "H-0000000010000000")
    machine, notes = machine_of(tmp_path, text, hardware=cases.H100)
    found = nodes_of_domains(machine, "rails").values()
    assert sorted(map(sorted, found)) == [["h0", "h1"], ["h2", "h3"], ["h4", "h5"]]
    assert not any("not understood" in note for note in notes)

"""Fabrics that ibsim simulates, as the real ``ibnetdiscover`` prints them."""

import os
import socket
import subprocess
import time
from pathlib import Path

import pytest

from placer.formats.machines.infiniband import read_fabric
from tests.clients.needs import missing, program
from tests.clients.processes import Done, run
from tests.readers import cases
from tests.readers.cases import machine_of, nodes_of_domains, tier_names


def library():
    """The library that stands for the InfiniBand devices."""
    folders = ["/usr/lib", *os.environ.get("LD_LIBRARY_PATH", "").split(":")]
    for folder in filter(None, folders):
        for path in Path(folder).glob("**/umad2sim/libumad2sim.so"):
            return path
    return missing("libumad2sim.so is not installed (package libumad2sim0)")


@pytest.fixture
def discover(tmp_path):
    """What ibnetdiscover prints of a net, seen from one of its adapters."""
    ibsim = program("ibsim", "ibsim-utils")
    tool = program("ibnetdiscover", "infiniband-diags")
    umad = library()
    servers = []

    def answer(net, adapter):
        port = free_port()
        path = tmp_path / "net"
        path.write_text(net)
        names = {"IBSIM_SERVER_PORT": str(port), "IBSIM_SOCKNAME": f"placer{port}"}
        surroundings = os.environ | names
        # It takes commands from standard input, and spins when that ends.
        with (tmp_path / "log").open("w") as log:
            servers.append(
                subprocess.Popen(
                    [ibsim, "-s", path],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    env=surroundings,
                )
            )
        client = {"LD_PRELOAD": str(umad), "SIM_HOST": adapter}
        return first_answer(tool, surroundings | client)

    try:
        yield answer
    finally:
        for server in servers:
            server.kill()
            server.communicate()


def free_port():
    """A port that nobody has just now."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def first_answer(tool, environment):
    """The answer of the tool, once the simulator takes connections."""
    done = Done(0, "", "")
    for _ in range(40):
        done = run([tool], environment)
        if done.status == 0 and "Switch" in done.output:
            return done.output
        time.sleep(0.2)
    return missing(f"ibnetdiscover does not answer: {done.error[:200]}")


def fat_tree(pods, units, hosts, rails):
    """A net for ibsim of three levels, rail-optimised.

    A unit has a leaf a rail, and each of its hosts an adapter on every leaf. The units
    of a pod share a spine a rail by two links to each leaf, the pods two core switches.
    """
    links = {}

    def link(a, b):
        ends = [links.setdefault(name, []) for name in (a, b)]
        for own, other, far in zip(ends, (b, a), ends[::-1], strict=True):
            own.append((other, len(far) + (own is ends[0])))

    for pod in range(pods):
        for rail in range(rails):
            spine = f"MF0;spine{pod}-{rail}:Q/U1"
            for core in range(2):
                link(spine, f"MF0;core{core}:Q/U1")
            for unit in range(pod * units, (pod + 1) * units):
                leaf = f"MF0;leaf{unit}-{rail}:Q/U1"
                link(leaf, spine)
                link(leaf, spine)
                for host in range(unit * hosts, (unit + 1) * hosts):
                    link(leaf, f"h{host} mlx5_{rail}")
    blocks = []
    for name, ports in links.items():
        kind = "Switch" if ";" in name else "Hca"
        rows = [f'[{k}] "{o}"[{e}]' for k, (o, e) in enumerate(ports, start=1)]
        blocks.append("\n".join([f'{kind} {len(ports)} "{name}"', *rows]))
    return "\n\n".join(blocks) + "\n"


def test_fat_tree(discover, tmp_path):
    """Two pods of two units of two hosts on four rails come back as they were made."""
    text = discover(fat_tree(2, 2, 2, 4), "h0 mlx5_0")
    machine, notes = machine_of(tmp_path, text, hardware=cases.H100)
    assert tier_names(machine) == ["node", "rails", "spine", "core"]
    assert machine.num_nodes == 8

    def hosts(tier):
        return sorted(map(sorted, nodes_of_domains(machine, tier).values()))

    assert hosts("rails") == [[f"h{k}", f"h{k + 1}"] for k in range(0, 8, 2)]
    assert hosts("spine") == [[f"h{k}" for k in range(p, p + 4)] for p in (0, 4)]
    assert nodes_of_domains(machine, "rails").keys() == {
        "+".join(f"leaf{unit}-{rail}" for rail in range(4)) for unit in range(4)
    }
    assert any("leaves a host: 4 on 8 hosts" in note for note in notes)
    assert not any("not understood" in note for note in notes)


def ends(fabric):
    """Every end of every link: node and port, other node and port."""
    return {(i.node, i.port, i.other, i.other_port) for i in fabric.links.values()}


@pytest.mark.slow
def test_captured_fabric(discover, tmp_path, samples):
    """A fabric of 582 adapters, simulated and printed anew, is the same machine."""
    dump = (samples / "topograph" / "ibnetdiscover-dgx-h100.out").read_text()
    text = discover(dump, "H-e09d730300156ff6")
    ours, real = read_fabric(dump, "captured"), read_fabric(text, "real")
    assert real.descriptions == ours.descriptions
    assert len(real.descriptions) == 622
    assert ends(real) == ends(ours)
    assert sum(end[0].startswith("S-") for end in ends(real)) == 1646
    machines = [
        machine_of(tmp_path, each, hardware=cases.H100)[0] for each in (dump, text)
    ]
    tiers = [
        {
            tier: sorted(
                (name, sorted(nodes))
                for name, nodes in nodes_of_domains(machine, tier).items()
            )
            for tier in tier_names(machine)[1:]
        }
        for machine in machines
    ]
    assert tiers[0] == tiers[1]
    assert sorted(machines[0].node_names) == sorted(machines[1].node_names)

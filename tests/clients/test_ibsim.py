"""Fabrics that ibsim simulates, as the real ``ibnetdiscover`` prints them."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from placer.formats.machines.infiniband import read_fabric
from tests.clients.needs import missing, program
from tests.clients.processes import Done, free_port, run
from tests.readers import cases
from tests.readers.cases import machine_of, nodes_of_domains, tier_names


def library():
    """The library that stands for the InfiniBand devices."""
    folders = ["/usr/lib", *os.environ.get("LD_LIBRARY_PATH", "").split(":")]
    for folder in filter(None, folders):
        for path in Path(folder).glob("**/umad2sim/libumad2sim.so"):
            return path
    return missing("libumad2sim.so is not installed (package libumad2sim0)")


def discovered(folder, net, adapter):
    """What ibnetdiscover prints of a net, seen from one of its adapters."""
    ibsim, port = program("ibsim", "ibsim-utils"), free_port()
    tool = program("ibnetdiscover", "infiniband-diags")
    client = {"LD_PRELOAD": str(library()), "SIM_HOST": adapter}
    names = {"IBSIM_SERVER_PORT": str(port), "IBSIM_SOCKNAME": f"placer{port}"}
    (folder / "net").write_text(net)
    # It takes commands from standard input, and spins when that ends.
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [ibsim, "-s", folder / "net"],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=os.environ | names,
        )
    try:
        return first_answer(tool, os.environ | names | client)
    finally:
        server.kill()
        server.communicate()


def first_answer(tool, environment):
    """The answer of the tool, once the simulator takes connections."""
    done = Done(0, "", "")
    for _ in range(40):
        done = run([tool], environment)
        if done.status == 0 and "Switch" in done.output:
            return done.output
        time.sleep(0.2)
    return missing(f"ibnetdiscover does not answer: {done.error[:200]}")


def ends(fabric):
    """Every end of every link: node and port, other node and port."""
    return {(i.node, i.port, i.other, i.other_port) for i in fabric.links.values()}


@pytest.mark.slow
def test_captured_fabric(tmp_path, samples):
    """A fabric of 582 adapters, simulated and printed anew, is the same machine."""
    dump = (samples / "topograph" / "ibnetdiscover-dgx-h100.out").read_text()
    text = discovered(tmp_path, dump, "H-e09d730300156ff6")
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

"""Jobs of real torchrun and gloo on this machine, and what their groups must be."""

import json
import sys
from pathlib import Path

from tests.clients import needs
from tests.clients import processes as local

# Every axis of size 2, with its stride: the order tp-cp-ep-dp-pp of the plans.
_STRIDES = {"pp": 4, "dp": 2, "tp": 1}


def need_torchrun():
    """Skip the test, or fail it, where torchrun is not beside this Python."""
    if not Path(sys.executable).with_name("torchrun").exists():
        needs.missing("torchrun is not installed (Python package torch)")


def on_hosts(hosts, command, **environ):
    """The same command for every host, all to meet at a port of their own."""
    port = str(local.free_port())
    shared = {"PET_MASTER_PORT": port, "MASTER_PORT": port} | environ
    return [(command, local.environment(PLACER_HOST=host, **shared)) for host in hosts]


def probe(folder):
    """Arguments of torchrun that make its workers show their seats."""
    (folder / "probe.sh").write_text(local.PROBE)
    return ["--no-python", "bash", str(folder / "probe.sh")]


def gloo_worker(ranks, *plan):
    """Script and arguments of a worker; with a plan, placer.launch gives its rank."""
    sizes = {axis: 2 for axis, stride in _STRIDES.items() if stride < ranks}
    script = local.ROOT / "tests/clients/gloo_worker.py"
    return [str(script), json.dumps(sizes), *plan]


def sums_of(seats):
    """What the all-reduces of every rank give: members differ by the axis's stride."""
    bits = [1 << 8 * int(host[1:]) + gpu for host, gpu in seats]
    return {
        rank: {
            axis: [rank + (rank ^ stride), bits[rank] + bits[rank ^ stride]]
            for axis, stride in _STRIDES.items()
            if stride < len(seats)
        }
        for rank in range(len(seats))
    }


def read_sums(text):
    """What the all-reduces of every rank gave."""
    rows = [line.split(" ", 2) for line in text.splitlines() if line.startswith("sums")]
    found = {int(rank): json.loads(sums) for _, rank, sums in rows}
    assert len(found) == len(rows)
    return found

"""Memory: an estimate near what is taken, and a refusal before anything is built."""

import sys

import pytest

from placer.api.place import place
from placer.base.errors import InputError
from placer.job.read import read_job
from placer.placement import memory_need as module
from placer.placement.memory_need import check_memory, memory_need
from placer.topology.read import read_topology
from tests.commands import python

PEAK = """\
import placer
machine, job = placer.read_topology({machine!r}), placer.read_job({job!r})
placer.place(machine, job, time_limit=20)
# The peak of getrusage may be that of the process which started this one.
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
"""

JOB = """\
format: placer/job
version: 1
name: peak
parallelism: {ep: 32, pp: 4, dp: 4096}
model: deepseek-v3
sequence: 8192
micro_batch: 1
micro_batches: 4
weights: {tp: 4000, pp: 40, dp: 4}
compute: {tflops_per_gpu: 500}
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is in KiB there")
def test_the_estimate_is_near_the_peak(tmp_path):
    """The peak of a real run is at most 1.25 times the estimate, at least a third."""
    machine, path = "block:8 rack:16 node:16 gpu:8", tmp_path / "job.yaml"
    path.write_text(JOB)
    script = PEAK.format(machine=machine, job=str(path))
    run = python("-c", script, check=True)
    topology, peak = read_topology(machine), int(run.stdout) * 1024
    size = topology.num_gpus, topology.num_nodes, len(topology.tiers)
    assert peak / 1.25 <= memory_need(*size, read_job(str(path))) <= 3 * peak


def test_too_little_memory_is_an_input_error(monkeypatch):
    """Place and score refuse, with both figures, before anything is built."""
    monkeypatch.setattr(module, "memory_limit", lambda: 50e6)
    machine, job = read_topology("dgx-h100-4x8"), read_job("quickstart")
    for call in (lambda: check_memory(machine, job), lambda: place(machine, job)):
        with pytest.raises(InputError, match=r"need about .* MB of memory.*50 MB"):
            call()


@pytest.mark.skipif(sys.platform != "linux", reason="ulimit -v")
def test_absurd_machines_are_refused_at_once():
    """Little memory is enough to refuse a machine of a million million nodes."""
    words = ["place", "-t", "a:1000000 b:1000000 gpu:8", "-j", "quickstart"]
    script = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2 * 10**9, 2 * 10**9))\n"
        f"from placer.cli.main import main\nmain({words!r})"
    )
    run = python("-c", script)
    assert run.returncode == 2
    assert "of memory" in run.stderr
    assert "the most is 1048576" in run.stderr

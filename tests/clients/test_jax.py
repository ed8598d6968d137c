"""The emitted JAX loader and placer.launch under real JAX, on devices of the CPU."""

import json
import sys
from random import Random

import pytest

from placer.emit import emit
from placer.placement.plan_file import write_plan
from tests.clients import needs
from tests.clients import processes as local
from tests.emit.readback import FREE, plan_of


def command(folder, plan, sizes):
    """The worker, with the plan's files in a folder."""
    needs.module("jax")
    plan.job["parallelism"] = dict(sizes)
    write_plan(plan, folder / "by-plan.json")
    files = emit(plan, "jax", folder / "jax")
    worker = local.ROOT / "tests/clients/jax_worker.py"
    return [sys.executable, str(worker), str(folder / "by-plan.json"), str(files)]


def cpu(devices, **more):
    flags = f"--xla_force_host_platform_device_count={devices}"
    return local.environment(JAX_PLATFORMS="cpu", XLA_FLAGS=flags, **more)


def places(text):
    """What the processes tell of every rank: device, and its group along every axis."""
    rows = [json.loads(line[7:]) for line in text.splitlines() if line[:7] == "places "]
    found = {int(rank): place for row in rows for rank, place in row.items()}
    assert len(found) == sum(map(len, rows))
    return found


def expected(numbers, sizes):
    """Places by the devices of all ranks: tp counts fastest, then dp, then pp."""
    stride = {"tp": 1, "cp": sizes["tp"], "dp": sizes["tp"]}
    stride["pp"] = sizes["tp"] * sizes["dp"]

    def group(rank, axis):
        size = sizes.get(axis, 1)
        first = rank - rank // stride[axis] % size * stride[axis]
        return [numbers[first + k * stride[axis]] for k in range(size)]

    return {
        rank: [number, {axis: group(rank, axis) for axis in stride}]
        for rank, number in enumerate(numbers)
    }


@pytest.mark.slow
def test_64_devices_of_one_process(tmp_path):
    """A rehearsal: the k-th device of 64 stands for the GPUs, node after node.

    Every mesh position, and every group along an axis, has the plan's devices in order.
    """
    seats = [(f"n{k}", gpu) for k in range(8) for gpu in range(8)]
    Random(5).shuffle(seats)
    plan, sizes = plan_of(seats), {"tp": 4, "dp": 8, "pp": 2}
    job = [(command(tmp_path, plan, sizes), cpu(64))]
    text = local.output(local.run_all(tmp_path / "run", job))
    order = list(dict.fromkeys(host for host, _ in seats))
    numbers = [8 * order.index(host) + gpu for host, gpu in seats]
    assert places(text) == expected(numbers, sizes)


@pytest.mark.slow
def test_four_processes(tmp_path):
    """Processes get the plan's ids, and the mesh has all their devices in its order."""
    plan, sizes = plan_of(FREE), {"tp": 2, "dp": 2, "pp": 2}
    argv, port = command(tmp_path, plan, sizes), str(local.free_port())
    job = [
        (argv, cpu(2, PLACER_HOST=host, MASTER_PORT=port))
        for host in ("n1", "n2", "n3", "n4")
    ]
    text = local.output(local.run_all(tmp_path / "run", job))
    numbers = [100 * ["n3", "n1", "n4", "n2"].index(h) + gpu for h, gpu in FREE]
    assert places(text) == expected(numbers, sizes)
    found = local.verdict(tmp_path, plan, text)
    assert (found["ok"], found["unit"], found["reported"]) == (True, "node", 4)

"""The emitted loader of JAX, and the library's, on a stand-in for it.

Ray's runs in tests/clients.
"""

from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import SimpleNamespace

import pytest

from placer.base.errors import InputError
from placer.emit import emit
from placer.launch import devices_in_plan_order
from tests.emit.readback import CONTIGUOUS, FREE, plan_of


class FakeJax:
    """Stands in for JAX: processes of some devices, ids with gaps, in any order."""

    def __init__(self, devices_of_process):
        self._devices = [
            SimpleNamespace(process_index=p, id=2048 * p + k, local_hardware_id=k)
            for p, count in enumerate(devices_of_process)
            for k in range(count)
        ]
        self.sharding = SimpleNamespace(Mesh=lambda array, names: (array, names))

    def devices(self):
        return self._devices[::-1]


@pytest.fixture(autouse=True)
def no_address(monkeypatch):
    for name in ("PLACER_MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)


def jax(folder, seats, devices):
    """The emitted loader, where each process of JAX has so many devices."""
    path = Path(emit(plan_of(seats), "jax", folder / "jax")) / "placer_mesh.py"
    spec = spec_from_file_location(path.stem, path)
    loader = module_from_spec(spec)
    spec.loader.exec_module(loader)
    fake = FakeJax(devices)
    loader.import_module = lambda name: fake if name == "jax" else import_module(name)
    return loader


def test_arguments_of_a_host(tmp_path, monkeypatch):
    """A host gets its place in the plan's order; another host gets an error."""
    loader = jax(tmp_path, CONTIGUOUS, [2] * 4)
    for host, process in (("n3", 0), ("n2", 3), ("n1.cluster", 1)):
        monkeypatch.setenv("PLACER_HOST", host)
        assert loader.arguments() == {
            "coordinator_address": "n3:29500",
            "num_processes": 4,
            "process_id": process,
        }
    monkeypatch.setenv("PLACER_HOST", "N1")
    with pytest.raises(RuntimeError, match="'N1' is not in the plan"):
        loader.arguments()


@pytest.mark.parametrize(
    ("seats", "processes", "seen"),
    [
        # Processes that see just the plan's GPUs count them in order; too few stop.
        ([("n1", 7), ("n1", 4)], [2], [1, 0]),
        ([("n1", 7), ("n1", 4)], [8], [7, 4]),
        ([("n1", 3), ("n1", 1)], [4], [3, 1]),
        ([("n1", 3), ("n1", 1)], [3], "3 devices, the plan uses GPU 3"),
        ([("n1", 7), ("n1", 4)], [4], "4 devices, the plan uses GPU 7"),
        # Ids have gaps and come in any order: process and place decide.
        (FREE, [2] * 4, [0, 2049, 4096, 6145, 2048, 1, 6144, 4097]),
        # One process with a device for every rank stands for all hosts, in their
        # order: n3, n1, n4, n2 by lowest rank, two GPUs each.
        (FREE, [8], [0, 3, 4, 7, 2, 1, 6, 5]),
        (FREE, [4], "hosts"),
        (FREE, [2, 2], "hosts"),
    ],
)
def test_devices(tmp_path, seats, processes, seen):
    """Devices by rank, of a part of a node too, and in a rehearsal.

    The library puts them in the order that the loader does.
    """
    loader, plan = jax(tmp_path, seats, processes), plan_of(seats)
    devices = loader.import_module("jax").devices()
    if isinstance(seen, str):
        with pytest.raises(RuntimeError, match=seen):
            loader.devices()
        with pytest.raises(InputError, match=seen):
            devices_in_plan_order(plan, devices)
    else:
        for found in (loader.devices(), devices_in_plan_order(plan, devices)):
            assert [device.id for device in found] == seen


def test_one_process_a_rank():
    """The process is the rank, which the library alone can tell."""
    devices = FakeJax([1] * 8).devices()
    found = devices_in_plan_order(plan_of(FREE), devices)
    assert [device.process_index for device in found] == [*range(8)]

"""The emitted loaders of JAX and of Ray, on stand-ins for both."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from placer.emit import emit
from tests.emit.readback import CONTIGUOUS, FREE, plan_of
from tests.emit.stubs import FakeJax, load_jax, load_module


@pytest.fixture(autouse=True)
def no_address(monkeypatch):
    for name in ("PLACER_MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)


def jax(folder, seats, devices, **sizes):
    """The loader of JAX where each process has so many devices."""
    return load_jax(
        Path(emit(plan_of(seats, **sizes), "jax", folder / "jax")), FakeJax(devices)
    )


def test_the_mesh_has_the_job_s_axes(tmp_path):
    """A rank's position in the mesh is its coordinate: 2 x tp 2 x ... by hand."""
    array, names = jax(tmp_path, FREE, [2, 2, 2, 2], tp=2, dp=2, pp=2).mesh()
    assert names == ("pp", "dp", "cp", "tp")
    assert array.shape == (2, 2, 1, 2)
    # Rank 6 = pp 1, dp 1, tp 0 is on n2 (process 3), GPU 0.
    device = array[1, 1, 0, 0]
    assert (device.process_index, device.local_hardware_id) == (3, 0)


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
        ([("n1", 7), ("n1", 4)], [4], "sees 4 devices, the plan uses GPU 7"),
        # One process with a device for every rank stands for all hosts, in their
        # order: n3, n1, n4, n2 by lowest rank, two GPUs each.
        (FREE, [8], [0, 3, 4, 7, 2, 1, 6, 5]),
        (FREE, [4], "processes, but the plan has 4 hosts"),
        (FREE, [2, 2], "processes, but the plan has 4 hosts"),
    ],
)
def test_devices(tmp_path, seats, processes, seen):
    """Devices by rank, of a part of a node too, and in a rehearsal."""
    loader = jax(tmp_path, seats, processes)
    if isinstance(seen, str):
        with pytest.raises(RuntimeError, match=seen):
            loader.devices()
    else:
        assert [device.id for device in loader.devices()] == seen


def test_actors_of_ray(tmp_path, monkeypatch):
    """Bundles are tied to nodes, every GPU has an actor, and that finds its rank."""
    # GPU 0 of n1 has no rank.
    plan = plan_of([("n1", 1), ("n3", 0), ("n3", 1)])
    loader = load_module(Path(emit(plan, "ray", tmp_path)) / "placer_ray.py")
    gpus = ["1"]
    context = SimpleNamespace(
        get_node_labels=lambda: {"placer-host": "n1"},
        get_accelerator_ids=lambda: {"GPU": gpus},
    )
    loader.import_module = lambda _name: SimpleNamespace(
        placement_group=lambda bundles, **options: (bundles, options),
        PlacementGroupSchedulingStrategy=lambda group, **options: (group, options),
        get_runtime_context=lambda: context,
    )
    bundles, options = loader.placement_group(name="job")
    assert bundles == [{"GPU": 2}, {"GPU": 2}]
    assert options == {
        "strategy": "STRICT_SPREAD",
        "bundle_label_selector": [{"placer-host": "n1"}, {"placer-host": "n3"}],
        "name": "job",
    }
    index = "placement_group_bundle_index"
    assert loader.strategies("g") == [("g", {index: k}) for k in (0, 0, 1, 1)]
    rank = {"RANK": "0", "WORLD_SIZE": "3", "LOCAL_RANK": "0"}
    address = {"MASTER_ADDR": "n1", "MASTER_PORT": "29500"}
    assert loader.environment() == rank | address
    monkeypatch.setenv("MASTER_PORT", "1234")
    monkeypatch.setenv("PLACER_MASTER_ADDR", "10.0.0.7")
    again = loader.environment()
    assert (again["MASTER_ADDR"], again["MASTER_PORT"]) == ("10.0.0.7", "1234")
    gpus[:] = ["0"]
    assert loader.rank() is None
    with pytest.raises(RuntimeError, match="no rank on this actor's GPU"):
        loader.environment()

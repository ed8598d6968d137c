"""The loader beside a plan's bundles, with a Ray that is made up."""

from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from placer.emit import emit
from tests.emit.readback import Seat, plan_of
from tests.emit.stubs import load_module

# GPU 0 of n1 has no rank.
SEATS: list[Seat] = [("n1", 1), ("n3", 0), ("n3", 1)]


@pytest.fixture
def loader(tmp_path: Path) -> ModuleType:
    """The module, in an actor on GPU 1 of n1."""
    folder = emit(plan_of(SEATS), "ray", tmp_path / "ray")
    module = load_module(Path(folder) / "placer_ray.py")
    module.made = []  # type: ignore[attr-defined]
    module.labels = {"placer-host": "n1"}  # type: ignore[attr-defined]
    module.gpus = ["1"]  # type: ignore[attr-defined]

    def placement_group(bundles: Any, **options: Any) -> str:
        module.made.append((bundles, options))  # type: ignore[attr-defined]
        return "group"

    context = SimpleNamespace(
        get_node_labels=lambda: module.labels,
        get_accelerator_ids=lambda: {"GPU": module.gpus},
    )
    ray = SimpleNamespace(
        placement_group=placement_group,
        PlacementGroupSchedulingStrategy=lambda group, **options: (group, options),
        get_runtime_context=lambda: context,
    )
    module.import_module = lambda _name: ray  # type: ignore[attr-defined]
    return module


def test_bundles_are_tied_to_their_nodes(loader: ModuleType) -> None:
    """A bundle a node, each on its own, with all GPUs up to the last in use."""
    assert loader.placement_group(name="job") == "group"
    ((bundles, options),) = loader.made
    assert bundles == [{"GPU": 2}, {"GPU": 2}]
    assert options == {
        "strategy": "STRICT_SPREAD",
        "bundle_label_selector": [{"placer-host": "n1"}, {"placer-host": "n3"}],
        "name": "job",
    }


def test_an_actor_for_every_gpu(loader: ModuleType) -> None:
    """Every GPU of a bundle gets an actor, by node rank."""
    index = "placement_group_bundle_index"
    assert loader.strategies("g") == [("g", {index: k}) for k in (0, 0, 1, 1)]


def test_an_actor_finds_its_rank(
    loader: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rank and address come from the plan; variables replace the address and port."""
    monkeypatch.delenv("MASTER_PORT", raising=False)
    monkeypatch.delenv("PLACER_MASTER_ADDR", raising=False)
    assert loader.environment() == {
        "RANK": "0",
        "WORLD_SIZE": "3",
        "LOCAL_RANK": "0",
        "MASTER_ADDR": "n1",
        "MASTER_PORT": "29500",
    }
    monkeypatch.setenv("MASTER_PORT", "1234")
    monkeypatch.setenv("PLACER_MASTER_ADDR", "10.0.0.7")
    again = loader.environment()
    assert (again["MASTER_ADDR"], again["MASTER_PORT"]) == ("10.0.0.7", "1234")


def test_a_gpu_without_a_rank(loader: ModuleType) -> None:
    """An actor on such a GPU is told so."""
    loader.gpus = ["0"]  # type: ignore[attr-defined]
    assert loader.rank() is None
    with pytest.raises(RuntimeError, match="no rank on this actor's GPU"):
        loader.environment()

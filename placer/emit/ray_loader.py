"""The plan's placement group and ranks for Ray; reads bundles.json, its neighbour.

Every Ray node has its host's name as a label:

    ray start --labels "placer-host=$(uname -n)" ...

The driver makes the group and an actor for every GPU; each actor finds its rank:

    import ray, placer_ray
    group = placer_ray.placement_group()
    ray.get(group.ready())
    strategies = placer_ray.strategies(group)
    actors = [Trainer.options(num_gpus=1, scheduling_strategy=s).remote()
              for s in strategies]

    # in the actor, before torch.distributed.init_process_group("nccl"):
    environment = placer_ray.environment()
    os.environ.update(environment)

An actor on a GPU without a rank gets None from ``rank()`` and can end. MASTER_PORT
replaces the port of rank 0, PLACER_MASTER_ADDR its address.
"""

from __future__ import annotations

import json
import os
from importlib import import_module
from pathlib import Path
from typing import Any

_PLAN: dict[str, Any] = json.loads(Path(__file__).with_name("bundles.json").read_text())
_LABEL = "placer-host"


def placement_group(**options: Any) -> Any:
    """The placement group: a bundle for every node of the plan, in node rank order."""
    return import_module("ray.util").placement_group(
        _PLAN["bundles"],
        strategy=_PLAN["strategy"],
        bundle_label_selector=_PLAN["bundle_label_selector"],
        **options,
    )


def strategies(group: Any) -> list[Any]:
    """A scheduling strategy for an actor on every GPU of the group, by node rank."""
    module = import_module("ray.util.scheduling_strategies")
    return [
        module.PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=k)
        for k, ranks in enumerate(_PLAN["ranks"])
        for _ in ranks
    ]


def rank() -> int | None:
    """Rank of the actor that calls this, by its node and GPU; None without one."""
    context = import_module("ray").get_runtime_context()
    labels = context.get_node_labels()
    gpus = context.get_accelerator_ids()["GPU"]
    return rank_on(labels[_LABEL], [int(gpu) for gpu in gpus])


def rank_on(host: str, gpus: list[int]) -> int | None:
    """Rank on the one GPU of a host; None where the plan has none."""
    (gpu,) = gpus
    ranks = _PLAN["ranks"][_hosts().index(host)]
    return ranks[gpu] if gpu < len(ranks) else None


def environment() -> dict[str, str]:
    """RANK, WORLD_SIZE and what else ``env://`` wants, for the actor's own GPU."""
    own = rank()
    if own is None:
        raise RuntimeError("placer: the plan has no rank on this actor's GPU")
    return {
        "RANK": str(own),
        "WORLD_SIZE": str(_PLAN["world_size"]),
        "LOCAL_RANK": "0",  # Ray shows an actor its own GPU alone
        "MASTER_ADDR": os.environ.get("PLACER_MASTER_ADDR") or _hosts()[0],
        "MASTER_PORT": os.environ.get("MASTER_PORT") or "29500",
        **_PLAN.get("environment", {}),
    }


def _hosts() -> list[str]:
    return [row[_LABEL] for row in _PLAN["bundle_label_selector"]]

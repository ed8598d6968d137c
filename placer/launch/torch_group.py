"""PyTorch: the arguments of ``init_process_group`` that carry out a plan."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict

from placer.launch.ranks import rank_of_this_process

if TYPE_CHECKING:
    from placer.placement.plan import Plan


class TorchArguments(TypedDict):
    """Keyword arguments of ``torch.distributed.init_process_group``."""

    init_method: str
    rank: int
    world_size: int


def torch_arguments(
    plan: Plan, environ: Mapping[str, str] | None = None
) -> TorchArguments:
    """Where to meet, and this process's rank by the plan.

    Under torchrun processes meet at the store of its agents (``env://``), wherever rank
    0 is. Otherwise rank 0 keeps the store: at ``PLACER_MASTER_ADDR`` or its host, port
    ``MASTER_PORT`` or 29500. An inherited ``MASTER_ADDR`` is ignored: it often is the
    first host by name.

    Raises
    ------
    InputError
        If the plan does not say which rank this process has.
    """
    env = os.environ if environ is None else environ
    address = env.get("PLACER_MASTER_ADDR") or plan.host_of_rank[0]
    port = env.get("MASTER_PORT") or "29500"
    by_agent = env.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    return {
        "init_method": "env://" if by_agent else f"tcp://{address}:{port}",
        "rank": rank_of_this_process(plan, env),
        "world_size": plan.world_size,
    }

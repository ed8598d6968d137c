"""What has to be done to go from one plan to another: nodes, ranks, state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from placer.placement.host_orders import in_natural_order
from placer.report.moves import moved_ranks
from placer.report.state_bytes import bytes_to_receive

if TYPE_CHECKING:
    from collections.abc import Mapping

    from placer.job.model import Job
    from placer.placement.plan import Plan
    from placer.report.matching import Matching


@dataclass(frozen=True)
class Restart:
    """The work of a restart in the new placement.

    Attributes
    ----------
    nodes : tuple of str
        Nodes that held or hold a rank which moved, starts or stops, in
        natural order.
    started, stopped : int
        Ranks that only the new, only the old plan has.
    to_new, to_old : mapping of str to float, or None
        Bytes that nodes must receive to go to the new placement, and back again:
        ``parameters`` and ``optimizer``. None without a job that has a model.
    """

    nodes: tuple[str, ...]
    started: int
    stopped: int
    to_new: Mapping[str, float] | None
    to_old: Mapping[str, float] | None

    def to_dict(self) -> dict[str, Any]:
        """The work as plain data."""
        state = None
        if self.to_new is not None and self.to_old is not None:
            state = {"to_new": _with_total(self.to_new)}
            state["to_old"] = _with_total(self.to_old)
        return {
            "nodes_changed": len(self.nodes),
            "nodes": list(self.nodes),
            "ranks_started": self.started,
            "ranks_stopped": self.stopped,
            "state_bytes": state,
        }


def restart(old: Plan, new: Plan, matching: Matching, job: Job | None) -> Restart:
    """The work of going from ``old`` to ``new``; with a job also the state to move.

    Raises
    ------
    InputError
        If the plans are not of this job's axes.
    """
    old_moved, new_moved = moved_ranks(old, new, matching)
    stopped = np.setdiff1d(np.arange(old.world_size), matching.old_rank)
    started = np.setdiff1d(np.arange(new.world_size), matching.new_rank)
    nodes = {
        plan.nodes[node]
        for plan, ranks in ((old, (old_moved, stopped)), (new, (new_moved, started)))
        for node in np.unique(plan.node_of_rank[np.concatenate(ranks)]).tolist()
    }
    return Restart(
        nodes=tuple(in_natural_order(nodes)),
        started=len(started),
        stopped=len(stopped),
        to_new=None if job is None else bytes_to_receive(old, new, job),
        to_old=None if job is None else bytes_to_receive(new, old, job),
    )


def _with_total(parts: Mapping[str, float]) -> dict[str, float]:
    return {**parts, "total": sum(parts.values())}

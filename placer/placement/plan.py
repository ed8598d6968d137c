"""The plan: a placement with its score, bound and provenance, as plain data.

A plan stands alone: it names its nodes with their domains, and the axes of its job, so
that reports and emitters need nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from placer.base.arrays import IntArray
from placer.base.loading import Shown, load
from placer.documents.facts import ANY, HOSTS, INDICES, NAMES, TEXT, whole
from placer.documents.keys import Key, key, keys_of, list_of, map_of
from placer.job.axes import Parallelism
from placer.placement import plan_keys as of
from placer.placement.plan_rules import RULES
from placer.placement.score import Score

if TYPE_CHECKING:
    import networkx as nx


def period_of(score: Mapping[str, Any]) -> str:
    """What times of a score are of: a step, or of a workload a cycle."""
    return "cycle" if score.get("roles") else "step"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Plan(Shown):
    """One plan of R ranks; its attributes are the keys of its file form, `to_dict`."""

    is_open: ClassVar = True  # a file may have other keys, and null for all but needed

    verdict: Mapping[str, Any] = key(
        of.VERDICT, "what the plan is worth, and whether to move", dict, unsaid=True
    )
    assumed: Sequence[Mapping[str, Any]] = key(
        of.ASSUMED, "what no input says", (), unsaid=True
    )
    what_if: Sequence[Mapping[str, Any]] = key(
        of.WHAT_IF,
        "what the plan would save were an assumption another",
        (),
        unsaid=True,
    )
    topology: Mapping[str, Any] = key(of.TOPOLOGY, "the machine")
    job: Mapping[str, Any] = key(of.JOB, "the job")
    _ranks = Key(whole(1), "how many ranks there are", called="world_size")
    nodes: tuple[str, ...] = key(
        HOSTS, "nodes that hold ranks, in the order of their first"
    )
    # The node tier is left out.
    domains: Mapping[str, tuple[str, ...]] = key(
        map_of(NAMES), "tier: domain of each of `nodes`", dict
    )
    # node_of_rank and gpu_of_rank: shape (R,).
    node_of_rank: IntArray = key(INDICES, "index into `nodes` for each rank")
    gpu_of_rank: IntArray = key(INDICES, "index of its GPU in the node for each rank")
    role_of_rank: tuple[str, ...] = key(
        list_of(TEXT), "of a workload: role of each rank", (), unsaid=True
    )
    instance_of_rank: IntArray = key(
        INDICES,
        "of a workload: instance of that role",
        lambda: np.zeros(0, np.int64),
        unsaid=True,
    )
    rules: Mapping[str, Any] = key(
        RULES, "rules that it was made under", dict, unsaid=True
    )
    score: Score = key(of.SCORE, "what it costs", Score)
    baselines: Mapping[str, Any] = key(
        of.BASELINES, "the orders that a launcher would give", dict
    )
    bound: Mapping[str, Any] = key(of.PROVED, "what is proved", dict)
    advice: Mapping[str, Any] = key(
        ANY, "what another rank order or a free launcher would save", dict, unsaid=True
    )
    previous: Mapping[str, Any] = key(
        of.PREVIOUS, "beside an older plan", dict, unsaid=True
    )
    request: Mapping[str, Any] = key(
        ANY, "of `placer allocate -o`: what to ask a scheduler for", dict, unsaid=True
    )
    # As `placer.placement.inputs` writes it; empty in older plans.
    inputs: Mapping[str, Any] = key(
        ANY, "machine, job, hosts and rules that it was made of", dict, unsaid=True
    )
    solver: Mapping[str, Any] = key(of.SOLVER, "who made it, and how", dict)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A plain mapping a rank: ``host``, ``gpu``, its domains and coordinates."""
        axes = self.axes
        at = axes.coordinates if axes else {}
        columns = {axis: at[axis].tolist() for axis in (axes.order if axes else ())}
        nodes, gpus = self.node_of_rank.tolist(), self.gpu_of_rank.tolist()
        return [
            {
                "rank": rank,
                "host": self.nodes[node],
                "gpu": gpu,
                **{tier: names[node] for tier, names in self.domains.items()},
                **{axis: column[rank] for axis, column in columns.items()},
            }
            for rank, (node, gpu) in enumerate(zip(nodes, gpus, strict=True))
        ]

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return len(self.node_of_rank)

    @property
    def period(self) -> str:
        """What times of the score are of: a step, or of a workload a cycle."""
        return period_of(self.score)

    @cached_property
    def axes(self) -> Parallelism | None:
        """Axis sizes and rank order of the job; None when the plan has no sizes."""
        sizes = self.job.get("parallelism")
        if not sizes:
            return None
        known = ("tp", "cp", "ep", "pp", "dp", "vp", "etp")
        return Parallelism(
            **{axis: sizes[axis] for axis in known if axis in sizes},
            order=tuple(self.job["order"].split("-")),
        )

    @property
    def outer_tiers(self) -> list[str]:
        """Tiers from the node to the whole machine, innermost first.

        The node is the tier called so, the innermost one where none is; empty in a plan
        that does not name its tiers.
        """
        tiers = list(self.topology.get("tiers", ()))
        return tiers[tiers.index("node") :] if "node" in tiers else tiers

    @cached_property
    def host_of_rank(self) -> tuple[str, ...]:
        """Host name of every rank."""
        return tuple(self.nodes[n] for n in self.node_of_rank)

    @cached_property
    def local_rank(self) -> IntArray:
        """Position of each rank among the ranks of its node, by rank; shape (R,)."""
        by_node = np.argsort(self.node_of_rank, kind="stable")
        nodes = self.node_of_rank[by_node]
        starts = np.searchsorted(nodes, nodes)
        local = np.empty_like(by_node)
        local[by_node] = np.arange(len(nodes)) - starts
        return local

    def to_networkx(self, tier: str | None = None) -> nx.Graph:
        """Who talks to whom: ranks, or domains of a tier, joined by pairs of ranks.

        Two ranks are a pair where an axis makes them neighbours: in the ring of a
        ``tp``, ``cp``, ``dp`` or ``edp`` group, in the chain of a ``pp`` group, and
        anywhere in an ``ep`` group. An edge has ``pairs`` (axis -> pairs of ranks
        between its ends) and ``weight``, their sum by the job's weights of the hop
        cost. In a job without weights every pair counts 1, and groups of the user's own
        count as well.

        Parameters
        ----------
        tier : str, optional
            Vertices are the domains ``(tier, name)`` that hold ranks, as in
            `Topology.to_networkx`, with the number of their ``ranks``. Without it they
            are ranks, with ``gpu`` and ``domains`` (tier -> name).

        Raises
        ------
        InputError
            If the plan keeps no inputs, or names no domains of such a tier.
        """
        graph: nx.Graph = load("placer.report.graphs").traffic_graph(self, tier)
        return graph

    def to_dict(self) -> dict[str, Any]:
        """The plan in its file form, ready for JSON."""
        told: dict[str, Any] = {"format": "placer/plan", "version": 1}
        for each in keys_of(Plan):
            value = _plain(getattr(self, each.called))
            if value or not each.goes_unsaid:
                told[each.called] = value
        domains = {tier: [*names] for tier, names in self.domains.items()}
        return told | {"domains": domains}


# `help` and the reference say what each attribute is, as the schema does.
Plan.__doc__ = f"{Plan.__doc__}\n\n    Attributes\n    ----------\n" + "\n".join(
    f"    {each.called}\n        {each.says}" for each in keys_of(Plan)
)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    return value if isinstance(value, int) else [*value]

"""The plan: a placement with its score, bound and provenance, as plain data.

A plan stands alone: it names its nodes with their domains, and the axes of its job, so
that reports and emitters need nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from placer.base.arrays import IntArray
from placer.base.loading import Shown, load
from placer.documents.keys import keys_of
from placer.job.axes import Parallelism
from placer.placement.plan_keys import PlanFile
from placer.placement.score import Score

if TYPE_CHECKING:
    import networkx as nx

_KEYS = keys_of(PlanFile)
# What a file does not say where there is none of it.
_MAY_LACK = {
    *("verdict", "assumed", "what_if", "role_of_rank", "instance_of_rank", "rules"),
    *("advice", "previous", "request", "inputs"),
}


def period_of(score: Mapping[str, Any]) -> str:
    """What times of a score are of: a step, or of a workload a cycle."""
    return "cycle" if score.get("roles") else "step"


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Shown):
    """One plan; ``to_dict`` gives its file form.

    Attributes
    ----------
    topology : mapping
        ``name``, ``sha256``, ``tiers`` (names, innermost first), ``scale_up`` (how many
        of them are NVLink tiers).
    job : mapping
        ``name``, ``sha256``, ``order`` (string), ``parallelism`` (axis -> size),
        ``launcher``.
    nodes : tuple of str
        The nodes that hold ranks, in order of their lowest rank.
    domains : mapping of str to tuple of str
        Tier name -> domain name of each entry of ``nodes``; the node tier is left out.
    node_of_rank : ndarray, shape (R,)
        Index into ``nodes``.
    gpu_of_rank : ndarray, shape (R,)
        Index of the GPU inside its node.
    rules : mapping
        The rules it was made under, spare nodes, hosts to avoid that are used; may be
        empty.
    score : Score
        What it costs.
    baselines : mapping
        Name -> what another order costs.
    bound : mapping
        Objective, value, lower bound, gap, and what the bound rests on.
    solver : mapping
        Who made it: version, seed, seconds, why the search ended.
    advice : mapping
        What another rank order or launcher would save; may be empty.
    previous : mapping
        Ranks ``kept``, ``moved`` and ``new`` beside a previous plan; may be empty.
    request : mapping
        Of an allocation: the least strict request for nodes that guarantees its value,
        and which free nodes it does not take; empty elsewhere.
    inputs : mapping
        What it was made of, as `placer.placement.inputs` writes it; empty in older
        plans.
    verdict : mapping
        What it is worth: ``text``, a sentence; and whether to move for it, and what
        that saves. Empty when it was not searched; older plans have the text alone.
    assumed : sequence of mapping
        What no input says: ``key``, ``value``, ``why`` and the ``option`` that says it.
    what_if : sequence of mapping
        What the plan would save with another ``value`` of an assumed ``key``.
    role_of_rank : tuple of str, length R
        Name of the role in a workload; empty for other jobs.
    instance_of_rank : ndarray, shape (R,)
        Instance of that role, counted from 0; empty for other jobs.
    """

    topology: Mapping[str, Any]
    job: Mapping[str, Any]
    nodes: tuple[str, ...]
    domains: Mapping[str, tuple[str, ...]]
    node_of_rank: IntArray
    gpu_of_rank: IntArray
    score: Score = field(default_factory=Score)
    baselines: Mapping[str, Any] = field(default_factory=dict)
    bound: Mapping[str, Any] = field(default_factory=dict)
    solver: Mapping[str, Any] = field(default_factory=dict)
    rules: Mapping[str, Any] = field(default_factory=dict)
    advice: Mapping[str, Any] = field(default_factory=dict)
    previous: Mapping[str, Any] = field(default_factory=dict)
    request: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    verdict: Mapping[str, Any] = field(default_factory=dict)
    assumed: Sequence[Mapping[str, Any]] = ()
    what_if: Sequence[Mapping[str, Any]] = ()
    role_of_rank: tuple[str, ...] = ()
    instance_of_rank: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))

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
        told = {each.called: _plain(getattr(self, each.called)) for each in _KEYS}
        told["domains"] = {tier: [*names] for tier, names in self.domains.items()}
        said = {k: value for k, value in told.items() if value or k not in _MAY_LACK}
        return {"format": "placer/plan", "version": 1, **said}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    return value if isinstance(value, int) else [*value]

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

from placer.base.arrays import IntArray, earlier_alike
from placer.base.loading import Shown, load
from placer.documents.facts import (
    ANY,
    HOSTS,
    INDICES,
    INTERVAL,
    NAMES,
    NUMBER,
    TEXT,
    Facts,
    facts,
    whole,
)
from placer.documents.keys import (
    BOOLEAN,
    Key,
    Kind,
    key,
    keys_of,
    list_of,
    map_of,
    one_of,
)
from placer.job.axes import Parallelism
from placer.placement.plan_rules import RULES
from placer.placement.score import Costs, Score, describe

if TYPE_CHECKING:
    import networkx as nx


# What is searched for, and the key of its value in a score.
OBJECTIVES = {"time": "step_time_s", "hop-cost": "hop_cost"}


def _value(value: Any, usual: Any) -> Any:
    if value.kind in ("number", "text"):
        return value.content
    value.expected("a number or a text")
    return usual


_NUMBER_OR_TEXT = Kind(lambda: {"type": ["number", "string"]}, _value, 0)


class _Verdict(Facts):
    advice = Key(
        one_of(("keep", "move", "infeasible")),
        "`move`, where the low end of the saving is above 0.05 % of the step or your "
        "order breaks a rule; `infeasible` where nothing fits; else `keep`",
        None,
    )
    against = Key(
        TEXT,
        "your order: `given-order`; `torchrun-c10d` or `slurm` (hosts by name) where "
        "the script starts so; after a failure `previous plan`",
        None,
    )
    saved_s = Key(
        NUMBER,
        "what the plan saves; where your order was kept, what the best found would",
        None,
    )
    saved_s_interval = Key(INTERVAL, "between what it lies 19 times of 20", None)
    saved_share = Key(NUMBER, "what is saved, as a share of your order's step", None)
    ranks_moved = Key(whole(), "ranks on another GPU than in your order", None)
    reason = Key(TEXT, "which groups cross and who waits, or which rule breaks", None)
    text = Key(TEXT, "all in words", None)


def _told(value: Any, _: Any) -> dict[str, Any]:
    """The verdict; plans of version 0.1 have its text alone."""
    if isinstance(value.content, str):
        return {"text": value.content}
    found: dict[str, Any] = facts(_Verdict).read(value, {})
    return found


_VERDICT = Kind(
    lambda: facts(_Verdict).schema() | {"type": ["object", "string"]}, _told, {}
)


class _Assumed(Facts):
    key = Key(TEXT, "what is assumed")
    value = Key(_NUMBER_OR_TEXT, "as what")
    why = Key(TEXT, "why that")
    option = Key(TEXT, "the option that says otherwise")
    interval = Key(INTERVAL, "where it usually lies", None)


class _WhatIf(Facts):
    key = Key(TEXT, "which assumption")
    value = Key(NUMBER, "another value of it")
    saved_share = Key(NUMBER, "what the plan would save with that, of a step")


class _Topology(Facts):
    name = Key(TEXT, "of the machine")
    sha256 = Key(TEXT, "its digest")
    tiers = Key(NAMES, "tiers, innermost first", None)
    scale_up = Key(whole(), "how many of these are scale-up", None)


class _Job(Facts):
    name = Key(TEXT, "of the job")
    sha256 = Key(TEXT, "its digest")
    order = Key(TEXT, "rank order: `tp-cp-ep-pp-dp`, innermost first")
    parallelism = Key(map_of(whole(1)), "size of each axis", None)
    auto_order = Key(BOOLEAN, "whether placer chose the order", None)
    launcher = Key(TEXT, "which ranks a node may hold", None)


class _Order(Costs):
    violates = Key(list_of(TEXT), "rules of the job that it breaks", None)


# A bound that has any key has these.
BOUND = ("objective", "value", "lower_bound", "gap", "status")


class _Bound(Facts):
    objective = Key(one_of(OBJECTIVES), "what was searched for", None)
    value = Key(NUMBER, "of the plan", None)
    lower_bound = Key(NUMBER, "what no placement is below", None)
    gap = Key(NUMBER, "(value - lower_bound) / value", None)
    status = Key(TEXT, "`optimal` or `feasible`", None)
    argument = Key(TEXT, "which proof it is", None)
    require = Key(ANY, "requirements beside those of the job", None)
    together: ClassVar = {
        "if": {"minProperties": 1},
        "then": {
            "properties": {name: {"not": {"type": "null"}} for name in BOUND},
            "required": [*BOUND],
        },
    }


class _Point(Facts):
    moves = Key(whole(), "ranks that move")
    value = Key(NUMBER, "what the placement costs then")
    method = Key(TEXT, "that found it", None)


class _Previous(Facts):
    kept = Key(whole(), "ranks that stay where an older plan has them", None)
    moved = Key(whole(), "ranks that move", None)
    new = Key(whole(), "ranks that the older plan has not", None)
    failed = Key(list_of(TEXT), "of `placer replace`: hosts that failed", None)
    added = Key(list_of(TEXT), "hosts that were added to the allocation", None)
    had = Key(list_of(TEXT), "of hosts to add, those in it before", None)
    lost = Key(whole(), "ranks on hosts that failed", None)
    fewest = Key(whole(), "ranks that move at least within `budget`", None)
    argument = Key(TEXT, "why no fewer", None)
    within = Key(NUMBER, "the tolerance, as a share", None)
    budget = Key(NUMBER, "the cost that it allows", None)
    reference = Key(
        one_of(("before", "lower-bound", "best-known")), "from what it counts", None
    )
    curve = Key(list_of(facts(_Point)), "ever more moves at ever less cost", None)
    value_before = Key(NUMBER, "the cost before, worked out again", None)
    given_up = Key(list_of(whole()), "replicas given up, by their old numbers", None)


class _Solver(Facts):
    version = Key(TEXT, "of the placer that made it", None)
    seed = Key(whole(), "of the search", None)
    wall_s = Key(NUMBER, "that it took", None)
    stop_reason = Key(TEXT, "`proved`, `searched`, `time-limit` or `interrupted`", None)
    deterministic = Key(
        BOOLEAN, "whether two runs give the same bytes outside `solver`", None
    )
    method = Key(TEXT, "that found the placement", None)


def period_of(score: Mapping[str, Any]) -> str:
    """What times of a score are of: a step, or of a workload a cycle."""
    return "cycle" if score.get("roles") else "step"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Plan(Shown):
    """One plan of R ranks; its attributes are the keys of its file form, `to_dict`."""

    is_open: ClassVar = True  # a file may have other keys, and null for all but needed

    verdict: Mapping[str, Any] = key(
        _VERDICT, "what the plan is worth, and whether to move", dict, unsaid=True
    )
    assumed: Sequence[Mapping[str, Any]] = key(
        list_of(facts(_Assumed)), "what no input says", (), unsaid=True
    )
    what_if: Sequence[Mapping[str, Any]] = key(
        list_of(facts(_WhatIf)),
        "what the plan would save were an assumption another",
        (),
        unsaid=True,
    )
    topology: Mapping[str, Any] = key(facts(_Topology), "the machine")
    job: Mapping[str, Any] = key(facts(_Job), "the job")
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
    score: Score = key(facts(Score), "what it costs", Score)
    baselines: Mapping[str, Any] = key(
        map_of(facts(_Order)), "the orders that a launcher would give", dict
    )
    bound: Mapping[str, Any] = key(facts(_Bound), "what is proved", dict)
    advice: Mapping[str, Any] = key(
        ANY, "what another rank order or a free launcher would save", dict, unsaid=True
    )
    previous: Mapping[str, Any] = key(
        facts(_Previous), "beside an older plan", dict, unsaid=True
    )
    request: Mapping[str, Any] = key(
        ANY, "of `placer allocate -o`: what to ask a scheduler for", dict, unsaid=True
    )
    # As `placer.placement.inputs` writes it; empty in older plans.
    inputs: Mapping[str, Any] = key(
        ANY, "machine, job, hosts and rules that it was made of", dict, unsaid=True
    )
    solver: Mapping[str, Any] = key(facts(_Solver), "who made it, and how", dict)

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
        return earlier_alike(self.node_of_rank)

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


describe(Plan)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    return value if isinstance(value, int) else [*value]

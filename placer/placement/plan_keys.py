"""The keys of a plan file: what its reader takes, its schema and its page say."""

from __future__ import annotations

from typing import Any, ClassVar

from placer.documents.facts import (
    ANY,
    INTERVAL,
    NAMES,
    NUMBER,
    TEXT,
    Facts,
    facts,
    whole,
)
from placer.documents.keys import BOOLEAN, Key, Kind, list_of, map_of, one_of

# What is searched for, and the key of its value in a score.
OBJECTIVES = {"time": "step_time_s", "hop-cost": "hop_cost"}
_SECONDS_OF = map_of(NUMBER)


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


VERDICT = Kind(
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


class _Link(Facts):
    tier = Key(TEXT, "into which the link goes")
    domain = Key(TEXT, "whose link it is")
    direction = Key(TEXT, "`up`, `down`, or `to r2` on a link of its own")
    bytes = Key(NUMBER, "that a step sends over it")
    busy_s = Key(NUMBER, "that it works in a step")


class _Operation(Facts):
    operation = Key(TEXT, "in words")
    seconds = Key(NUMBER, "that it takes")


class _WorstGroup(Facts):
    axis = Key(TEXT, "that adds most to the step")
    group = Key(NUMBER, "its slowest group, counted from 0")
    groups = Key(NUMBER, "groups of the axis")
    as_slow = Key(NUMBER, "groups that take as long")
    rank = Key(whole(), "its first rank", None)
    ranks = Key(whole(), "how many it has", None)
    exposed_s = Key(NUMBER, "that its axis adds to the step", None)
    seconds = Key(NUMBER, "of one `operation`", None)
    operation = Key(TEXT, "what the group does", None)
    common_tier = Key(TEXT, "the lowest whose domain holds it", None)
    domains = Key(whole(), "scale-up domains that it is in", None)


class _SlowHost(Facts):
    host = Key(TEXT, "that sets the pace of the work")
    compute_factor = Key(NUMBER, "share of the usual speed")
    replica = Key(whole(), "that waits for it")
    stage = Key(whole(), "of that replica")


class _Role(Facts):
    seconds = Key(NUMBER, "of the role between two transfers")
    exposed_s = Key(_SECONDS_OF, "as of the score", None)


class _Baseline(Facts):
    step_time_s = Key(NUMBER, "one step", None)
    exposed_scale_out_s = Key(
        NUMBER,
        "step time less that of the same placement with free scale-out links",
        None,
    )
    hop_cost = Key(NUMBER, "the hop cost, when the job has weights", None)
    exposed_s = Key(_SECONDS_OF, "axis or group: time that compute does not hide", None)


class _Order(_Baseline):
    violates = Key(list_of(TEXT), "rules of the job that it breaks", None)


class _Score(_Baseline):
    step_time_interval_s = Key(
        INTERVAL, "lowest and highest that `compute.step_error` allows", None
    )
    memory_bytes = Key(
        ANY,
        "what a GPU of the fullest stage holds: `parameters`, `gradients`, "
        "`optimizer`, `activations`, `other`, `total`, that `stage`, and all "
        "`by_stage`; of a workload by `roles`",
        None,
    )
    memory_limit_bytes = Key(NUMBER, "what a GPU has", None)
    slowest_host = Key(facts(_SlowHost), "the host that others wait for", None)
    compute_s = Key(NUMBER, "the work", None)
    bubble_s = Key(NUMBER, "the pipeline's idle time", None)
    fixed_s = Key(NUMBER, "what a step pays once", None)
    exposed_scale_out_share = Key(
        NUMBER, "the share of the step that `exposed_scale_out_s` is", None
    )
    crossings = Key(
        map_of(map_of(NUMBER)),
        "axis: tier: groups whose lowest common domain is there",
        None,
    )
    traffic_bytes = Key(map_of(map_of(NUMBER)), "axis: tier: bytes of a step", None)
    hottest_links = Key(list_of(facts(_Link)), "the busiest links", None)
    critical_path = Key(
        list_of(facts(_Operation)), "operations that set the step, longest first", None
    )
    worst_group = Key(facts(_WorstGroup), "the group that the step waits for", None)
    roles = Key(map_of(facts(_Role)), "of a workload: what each role takes", None)


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


ASSUMED, WHAT_IF = list_of(facts(_Assumed)), list_of(facts(_WhatIf))
TOPOLOGY, JOB, SCORE = facts(_Topology), facts(_Job), facts(_Score)
BASELINES, PROVED = map_of(facts(_Order)), facts(_Bound)
PREVIOUS, SOLVER = facts(_Previous), facts(_Solver)

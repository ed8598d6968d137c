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
from placer.placement.score import Costs, Score

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


ASSUMED, WHAT_IF = list_of(facts(_Assumed)), list_of(facts(_WhatIf))
TOPOLOGY, JOB, SCORE = facts(_Topology), facts(_Job), facts(Score)
BASELINES, PROVED = map_of(facts(_Order)), facts(_Bound)
PREVIOUS, SOLVER = facts(_Previous), facts(_Solver)

"""Words and numbers that several reports share."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from placer.base.hostlist import compress_grid, with_blanks
from placer.base.units import format_bytes, format_seconds, unit_of_seconds

if TYPE_CHECKING:
    from placer.placement.plan import Plan

_MOST = 200  # characters


def hosts_text(hosts: Sequence[str]) -> str:
    """The hosts as a host list, and where it is long how many more there are.

    It may have several brackets: ``b[01-32]-r[1-4]``.
    """

    def length(count: int) -> int:
        return len(compress_grid(hosts[:count]))

    shown = len(hosts)
    if length(shown) > _MOST:
        shown = max(1, bisect_right(range(1, len(hosts) + 1), _MOST, key=length))
    more = f" and {len(hosts) - shown:,} more" if shown < len(hosts) else ""
    return with_blanks(compress_grid(hosts[:shown])) + more


# What each objective is called.
NOUN = {"time": "step time", "hop-cost": "hop cost"}

# What less and more of it is called, and what follows its value in a sentence.
BETTER = {"time": ("faster", "slower"), "hop-cost": ("cheaper", "dearer")}


def each(objective: str, period: str = "step") -> str:
    """What stands behind a value: ``1.2 s a step``, ``860 hop cost``."""
    return f"a {period}" if objective == "time" else "hop cost"


def amount(objective: str, value: float) -> str:
    """A value of an objective: a time with its unit, or a hop cost."""
    return format_seconds(value) if objective == "time" else hop_cost(value)


def gap_text(gap: float) -> str:
    """A gap in percent, rounded up, so as not to promise too much.

    From 10 % on one digit after the point is enough.
    """
    digits = 1 if gap >= 0.1 else 3
    scale = 10 ** (digits + 2)
    rounded = math.ceil(round(gap * scale, 6)) / scale  # 0.00037 stays 0.037%
    return f"{rounded:.{digits}%}"


def proved(status: str, lower_bound: float, gap: float) -> str:
    """How far from the best a result may be: ``within 0.3 % of optimal``."""
    if status == "optimal":
        return "optimal"
    if not lower_bound:
        return "no lower bound"
    return f"within {gap_text(gap).replace('%', ' %')} of optimal"


def link_cells(link: Mapping[str, Any]) -> tuple[str, str, str]:
    """What a shared link is called, the bytes on it, and how long they keep it busy."""
    return link_name(link), format_bytes(link["bytes"]), format_seconds(link["busy_s"])


def link_name(link: Mapping[str, Any]) -> str:
    """``n1 up, rack tier``."""
    return "{domain} {direction}, {tier} tier".format_map(link)


def slowest_host(facts: Mapping[str, Any] | None) -> str:
    """Who sets the pace of the work; empty where all GPUs are as fast."""
    if facts is None:
        return ""
    share = f"{facts['compute_factor']:z.0%}"
    return (
        f"slowest host: {facts['host']} works at {share} of the usual speed; "
        f"stage {facts['stage']} of replica {facts['replica']} waits for it"
    )


def within_noise(relative: float) -> str:
    """What choices are that the model cannot tell apart, of at most this share."""
    return f"within the noise of the model ({relative * 100:.2g}%)"


def share_text(share: float) -> str:
    """A share in percent, for a sentence: two digits, more from 10 % on."""
    percent = 100 * share
    if percent < 0.01:
        return "less than 0.01 %"
    digits = f"{percent:,.1f}" if percent >= 1 else f"{percent:.2g}"
    return f"{digits.removesuffix('.0')} %"


def compared(
    objective: str, own: float, other: float, than: str, period: str = "step"
) -> str:
    """One value beside another: ``8.4 % faster than THAN: 6.35 s instead of 6.94 s``.

    ``objective``: ``time`` (s) or ``hop-cost``; less is better. ``than``: what the
    other value is of. ``period``: what times are of, `Plan.period`.
    """
    mine, theirs = amount(objective, own), amount(objective, other)
    if own == other:
        better = BETTER[objective][0]
        return f"no {better} than {than}: {mine} {each(objective, period)}"
    share = share_text(abs(other - own) / other) if other else ""
    word = BETTER[objective][own > other]
    numbers = mine if mine == theirs else f"{mine} instead of {theirs}"
    return f"{share} {word} than {than}: {numbers} {each(objective, period)}".lstrip()


def saved_text(objective: str, facts: Mapping[str, Any], period: str = "step") -> str:
    """What is saved, or costs more: ``9 ms a step (likely 6 to 12), 0.7 %``.

    Likely is 19 times of 20, as `placer.explain.difference.Saving` has it.

    ``facts``: ``saved_share``, and of a time ``saved_s`` and ``saved_s_interval``.
    ``period``: what times are of, `Plan.period`.
    """
    share = share_text(abs(facts["saved_share"]))
    if objective != "time":
        return share
    ends = [*map(abs, facts["saved_s_interval"])]
    low, high = facts["saved_s_interval"]
    scale, unit = unit_of_seconds(max(abs(facts["saved_s"]), *ends))
    if facts["saved_s"] < 0:
        low, high = -high, -low
    saved = f"{_two(abs(facts['saved_s']) / scale)} {unit} a {period}"
    between = f"(likely {_two(low / scale)} to {_two(high / scale)})"
    return f"{saved} {between}, {share}"


def _two(value: float) -> str:
    """Two digits, and no more noughts than needed: ``0.35``, ``9``, ``120``."""
    return f"{float(f'{value:.2g}'):,.10g}"


def unbeaten(bound: Mapping[str, Any]) -> str:
    """What is proved of a result, for people who want to know what else there is."""
    word = BETTER[bound["objective"]][0]
    if not bound["lower_bound"] and bound["status"] != "optimal":
        return f"nothing is proved of other placements{withdrawn(bound)}"
    less = f"more than {gap_words(bound['gap'])} "
    less = "" if bound["status"] == "optimal" else less
    return f"no placement on these nodes can be {less}{word}, under the model"


def withdrawn(bound: Mapping[str, Any]) -> str:
    """That a bound was false, which the user should report; empty elsewhere."""
    argument = str(bound.get("argument", ""))
    return f" ({argument})" if argument.startswith("withdrawn") else ""


def gap_words(gap: float) -> str:
    """A gap for a sentence: ``0.02 %``."""
    return f"{gap_text(gap)[:-1].rstrip('0').rstrip('.')} %"


def lacks_memory(score: Mapping[str, Any]) -> bool:
    """Whether a stage does not fit; no, where memory needed or there is not known."""
    needs, limit = score.get("memory_bytes"), score.get("memory_limit_bytes")
    return bool(needs and limit and needs["total"] > limit)


def knows_work(score: Mapping[str, Any]) -> bool:
    """Whether a step is more than its traffic, so that a share of it is GPU hours.

    Of roles that only send, and of groups without compute, the rest is not known.
    """
    exposed = sum((score.get("exposed_s") or {}).values())
    return bool(score.get("step_time_s", 0.0) > exposed * (1 + 1e-9))


def gpu_hours_a_day(gpus: int, share: float) -> float:
    """GPU hours that a share of the step is worth, each day."""
    return gpus * 24 * share


def hours_text(gpus: int, share: float) -> str:
    """What a share of the step saves, or costs: ``saves 12 GPU hours a day``.

    Empty for less than an hour.
    """
    hours = gpu_hours_a_day(gpus, share)
    word = "saves" if hours > 0 else "costs"
    return f"{word} {abs(hours):,.0f} GPU hours a day" if abs(hours) >= 1 else ""


def hop_cost(value: float) -> str:
    """A hop cost in full, as far as it is exact."""
    return f"{value:,.12g}"


def slowest_group(score: Mapping[str, Any]) -> Mapping[str, Any]:
    """The group that a step waits for, empty where all of its axis are as slow."""
    worst: Mapping[str, Any] = score.get("worst_group") or {}
    return worst if worst and worst["as_slow"] < worst["groups"] else {}


def largest_island(tiers: Sequence[str], scale_up: int) -> str:
    """What the largest NVLink domain is called.

    ``tiers``: tier names, innermost first. ``scale_up``: how many of the tiers are
    NVLink tiers.
    """
    return tiers[scale_up - 1] if scale_up else "GPU"


def roles_of(plan: Plan) -> list[tuple[str, int, int]]:
    """Name of each role of a workload, its instances, and ranks of one; in order."""
    instances = dict(zip(plan.role_of_rank, plan.instance_of_rank, strict=True))
    return [
        (role, int(instances[role]) + 1, ranks // (int(instances[role]) + 1))
        for role, ranks in Counter(plan.role_of_rank).items()
    ]


def roles_text(plan: Plan, times: str) -> str:
    """``trainer 64, rollout 2 x 32``, ``times`` the sign between the two numbers."""
    return ", ".join(
        f"{role} {f'{instances:,} {times} ' * (instances > 1)}{ranks:,}"
        for role, instances, ranks in roles_of(plan)
    )

"""From the JSON of a plan file to a `Plan`, with all problems at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from placer.documents.tree import visible
from placer.placement.plan import Plan
from placer.placement.plan_consistency import require_consistent
from placer.placement.plan_form import MISSING, Form, shown
from placer.placement.plan_rules import form_problems
from placer.placement.score import Score

FORMAT = "placer/plan"
VERSION = 1

_AXES = ("tp", "cp", "ep", "pp", "dp")
_SECTIONS = (
    "rules",
    "baselines",
    "bound",
    "advice",
    "previous",
    "request",
    "inputs",
    "solver",
)
# The numbers that reports calculate with, and how many objects deep they lie.
_NUMBERS = {
    "score": {
        "step_time_s": 0,
        "compute_s": 0,
        "bubble_s": 0,
        "fixed_s": 0,
        "exposed_scale_out_s": 0,
        "exposed_scale_out_share": 0,
        "hop_cost": 0,
        "exposed_s": 1,
        "crossings": 2,
        "traffic_bytes": 2,
    },
    "bound": {"value": 0, "lower_bound": 0, "gap": 0},
    "solver": {"wall_s": 0},
}
_ROLE_NUMBERS = {"seconds": 0, "exposed_s": 1}
_TEXTS = {
    "bound": ("objective", "argument", "status"),
    "solver": ("version", "stop_reason", "method"),
}
# The lists of the score that reports read: texts and numbers of every entry.
_LISTS = {
    "hottest_links": (("tier", "domain", "direction"), ("bytes", "busy_s")),
    "critical_path": (("operation",), ("seconds",)),
}
# Of the group that reports point to.
_WORST_GROUP = ("axis",), ("group", "groups", "as_slow")
_BASELINE_NUMBERS = {
    "step_time_s": 0,
    "exposed_scale_out_s": 0,
    "hop_cost": 0,
    "exposed_s": 1,
}
OBJECTIVES = ("time", "hop-cost")
# A bound has all of these, or is none.
_BOUND = ("objective", "value", "lower_bound", "gap", "status")
# Lists of the top level: texts and numbers of every entry.
_ENTRIES = {
    "assumed": (("key", "why", "option"), ()),
    "what_if": (("key",), ("value", "saved_share")),
}


def decode_plan(data: object, source: str) -> Plan:
    """The plan that ``data``, as parsed from JSON, describes.

    Raises
    ------
    ContradictionError
        If it is well formed, but its parts do not fit together.
    InputError
        If it is not a plan, of a newer version, or malformed.
    """
    form = Form(data, source)
    _check_format(form)
    form.harmless(form.data)
    form.fail()
    plan = _plan(form)
    _check_inputs(form)
    _check_texts(form)
    _check_numbers(form)
    for key, (texts, numbers) in _ENTRIES.items():
        form.entries(key, form.data.get(key), texts, numbers)
    _check_assumed(form)
    form.whole("solver.seed", plan.solver.get("seed", MISSING))
    for key, message in form_problems(plan.rules):
        form.add(key, message)
    world_size = form.whole("world_size", form.get("world_size"), 1)
    form.fail()
    require_consistent(plan, world_size, source)
    return plan


def _check_format(form: Form) -> None:
    """Stop at once when this is no plan, or one of a newer version."""
    found = form.data.get("format")
    if found != FORMAT:
        got = "none" if found is None else shown(found)
        hint = "a plan is the JSON that `placer place -o` writes"
        form.add("format", f'not a plan: expected "{FORMAT}", got {got}', hint)
        form.fail()
    version = form.whole("version", form.get("version"), 1)
    if version > VERSION:
        message = f"version {version} is newer than this placer reads ({VERSION})"
        form.add("version", message, "upgrade placer")
    form.fail()


def _plan(form: Form) -> Plan:
    sections: dict[str, Any] = {key: form.section(key) for key in _SECTIONS}
    return Plan(
        topology=form.section("topology", ("name", "sha256")),
        job=form.section("job", ("name", "sha256", "order")),
        nodes=form.names("nodes", form.get("nodes"), hosts=True),
        domains={
            tier: form.names(f"domains.{tier}", names)
            for tier, names in form.section("domains").items()
        },
        node_of_rank=form.indices("node_of_rank"),
        gpu_of_rank=form.indices("gpu_of_rank"),
        verdict=_verdict(form),
        assumed=form.data.get("assumed") or (),
        what_if=form.data.get("what_if") or (),
        score=Score(form.section("score")),
        role_of_rank=form.names("role_of_rank", form.data.get("role_of_rank", [])),
        instance_of_rank=form.indices("instance_of_rank")
        if "role_of_rank" in form.data
        else np.zeros(0, dtype=np.int64),
        **sections,
    )


def _check_inputs(form: Form) -> None:
    """What a plan repeats of its topology and job, so far as it does."""
    topology, job = form.data.get("topology"), form.data.get("job")
    if isinstance(topology, dict):
        tiers = form.names("topology.tiers", topology.get("tiers", MISSING))
        count = form.whole("topology.scale_up", topology.get("scale_up", MISSING))
        if tiers and count > len(tiers):
            form.add("topology.scale_up", f"{count} of {len(tiers)} tiers")
    if not isinstance(job, dict):
        return
    order = job.get("order")
    if isinstance(order, str) and sorted(order.split("-")) != sorted(_AXES):
        message = f'"{visible(order)}" does not name each of {" ".join(_AXES)} once'
        form.add("job.order", message)
    sizes = job.get("parallelism", {})
    if not isinstance(sizes, dict):
        form.add("job.parallelism", f"expected an object, got {shown(sizes)}")
        return
    for axis, size in sizes.items():
        form.whole(f"job.parallelism.{axis}", size, 1)


def _verdict(form: Form) -> dict[str, Any]:
    """The verdict; plans of version 0.1 have its text alone."""
    told = form.data.get("verdict") or {}
    return {"text": told} if isinstance(told, str) else form.section("verdict")


def _check_assumed(form: Form) -> None:
    """Values of what is assumed, and their intervals; the rest is checked before."""
    listed = form.data.get("assumed")
    for index, entry in enumerate(listed if isinstance(listed, list) else ()):
        if not isinstance(entry, dict):
            continue
        value, interval = entry.get("value"), entry.get("interval", [0, 0])
        if type(value) not in (int, float, str):
            form.add(f"assumed[{index}].value", "expected a number or a text")
        if not isinstance(interval, list) or len(interval) != 2:
            form.add(f"assumed[{index}].interval", "expected two numbers")
            continue
        for number in interval:
            form.numbers(f"assumed[{index}].interval", number, 0)


def _check_texts(form: Form) -> None:
    if not isinstance(form.data.get("verdict"), dict):
        form.text("verdict", form.data.get("verdict"))
    for section, names in _TEXTS.items():
        inside = form.data.get(section)
        if isinstance(inside, dict):
            for name in names:
                form.text(f"{section}.{name}", inside.get(name))


def _check_numbers(form: Form) -> None:
    for section, depth_of in _NUMBERS.items():
        inside = form.data.get(section)
        if isinstance(inside, dict):
            _check_entry(form, section, inside, depth_of)
    score = form.data.get("score")
    if isinstance(score, dict):
        for key, (texts, numbers) in _LISTS.items():
            form.entries(f"score.{key}", score.get(key), texts, numbers)
        if (worst := score.get("worst_group")) is not None:
            form.entry("score.worst_group", worst, *_WORST_GROUP)
        for key, role in _objects(form, "score.roles", score.get("roles")):
            _check_entry(form, key, role, _ROLE_NUMBERS)
            _require(form, key, role, ("seconds",))
    for key, baseline in _objects(form, "baselines", form.data.get("baselines")):
        _check_entry(form, key, baseline, _BASELINE_NUMBERS)
    bound = form.data.get("bound")
    if isinstance(bound, dict) and bound:
        _require(form, "bound", bound, _BOUND)
        if (named := bound.get("objective")) not in (None, *OBJECTIVES):
            form.add(
                "bound.objective", f"{shown(named)} is none of {', '.join(OBJECTIVES)}"
            )


def _require(
    form: Form, section: str, entry: dict[str, Any], keys: tuple[str, ...]
) -> None:
    for key in keys:
        if entry.get(key) is None:
            form.add(f"{section}.{key}", "is missing")


def _objects(
    form: Form, key: str, value: object
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The key and the value of each object in an object; null is as good as absent."""
    if value is not None and not isinstance(value, dict):
        form.add(key, f"expected an object, got {shown(value)}")
        return
    for name, entry in (value or {}).items():
        if isinstance(entry, dict):
            yield f"{key}.{name}", entry
        else:
            form.add(f"{key}.{name}", f"expected an object, got {shown(entry)}")


def _check_entry(
    form: Form, key: str, entry: dict[str, Any], depth_of: Mapping[str, int]
) -> None:
    for name, depth in depth_of.items():
        form.numbers(f"{key}.{name}", entry.get(name), depth)

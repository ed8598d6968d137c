"""From the JSON of a plan file to a `Plan`, with all problems at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from placer.documents.document import Document
from placer.documents.keys import keys_of
from placer.documents.scalars import shown
from placer.documents.tree import CONTROL, MAX_DEPTH, TOO_DEEP, visible
from placer.placement.plan import Plan
from placer.placement.plan_consistency import require_consistent
from placer.placement.plan_keys import BOUND, PlanFile
from placer.placement.score import Score

if TYPE_CHECKING:
    from placer.documents.value import Path

FORMAT = "placer/plan"

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
_INDICES = range(2**31)
_MAX_WHOLE = 2**63


def decode_plan(data: object, source: str) -> Plan:
    """The plan that ``data``, as parsed from JSON, describes.

    Raises
    ------
    ContradictionError
        If it is well formed, but its parts do not fit together.
    InputError
        If it is not a plan, of a newer version, or malformed.
    """
    document = Document(source, data)
    _harmless(document, data)
    document.fail_if_problems()
    document.check_format(FORMAT)
    root = document.root
    found = {each.called: each.take(root) for each in keys_of(PlanFile)}
    _check(document, found)
    document.fail_if_problems()
    plan = _plan(found)
    require_consistent(plan, found["world_size"], source)
    return plan


def _harmless(
    document: Document, value: object, path: Path = (), depth: int = 0
) -> None:
    """Refuse what would spoil a terminal or overflow a stack or a float."""
    if isinstance(value, str):
        if CONTROL.search(value):
            document.problem(f'control character in "{visible(value)}"', path)
    elif depth > MAX_DEPTH:
        document.problem(TOO_DEEP, path)
    elif isinstance(value, dict):
        for name, item in value.items():
            _harmless(document, name, path, depth)
            _harmless(document, item, (*path, name), depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if not (type(item) is int and item in _INDICES):  # there are many
                _harmless(document, item, (*path, index), depth + 1)
    elif isinstance(value, int) and abs(value) > _MAX_WHOLE:
        message = f"expected a number of 64 bits, got {shown(value)[:30]}..."
        document.problem(message, path)


def _check(document: Document, found: dict[str, Any]) -> None:
    """What the types of the keys do not say."""
    topology, job = found["topology"], found["job"]
    tiers, count = topology.get("tiers"), topology.get("scale_up", 0)
    if isinstance(tiers, list) and tiers and type(count) is int and count > len(tiers):
        document.problem(f"{count} of {len(tiers)} tiers", ("topology", "scale_up"))
    order = job.get("order")
    if isinstance(order, str) and sorted(order.split("-")) != sorted(_AXES):
        message = f'"{visible(order)}" does not name each of {" ".join(_AXES)} once'
        document.problem(message, ("job", "order"))
    bound = found["bound"] or {}
    for key in BOUND if bound else ():
        if bound.get(key) is None:
            document.problem("is missing", ("bound", key))


def _plan(found: dict[str, Any]) -> Plan:
    roles = found["role_of_rank"] or ()
    instances = found["instance_of_rank"]
    sections: dict[str, Any] = {key: found[key] or {} for key in _SECTIONS}
    none = np.zeros(0, dtype=np.int64)
    return Plan(
        topology=found["topology"],
        job=found["job"],
        nodes=found["nodes"],
        domains=found["domains"] or {},
        node_of_rank=found["node_of_rank"],
        gpu_of_rank=found["gpu_of_rank"],
        verdict=found["verdict"] or {},
        assumed=found["assumed"] or (),
        what_if=found["what_if"] or (),
        score=Score(found["score"] or {}),
        role_of_rank=roles,
        instance_of_rank=none if instances is None else instances,
        **sections,
    )

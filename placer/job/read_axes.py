"""The ``parallelism`` mapping of a job: axis sizes, order, and Megatron's rules."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from placer.documents import Section, closest
from placer.documents.records import read
from placer.job.axes import (
    AUTO_ORDER,
    AXES,
    MAX_WORLD_SIZE,
    MEGATRON_DEFAULT_ORDER,
    Parallelism,
)


def decode_parallelism(section: Section) -> Parallelism | None:
    """Axis sizes and rank order, None where a size is wrong.

    Problems go to the section's document.
    """
    document = section.document
    problems_before = len(document.problems)
    parallelism = _sizes(section)
    if len(document.problems) > problems_before:
        section.has("order")
        return None
    _check_experts(section, parallelism)
    parallelism = replace(
        parallelism, order=_order(section, parallelism), auto_order=_is_open(section)
    )
    if len(document.problems) == problems_before:
        _check_expert_pipeline(section, parallelism)
    return parallelism


def _sizes(section: Section) -> Parallelism:
    degrees = data_parallel_degrees(section)
    usual = {"dp": prod(degrees or (1,))}
    axes = read(section, Parallelism, usual, order=MEGATRON_DEFAULT_ORDER)
    if degrees and axes.dp != prod(degrees):
        message = (
            f"dp_replicate x dp_shard = {degrees[0]} x {degrees[1]} is not {axes.dp}"
        )
        section.problem(message, "dp", "leave dp out")
    if axes.world_size > MAX_WORLD_SIZE:
        size = axes.world_size
        section.problem(f"tp x cp x pp x dp = {size} ranks; at most {MAX_WORLD_SIZE}")
    return axes


def data_parallel_degrees(section: Section) -> tuple[int, int] | None:
    """``dp_replicate`` and ``dp_shard``, torchtitan's parts of ``dp``; None without."""
    parts = (Parallelism.replicate, Parallelism.shard)
    if not any(section.has(part.called) for part in parts):
        return None
    replicate, shard = (part.take(section) for part in parts)
    return replicate, shard


def _check_experts(section: Section, parallelism: Parallelism) -> None:
    tp, cp, dp = parallelism.tp, parallelism.cp, parallelism.dp
    expert_block = parallelism.ep * parallelism.etp
    if (tp * cp * dp) % expert_block:
        message = (
            f"ep x etp = {parallelism.ep} x {parallelism.etp} = {expert_block} does "
            f"not divide tp x cp x dp = {tp} x {cp} x {dp} = {tp * cp * dp}"
        )
        section.problem(message, "ep", "experts share the ranks of tp, cp and dp")


def _order(section: Section, parallelism: Parallelism) -> tuple[str, ...]:
    """Order given, or Megatron's default; axes of size 1 may be left out."""
    if not section.has("order") or _is_open(section):
        return MEGATRON_DEFAULT_ORDER
    given = section.text("order").split("-")
    hint = "write auto, or the axes innermost first, for example tp-cp-ep-pp-dp"
    for axis in given:
        if axis not in AXES:
            section.problem(
                f'unknown axis "{axis}" in the order',
                "order",
                closest(axis, AXES) or hint,
            )
            return MEGATRON_DEFAULT_ORDER
    if len(set(given)) < len(given):
        section.problem("an axis appears twice in the order", "order", hint)
        return MEGATRON_DEFAULT_ORDER
    missing = [axis for axis in AXES if axis not in given]
    needed = [axis for axis in missing if _widest(parallelism, axis) > 1]
    if needed:
        message = f"the order leaves out {', '.join(needed)}, which is larger than 1"
        section.problem(message, "order", hint)
        return MEGATRON_DEFAULT_ORDER
    for axis in missing:
        given.insert(AXES.index(axis), axis)
    return tuple(given)


def _is_open(section: Section) -> bool:
    """Whether the order is left to be chosen."""
    value = section.get("order")
    return value is not None and value.kind == "text" and value.content == AUTO_ORDER


def _widest(parallelism: Parallelism, axis: str) -> int:
    """Larger of the axis' sizes in the dense and in the expert numbering."""
    expert = {"tp": parallelism.etp, "dp": parallelism.edp}
    return max(parallelism.size(axis), expert.get(axis, 1))


def _check_expert_pipeline(section: Section, parallelism: Parallelism) -> None:
    """Require that dense and expert layers share their pipeline groups.

    Megatron-Core refuses anything else (``core/parallel_state.py``): a stage would hold
    the attention of one part of the model and the experts of another.
    """
    if pipeline_groups_agree(parallelism):
        return
    order = [axis for axis in parallelism.order if axis != "pp"]
    message = (
        f"with ep {parallelism.ep} and etp {parallelism.etp} the order "
        f"{'-'.join(parallelism.order)} gives experts other pipeline groups than the "
        "dense layers"
    )
    hint = f"put pp last: {'-'.join([*order, 'pp'])}"
    section.problem(message, "order" if section.has("order") else "ep", hint)


def pipeline_groups_agree(parallelism: Parallelism) -> bool:
    """Whether the dense and the expert numbering have the same pipeline groups.

    They have when as many ranks follow each other inside ``pp`` in both.
    """
    axes = parallelism
    if axes.pp == 1 or not axes.divides_experts:
        return True
    dense = {"tp": axes.tp, "cp": axes.cp, "dp": axes.dp}
    expert = {"tp": axes.etp, "ep": axes.ep, "dp": axes.edp}
    inside = axes.order[: axes.order.index("pp")]
    strides = {prod(sizes.get(a, 1) for a in inside) for sizes in (dense, expert)}
    return len(strides) == 1

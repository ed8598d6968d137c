"""What a picture of a plan shows, as rows for tables."""

from __future__ import annotations

from typing import Any

from placer.draw.machine_view import machine_view
from placer.draw.pipeline import slowest_run, step_of
from placer.draw.placement_map import nodes_of_zoom
from placer.draw.time_line import parts_of
from placer.placement.inputs import inputs_of
from placer.placement.plan import Plan

Row = dict[str, Any]


def map_rows(plan: Plan, zoom: str | None) -> list[Row]:
    """A row of `Plan.rows` for every rank that is drawn."""
    view = machine_view(plan)
    nodes, _ = nodes_of_zoom(view, zoom)
    hosts = {view.names[0][node] for node in nodes.tolist()}
    return [row for row in plan.rows if row["host"] in hosts]


def traffic_rows(plan: Plan) -> list[Row]:
    """``axis``, ``tier`` and ``bytes`` of a step, for every cell with traffic."""
    return [
        {"axis": axis, "tier": tier, "bytes": size_bytes}
        for axis, sent in plan.score["traffic_bytes"].items()
        for tier, size_bytes in sent.items()
    ]


def time_rows(plan: Plan) -> list[Row]:
    """``part``, ``seconds`` and whether it is ``exposed`` communication, in turn."""
    return [
        {"part": part.name, "seconds": part.seconds, "exposed": part.exposed}
        for part in parts_of(plan)
    ]


def pipeline_rows(plan: Plan) -> list[Row]:
    """A row a piece of work that is drawn, with its ``start_s`` and ``end_s``."""
    inputs = inputs_of(plan)
    run = slowest_run(step_of(plan, inputs.machine, inputs.job))
    return [
        {
            "stage": piece.stage,
            "direction": "forward" if piece.is_forward else "backward",
            "micro_batch": piece.micro_batch,
            "chunk": piece.chunk,
            "start_s": piece.start_s,
            "end_s": piece.end_s,
        }
        for piece in run.pieces
    ]

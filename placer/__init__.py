"""Puts every rank of a distributed training job on the right GPU.

Public names load with their first use, so that importing the package is cheap.
"""

from __future__ import annotations

import placer.starting  # noqa: F401, first: it takes Ctrl-C from here on

# isort: split

from typing import TYPE_CHECKING, Any

from placer.base.loading import load
from placer.version import __version__

if TYPE_CHECKING:
    from placer.allocate.allocation import Allocation
    from placer.api.allocate import allocate
    from placer.api.check import check
    from placer.api.explain import explain
    from placer.api.place import place
    from placer.api.predict import predict
    from placer.api.replace import Replacement, replace
    from placer.api.report import report_html
    from placer.api.result import Result
    from placer.api.score import score
    from placer.api.tune import tune
    from placer.base.errors import (
        CheckError,
        EmitError,
        InfeasibleError,
        InputError,
        OutputError,
        PlacerError,
        Problem,
        StoppedError,
    )
    from placer.draw import draw
    from placer.draw.picture import Picture
    from placer.emit import emit
    from placer.formats.jobs.job import read_job
    from placer.formats.machines.machine import read_topology
    from placer.injob.meshes import jax_mesh, torch_mesh
    from placer.injob.ray_nodes import ray_nodes
    from placer.job.model import Job
    from placer.job.rules import Pin, Rules
    from placer.placement.plan import Plan
    from placer.placement.plan_file import read_plan, write_plan
    from placer.placement.score import Score
    from placer.report.diff import PlanDiff, diff
    from placer.sweep import sweep
    from placer.sweep.result import Sweep
    from placer.topology.model import Topology
    from placer.tune.tuning import Tuning

__all__ = [
    "Allocation",
    "CheckError",
    "EmitError",
    "InfeasibleError",
    "InputError",
    "Job",
    "OutputError",
    "Picture",
    "Pin",
    "PlacerError",
    "Plan",
    "PlanDiff",
    "Problem",
    "Replacement",
    "Result",
    "Rules",
    "Score",
    "StoppedError",
    "Sweep",
    "Topology",
    "Tuning",
    "__version__",
    "allocate",
    "check",
    "diff",
    "draw",
    "emit",
    "explain",
    "jax_mesh",
    "place",
    "predict",
    "ray_nodes",
    "read_job",
    "read_plan",
    "read_topology",
    "replace",
    "report_html",
    "score",
    "sweep",
    "torch_mesh",
    "tune",
    "write_plan",
]

_HOME = {
    "Allocation": "placer.allocate.allocation",
    "Job": "placer.job.model",
    "Sweep": "placer.sweep.result",
    "Topology": "placer.topology.model",
    "Tuning": "placer.tune.tuning",
    "CheckError": "placer.base.errors",
    "EmitError": "placer.base.errors",
    "InfeasibleError": "placer.base.errors",
    "InputError": "placer.base.errors",
    "OutputError": "placer.base.errors",
    "PlacerError": "placer.base.errors",
    "Problem": "placer.base.errors",
    "StoppedError": "placer.base.errors",
    "Picture": "placer.draw.picture",
    "Pin": "placer.job.rules",
    "Plan": "placer.placement.plan",
    "PlanDiff": "placer.report.diff",
    "Replacement": "placer.api.replace",
    "Result": "placer.api.result",
    "Rules": "placer.job.rules",
    "Score": "placer.placement.score",
    "check": "placer.api.check",
    "diff": "placer.report.diff",
    "jax_mesh": "placer.injob.meshes",
    "place": "placer.api.place",
    "predict": "placer.api.predict",
    "ray_nodes": "placer.injob.ray_nodes",
    "read_job": "placer.formats.jobs.job",
    "read_plan": "placer.placement.plan_file",
    "read_topology": "placer.formats.machines.machine",
    "replace": "placer.api.replace",
    "report_html": "placer.api.report",
    "score": "placer.api.score",
    "torch_mesh": "placer.injob.meshes",
    "write_plan": "placer.placement.plan_file",
}
# Packages that answer calls: importing one binds its name.
_PACKAGES = ("allocate", "draw", "emit", "explain", "sweep", "tune")


def __getattr__(name: str) -> Any:
    """The public name ``name``, from the module it lives in."""
    if name in _PACKAGES:
        return load(f"placer.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(load(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)

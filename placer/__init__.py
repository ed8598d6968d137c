"""Puts every rank of a distributed training job on the right GPU.

Public names load with their first use, so that importing the package is cheap; type
checkers read them in ``__init__.pyi``.
"""

from __future__ import annotations

import placer.starting  # noqa: F401, first: it takes Ctrl-C from here on

# isort: split

from typing import Any

from placer.base.loading import load
from placer.version import __version__  # noqa: F401

# Public names by the module that they live in.
_NAMES = {
    "placer.allocate.allocation": "Allocation",
    "placer.api.check": "check",
    "placer.api.place": "place",
    "placer.api.predict": "predict",
    "placer.api.replace": "Replacement replace",
    "placer.api.report": "report_html",
    "placer.api.result": "Result",
    "placer.api.score": "score",
    "placer.base.errors": (
        "CheckError EmitError InfeasibleError InputError "
        "OutputError PlacerError Problem StoppedError"
    ),
    "placer.draw.picture": "Picture",
    "placer.formats.jobs.job": "read_job",
    "placer.formats.machines.machine": "read_topology",
    "placer.injob.meshes": "jax_mesh torch_mesh",
    "placer.injob.ray_nodes": "ray_nodes",
    "placer.job.model": "Job",
    "placer.job.rules": "Pin Rules",
    "placer.placement.plan": "Plan",
    "placer.placement.plan_file": "read_plan write_plan",
    "placer.placement.score": "Score",
    "placer.report.diff": "PlanDiff diff",
    "placer.sweep.result": "Sweep",
    "placer.topology.model": "Topology",
    "placer.tune.tuning": "Tuning",
}
_HOME = {name: home for home, names in _NAMES.items() for name in names.split()}
# Packages that answer calls: importing one binds its name.
_PACKAGES = ("allocate", "draw", "emit", "explain", "sweep", "tune")
__all__ = sorted((*_HOME, *_PACKAGES, "__version__"))


def __getattr__(name: str) -> Any:
    """The public name ``name``, from the module it lives in."""
    if name in _PACKAGES:
        return load(f"placer.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(load(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)

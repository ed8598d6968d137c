"""Puts every rank of a distributed training job on the right GPU.

Public names load with their first use, so that importing the package is cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placer.loading import load

if TYPE_CHECKING:
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
    from placer.emit import emit
    from placer.errors import (
        CheckError,
        EmitError,
        InfeasibleError,
        InputError,
        OutputError,
        PlacerError,
        Problem,
        StoppedError,
    )
    from placer.job.rules import Pin, Rules
    from placer.placement.plan_file import read_plan, write_plan
    from placer.readers.machine import read_topology
    from placer.report.diff import diff
    from placer.sources.job import read_job
    from placer.sweep import sweep

__version__ = "0.1.0"

__all__ = [
    "CheckError",
    "EmitError",
    "InfeasibleError",
    "InputError",
    "OutputError",
    "Pin",
    "PlacerError",
    "Problem",
    "Replacement",
    "Result",
    "Rules",
    "StoppedError",
    "__version__",
    "allocate",
    "check",
    "diagnose",
    "diff",
    "emit",
    "explain",
    "place",
    "predict",
    "read_job",
    "read_plan",
    "read_topology",
    "replace",
    "report_html",
    "score",
    "sweep",
    "tune",
    "vary",
    "write_plan",
]

_HOME = {
    "CheckError": "placer.errors",
    "EmitError": "placer.errors",
    "InfeasibleError": "placer.errors",
    "InputError": "placer.errors",
    "OutputError": "placer.errors",
    "PlacerError": "placer.errors",
    "Problem": "placer.errors",
    "StoppedError": "placer.errors",
    "Pin": "placer.job.rules",
    "Replacement": "placer.api.replace",
    "Result": "placer.api.result",
    "Rules": "placer.job.rules",
    "allocate": "placer.api.allocate",
    "check": "placer.api.check",
    "diagnose": "placer.api.diagnose",
    "diff": "placer.report.diff",
    "explain": "placer.api.explain",
    "place": "placer.api.place",
    "predict": "placer.api.predict",
    "read_job": "placer.sources.job",
    "read_plan": "placer.placement.plan_file",
    "read_topology": "placer.readers.machine",
    "replace": "placer.api.replace",
    "report_html": "placer.api.report",
    "score": "placer.api.score",
    "tune": "placer.api.tune",
    "vary": "placer.api.vary",
    "write_plan": "placer.placement.plan_file",
}
# Packages that answer calls: importing one binds its name.
_PACKAGES = ("emit", "sweep")


def __getattr__(name: str) -> Any:
    """The public name ``name``, from the module it lives in."""
    if name in _PACKAGES:
        return load(f"placer.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(load(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)

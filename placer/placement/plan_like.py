"""Whatever a plan may be given as: itself, a result, a file, the data of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from placer.base.arguments import PATH, TEXT, Kind

if TYPE_CHECKING:
    import os

    from placer.placement.plan import Plan


class Planned(Protocol):
    """What has a plan, such as a `Result`."""

    @property
    def plan(self) -> Plan:
        """The plan."""


if TYPE_CHECKING:
    PlanLike = Plan | Planned | str | os.PathLike[str] | Mapping[str, Any]


def is_plan(value: object) -> bool:
    """Whether it is a plan, or has one; a file or plain data are none yet."""
    from placer.placement.plan import Plan  # numpy, which `placer --help` does without

    return isinstance(value, Plan) or isinstance(getattr(value, "plan", None), Plan)


PLAN = Kind(
    "a Plan, a Result, a path or a dict",
    lambda value: (
        is_plan(value)
        or PATH.fits(value)
        or (isinstance(value, Mapping) and all(map(TEXT.fits, value)))
    ),
)

"""What a search for a placement gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from placer.placement.plan import Plan
from placer.placement.score import Score
from placer.report.columns import PLAIN, Look
from placer.report.notebook import plan_html, plan_title
from placer.report.summary import summarise


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """A checked plan and what is proved about it.

    Attributes
    ----------
    plan : Plan
    """

    plan: Plan

    @property
    def score(self) -> Score:
        """What the plan costs."""
        return self.plan.score

    @property
    def bound(self) -> Mapping[str, Any]:
        """Objective, value, lower bound, gap, status and the argument of the proof."""
        return self.plan.bound

    @property
    def status(self) -> str:
        """``optimal`` or ``feasible``."""
        return str(self.plan.bound["status"])

    @property
    def stop_reason(self) -> str:
        """``proved``, ``searched`` (all was tried), ``time-limit``, ``interrupted``."""
        return str(self.plan.solver["stop_reason"])

    def __repr__(self) -> str:
        title = f"{self.status}, {plan_title(self.plan)}"
        return f"<placer.{type(self).__name__}: {title}>"

    def _repr_html_(self) -> str:
        from placer.draw import draw

        return plan_html(self.plan) + draw(self.plan)._repr_html_()

    @property
    def rows(self) -> list[dict[str, Any]]:
        """A plain mapping a rank: ``host``, ``gpu``, its domains and coordinates."""
        return self.plan.rows

    def summary(self, look: Look = PLAIN) -> str:
        """The result as text for people, plain and at most 80 columns wide."""
        return summarise(self.plan, look)

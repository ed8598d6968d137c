"""Machines, jobs and plans as a prompt and a notebook show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.placement.plan import Plan
from placer.report.machine_text import facts, parts, tier_rows
from placer.report.machine_text import title as job_title
from placer.report.plan_html import html_facts, html_table, plan_html, plan_title
from placer.topology.model import Topology

if TYPE_CHECKING:
    from placer.job.model import Job


def title(shown: Topology | Job | Plan) -> str:
    """What follows the name of the type: `` quickstart: 16 ranks, tp 8 dp 2``."""
    if isinstance(shown, Plan):
        return f": {plan_title(shown)}"
    words = parts(shown) if isinstance(shown, Topology) else job_title(shown)
    return f" {shown.name}: {words}"


def html(shown: Topology | Job | Plan) -> str:
    """A table of it."""
    if isinstance(shown, Plan):
        return plan_html(shown)
    if isinstance(shown, Topology):
        return html_table(tier_rows(shown), title(shown).lstrip())
    about = {name: text for name, text in facts(shown).items() if name != "sha256"}
    return html_facts(title(shown).lstrip(), about)

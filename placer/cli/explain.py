"""``placer explain``: where one rank, group or host of a plan is, and why."""

from __future__ import annotations

from typing import Any

import click

import placer
from placer.cli import complete, shared
from placer.cli.options import option
from placer.cli.output import look_of_stdout, write_answer
from placer.cli.placements import note_violations, plan_command, with_inputs


def _ranks(texts: tuple[str, ...]) -> tuple[int, ...]:
    """Ranks that an option means, each as a number or a list such as ``0-3,12``."""
    from placer.job.rules import parse_ranks

    return tuple(dict.fromkeys(rank for text in texts for rank in parse_ranks(text)))


@plan_command("placer explain plan.json --rank 37 --group pp:4 --host n07")
@click.argument("plan", shell_complete=complete.placements)
@option("--rank N", "Rank or ranks, such as 0-3,12. Repeatable.", _ranks, to="ranks")
@option(
    "--group AXIS:N",
    "Group of an axis by number, from 0: pp:37. Repeatable.",
    shell_complete=complete.groups,
    to="groups",
)
@option("--host H", "Host or hosts, such as n[1-4]. Repeatable.", to="about")
@shared.placement
@shared.formats("text", "json")
@shared.quiet("No notes.")
def explain(plan: str, **options: Any) -> None:
    """Say where ranks, groups or hosts are, and why there.

    Shows domains, groups and partners, the links between them and what they cost,
    and the exchange with another rank, node or replica that comes closest to being
    better. Without --rank, --group and --host it shows the group that a step waits
    for, or rank 0 where all groups are alike.
    """
    from placer.placement.build import topology_section
    from placer.report.subject_text import subjects_text
    from placer.report.words import slowest_group
    from placer.topology.allocation import parse_hosts

    content, inputs = with_inputs(plan, options)
    ranks, groups = options["ranks"], options["groups"]
    hosts = [host for text in options["about"] for host in parse_hosts(text)]
    if not (ranks or groups or hosts):
        worst = slowest_group(content.score)
        ranks = () if worst else (0,)
        groups = (f"{worst['axis']}:{worst['group']}",) if worst else ()
    machine, job = inputs.topology, inputs.job
    found = placer.explain(
        content,
        machine,
        job,
        ranks=ranks,
        groups=list(dict.fromkeys(groups)),
        hosts=list(dict.fromkeys(hosts)),
    )
    note_violations(content, machine, job, options)

    def text() -> str:
        seen, width = topology_section(machine), look_of_stdout().width
        tiers, scale_up = seen["tiers"], seen["scale_up"]
        return subjects_text(found, tiers, scale_up, width, content.period)

    write_answer(options["format_name"], found, text)

"""``placer score``: what a placement costs, without solving."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from placer.cli.options import (
    format_option,
    hosts_option,
    job_option,
    quiet_option,
    seed_option,
    topology_option,
)

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.placement.placement import Placement
    from placer.placement.plan import Plan
    from placer.topology.model import Topology

_SOURCES = ("plan", "hostfile", "baseline")


@click.command()
@topology_option
@job_option
@click.option("--plan", metavar="P", help="Score the placement of a plan.")
@click.option("--hostfile", metavar="F", help="Score ranks as a host file places them.")
@click.option(
    "--baseline",
    metavar="NAME",
    help="Score a usual placement: given-order, sorted-hosts, megatron-default, "
    "replica-major or random.",
)
@hosts_option
@seed_option
@format_option("text", "json")
@quiet_option("No notes.")
def score(**options: Any) -> None:
    """Score one placement of job J on machine T: a plan, host file or baseline."""
    from placer.api import score as score_of
    from placer.files import write_text
    from placer.job.read import read_job
    from placer.placement.check import violations
    from placer.placement.plan_encode import json_text
    from placer.report.score_text import score_text
    from placer.topology.allocation import allocate, parse_hosts
    from placer.topology.read import read_topology

    given = [source for source in _SOURCES if options[source] is not None]
    if len(given) != 1:
        raise click.UsageError("Give exactly one of --plan, --hostfile, --baseline.")
    hosts = options["hosts"]
    machine = allocate(
        read_topology(options["topology"]),
        None if hosts is None else parse_hosts(hosts),
    )
    job = read_job(options["job"])
    placement = _placement(machine, job, options)
    found = score_of(machine, job, placement)
    if not options["quiet"]:
        for broken in violations(placement, machine, job):
            click.echo(f"note: {broken}", err=True)
    if options["format_name"] == "json":
        write_text("-", json_text(found))
    else:
        tiers = [tier.name for tier in machine.tiers]
        write_text("-", score_text(found, tiers, machine.scale_up_tier + 1) + "\n")


def _placement(
    machine: Topology, job: Job, options: dict[str, Any]
) -> Placement | Plan:
    """The placement that the one given source describes."""
    from placer.files import read_text, shown_name
    from placer.placement.baselines import BASELINES, baseline
    from placer.placement.hostfile import placement_of_hostfile
    from placer.placement.plan_file import read_plan

    if options["plan"] is not None:
        return read_plan(options["plan"])
    if options["hostfile"] is not None:
        source = options["hostfile"]
        text = read_text(source)
        return placement_of_hostfile(text, machine, job.world_size, shown_name(source))
    name = options["baseline"]
    if name not in BASELINES:
        message = f"there is no baseline {name!r}; known: {', '.join(BASELINES)}"
        raise click.BadParameter(message, param_hint="--baseline")
    return baseline(name, machine, job, options["seed"])

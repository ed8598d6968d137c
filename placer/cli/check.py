"""``placer check``: whether a plan keeps every promise."""

from __future__ import annotations

import click


@click.command()
@click.argument("plan")
@click.option("-t", "--topology", required=True, help="Preset, file or synthetic text.")
@click.option("-j", "--job", required=True, help="Preset or file.")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="What to print.",
)
@click.option("-q", "--quiet", is_flag=True, help="Say nothing when all holds.")
@click.pass_context
def check(
    context: click.Context,
    plan: str,
    topology: str,
    job: str,
    format_name: str,
    quiet: bool,
) -> None:
    """Check PLAN against its topology and job, independently of the solver.

    The exit code is 0 when all holds and 1 when something does not.
    """
    import json

    from placer.job.read import read_job
    from placer.placement.check import violations
    from placer.placement.plan_consistency import ContradictionError
    from placer.placement.plan_file import read_plan
    from placer.topology.read import read_topology

    machine, work = read_topology(topology), read_job(job)
    try:
        found = read_plan(plan)
        broken = violations(found, machine, work)
        holds = f"ok: {found.world_size:,} ranks on {len(found.nodes):,} nodes"
    except ContradictionError as error:
        broken = [str(problem) for problem in error.problems]
    if format_name == "json":
        click.echo(json.dumps({"ok": not broken, "violations": broken}, indent=2))
    elif broken:
        click.echo("\n".join(broken))
    elif not quiet:
        click.echo(holds)
    context.exit(1 if broken else 0)

"""``placer score``: what a placement costs, without solving; orders of launchers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

import placer
from placer.cli import complete, shared
from placer.cli.grouped import command
from placer.cli.inputs import plan_inputs, stated_inputs
from placer.cli.options import OneOf, flag, option, tell_new_name
from placer.cli.output import write_answer, write_made, write_plan, write_text
from placer.cli.placements import made, note_violations, plan_command

if TYPE_CHECKING:
    from placer.placement.inputs import Inputs
    from placer.report.columns import Look

_OLD_OPTIONS = ("plan", "hostfile", "baseline")


def _names() -> Iterator[str]:
    """The launchers and the baselines, with their rules."""
    from placer.placement.baselines import RULES
    from placer.placement.launcher_orders import LAUNCHERS

    rows = [(f"launcher:{n}", row.rule, row.source) for n, row in LAUNCHERS.items()]
    rows += [(f"baseline:{name}", rule, "") for name, rule in RULES.items()]
    width = max(len(name) for name, *_ in rows)
    for name, rule, source in rows:
        yield f"{name:<{width}}  {rule}"
        if source:
            yield f"{'':<{width}}  source: {source}"


@plan_command("placer score launcher:slurm -t cluster.yaml -j job.yaml")
@click.argument(
    "source", metavar="PLAN", required=False, shell_complete=complete.placements
)
@shared.placement
@click.option("--plan", hidden=True, shell_complete=complete.files)
@click.option("--hostfile", hidden=True, shell_complete=complete.files)
@click.option("--baseline", hidden=True, shell_complete=complete.baselines)
@flag(
    "--explain",
    "Also say why: critical path, worst groups, slowest replica, busiest links.",
)
@shared.listing(
    "List the launchers and the baselines, with their rules, and exit.", _names
)
@shared.output("Also write the placement as a plan here; - is stdout, without a score.")
@option(
    "--format [text|json]",
    "What to print. Default: text.",
    type=OneOf(["text", "json", "html"]),
    default="text",
    to="format_name",
)
@shared.quiet("No notes.")
def score(**options: Any) -> None:
    """Score a placement without a search."""
    from placer.assumed import all_assumed, assumed_entry
    from placer.cost.step import StepModel
    from placer.explain.score import explain
    from placer.placement.build import placement_of_plan

    kind, value, plan, inputs = _placement(options)
    machine, job, output = inputs.machine, inputs.job, options["output"]
    if options["format_name"] == "html":
        write_text("-", _page(kind, value, plan, inputs, options))
        return
    found = placer.score(machine, job, plan)
    note_violations(plan, machine, job, options)
    if kind == "launcher" and not options["quiet"]:
        warn_of_text_order(plan, value)
    if output is not None:
        write_plan(output, replace(plan, score=found))
    if output == "-":
        return
    found |= assumed_entry(all_assumed(machine, job))
    if options["explain"]:
        placement = placement_of_plan(plan, machine)
        found["explain"] = explain(StepModel(machine, job), placement)
    order = order_text(plan, value) if kind == "launcher" else ""
    parts = filter(None, (order, *_text(found, machine)))
    write_answer(options["format_name"], found, lambda: "\n\n".join(parts))


def _text(found: placer.Score, machine: placer.Topology) -> Iterator[str]:
    """The parts of a score, and what was asked for besides, for people."""
    from placer.placement.build import topology_section
    from placer.placement.plan import period_of
    from placer.report.assumed_text import assumed_lines
    from placer.report.explain_text import explain_text
    from placer.report.score_text import score_text

    seen = topology_section(machine)
    tiers, scale_up = seen["tiers"], seen["scale_up"]
    yield score_text(found, tiers, scale_up)
    if "explain" in found:
        yield explain_text(found["explain"], tiers, scale_up, period_of(found))
    yield "\n".join(assumed_lines(found.get("assumed", ())))


def _placement(options: dict[str, Any]) -> tuple[str, str, placer.Plan, Inputs]:
    """The kind and the name of the placement, its plan and what it is one of."""
    from placer.cli.placements import allocated, made, parts, with_inputs

    old = [f"{key}:{options[key]}" for key in _OLD_OPTIONS if options[key] is not None]
    given = [*filter(None, [options["source"]]), *old]
    if not given:
        raise click.UsageError("Missing argument 'PLAN'.")
    files = [text for text in given if parts(text)[0] == "plan"]
    if len(given) > 2 or (len(given) == 2 and len(files) != 1):
        raise click.UsageError(f"Give one placement, not {' and '.join(given)}.")
    for text in old:
        new = f"score {text.removeprefix('plan:')}"
        if len(given) == 2:
            new = f"diff {text} {files[0]}"
        tell_new_name(options, f"--{text.replace(':', ' ', 1)}", f"placer {new}")
    if len(given) == 1:
        return *parts(given[0]), *with_inputs(given[0], options)
    (other,) = (text for text in given if text not in files)
    kind, value = parts(other)
    plan = placer.read_plan(parts(files[0])[1])
    inputs = allocated(plan_inputs(plan, options), options)
    return kind, value, made(kind, value, inputs, options), inputs


def _page(
    kind: str, value: str, plan: placer.Plan, inputs: Inputs, options: dict[str, Any]
) -> str:
    """The report page of the placement alone."""
    from placer.api.predict import scored_plan
    from placer.placement.build import placement_of_plan

    name = value if kind == "plan" else f"{kind}:{value}"
    tell_new_name(options, "--format html", f"placer report {name}")
    path = value if kind == "plan" else ""
    placed = scored_plan(inputs, placement_of_plan(plan, inputs.machine), name)
    return placer.report_html(placed, None, names=("", name), path=path)


def order_text(plan: placer.Plan, name: str) -> str:
    """The rule of a launcher, its source, and the hosts as it numbers their ranks."""
    from placer.placement.launcher_orders import LAUNCHERS
    from placer.report.words import hosts_text

    launcher = LAUNCHERS[name]
    return (
        f"{name}: {launcher.rule}\nsource: {launcher.source}\n"
        f"hosts by rank: {hosts_text(plan.nodes)}"
    )


def warn_of_text_order(plan: placer.Plan, name: str) -> None:
    """Say it when names whose numbers differ in width meet a launcher of text."""
    from placer.placement.launcher_orders import LAUNCHERS, text_order_surprise

    what = LAUNCHERS[name].sorts_text
    labels = plan.domains.values() if what == "labels" else ()
    compared = [list(dict.fromkeys(names)) for names in (*labels, plan.nodes)]
    surprise = next(filter(None, map(text_order_surprise, compared)), "")
    if what and surprise:
        click.echo(
            f"warning: {name} sorts {what} as text and these have numbers of mixed "
            f"width: {surprise}",
            err=True,
        )


@command("placer score launcher:torchrun-c10d -t cluster.yaml -j job.yaml", hidden=True)
@shared.topology()
@shared.job()
@shared.sources
@shared.order
@option(
    "--launcher NAME", "See --list.", required=True, shell_complete=complete.launchers
)
@shared.hosts
@shared.listing("List the launchers with their rules and exit.", _names)
@shared.plan_output("No notes")
def predict(**options: Any) -> None:
    """Score the order of a launcher: an old name of score launcher:NAME."""
    from placer.report.score_text import score_text

    name = options["launcher"]
    new = f"placer score launcher:{name}"
    tell_new_name(options, '"placer predict"', new)
    plan = made("launcher", name, stated_inputs(options), options)
    if not options["quiet"]:
        warn_of_text_order(plan, name)

    def summary(look: Look) -> str:
        tiers, scale_up = plan.topology["tiers"], plan.topology["scale_up"]
        score = score_text(plan.score, tiers, scale_up, look)
        return f"{order_text(plan, name)}\n\n{score}"

    write_made(plan, options, summary)

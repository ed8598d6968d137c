"""What commands say of the order that a launcher uses by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from placer.cli.output import write_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from placer.placement.plan import Plan


def list_option(help: str) -> Callable[[Any], Any]:
    """``--list``: the launchers and the baselines, with their rules."""
    return click.option(
        "--list",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_names,
        help=help,
    )


def _print_names(
    context: click.Context, _parameter: click.Parameter, asked: bool
) -> None:
    if not asked or context.resilient_parsing:
        return
    from placer.placement.baselines import RULES
    from placer.placement.launcher_orders import LAUNCHERS

    rows = [(f"launcher:{row.name}", row.rule) for row in LAUNCHERS.values()]
    rows += [(f"baseline:{name}", rule) for name, rule in RULES.items()]
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:<{width}}  {rule}" for name, rule in rows]
    for index, row in reversed([*enumerate(LAUNCHERS.values(), start=1)]):
        lines.insert(index, f"{'':<{width}}  source: {row.source}")
    write_line("\n".join(lines))
    context.exit()


def order_text(plan: Plan, name: str) -> str:
    """The rule of a launcher, its source, and the hosts as it numbers their ranks."""
    from placer.placement.launcher_orders import LAUNCHERS
    from placer.report.words import hosts_text

    launcher = LAUNCHERS[name]
    return (
        f"{name}: {launcher.rule}\nsource: {launcher.source}\n"
        f"hosts by rank: {hosts_text(plan.nodes)}"
    )


def warn_of_text_order(plan: Plan, name: str) -> None:
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

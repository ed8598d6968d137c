"""Options of ``placer place`` for pins, hosts to avoid, replicas a domain, spares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from placer.cli import complete

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from placer.job.rules import Pin, Rules
    from placer.topology.model import Topology

    _Function = TypeVar("_Function", bound=Callable[..., Any])


def rule_options(function: _Function) -> _Function:
    """``--pin``, ``--avoid``, ``--at-most`` and ``--spares``."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def rules_of_options(options: dict[str, Any]) -> Rules:
    """The rules that the options add to those of the job."""
    from placer.job.rules import Rules
    from placer.topology.allocation import parse_hosts

    avoid = parse_hosts(options["avoid"], "avoid") if options["avoid"] else ()
    named = {"avoid": "--avoid"}
    named |= {f"pin[{i}]": "--pin" for i in range(len(options["pin"]))}
    named |= {f"at_most.{tier}": "--at-most" for tier in options["at_most"]}
    named |= {f"spares.{tier}": "--spares" for tier in options["spares"]}
    return Rules(
        pin=options["pin"],
        avoid=tuple(dict.fromkeys(avoid)),
        at_most=options["at_most"],
        spares=options["spares"],
        where={key: (option, 0, 0) for key, option in named.items()},
    )


def first_host_first(
    machine: Topology, hosts: Sequence[str] | None, exclude: Sequence[str] | None
) -> Rules:
    """The rule that rank 0 runs on the first host by name, as Slurm lists them.

    ``hosts`` and ``exclude``: the allocation, and hosts of it not to use.
    """
    from placer.job.rules import Pin, Rules
    from placer.placement.launcher_orders import slurm_key
    from placer.topology.allocation import allocate

    left = allocate(machine, hosts, exclude or ())
    first = min(left.node_names, key=slurm_key)
    where = {"pin[0]": ("--first-host-first", 0, 0)}
    return Rules(pin=(Pin((0,), (first,)),), where=where)


def _pins(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> tuple[Pin, ...]:
    """Pins, each as ``ranks=hosts``."""
    from placer.base.hostlist import expand
    from placer.job.rules import Pin, parse_ranks

    pins = []
    for text in texts:
        ranks, _, hosts = (part.strip() for part in text.partition("="))
        if not (ranks and hosts):
            raise click.BadParameter(f"{text!r} is not a pin such as 0-3=n01")
        try:
            names = tuple(dict.fromkeys(expand(hosts)))
            pins.append(Pin(parse_ranks(ranks), names))
        except ValueError as error:
            raise click.BadParameter(str(error)) from None
    return tuple(pins)


def _numbers(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> dict[str, int]:
    """Numbers by tier, each as ``tier=number``."""
    found: dict[str, int] = {}
    for text in texts:
        tier, _, number = (part.strip() for part in text.partition("="))
        if not (tier and number.isascii() and number.isdecimal() and int(number)):
            raise click.BadParameter(
                f"{text!r} is not a tier and a number such as rack=2"
            )
        if found.setdefault(tier, int(number)) != int(number):
            message = f"{tier} has two numbers, {found[tier]} and {int(number)}"
            raise click.BadParameter(message)
    return found


_OPTIONS = (
    click.option(
        "--pin",
        multiple=True,
        callback=_pins,
        metavar="RANKS=H",
        shell_complete=complete.pins,
        help="Ranks that must run on these hosts: 0-3=n01. Repeatable.",
    ),
    click.option(
        "--avoid",
        metavar="H",
        shell_complete=complete.hosts,
        help="Hosts to leave free if possible: a list or @FILE.",
    ),
    click.option(
        "--at-most",
        shell_complete=complete.tiers,
        multiple=True,
        callback=_numbers,
        metavar="TIER=N",
        help="Most replicas with ranks in one domain of the tier: rack=2. Repeatable.",
    ),
    click.option(
        "--spares",
        shell_complete=complete.tiers,
        multiple=True,
        callback=_numbers,
        metavar="TIER=N",
        help="Nodes to keep free in each domain of the tier that is used: rack=1. "
        "Repeatable.",
    ),
)

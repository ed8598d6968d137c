"""Options of ``placer place`` for pins, hosts to avoid, replicas a domain, spares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placer.cli import complete
from placer.cli.options import by_name, option, together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placer.job.rules import Pin, Rules
    from placer.topology.model import Topology


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
        where={key: (name, 0, 0) for key, name in named.items()},
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


def _pins(texts: Sequence[str]) -> tuple[Pin, ...]:
    """Pins, each as ``ranks=hosts``."""
    from placer.base.hostlist import expand
    from placer.job.rules import Pin, parse_ranks

    pins = []
    for text in texts:
        ranks, _, hosts = (part.strip() for part in text.partition("="))
        if not (ranks and hosts):
            raise ValueError(f"{text!r} is not a pin such as 0-3=n01")
        names = tuple(dict.fromkeys(expand(hosts)))
        pins.append(Pin(parse_ranks(ranks), names))
    return tuple(pins)


def _number(text: str) -> int:
    number = text.strip()
    if not (number.isascii() and number.isdecimal() and int(number)):
        raise ValueError
    return int(number)


_numbers = by_name(
    _number, "a tier and a number such as rack=2", "numbers, {one} and {other}"
)
rule_options = together(
    option(
        "--pin",
        "RANKS=H",
        "Ranks that must run on these hosts: 0-3=n01. Repeatable.",
        _pins,
        multiple=True,
        shell_complete=complete.pins,
    ),
    option("--avoid", "H", "Hosts to leave free if possible: a list or @FILE."),
    option(
        "--at-most",
        "TIER=N",
        "Most replicas with ranks in one domain of the tier: rack=2. Repeatable.",
        _numbers,
        multiple=True,
    ),
    option(
        "--spares",
        "TIER=N",
        "Nodes to keep free in each domain of the tier that is used: rack=1. "
        "Repeatable.",
        _numbers,
        multiple=True,
    ),
)

"""The ``rules`` of a job: pins, hosts to avoid, replicas a domain, spares."""

from __future__ import annotations

from placer.base.hostlist import HostLists
from placer.documents import Section, Value
from placer.job.axes import MAX_WORLD_SIZE
from placer.job.rules import MAX_HOSTS, Pin, Rules, parse_ranks


def decode_rules(section: Section, world_size: int) -> Rules:
    """The rules of a job; problems go to the job's document.

    Tiers and hosts are the machine's, and are checked against it later. A
    ``world_size`` of 0 means that it is unknown and ranks cannot be checked.
    """
    where: dict[str, tuple[str, int, int]] = {}
    lists = HostLists(MAX_HOSTS)
    pins: list[Pin] = []
    left = MAX_WORLD_SIZE
    for index, value in enumerate(section.items("pin")):
        _mark(where, f"pin[{index}]", value)
        pins.append(_pin(value.section(), world_size, lists))
        left -= len(pins[-1].ranks)
        if left < 0:
            value.problem(f"more than {MAX_WORLD_SIZE} ranks in all pins together")
            break
    avoid = section.get("avoid")
    if avoid is not None:
        _mark(where, "avoid", avoid)
    rules = Rules(
        pin=tuple(pins),
        avoid=_hosts(avoid, lists),
        at_most=_numbers(section, "at_most", where),
        spares=_numbers(section, "spares", where),
        where=where,
    )
    if world_size and all(pin.ranks and pin.hosts for pin in pins):
        section.document.problems.extend(rules.rank_problems(world_size))
    return rules


def _pin(section: Section, world_size: int, lists: HostLists) -> Pin:
    ranks: tuple[int, ...] = ()
    value = section.get("ranks", required=True)
    if value is not None and value.kind in ("text", "number"):
        highest = (world_size or MAX_WORLD_SIZE) - 1
        ranks = value.made(parse_ranks, str(value.content), highest, default=())
    elif value is not None:
        message = f"expected ranks, got {value.shown()}"
        value.problem(message, "write them as 0-7,12")
    nodes = section.get("nodes", required=True)
    hosts = _hosts(nodes, lists)
    if nodes is not None and not hosts and not section.document.problems:
        nodes.problem("names no node")
    return Pin(ranks, hosts)


def _hosts(value: Value | None, lists: HostLists) -> tuple[str, ...]:
    """Hosts of a host list, or of a list of them, each once."""
    if value is None:
        return ()
    found: dict[str, None] = {}
    for item in value.items() if value.kind == "list" else [value]:
        if text := item.text():
            found.update(
                dict.fromkeys(item.made(lists.expand, text, default=list[str]()))
            )
    return tuple(found)


def _numbers(
    section: Section, key: str, where: dict[str, tuple[str, int, int]]
) -> dict[str, int]:
    """A mapping of tiers to numbers of at least 1."""
    found = {}
    for tier, value in section.section(key).entries():
        _mark(where, f"{key}.{tier}", value)
        found[tier] = value.integer()
    return found


def _mark(where: dict[str, tuple[str, int, int]], key: str, value: Value) -> None:
    where[key] = (value.place.source, value.place.line, value.place.column)

"""What the shell offers for a word that is not typed to its end.

Each function is a ``shell_complete`` of click. Those that read files may raise what
reading raises: `placer.cli.completion` then offers nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from shlex import quote
from typing import Any, Literal

from click import Context, Group, Parameter
from click.shell_completion import CompletionItem

import placer
from placer.base.loading import load

Items = list[CompletionItem[Any]]
Completer = Callable[[Context, Parameter, str], Items]

_AXES = ("tp", "cp", "ep", "etp", "pp", "dp", "edp")


def commands(context: Context, _parameter: Parameter, typed: str) -> Items:
    """Commands of the one that the words before name."""
    from placer.cli.grouped import context_of

    found = context_of(context.find_root(), context.params["names"] or ())
    group = found.command
    names = group.list_commands(found) if isinstance(group, Group) else []
    return _items(names, typed)


def files(_context: Context, _parameter: Parameter, typed: str) -> Items:
    """Files, as the shell itself finds them."""
    return [CompletionItem(typed, type="file")]


def gpus(_context: Context, _parameter: Parameter, typed: str) -> Items:
    """GPUs whose hosts are known."""
    from placer.topology.gpu_kinds import HOSTS

    return _items([name.lower() for name in HOSTS], typed.lower())


def hosts(context: Context, _parameter: Parameter, typed: str) -> Items:
    """Host lists with another host of the machine or the plan at their end."""
    return _continued(typed, lambda: _hosts(context))


def pins(context: Context, _parameter: Parameter, typed: str) -> Items:
    """Hosts behind the ``=`` of a pin."""
    ranks, equals, listed = typed.partition("=")
    if not equals:
        return []
    return _continued(listed, lambda: _hosts(context), f"{ranks}=")


def rules(context: Context, _parameter: Parameter, typed: str) -> Items:
    """Axes with ``=``, and tiers behind it."""
    axis, equals, tier = typed.partition("=")
    if not equals:
        return _items([f"{name}=" for name in _AXES], axis)
    return _items(_tiers(context), tier, f"{axis}=")


def groups(_context: Context, _parameter: Parameter, typed: str) -> Items:
    """Axes with ``:``; the number of a group follows."""
    return _items([f"{axis}:" for axis in _AXES], typed)


def tiers(context: Context, _parameter: Parameter, typed: str) -> Items:
    """Tiers with ``=``: a number or a list of numbers follows."""
    return _items([f"{tier}=" for tier in _tiers(context)], typed)


def _registered(home: str, table: str, says: str = "") -> Completer:
    """Names of a module's table; ``says``: what of a row explains it."""

    def offered(_context: Context, _parameter: Parameter, typed: str) -> Items:
        rows = getattr(load(home), table)
        return [
            CompletionItem(name, help=getattr(rows[name], says) if says else None)
            for name in rows
            if name.startswith(typed)
        ]

    return offered


def _sources(folder: Literal["topologies", "jobs"], room: str) -> Completer:
    """Presets, files, formats, and files behind ``FORMAT:``."""

    def offered(_context: Context, _parameter: Parameter, typed: str) -> Items:
        from placer.documents.presets import preset_names

        formats = load(f"placer.formats.{room}.registry").FORMATS
        name, colon, path = typed.partition(":")
        if colon:
            return _files(path, f"{name}:") if name in formats else []
        file = CompletionItem(typed, type="file")
        prefixes = _items([f"{name}:" for name in formats], typed)
        presets = _items(preset_names(folder), typed)
        return [*presets, *(prefixes if typed else []), file]

    return offered


topologies, jobs = _sources("topologies", "machines"), _sources("jobs", "jobs")
baselines = _registered("placer.placement.baselines", "RULES")
launchers = _registered("placer.placement.launcher_orders", "LAUNCHERS", "rule")
formats = _registered("placer.emit.registry", "FORMATS", "description")


def placements(context: Context, parameter: Parameter, typed: str) -> Items:
    """Plan files, and baselines and launchers behind their prefix."""
    kind, colon, value = typed.partition(":")
    if not colon:
        kinds = ("baseline:", "hostfile:", "launcher:")
        return [*_items(kinds, typed), *files(context, parameter, typed)]
    if kind == "hostfile":
        return _files(value, "hostfile:")
    named = {"baseline": baselines, "launcher": launchers}.get(kind)
    items = named(context, parameter, value) if named else []
    return [CompletionItem(f"{kind}:{item.value}", help=item.help) for item in items]


def _items(names: Iterable[str], typed: str, before: str = "") -> Items:
    return [CompletionItem(before + name) for name in names if name.startswith(typed)]


def _files(typed: str, before: str) -> Items:
    """Files behind a prefix, which shells take for a part of the name."""
    folder = os.path.dirname(typed)  # noqa: PTH120 - what was typed stays as it is
    try:
        found = sorted(os.scandir(folder or "."), key=lambda entry: entry.name)
    except OSError:
        return []
    names = (
        os.path.join(folder, entry.name) + "/" * entry.is_dir()  # noqa: PTH118
        for entry in found
        if quote(entry.name) == entry.name  # others cannot be typed as they are
    )
    return _items(names, typed, before)


def _continued(
    typed: str, known: Callable[[], Sequence[str]], before: str = ""
) -> Items:
    """Lists ``typed`` with its last name completed; ``@FILE`` is a file."""
    if typed.startswith("@"):
        return _files(typed[1:], f"{before}@")
    listed, comma, name = typed.rpartition(",")
    given = set(listed.split(","))
    names = [host for host in known() if host not in given]
    return _items(names, name, before + listed + comma)


def _hosts(context: Context) -> Sequence[str]:
    """Hosts of the plan or the machine that the words before name."""
    if (machine := _machine(context)) is not None:
        return machine.node_names
    if "plan" not in context.params:
        return ()
    # Before an option that lacks its value, arguments are not assigned yet.
    plan = context.params["plan"] or next(iter(context.args), "-")
    return placer.read_plan(plan).nodes if plan != "-" else ()


def _tiers(context: Context) -> list[str]:
    machine = _machine(context)
    return [] if machine is None else [tier.name for tier in machine.tiers]


def _machine(context: Context) -> placer.Topology | None:
    """The machine of ``-t``, or of placer.yaml; None if there is none."""
    from placer.cli.folder import from_folder

    options = context.params
    if "plan" not in options and not options.get("topology"):
        options = options | from_folder(options)
    sources = options.get("topology") or ()
    if not sources or "-" in sources:
        return None
    given = ("hardware", "gpu", "gpus_per_node", "oversubscription")
    own: dict[str, Any] = {key: options.get(key) for key in given}
    return placer.read_topology(sources, **own, note=lambda _remark: None)

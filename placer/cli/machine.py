"""The machine that a command's options describe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from placer.cli.options import teller

if TYPE_CHECKING:
    from placer.formats.machines.combine import Tree
    from placer.topology.model import Topology


def read_machine(
    options: dict[str, Any],
    sources: Sequence[str] = (),
    name: str | None = None,
    beside: Sequence[Callable[[], object]] | None = None,
) -> Topology:
    """The machine of ``-t``, or of ``sources``, and of the options beside them.

    What the readers have to say goes to stderr, unless the command is quiet. Where the
    machine cannot be read, the error says what is wrong with the jobs, too.

    ``options``: of a command with `topology_option`. ``name``: of the machine.
    ``beside``: each reads a job without the machine; by default the one of ``-j``.
    """
    from placer.base.errors import read_before
    from placer.cli.job import read_quietly

    if beside is None:
        beside = [partial(read_quietly, options)] if options.get("job") else []
    return read_before(lambda: _read(options, sources, name), beside)


def _read(
    options: dict[str, Any], sources: Sequence[str], name: str | None
) -> Topology:
    from placer.documents.presets import RENAMED
    from placer.formats.jobs.opened import host_hint
    from placer.formats.machines.machine import read_topology

    named = (*(sources or options["topology"]), options["hardware"])
    for old, new in RENAMED["topologies"].items():
        if old in named:
            teller(options)(
                f"the preset {old} is {new} now; the old name will be removed"
            )
    job, settings = options.get("job"), options.get("settings")
    return read_topology(
        sources or options["topology"],
        hardware=options["hardware"],
        gpu=options["gpu"],
        gpus_per_node=options["gpus_per_node"],
        oversubscription=options["oversubscription"],
        labels=options["labels"],
        name=name,
        hint=lambda: host_hint(job or (), settings, options.get("select")),
        note=teller(options),
    )


def read_alone(options: dict[str, Any], source: str) -> Topology | Tree:
    """What ``source`` says by itself, with the hardware where that is given."""
    from placer.formats.machines import machine

    given = ("hardware", "gpu", "gpus_per_node", "oversubscription")
    if not any(options[name] for name in given):
        return machine.read_alone(source, teller(options))
    return read_machine(options, [source])

"""The machine that a command's options describe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from placer.cli.options import teller

if TYPE_CHECKING:
    from placer.readers.combine import Tree
    from placer.topology.model import Topology


def read_machine(
    options: dict[str, Any], sources: Sequence[str] = (), name: str | None = None
) -> Topology:
    """The machine of ``-t``, or of ``sources``, and of the options beside them.

    What the readers have to say goes to stderr, unless the command is quiet.
    """
    from placer.presets import RENAMED
    from placer.readers.machine import read_topology
    from placer.sources.hint import host_hint

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


def read_machine_of_job(options: dict[str, Any]) -> Topology:
    """The machine of ``-t``, beside the job of ``-j``.

    Where it cannot be read, the error says what is wrong with the job, too.
    """
    from placer.cli.job import job_problems
    from placer.errors import InputError

    try:
        return read_machine(options)
    except InputError as error:
        problems = [*error.problems, *job_problems(options)]
        raise InputError(problems, error.notes) from None


def read_alone(options: dict[str, Any], source: str) -> Topology | Tree:
    """What ``source`` says by itself, with the hardware where that is given."""
    from placer.readers import machine

    given = ("hardware", "gpu", "gpus_per_node", "oversubscription")
    if not any(options[name] for name in given):
        return machine.read_alone(source, teller(options))
    return read_machine(options, [source])

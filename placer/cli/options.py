"""Options that mean the same in every command."""

from __future__ import annotations

import math
from collections.abc import Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

import click

from placer.cli import complete

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.topology.model import Topology

_Function = TypeVar("_Function", bound=Callable[..., Any])

JOB_HELP = "Preset, file (- is stdin) or FORMAT:FILE, as for place."
SOURCE_OPTIONS = ("gpus", "tflops", "micro_batch_time", "settings", "select")
TOPOLOGY_HELP = "Preset, file, text or FORMAT:FILE, as for place."


class OneOf(click.Choice[str]):
    """A choice whose error names the nearest word."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """What is wrong with ``value``, what it may mean, and what it may be."""
        near = get_close_matches(str(value), self.choices, n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        return super().get_invalid_choice_message(value, ctx) + meant


def _seconds(_context: click.Context, _option: click.Parameter, text: str) -> float:
    """Seconds that an option means: a bare number, or with a unit (``500ms``)."""
    from placer.units import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def share(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> float | None:
    """Share from 0 to 1 that an option means; ``1%`` is 0.01."""
    if text is None:
        return None
    is_percentage = text.endswith("%")
    try:
        found = float(text.removesuffix("%")) / (100 if is_percentage else 1)
    except ValueError:
        found = math.nan
    if not 0 <= found <= 1:
        raise click.BadParameter(f"{text!r} is not a share such as 0.01 or 1%")
    return found


def rules(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    """Hard rules that an option means: axis to tier, each as ``axis=tier``."""
    found: dict[str, str] = {}
    for text in texts:
        axis, _, tier = (part.strip() for part in text.partition("="))
        if not (axis and tier):
            raise click.BadParameter(f"{text!r} is not a rule such as tp=rack")
        if found.setdefault(axis, tier) != tier:
            raise click.BadParameter(f"{axis} has two rules, {found[axis]} and {tier}")
    return found


def _label_tiers(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    """Tier of every label that an option means, each as ``KEY=TIER``."""
    found: dict[str, str] = {}
    for text in texts:
        key, equals, tier = (part.strip() for part in text.partition("="))
        if not (key and equals) or not tier.isprintable():
            raise click.BadParameter(f"{text!r} is not like example.com/rack=rack")
        if found.setdefault(key, tier) != tier:
            raise click.BadParameter(f"{key} has two tiers, {found[key]} and {tier}")
    return found


def topology_option(function: _Function) -> _Function:
    """``-t/--topology``, as a tuple, with the options for what it lacks."""
    option = click.option(
        "-t",
        "--topology",
        multiple=True,
        metavar="T",
        shell_complete=complete.topologies,
        help='Preset, file (- is stdin), text like "rack:8 node:18 gpu:4", or '
        "FORMAT:FILE, such as slurm:topology.conf; those may be given again.",
    )
    return option(hardware_options(function))


def hardware_options(function: _Function) -> _Function:
    """``--hardware``, ``--gpus-per-node`` and ``--label``."""
    hardware = click.option(
        "--hardware",
        metavar="T",
        shell_complete=complete.topologies,
        help="Topology with the links and GPUs a node that a FORMAT:FILE lacks.",
    )
    gpus = click.option(
        "--gpus-per-node",
        type=click.IntRange(1, 1024),
        metavar="N",
        help="GPUs of nodes that no FORMAT:FILE counts, if not the hardware's.",
    )
    labels = click.option(
        "--label",
        "labels",
        multiple=True,
        metavar="KEY=TIER",
        callback=_label_tiers,
        help="Tier that a label of Kubernetes nodes gives. KEY= leaves a label out.",
    )
    return hardware(gpus(labels(function)))


def job_option(function: _Function) -> _Function:
    """``-j/--job``, as a tuple, with the options for what it lacks."""
    option = click.option(
        "-j",
        "--job",
        multiple=True,
        metavar="J",
        shell_complete=complete.jobs,
        help="Preset, file (- is stdin), or FORMAT:FILE, such as megatron:pretrain.sh; "
        "those may be given again.",
    )
    return option(source_options(function))


def swept_job_option(function: _Function) -> _Function:
    """The same for commands whose own ``--gpus`` is a list."""
    option = click.option(
        "-j",
        "--job",
        multiple=True,
        metavar="J",
        shell_complete=complete.jobs,
        help=JOB_HELP,
    )
    return option(script_options(function))


def source_options(function: _Function) -> _Function:
    """``--gpus``, ``--tflops``, ``--micro-batch-time``, ``--set`` and ``--select``."""
    return gpus_option(script_options(function))


def gpus_option(function: _Function) -> _Function:
    """``--gpus``, of a job whose sources do not say how many it has."""
    return click.option(
        "--gpus",
        type=click.IntRange(1),
        metavar="N",
        help="Ranks of a job from FORMAT:FILE. Default: its own, or the hosts' GPUs.",
    )(function)


def script_options(function: _Function) -> _Function:
    """``--tflops``, ``--micro-batch-time``, ``--set`` and ``--select``."""
    tflops = click.option(
        "--tflops",
        type=float,
        metavar="RATE",
        help="Its sustained rate of a GPU, in TFLOP/s.",
    )
    time = click.option(
        "--micro-batch-time",
        metavar="TIME",
        help="Its measured time of a micro-batch on a stage: 120ms.",
    )
    settings = click.option(
        "--set",
        "settings",
        multiple=True,
        callback=_settings,
        metavar="NAME=VALUE",
        help="Variable of its script; job.KEY=VALUE sets a key of the job.",
    )
    select = click.option(
        "--select",
        metavar="NAME",
        help="Which of its functions or launches.",
    )
    return tflops(time(settings(select(function))))


def _settings(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    """Values by the name that an option means, each as ``NAME=VALUE``."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name.strip() and equals):
            raise click.BadParameter(f"{text!r} is not like TP=8")
        if found.setdefault(name.strip(), value) != value:
            raise click.BadParameter(f"{name} has two values, see {text!r}")
    return found


def order_option(function: _Function) -> _Function:
    """``--order``."""
    return click.option(
        "--order",
        metavar="ORDER",
        help="Number ranks so, whatever the job says: tp-cp-ep-pp-dp, or auto (chosen "
        "by place, taken from the plan elsewhere).",
    )(function)


def read_given_job(
    options: dict[str, Any],
    machine: Topology | None = None,
    hosts: str | None = None,
    ranks: int | None = None,
) -> Job:
    """The job of ``-j`` and the options beside it, by ``--order`` where it is given.

    Where its sources do not say how many GPUs it has, or a number that its sizes do not
    divide, it has those of the hosts. What its sources say goes to stderr, unless the
    command is quiet.

    Parameters
    ----------
    options : dict
        Of a command with `job_option`.
    machine : Topology, optional
    hosts : str, optional
        An allocation of the machine.
    ranks : int, optional
        How many a job has whose sources leave it open, for commands that change it.

    Raises
    ------
    InputError
        If it cannot be read, or cannot have this order.
    """
    from placer.errors import InputError
    from placer.job.resize import reordered
    from placer.topology.allocation import allocate

    try:
        job = _read_job(options, options["gpus"] if ranks is None else None)
    except InputError as error:
        asked = [problem.key for problem in error.problems]
        if "parallelism.dp" not in asked:
            raise
        if ranks is None and machine is not None and hosts is not None:
            ranks = allocate(machine, hosts).num_gpus
        if ranks is None:
            raise
        job = _read_job(options, ranks)
        teller(options)(f"{ranks:,} GPUs, as the hosts have")
    order = options.get("order")
    return job if order is None else reordered(job, order)


def _read_job(options: dict[str, Any], gpus: int | None) -> Job:
    from placer.sources.job import read_job

    others = {name: options[name] for name in SOURCE_OPTIONS if name != "gpus"}
    return read_job(options["job"], gpus=gpus, note=teller(options), **others)


def teller(options: dict[str, Any]) -> Callable[[str], None]:
    """Prints what a reader has to say, unless the command is quiet."""

    def tell(remark: str) -> None:
        if not options.get("quiet"):
            click.echo(f"note: {remark}", err=True)

    return tell


def hosts_option(function: _Function) -> _Function:
    """``--hosts``."""
    return click.option(
        "--hosts",
        metavar="H",
        shell_complete=complete.hosts,
        help='Allocation in launch order: "n[01-16]" or @FILE. Default: every node.',
    )(function)


def seed_option(function: _Function) -> _Function:
    """``--seed``."""
    return click.option(
        "--seed",
        type=click.IntRange(0, 2**31 - 1),
        default=0,
        show_default=True,
        help="Seed of everything random.",
    )(function)


def time_limit_option(search: str) -> Callable[[_Function], _Function]:
    """``--time-limit`` of a search."""
    return click.option(
        "--time-limit",
        callback=_seconds,
        metavar="TIME",
        default="60",
        show_default=True,
        help=f"When to stop {search}: 90, 90s, 5m.",
    )


def format_option(*formats: str) -> Callable[[_Function], _Function]:
    """``--format`` with these choices, the first of which is the default."""
    return click.option(
        "--format",
        "format_name",
        type=OneOf(formats),
        default=formats[0],
        show_default=True,
        help="What to print.",
    )


def format_by_suffix_option(*formats: str) -> Callable[[_Function], _Function]:
    """``--format`` of what ``-o`` writes; by the suffix of PATH unless given."""
    return click.option(
        "--format",
        "format_name",
        type=OneOf(formats),
        help=f"What to write. Default: by the suffix of PATH, or {formats[0]}.",
    )


def output_option(help: str) -> Callable[[_Function], _Function]:
    """``-o/--output``."""
    return click.option(
        "-o", "--output", metavar="PATH", shell_complete=complete.files, help=help
    )


def quiet_option(help: str) -> Callable[[_Function], _Function]:
    """``-q/--quiet``."""
    return click.option("-q", "--quiet", is_flag=True, help=help)

"""Options that say which machine and which job: ``-t``, ``-j``, what goes with them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

from placer.cli import complete
from placer.cli.options import Whole

_Function = TypeVar("_Function", bound=Callable[..., Any])

SOURCE_OPTIONS = ("gpus", "tflops", "micro_batch_time", "settings", "select")
_TOPOLOGY = (
    'Preset, file (- is stdin), text like "rack:8 node:18 gpu:4", or FORMAT:FILE such '
    "as slurm:topology.conf. Several FORMAT:FILE are joined."
)
_JOB = "Preset, file (- is stdin), or FORMAT:FILE such as megatron:pretrain.sh."


def topology_option(
    more: str = "", *, uplinks: bool = True
) -> Callable[[_Function], _Function]:
    """``-t/--topology``, as a tuple, with the options for what it lacks.

    ``more`` is added to the help; ``uplinks`` is false for a command whose own
    ``--oversubscription`` is a list.
    """
    option = click.option(
        "-t",
        "--topology",
        multiple=True,
        metavar="T",
        shell_complete=complete.topologies,
        help=f"{_TOPOLOGY} {more}".rstrip(),
    )
    hardware = hardware_options if uplinks else _hardware_options
    return lambda function: option(hardware(function))


def hardware_options(function: _Function) -> _Function:
    """``--gpu``, ``--hardware``, ``--gpus-per-node``, ``--label``, uplinks."""
    return _hardware_options(_uplinks_option(function))


def _uplinks_option(function: _Function) -> _Function:
    return click.option(
        "--oversubscription",
        multiple=True,
        metavar="TIER=N",
        shell_complete=complete.tiers,
        callback=_ratios,
        help="Oversubscription of the links into a tier: spine=2. Default: what the "
        "machine or the hardware says, else 1. Repeatable.",
    )(function)


def _hardware_options(function: _Function) -> _Function:
    hardware = click.option(
        "--hardware",
        metavar="T",
        shell_complete=complete.topologies,
        help="Topology with the links and the GPUs per node that a text or a "
        "FORMAT:FILE does not say. Default: the usual hosts of --gpu.",
    )
    gpu = click.option(
        "--gpu",
        metavar="NAME",
        shell_complete=complete.gpus,
        help="GPU of the nodes, such as h100 or gb200, which also says the links. "
        "Default: what the files say, else the usual GPU of such hosts.",
    )
    gpus = click.option(
        "--gpus-per-node",
        type=Whole(1, 1024),
        metavar="N",
        help="GPUs per node, where no file counts them. Default: those of the "
        "hardware.",
    )
    labels = click.option(
        "--label",
        "labels",
        multiple=True,
        metavar="KEY=TIER",
        callback=_label_tiers,
        help="Tier that a label of Kubernetes nodes names. KEY= ignores a label. "
        "Repeatable.",
    )
    return gpu(hardware(gpus(labels(function))))


def job_option(more: str = "") -> Callable[[_Function], _Function]:
    """``-j/--job``, as a tuple; ``more`` is added to the help."""
    return click.option(
        "-j",
        "--job",
        multiple=True,
        metavar="J",
        shell_complete=complete.jobs,
        help=f"{_JOB} {more}".rstrip(),
    )


def source_options(function: _Function) -> _Function:
    """``--gpus``, ``--tflops``, ``--micro-batch-time``, ``--set`` and ``--select``."""
    return gpus_option(script_options(function))


def gpus_option(function: _Function) -> _Function:
    """``--gpus``, of a job whose sources do not say how many it has."""
    return click.option(
        "--gpus",
        type=Whole(1),
        metavar="N",
        help="Ranks of a job from FORMAT:FILE. Default: what the files say, else all "
        "GPUs of the hosts.",
    )(function)


def script_options(function: _Function) -> _Function:
    """``--tflops``, ``--micro-batch-time``, ``--set``, ``--select`` and ``-v``."""
    tflops = click.option(
        "--tflops",
        type=float,
        metavar="RATE",
        help="Sustained TFLOP/s per GPU of a job from FORMAT:FILE. Default: a usual "
        "share of the GPU's peak.",
    )
    time = click.option(
        "--micro-batch-time",
        metavar="TIME",
        help="Measured time of one micro-batch on one stage, instead of --tflops: "
        "120ms.",
    )
    settings = click.option(
        "--set",
        "settings",
        multiple=True,
        callback=_settings,
        metavar="NAME=VALUE",
        help="Set a variable of the job's script, or a key of the job: job.KEY=VALUE. "
        "Repeatable.",
    )
    select = click.option(
        "--select",
        metavar="NAME",
        help="Function or launch to read, where the job's script has several.",
    )
    verbose = click.option(
        "-v",
        "--verbose",
        is_flag=True,
        help="Say more: where each value of a job from FORMAT:FILE comes from, and of "
        "a search how it went.",
    )
    return tflops(time(settings(select(verbose(function)))))


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
        help="Rank order, whatever the job says: tp-cp-ep-pp-dp, or auto (place "
        "chooses it, other commands take that of the plan).",
    )(function)


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


def _ratios(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> dict[str, float]:
    """Ratio of every tier that an option means, each as ``TIER=N``."""
    found: dict[str, float] = {}
    for text in texts:
        tier, _, number = (part.strip() for part in text.partition("="))
        try:
            ratio = float(number)
        except ValueError:
            ratio = 0.0
        if not tier or not 0 < ratio < math.inf:
            raise click.BadParameter(f"{text!r} is not like spine=2")
        if found.setdefault(tier, ratio) != ratio:
            raise click.BadParameter(f"{tier} has two ratios, see {text!r}")
    return found

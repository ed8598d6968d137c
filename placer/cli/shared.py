"""Options that several commands share: machine, job, hosts, rules, search, output."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

import placer
from placer.base.units import parse_duration
from placer.cli import complete
from placer.cli.options import (
    Decorator,
    OneOf,
    Whole,
    by_name,
    flag,
    hosts_of,
    option,
    together,
)
from placer.cli.output import write_line

if TYPE_CHECKING:
    from placer.workers.engine import Engine

_TOPOLOGY = (
    'Preset, file (- is stdin), text like "rack:8 node:18 gpu:4", or FORMAT:FILE such '
    "as slurm:topology.conf. Several FORMAT:FILE are joined."
)
_JOB = "Preset, file (- is stdin), or FORMAT:FILE such as megatron:pretrain.sh."


def _fitting(
    fits: Callable[[Any], object], read: Callable[[str], Any] = str.strip
) -> Callable[[str], Any]:
    """Reads a text as a value that fits; `ValueError` tells another."""

    def checked(text: str) -> Any:
        value = read(text)
        if not fits(value):
            raise ValueError
        return value

    return checked


_gpu_options = together(
    option(
        "--gpu NAME",
        "GPU of the nodes, such as h100 or gb200, which also says the links. Default: "
        "what the files say, else the usual GPU of such hosts.",
        shell_complete=complete.gpus,
    ),
    option(
        "--hardware T",
        "Topology with the links and the GPUs per node that a text or a FORMAT:FILE "
        "does not say. Default: the usual hosts of --gpu.",
    ),
    option(
        "--gpus-per-node N",
        "GPUs per node, where no file counts them. Default: those of the hardware.",
        type=Whole(1, 1024),
    ),
    option(
        "--label KEY=TIER",
        "Tier that a label of Kubernetes nodes names. KEY= ignores a label. "
        "Repeatable.",
        by_name(
            _fitting(str.isprintable),
            "like example.com/rack=rack",
            "tiers, {one} and {other}",
        ),
        to="labels",
    ),
)
hardware = together(
    _gpu_options,
    option(
        "--oversubscription TIER=N",
        "Oversubscription of the links into a tier: spine=2. Default: what the machine "
        "or the hardware says, else 1. Repeatable.",
        by_name(
            _fitting(lambda ratio: 0 < ratio < math.inf, float),
            "like spine=2",
            "ratios, see {text!r}",
        ),
    ),
)


def topology(more: str = "", *, uplinks: bool = True) -> Decorator:
    """``-t/--topology``, as a tuple, with the options for what it lacks.

    ``more`` is added to the help; ``uplinks`` is false for a command whose own
    ``--oversubscription`` is a list.
    """
    own = option("-t --topology T", f"{_TOPOLOGY} {more}".rstrip(), multiple=True)
    return together(own, hardware if uplinks else _gpu_options)


def job(more: str = "") -> Decorator:
    """``-j/--job``, as a tuple; ``more`` is added to the help."""
    return option("-j --job J", f"{_JOB} {more}".rstrip(), multiple=True)


script = together(
    option(
        "--tflops RATE",
        "Sustained TFLOP/s per GPU of a job from FORMAT:FILE. Default: a usual share "
        "of the GPU's peak.",
        type=float,
    ),
    option(
        "--micro-batch-time TIME",
        "Measured time of one micro-batch on one stage, instead of --tflops: 120ms.",
    ),
    option(
        "--set NAME=VALUE",
        "Set a variable of the job's script, or a key of the job: job.KEY=VALUE. "
        "Repeatable.",
        by_name(str, "like TP=8", "values, see {text!r}"),
        to="settings",
    ),
    option(
        "--select NAME",
        "Function or launch to read, where the job's script has several.",
    ),
    flag(
        "-v --verbose",
        "Say more: where each value of a job from FORMAT:FILE comes from, and of a "
        "search how it went.",
    ),
)
sources = together(
    option(
        "--gpus N",
        "Ranks of a job from FORMAT:FILE. Default: what the files say, else all GPUs "
        "of the hosts given.",
        type=Whole(1),
    ),
    script,
)
order = option(
    "--order ORDER",
    "Rank order, whatever the job says: tp-cp-ep-pp-dp, or auto (place chooses it, "
    "other commands take that of the plan).",
)


def rules_of_options(options: dict[str, Any]) -> placer.Rules:
    """The rules that the options add to those of the job."""
    avoid = hosts_of(options, "avoid") or ()
    named = {"avoid": "--avoid"}
    named |= {f"pin[{i}]": "--pin" for i in range(len(options["pin"]))}
    named |= {f"at_most.{tier}": "--at-most" for tier in options["at_most"]}
    named |= {f"spares.{tier}": "--spares" for tier in options["spares"]}
    return placer.Rules(
        pin=options["pin"],
        avoid=tuple(dict.fromkeys(avoid)),
        at_most=options["at_most"],
        spares=options["spares"],
        where={key: (name, 0, 0) for key, name in named.items()},
    )


def first_host_first(
    machine: placer.Topology, hosts: Sequence[str] | None, exclude: Sequence[str] | None
) -> placer.Rules:
    """The rule that rank 0 runs on the first host by name, as Slurm lists them.

    ``hosts`` and ``exclude``: the allocation, and hosts of it not to use.
    """
    from placer.placement.launcher_orders import slurm_key
    from placer.topology.allocation import allocate

    left = allocate(machine, hosts, exclude or ())
    first = min(left.node_names, key=slurm_key)
    where = {"pin[0]": ("--first-host-first", 0, 0)}
    return placer.Rules(pin=(placer.Pin((0,), (first,)),), where=where)


def _pins(texts: Sequence[str]) -> tuple[placer.Pin, ...]:
    """Pins, each as ``ranks=hosts``."""
    from placer.base.hostlist import expand
    from placer.job.rules import parse_ranks

    pins = []
    for text in texts:
        ranks, _, hosts = (part.strip() for part in text.partition("="))
        if not (ranks and hosts):
            raise ValueError(f"{text!r} is not a pin such as 0-3=n01")
        names = tuple(dict.fromkeys(expand(hosts)))
        pins.append(placer.Pin(parse_ranks(ranks), names))
    return tuple(pins)


def _number(text: str) -> int:
    number = text.strip()
    if not (number.isascii() and number.isdecimal() and int(number)):
        raise ValueError
    return int(number)


_numbers = by_name(
    _number, "a tier and a number such as rack=2", "numbers, {one} and {other}"
)
rules = together(
    option(
        "--pin RANKS=H",
        "Ranks that must run on these hosts: 0-3=n01. Repeatable.",
        _pins,
        shell_complete=complete.pins,
    ),
    option("--avoid H", "Hosts to leave free if possible: a list or @FILE."),
    option(
        "--at-most TIER=N",
        "Most replicas with ranks in one domain of the tier: rack=2. Repeatable.",
        _numbers,
    ),
    option(
        "--spares TIER=N",
        "Nodes to keep free in each domain of the tier that is used: rack=1. "
        "Repeatable.",
        _numbers,
    ),
)


_axis_rules = by_name(
    _fitting(bool), "a rule such as tp=rack", "rules, {one} and {other}"
)


def _even_rules(texts: Sequence[str]) -> dict[str, str]:
    """Rules of equal parts, as requirements."""
    from placer.job.even import evenly

    return evenly(_axis_rules(texts))


hosts = option(
    "--hosts H", 'Hosts of the job in launch order: "n[01-16]" or @FILE. Default: all.'
)
seed = option(
    "--seed N",
    "Seed of everything random. Default: 0.",
    type=Whole(0, 2**31 - 1),
    default=0,
)
objective = option(
    "--objective",
    "What to minimise. Default: time, or hop cost for a job of weights alone.",
    type=OneOf(["time", "hop-cost"]),
)


def time_limit(search: str) -> Decorator:
    """``--time-limit`` of a search."""
    help = f"When to stop {search}: 90, 90s, 5m. Default: 60 seconds."
    return option("--time-limit TIME", help, parse_duration, default="60")


def formats(*names: str) -> Decorator:
    """``--format`` with these choices, the first of which is the default."""
    help, usual = f"What to print. Default: {names[0]}.", names[0]
    return option("--format", help, type=OneOf(names), default=usual, to="format_name")


def output(help: str) -> Decorator:
    """``-o/--output``."""
    return option("-o --output PATH", help)


def quiet(help: str) -> Decorator:
    """``-q/--quiet``."""
    return flag("-q --quiet", help)


def require(beside: str) -> Decorator:
    """``--require`` and ``--even``; ``beside`` says whose rules they stand beside."""
    return together(
        option(
            "--require AXIS=TIER",
            f"Hard rule beside {beside}: tp=rack. Repeatable.",
            _axis_rules,
        ),
        option(
            "--even AXIS=TIER",
            "Hard rule: each group in equal parts of consecutive ranks, one in each "
            "domain that it touches: ep=rack. Repeatable.",
            _even_rules,
        ),
    )


engine = together(
    option(
        "--workers N",
        "Processes that work at a time. Default: one per core that is granted.",
        type=Whole(1, 1024),
    ),
    option("--scheduler ADDRESS", "Run on the Dask cluster at this address instead."),
)
framework = option(
    "--framework",
    "Framework whose rules the degrees obey. Default: megatron.",
    type=OneOf(["megatron", "torchtitan", "deepspeed", "jax"]),
    default="megatron",
)


def engine_of(options: dict[str, Any]) -> Engine:
    """The engine that the options of `engine` ask for."""
    from placer.base.threads import granted_cores
    from placer.workers.cluster import Cluster
    from placer.workers.pool import Pool

    if options["scheduler"] is None:
        return Pool(options["workers"] or granted_cores())
    if options["workers"] is not None:
        raise click.UsageError("--workers is for this machine, not for a --scheduler.")
    return Cluster(options["scheduler"])


def plot(what: str) -> Decorator:
    """The option; ``what`` begins its help."""
    return option("--plot FILE", f"{what}: FILE.svg or FILE.png.")


def check_plot(file: str | None) -> None:
    """Refuse a plot that could not be written, before the work."""
    if file is None:
        return
    if not file.lower().endswith((".svg", ".png")):
        raise click.BadParameter("FILE must end in .svg or .png", param_hint="--plot")
    if file.lower().endswith(".png"):
        from placer.draw.png import check_png

        check_png()


def sizes(name: str, help: str) -> Decorator:
    """An option of whole numbers: ``1,2,4`` or ``1-8``."""
    return option(f"{name} LIST", help, _sizes)


def _sizes(text: str) -> tuple[int, ...]:
    from placer.sweep.grid import parse_sizes

    return parse_sizes(text)


def plan_output(more: str) -> Decorator:
    """``-o``, ``--format`` and ``-q``, the last of which also means ``more``."""
    return together(
        output(
            "Write the plan here (.json.gz and .json.zst compress it); - is stdout, "
            "without a summary."
        ),
        formats("text", "json"),
        quiet(f"{more}; with -o PATH no summary either."),
    )


def listing(help: str, lines: Callable[[], Iterable[str]]) -> Decorator:
    """``--list``: the lines, and no more."""

    def show(context: click.Context, _option: object, asked: bool) -> None:
        if asked and not context.resilient_parsing:
            write_line("\n".join(lines()))
            context.exit()

    return click.option(
        "--list",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show,
        help=help,
    )


_USUAL = "Default: the one that the plan keeps."
# Needless for a plan with its inputs.
plan_inputs = together(
    topology(_USUAL),
    job(_USUAL),
    sources,
    order,
    flag("--force", "Take -t and -j although the plan was made for others."),
)
# Of a command that takes a placement.
placement = together(plan_inputs, hosts, seed)


search = together(seed, time_limit("the search"), plan_output("No progress and notes"))

"""Options: how one is said in a line, and those that several commands have."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

import click

from placer.base.units import parse_duration
from placer.cli import complete

if TYPE_CHECKING:
    from placer.workers.engine import Engine

_Value = TypeVar("_Value")
Decorator = Callable[[Any], Any]

# What completes a value, by the word that stands for it in the help.
_COMPLETED = {
    "H": complete.hosts,
    "T": complete.topologies,
    "J": complete.jobs,
    "PLAN": complete.files,
    "PATH": complete.files,
    "FILE": complete.files,
    "AXIS=TIER": complete.rules,
    "TIER=N": complete.tiers,
}


class OneOf(click.Choice[str]):
    """A choice whose error names the nearest word, or what came in place of one."""

    def __init__(
        self, choices: Sequence[str], gone: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(choices)
        self.gone = dict(gone or {})

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """What is wrong with ``value``, what it may mean, and what it may be."""
        near = get_close_matches(str(value), self.choices, n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        if instead := self.gone.get(str(value)):
            meant = f" {instead}"
        return super().get_invalid_choice_message(value, ctx) + meant


class Whole(click.ParamType[int]):
    """A whole number from ``least``, to ``most`` where there is one."""

    name = "integer"

    def __init__(self, least: int, most: int | None = None) -> None:
        self.least, self.most = least, most

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """The number that ``value`` is."""
        try:
            number = int(value)
        except ValueError:
            number = self.least - 1
        if number < self.least or (self.most is not None and number > self.most):
            words = "or more" if self.most is None else f"to {self.most:,}"
            self.fail(f"expected {self.least:,} {words}, got {value}", param, ctx)
        return number


def option(
    names: str,
    value: str,
    help: str,
    read: Callable[[Any], object] | None = None,
    **more: Any,
) -> Decorator:
    """An option with a value, for which the word ``value`` stands in the help.

    ``read`` makes of the text, or of the texts of one that may be repeated, what the
    command gets; its `ValueError` says what is wrong with them.
    """

    def checked(_context: object, _option: object, given: Any) -> Any:
        try:
            return None if given is None or read is None else read(given)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    if read is not None:
        more["callback"] = checked
    more = {"shell_complete": _COMPLETED.get(value), **more}
    return click.option(*names.split(), metavar=value or None, help=help, **more)


def flag(names: str, help: str) -> Decorator:
    """An option without a value."""
    return click.option(*names.split(), is_flag=True, help=help)


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator, in the order of the help."""

    def add(function: Any) -> Any:
        for each in reversed(options):
            function = each(function)
        return function

    return add


def by_name(
    read: Callable[[str], _Value],
    wrong: str,
    two: str = "",
    cut: Callable[[str, str], tuple[str, str, str]] = str.partition,
) -> Callable[[Sequence[str]], dict[str, _Value]]:
    """Reads texts ``NAME=VALUE`` as a mapping.

    ``wrong`` says what one is not. ``two`` is said of a name with two values, of which
    without it the last counts. ``cut`` is `str.rpartition` where names may have a
    ``=``.
    """

    def found(texts: Sequence[str]) -> dict[str, _Value]:
        values: dict[str, _Value] = {}
        for text in texts:
            name, equals, value = cut(text, "=")
            name = name.strip()
            try:
                if not (name and equals):
                    raise ValueError
                own = read(value)
            except ValueError:
                raise ValueError(f"{text!r} is not {wrong}") from None
            if two and values.get(name, own) != own:
                said = {"name": name, "one": values[name], "other": own, "text": text}
                raise ValueError(f"{name} has two {two.format(**said)}")
            values[name] = own
        return values

    return found


def _some(text: str) -> str:
    if not text.strip():
        raise ValueError
    return text.strip()


rules = by_name(_some, "a rule such as tp=rack", "rules, {one} and {other}")


def _even_rules(texts: Sequence[str]) -> dict[str, str]:
    """Rules of equal parts, as requirements."""
    from placer.job.even import evenly

    return evenly(rules(texts))


def share(text: str) -> float:
    """Share from 0 to 1 that a text means; ``1%`` is 0.01."""
    is_percentage = text.endswith("%")
    try:
        found = float(text.removesuffix("%")) / (100 if is_percentage else 1)
    except ValueError:
        found = math.nan
    if not 0 <= found <= 1:
        raise ValueError(f"{text!r} is not a share such as 0.01 or 1%")
    return found


def teller(options: Mapping[str, Any]) -> Callable[[str], None]:
    """Prints what a reader has to say, unless the command is quiet."""

    def tell(remark: str) -> None:
        if not options.get("quiet"):
            click.echo(f"note: {remark}", err=True)

    return tell


def tell_new_name(options: Mapping[str, Any], old: str, new: str) -> None:
    """Say what to type instead of a name of the release before."""
    teller(options)(f'{old} is "{new}" now; the old name will be removed')


hosts_option = option(
    "--hosts",
    "H",
    'Hosts of the job in launch order: "n[01-16]" or @FILE. Default: all.',
)
seed_option = option(
    "--seed",
    "N",
    "Seed of everything random. Default: 0.",
    type=Whole(0, 2**31 - 1),
    default=0,
)
objective_option = option(
    "--objective",
    "",
    "What to minimise. Default: time, or hop cost for a job of weights alone.",
    type=OneOf(["time", "hop-cost"]),
)


def time_limit_option(search: str) -> Decorator:
    """``--time-limit`` of a search."""
    help = f"When to stop {search}: 90, 90s, 5m. Default: 60 seconds."
    return option("--time-limit", "TIME", help, parse_duration, default="60")


def format_option(*formats: str) -> Decorator:
    """``--format`` with these choices, the first of which is the default."""
    help, usual = f"What to print. Default: {formats[0]}.", formats[0]
    return option("--format format_name", "", help, type=OneOf(formats), default=usual)


def output_option(help: str) -> Decorator:
    """``-o/--output``."""
    return option("-o --output", "PATH", help)


def quiet_option(help: str) -> Decorator:
    """``-q/--quiet``."""
    return flag("-q --quiet", help)


def require_option(beside: str) -> Decorator:
    """``--require`` and ``--even``; ``beside`` says whose rules they stand beside."""
    return together(
        option(
            "--require",
            "AXIS=TIER",
            f"Hard rule beside {beside}: tp=rack. Repeatable.",
            rules,
            multiple=True,
        ),
        option(
            "--even",
            "AXIS=TIER",
            "Hard rule: each group in equal parts of consecutive ranks, one in each "
            "domain that it touches: ep=rack. Repeatable.",
            _even_rules,
            multiple=True,
        ),
    )


engine_options = together(
    option(
        "--workers",
        "N",
        "Processes that work at a time. Default: one per core that is granted.",
        type=Whole(1, 1024),
    ),
    option(
        "--scheduler", "ADDRESS", "Run on the Dask cluster at this address instead."
    ),
)
framework_option = option(
    "--framework",
    "",
    "Framework whose rules the degrees obey. Default: megatron.",
    type=OneOf(["megatron", "torchtitan", "deepspeed", "jax"]),
    default="megatron",
)


def engine_of(options: dict[str, Any]) -> Engine:
    """The engine that the options of `engine_options` ask for."""
    from placer.base.threads import granted_cores
    from placer.workers.cluster import Cluster
    from placer.workers.pool import Pool

    if options["scheduler"] is None:
        return Pool(options["workers"] or granted_cores())
    if options["workers"] is not None:
        raise click.UsageError("--workers is for this machine, not for a --scheduler.")
    return Cluster(options["scheduler"])


def plot_option(what: str) -> Decorator:
    """The option; ``what`` begins its help."""
    return option("--plot", "FILE", f"{what}: FILE.svg or FILE.png.")


def check_plot(file: str | None) -> None:
    """Refuse a plot that could not be written, before the work."""
    if file is None:
        return
    if not file.lower().endswith((".svg", ".png")):
        raise click.BadParameter("FILE must end in .svg or .png", param_hint="--plot")
    if file.lower().endswith(".png"):
        from placer.draw.png import check_png

        check_png()


def size_option(name: str, help: str) -> Decorator:
    """An option of whole numbers: ``1,2,4`` or ``1-8``."""
    return option(name, "LIST", help, _sizes)


def _sizes(text: str) -> tuple[int, ...]:
    from placer.sweep.grid import parse_sizes

    return parse_sizes(text)

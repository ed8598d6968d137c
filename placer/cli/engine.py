"""Options of commands that work out many points: on which cores or cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from placer.cli.options import Whole

if TYPE_CHECKING:
    from placer.workers.engine import Engine

_Function = TypeVar("_Function", bound=Callable[..., Any])


def engine_options(function: _Function) -> _Function:
    """``--workers`` and ``--scheduler``."""
    workers = click.option(
        "--workers",
        type=Whole(1, 1024),
        metavar="N",
        help="Processes that work at a time. Default: one per core that is granted.",
    )
    scheduler = click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Run on the Dask cluster at this address instead.",
    )
    return workers(scheduler(function))


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

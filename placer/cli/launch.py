"""``placer launch``: plan for the allocation this runs in, and run one step by it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from placer.cli import complete
from placer.cli.folder import with_folder
from placer.cli.grouped import Command
from placer.cli.input_options import (
    SOURCE_OPTIONS,
    job_option,
    order_option,
    source_options,
    topology_option,
)
from placer.cli.interrupt import interrupts
from placer.cli.job import read_given_job
from placer.cli.options import (
    output_option,
    quiet_option,
    seed_option,
    time_limit_option,
)

if TYPE_CHECKING:
    from placer.placement.plan import Plan

_FOR_A_NEW_PLAN = (
    "topology",
    "hardware",
    "gpu",
    "gpus_per_node",
    "oversubscription",
    "labels",
    "job",
    *SOURCE_OPTIONS,
    "order",
)


@click.command(
    cls=Command,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="Example: placer launch -t cluster.yaml -j job.yaml srun python train.py",
)
@topology_option()
@job_option()
@source_options
@click.option(
    "--plan",
    metavar="PLAN",
    shell_complete=complete.files,
    help="Run by this plan instead of making one.",
)
@order_option
@click.option(
    "--hosts",
    metavar="H",
    shell_complete=complete.hosts,
    help='Hosts of the job in launch order: "n[01-16]" or @FILE. Default: those of '
    "the Slurm allocation.",
)
@seed_option
@time_limit_option("the search")
@output_option(
    "Write the plan here, and the host file beside it. Default: placer-JOBID.json."
)
@click.option(
    "--per-node/--per-rank",
    "per_node",
    default=None,
    help="One task per node, as torchrun, deepspeed, accelerate, ms-swift and Ray "
    "want, or one per rank. Default: what COMMAND, or a script that it names, starts.",
)
@quiet_option("No notes.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def launch(**options: Any) -> None:
    """Plan for this Slurm allocation and run COMMAND by it.

    COMMAND gets SLURM_HOSTFILE with the variables that go with it, MASTER_ADDR,
    MASTER_PORT, JAX_COORDINATOR_ADDRESS and PLACER_PLAN. They are set for COMMAND
    alone: later steps are not reordered. The hosts are those of --hosts, else of
    SLURM_JOB_NODELIST. A COMMAND that would undo the plan is refused, with what to
    write instead.
    """
    from placer.emit.slurm_hostfile import render, render_nodes
    from placer.errors import refuse
    from placer.files import write_text
    from placer.placement.plan_file import read_plan, write_plan
    from placer.sources.launched import launched

    given = options["plan"]
    options["hosts"] = options["hosts"] or os.environ.get("SLURM_JOB_NODELIST") or None
    if given and any(options[name] for name in _FOR_A_NEW_PLAN):
        raise click.UsageError("--plan leaves nothing to -t, -j and their options.")
    job_id = os.environ.get("SLURM_JOB_ID", "plan")
    path = Path(given or options["output"] or f"placer-{job_id}.json")
    if "-" in (given, options["output"]):
        raise click.UsageError("The plan must be a file: tasks read it.")
    if given is None:
        plan = _placed(with_folder(options, "there is no --plan"))
        with interrupts.writing(str(path)):
            write_plan(plan, path)
    else:
        plan = read_plan(path)
        if options["hosts"]:
            _check_hosts(plan, options["hosts"])
    started = launched(options["command"])
    if len(plan.nodes) > 1:
        refuse(started.problems)
    asked = options["per_node"]
    per_node = started.per_node if asked is None else asked
    hosts = render_nodes(plan) if per_node else render(plan)
    hostfile = Path(options["output"] or path).with_suffix(".hosts")
    with interrupts.writing(str(hostfile)):
        write_text(str(hostfile), hosts)
    if not options["quiet"]:
        if started.remark:
            click.echo(f"placer: {started.remark}", err=True)
        tasks = ", one task each," if per_node else ""
        text = (
            f"{plan.world_size:,} ranks on {len(plan.nodes):,} hosts{tasks} by {path}"
        )
        click.echo(f"placer: {text}, in the order of {hostfile}", err=True)
    count = hosts.count("\n")
    environ = step_environment(plan, path, hostfile, count, os.environ)
    _run(options["command"], environ)


def _check_hosts(plan: Plan, given: str) -> None:
    """Refuse a plan with hosts outside the allocation: srun would do so much later."""
    from placer.errors import InputError, Problem
    from placer.topology.allocation import parse_hosts

    known = set(parse_hosts(given))
    lost = [host for host in dict.fromkeys(plan.host_of_rank) if host not in known]
    if lost:
        more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
        message = f"the job does not have the plan's {', '.join(lost[:3])}{more}"
        hint = "give -t and -j for a plan of the hosts that it has"
        raise InputError([Problem(message, key="plan", hint=hint)])


def step_environment(
    plan: Plan, path: Path, hostfile: Path, tasks: int, environ: Mapping[str, str]
) -> dict[str, str]:
    """The environment of a step by ``plan``: ``environ`` and what reorders its tasks.

    Parameters
    ----------
    plan : Plan
    path, hostfile : Path
        The plan and its Slurm host file.
    tasks : int
        Lines of the host file.
    environ : mapping of str to str
    """
    address = environ.get("PLACER_MASTER_ADDR") or plan.host_of_rank[0]
    port = environ.get("MASTER_PORT") or "29500"
    # What sbatch was asked for would override the host file's counts.
    kept = {k: v for k, v in environ.items() if k != "SLURM_NTASKS_PER_NODE"}
    return kept | {
        "SLURM_HOSTFILE": str(hostfile.resolve()),
        "SLURM_DISTRIBUTION": "arbitrary",
        "SLURM_NTASKS": str(tasks),
        "SLURM_NNODES": str(len(plan.nodes)),
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
        "JAX_COORDINATOR_ADDRESS": f"{address}:{port}",
        "PLACER_PLAN": str(path.resolve()),
    }


def _placed(options: dict[str, Any]) -> Plan:
    from placer.api.place import place
    from placer.cli.machine import read_machine
    from placer.errors import InputError, Problem

    if not options["hosts"]:
        hint = "give --hosts, or run this in sbatch or salloc"
        message = "nothing says which hosts the job has: SLURM_JOB_NODELIST is not set"
        raise InputError([Problem(message, hint=hint)])
    machine = read_machine(options)
    result = place(
        machine,
        read_given_job(options, machine, options["hosts"]),
        hosts=options["hosts"],
        time_limit=options["time_limit"],
        seed=options["seed"],
    )
    return result.plan


def _run(command: tuple[str, ...], environ: Mapping[str, str]) -> NoReturn:
    """Become ``command``, found as a shell would find it."""
    from placer.errors import InputError

    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvpe(command[0], command, environ)  # noqa: S606
    except OSError as error:
        raise InputError(f"{command[0]}: {error.strerror}") from None

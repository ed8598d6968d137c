"""``placer launch``: plan for the allocation this runs in, and run one step by it."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, NoReturn

import click
from click.core import ParameterSource

import placer
from placer.base.errors import InputError, refuse
from placer.base.units import counted
from placer.cli import shared
from placer.cli.folder import MACHINE_OPTIONS, SOURCE_OPTIONS, from_folder, with_folder
from placer.cli.grouped import command
from placer.cli.inputs import read_given_job, read_machine
from placer.cli.interrupt import interrupts
from placer.cli.options import hosts_of, option, teller
from placer.documents.files import write_text

# A task's number follows the host file, its node's number does not.
_NODE_RANK = 'PET_NODE_RANK=$SLURM_PROCID CROSS_SLURM_PROCID=$SLURM_PROCID exec "$@"'

_FOR_A_NEW_PLAN = (
    *("topology", "job", "order"),
    *(*MACHINE_OPTIONS, *SOURCE_OPTIONS),
)


@command(
    "placer launch srun python train.py",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@shared.topology()
@shared.job()
@shared.sources
@option("--plan PLAN", "Run by this plan instead of making one.")
@shared.order
@option(
    "--hosts H",
    'Hosts of the job in launch order: "n[01-16]" or @FILE. Default: those of '
    "the Slurm allocation.",
)
@shared.seed
@shared.time_limit("the search")
@shared.output(
    "Write the plan here, and the host file beside it. Default: placer-JOBID.json."
)
@option(
    "--per-node/--per-rank",
    "One task per node, as torchrun, deepspeed, accelerate, ms-swift and Ray "
    "want, or one per rank. Default: what COMMAND, or a script that it names, starts.",
    default=None,
    to="per_node",
)
@shared.quiet("No notes.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def launch(**options: Any) -> None:
    """Plan for this Slurm allocation and run COMMAND by it.

    Without -t every node is asked what it is (placer probe), the job is read from
    COMMAND and the scripts it names, the rest is assumed, and the plan is made in two
    seconds. A torchrun in front is run by srun, one a node, with the plan's node rank.

    COMMAND gets SLURM_HOSTFILE with the variables that go with it, MASTER_ADDR,
    MASTER_PORT, JAX_COORDINATOR_ADDRESS and PLACER_PLAN. They are set for COMMAND
    alone: later steps are not reordered. The hosts are those of --hosts, else of
    SLURM_JOB_NODELIST. A COMMAND that would undo the plan is refused, with what to
    write instead.
    """
    from placer.emit.slurm import render_hostfile, render_nodes
    from placer.formats.jobs.starter import launched

    given = options["plan"]
    options["hosts"] = options["hosts"] or _own_hosts(options)
    if given and any(options[name] for name in _FOR_A_NEW_PLAN):
        raise click.UsageError("--plan leaves nothing to -t, -j and their options.")
    job_id = os.environ.get("SLURM_JOB_ID", "plan")
    path = Path(given or options["output"] or f"placer-{job_id}.json")
    if "-" in (given, options["output"]):
        raise click.UsageError("The plan must be a file: tasks read it.")
    command = options["command"]
    if given is None:
        plan = _probed(options) if _asks_nodes(options) else _placed(options)
        with interrupts.writing(str(path)):
            placer.write_plan(plan, path)
    else:
        plan = placer.read_plan(path)
        if options["hosts"]:
            _check_hosts(plan, {*(hosts_of(options) or ())})
    started = launched(command)
    if len(plan.nodes) > 1:
        refuse(started.problems)
    asked = options["per_node"]
    per_node = started.per_node if asked is None else asked
    hosts = (render_nodes if per_node else render_hostfile)(plan)
    hostfile = Path(options["output"] or path).with_suffix(".hosts")
    with interrupts.writing(str(hostfile)):
        write_text(str(hostfile), hosts)
    if not options["quiet"]:
        if remark := started.remark or _regrouped(plan, started.segment):
            click.echo(f"placer: {remark}", err=True)
        tasks = ", one task each," if per_node else ""
        size = counted(plan.world_size, "rank")
        text = f"{size} on {counted(len(plan.nodes), 'host')}{tasks} by {path}"
        click.echo(f"placer: {text}, in the order of {hostfile}", err=True)
    count = hosts.count("\n")
    environ = step_environment(plan, path, hostfile, count, os.environ)
    if _is_agent(command) and "SLURM_JOB_ID" in os.environ:
        ranks = dict.fromkeys(Counter(plan.node_of_rank.tolist()).values())
        if len(ranks) == 1:
            environ |= {"PET_NNODES": str(count), "PET_NPROC_PER_NODE": str(*ranks)}
        environ |= {"PET_MASTER_ADDR": environ["MASTER_ADDR"]}
        environ |= {"PET_MASTER_PORT": environ["MASTER_PORT"]}
        command = ("srun", "bash", "-c", _NODE_RANK, "placer", *command)
    _run(command, environ)


def _own_hosts(options: dict[str, Any]) -> str | None:
    """The hosts of this job, or of its first component, as Slurm tells them."""
    if os.environ.get("SLURM_HET_SIZE", "1") != "1":
        teller(options)(
            "a heterogeneous job: the plan is for its first component, "
            "SLURM_JOB_NODELIST; for another give --hosts"
        )
    return os.environ.get("SLURM_JOB_NODELIST") or None


def _asks_nodes(options: dict[str, Any]) -> bool:
    """Whether the nodes are asked what they are: nothing else says it."""
    if options["topology"] or "SLURM_JOB_ID" not in os.environ:
        return False
    return not from_folder(options).get("topology")


def _probed(options: dict[str, Any]) -> placer.Plan:
    """A plan for what the nodes of the allocation say of themselves."""
    from placer.injob.again import LIMIT_S, planned
    from placer.injob.nodes import completed, machine_of, probe_step
    from placer.injob.work import job_of
    from placer.report.columns import PLAIN
    from placer.report.summary import verdict_lines

    if not options["hosts"]:
        raise _no_hosts()
    tell = teller(options)
    hosts = list(dict.fromkeys(hosts_of(options) or ()))
    probes = completed(probe_step(len(hosts)), hosts)
    source = click.get_current_context().get_parameter_source("time_limit")
    is_given = source is not ParameterSource.DEFAULT
    end = time.monotonic() + (options["time_limit"] if is_given else LIMIT_S)
    machine = machine_of(probes, tell, options["gpus_per_node"])
    if options["job"]:
        job = read_given_job(options, machine, options["hosts"])
    else:
        ranks = options["gpus"] or machine.num_gpus
        job = job_of(options["command"], machine, ranks, tell)
    # What reading takes is within the limit; no machine is too large to get an order.
    seconds = max(end - time.monotonic(), 0.1)
    plan = planned(machine, job, tell, seconds=seconds)
    if not options["quiet"]:
        for line in verdict_lines(plan, PLAIN):
            click.echo(f"placer: {line}", err=True)
    return plan


def _is_agent(command: Sequence[str]) -> bool:
    """Whether it is torchrun, or nvidia-resiliency-ext's, which takes its options."""
    from placer.formats.jobs.starter import FT_LAUNCHER

    called = PurePath(command[0]).name
    if called.startswith("python") and command[1:2] == ("-m",):
        return command[2:3] in (("torch.distributed.run",), FT_LAUNCHER[1:])
    return called in ("torchrun", FT_LAUNCHER[0])


def _regrouped(plan: placer.Plan, segment: int) -> str:
    """What nvidia-resiliency-ext's segments make of the plan's order; empty if nothing.

    It puts the nodes of each NVLink domain together, as many as make whole segments
    (``ft_rendezvous_barrier.py``, ``_assign_group_ranks``).
    """
    tiers, scale_up = plan.topology.get("tiers", ()), plan.topology.get("scale_up", 0)
    if not segment or scale_up < 2 or tiers[scale_up - 1] not in plan.domains:
        return ""
    used = list(dict.fromkeys(plan.node_of_rank.tolist()))
    domain = [plan.domains[tiers[scale_up - 1]][node] for node in used]
    counts = Counter(domain)
    after = []
    for name in counts:
        whole = counts[name] // segment * segment
        after += [k for k, own in enumerate(domain) if own == name][:whole]
    moved = sum(k != own for k, own in enumerate(after)) + len(used) - len(after)
    if not moved:
        return ""
    return (
        f"--ft-segment={segment} puts NVLink domains together again: {moved:,} of "
        f"{len(used):,} hosts get another rank than the plan's; leave it out to keep it"
    )


def _check_hosts(plan: placer.Plan, known: set[str]) -> None:
    """Refuse a plan with hosts outside the allocation: srun would do so much later."""
    lost = [host for host in dict.fromkeys(plan.host_of_rank) if host not in known]
    if lost:
        more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
        message = f"the job does not have the plan's {', '.join(lost[:3])}{more}"
        hint = "give -t and -j for a plan of the hosts that it has"
        raise InputError(message, key="plan", hint=hint)


def step_environment(
    plan: placer.Plan,
    path: Path,
    hostfile: Path,
    tasks: int,
    environ: Mapping[str, str],
) -> dict[str, str]:
    """The environment of a step by ``plan``: ``environ`` and what reorders its tasks.

    ``path`` and ``hostfile``: the plan and its Slurm host file. ``tasks``: lines of the
    host file.
    """
    from placer.launch.ranks import meeting

    address, port = meeting(plan, environ)
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


def _placed(options: dict[str, Any]) -> placer.Plan:

    outside = "" if "SLURM_JOB_ID" in os.environ else " and no Slurm allocation"
    options = with_folder(options, f"there is no --plan{outside}")
    if not options["hosts"]:
        raise _no_hosts()
    machine = read_machine(options)
    result = placer.place(
        machine,
        read_given_job(options, machine, options["hosts"]),
        hosts=options["hosts"],
        time_limit=options["time_limit"],
        seed=options["seed"],
    )
    return result.plan


def _run(command: tuple[str, ...], environ: Mapping[str, str]) -> NoReturn:
    """Become ``command``, found as a shell would find it."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvpe(command[0], command, environ)  # noqa: S606
    except OSError as error:
        raise InputError(f"{command[0]}: {error.strerror}") from None


def _no_hosts() -> InputError:
    hint = "give --hosts, or run this in sbatch or salloc"
    message = "nothing says which hosts the job has: SLURM_JOB_NODELIST is not set"
    return InputError(message, hint=hint)

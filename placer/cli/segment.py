"""``placer segment``: how many nodes must share an NVLink domain."""

from __future__ import annotations

from typing import Any

import click

from placer.base.errors import InputError
from placer.base.units import counted
from placer.cli import shared
from placer.cli.exit_codes import DONE, NO
from placer.cli.grouped import command
from placer.cli.inputs import read_given_job
from placer.cli.options import Whole, option
from placer.cli.output import write_answer


@command("placer segment -j megatron:pretrain.sh --nodes 32 --domain 18")
@shared.job()
@shared.sources
@option("--nodes N", "Nodes that the job asks for.", type=Whole(1, 2**17))
@option(
    "--domain N",
    "Nodes of an NVLink domain. Default: 18, as in an NVL72 rack.",
    type=Whole(1, 2**10),
    default=18,
)
@option(
    "--gpus-per-node N",
    "GPUs of a node. Default: 4, as in a tray of an NVL72 rack.",
    type=Whole(1, 1024),
    default=4,
)
@shared.formats("text", "json")
@shared.quiet("Print no notes.")
@click.pass_context
def segment(context: click.Context, /, **options: Any) -> None:
    """Say which --segment a job needs, before the nodes exist.

    It keeps tp, cp and ep groups inside an NVLink domain, and pipelines where these
    have room. The exit code is 1 where no segment of so many nodes does.
    """
    from placer.allocate.segment import advice
    from placer.topology.read import read_topology

    missing = {"job": "-j JOB", "nodes": "--nodes N"}
    hints = [hint for key, hint in missing.items() if not options[key]]
    if hints:
        message = "a job and a number of nodes are needed"
        raise InputError(message, hint=f"give {' and '.join(hints)}")
    nodes, gpus = options["nodes"], options["gpus_per_node"]
    machine = read_topology(f"rack:1 node:{options['domain']} gpu:{gpus}")
    ranks = None if options["gpus"] else nodes * gpus
    job = read_given_job(options | {"asks_time": False}, machine, ranks=ranks)
    if job.roles:
        message = "a workload has several jobs: ask for that of each role"
        raise InputError(message, key="job")
    found = advice(job.parallelism, nodes, gpus, options["domain"])
    write_answer(options["format_name"], found, lambda: _text(found))
    context.exit(DONE if found["fits"] else NO)


def _text(found: dict[str, Any]) -> str:
    """The answer for people."""
    flags = found["flags"]
    lines = [f"segment {found['segment']}: {found['why']}"]
    if not found["has_ranks_for_all"]:
        nodes = counted(found["nodes"], "node")
        lines.append(f"not all GPUs of {nodes} can have ranks of this job")
    if "better" in found:
        better = found["better"]
        nodes = counted(better["nodes"], "node")
        lines.append(
            f"better: {nodes} in segments of {better['segment']}, "
            f"which keep {better['keeps']}"
        )
    if "one_node_fewer" in found:
        fewer = found["one_node_fewer"]
        rest = "" if fewer["has_ranks_for_all"] else "; not all GPUs can have ranks"
        nodes = counted(fewer["nodes"], "node")
        lines.append(
            f"one node fewer: {nodes}, segment {fewer['segment']} keeps "
            f"{fewer['keeps']}{rest}"
        )
    lines += [
        "",
        f"sbatch           {flags['slurm']}",
        f"environment      export {flags['environment']}",
        f"a pending job    {flags['pending']}",
        f"topology.conf    {flags['topology.conf']}",
        *(f"kueue            {key}: {value}" for key, value in flags["kueue"].items()),
        "",
        *(
            f"{one['rule']}: {one['segment']}, {one['verdict']}"
            for one in found["public"]
        ),
    ]
    return "\n".join(lines)

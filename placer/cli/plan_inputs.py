"""The machine and the job of a plan: those it keeps, or those of ``-t`` and ``-j``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from placer.cli.folder import with_folder
from placer.cli.input_options import (
    job_option,
    order_option,
    source_options,
    topology_option,
)
from placer.cli.job import read_given_job
from placer.cli.options import flag, together

if TYPE_CHECKING:
    from placer.job.model import Job
    from placer.placement.inputs import Inputs
    from placer.placement.plan import Plan
    from placer.topology.model import Topology


class Given(NamedTuple):
    """What options say instead of a plan; None where they say nothing."""

    topology: Topology | None
    job: Job | None


_USUAL = "Default: the one that the plan keeps."
# Needless for a plan with its inputs.
plan_input_options = together(
    topology_option(_USUAL),
    job_option(_USUAL),
    source_options,
    order_option,
    flag("--force", "Take -t and -j although the plan was made for others."),
)


def given_inputs(options: dict[str, Any], plan: Plan | None = None) -> Given:
    """The machine of ``-t`` and the job of ``-j``, where these are given.

    ``options``: of a command with `plan_input_options`. ``plan``: whose machine the job
    is for, unless ``-t`` names another.
    """
    from placer.cli.machine import read_machine
    from placer.placement.inputs import kept_topology

    machine = read_machine(options) if options["topology"] else None
    if not options["job"]:
        return Given(machine, None)
    kept = None if plan is None or machine else kept_topology(plan)
    return Given(machine, read_given_job(options, machine or kept))


def stated_inputs(options: dict[str, Any], why: str = "") -> Inputs:
    """The machine, the job and the hosts of the options, or of placer.yaml.

    ``options``: of a command with `plan_input_options` and ``--hosts``. ``why``: why
    they are needed, where they not always are.
    """
    from placer.cli.machine import read_machine
    from placer.placement.inputs import Inputs
    from placer.topology.allocation import parse_hosts

    options = with_folder(options, why)
    hosts, machine = options["hosts"], read_machine(options)
    return Inputs(
        machine,
        read_given_job(options, machine, hosts),
        None if hosts is None else tuple(parse_hosts(hosts)),
    )


def plan_inputs(plan: Plan, options: dict[str, Any]) -> Inputs:
    """What a plan was made of; ranks are numbered as in the plan.

    ``options``: of a command with `plan_input_options`.
    """
    from placer.api.inputs import inputs_of_plan

    return inputs_of_plan(plan, *given_inputs(options, plan), force=options["force"])

"""Where a launcher would put the ranks by itself: the "before" of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

from placer.api.inputs import JobLike, TopologyLike, read_inputs
from placer.api.score import score
from placer.base.arguments import takes
from placer.base.errors import InfeasibleError
from placer.placement.baselines import gpus_in_host_order
from placer.placement.build import build_plan
from placer.placement.inputs import Inputs
from placer.placement.launcher_orders import LauncherName, launch_order, launcher_called
from placer.placement.placement import Placement
from placer.placement.plan import Plan
from placer.version import __version__


@takes()
def predict(
    topology: TopologyLike,
    job: JobLike,
    launcher: LauncherName,
    hosts: Sequence[str] | str | None = None,
) -> Plan:
    """The plan that ``launcher`` would carry out by default, with its score.

    Ranks fill the hosts one after the other, each host's GPUs in turn.

    Parameters
    ----------
    topology : Topology, or what `read_topology` takes
    job : Job, or what `read_job` takes
    launcher : str
        A name of ``placer.placement.launcher_orders.LAUNCHERS``.
    hosts : sequence of str, or str, optional
        The allocation in the order given to the launcher; every usable node when None.

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        If an argument is of a wrong type, there is no such launcher, its order cannot
        be predicted, or the hosts do not fit the machine.
    InfeasibleError
        If the hosts have fewer GPUs than the job has ranks.

    Examples
    --------
    >>> plan = placer.predict("dgx-h100-4x8", "quickstart", "slurm")
    >>> plan.nodes
    ('n1', 'n2')
    """
    found = launcher_called(launcher)
    whole, work = read_inputs(topology, job)
    inputs = Inputs.given(whole, work, hosts)
    machine = inputs.machine
    if work.world_size > machine.num_gpus:
        raise InfeasibleError(
            f"the job has {work.world_size:,} ranks, "
            f"the hosts {machine.num_gpus:,} usable GPUs"
        )
    order = launch_order(found, machine, whole)
    placement = Placement(gpus_in_host_order(machine, order)[: work.world_size])
    return scored_plan(inputs, placement, f"predicted: {launcher}")


def scored_plan(inputs: Inputs, placement: Placement, method: str) -> Plan:
    """The plan of a placement that was given rather than searched, with its score.

    ``placement``: on the allocation. ``method``: where it comes from. Raises
    `InputError` if the placement is not one of this job on this machine.
    """
    machine, job = inputs.machine, inputs.job
    return build_plan(
        machine,
        job,
        placement,
        score=score(machine, job, placement),
        inputs=inputs.to_document(),
        solver={"version": __version__, "method": method},
    )

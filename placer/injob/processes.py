"""Meshes in the order of a placement, in a job that runs, by what its nodes say.

Any way to tell all processes something will do: `gather` gives what each has said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from placer.base.errors import InputError
from placer.injob.again import placed_again
from placer.injob.bounded import first_line
from placer.injob.planned import LIMIT_S
from placer.injob.probe import node_name, probe
from placer.injob.rendezvous import tell
from placer.injob.work import weighed

if TYPE_CHECKING:
    from placer.job.model import Job

Gather = Callable[[Any], list[Any]]
# What the dimensions of meshes are usually called; others are as near as they are deep.
_AXES = {
    "tp": "tp",
    "tensor": "tp",
    "model": "tp",
    "cp": "cp",
    "context": "cp",
    "sequence": "cp",
    "sp": "cp",
    "pp": "pp",
    "stage": "pp",
    "pipeline": "pp",
    "dp": "dp",
    "data": "dp",
    "dp_replicate": "dp",
    "replica": "dp",
}
_NEAREST_FIRST = ("tp", "cp", "pp", "dp")


def mesh_in_order(
    gather: Gather,
    own: int,
    shape: Sequence[int],
    names: Sequence[str],
    limit: float = LIMIT_S,
    process_of: Sequence[int] | None = None,
) -> list[int]:
    """The device at each position of a mesh, the last dimension counted fastest.

    Every process must call this, and all get one answer: where no placement can be had
    it is the given order, and process 0 says why.

    Parameters
    ----------
    gather : callable
        Called with what this process says; returns what each has said.
    own : int
        Which process this is.
    shape, names : sequence
        Of the mesh.
    limit : float, s
    process_of : sequence of int, optional
        Of each device; by default each process has one.

    Raises
    ------
    InputError
        If the mesh has not as many positions as there are devices.
    """
    host = node_name()
    hosts = gather(host)
    owners = range(len(hosts)) if process_of is None else process_of
    if len(shape) != len(names):
        raise InputError(f"a mesh of {len(shape)} dimensions with {len(names)} names")
    if prod(shape) != len(owners):
        shown = " x ".join(map(str, shape))
        raise InputError(f"a mesh of {shown} for {len(owners)} devices")
    members: dict[str, list[int]] = {}
    for device, process in enumerate(owners):
        members.setdefault(hosts[process], []).append(device)
    said = None
    if host in members and hosts.index(host) == own:  # one process a node asks it
        said = probe() | {"host": host, "gpus": len(members[host])}
    probes = [one for one in gather(said) if one]
    order = gather(_order(probes, shape, names, limit) if own == 0 else None)[0]
    by_rank = [probes[k]["host"] for k in order]
    return [device for name in by_rank for device in members[name]]


def mesh_job(shape: Sequence[int], names: Sequence[str]) -> Job:
    """A job whose ranks are the positions of a mesh, the last dimension fastest.

    Raises
    ------
    InputError
        If more than four dimensions are larger than one.
    """
    rows = [(n, name) for n, name in zip(shape, names, strict=True) if n > 1][::-1]
    left = [*_NEAREST_FIRST]
    if len(rows) > len(left):
        raise InputError("a mesh of more than four dimensions")
    axes = [_AXES.get(name.lower(), "") for _, name in rows]
    axes = [axis if axes.count(axis) == 1 else "" for axis in axes]
    left = [axis for axis in left if axis not in axes]
    axes = [axis or left.pop(0) for axis in axes]
    sizes = {axis: n for axis, (n, _) in zip(axes, rows, strict=True)}
    rest = [axis for axis in (*_NEAREST_FIRST, "ep") if axis not in sizes]
    return weighed(sizes or {"dp": 1}, "-".join([*axes, *rest]))


def _order(
    probes: Sequence[dict[str, Any]],
    shape: Sequence[int],
    names: Sequence[str],
    limit: float,
) -> list[int]:
    """The nodes by node rank, each by its place among the probes."""
    given = list(range(len(probes)))
    try:
        job = mesh_job(shape, names)
        found = placed_again(probes, None, (), limit, tell, job=job)
    except Exception as error:  # all others wait for an answer, whatever is wrong here
        tell(f"the mesh has the given order: {first_line(error)}")
        return given
    return [found.ranks.index(rank) for rank in given]

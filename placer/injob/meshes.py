"""Meshes in the order of a placement, in a job that runs, by what its nodes say.

Any way to tell all processes something will do: `gather` gives what each has said.

PyTorch: ``init_device_mesh`` takes no order, and a ``DeviceMesh`` of permuted ranks
sorts the members of its groups, so that they are not at their coordinates. Groups that
are made first, ``new_group(ranks, sort_ranks=False)``, keep them there (PyTorch 2.13).

JAX: ``jax.sharding.Mesh`` keeps the order of its devices, ``jax.make_mesh`` may sort
them.
"""

from __future__ import annotations

import inspect
import json
import zlib
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from placer.api.options import seconds_of
from placer.base.arguments import NOTHING, Kind, sequence, takes
from placer.base.errors import InputError
from placer.injob.again import LIMIT_S, placed_again
from placer.injob.bounded import first_line, needed
from placer.injob.probe import node_name, probe
from placer.injob.rendezvous import tell
from placer.injob.work import weighed
from placer.job.model import Job

Gather = Callable[[Any], list[Any]]
# What the dimensions of meshes are usually called; others are as near as they are deep.
_CALLED = {
    "tp": "tp tensor model",
    "cp": "cp context sequence sp",
    "pp": "pp stage pipeline",
    "dp": "dp data dp_replicate replica",
}
_AXES = {name: axis for axis, names in _CALLED.items() for name in names.split()}
_NEAREST_FIRST = ("tp", "cp", "pp", "dp")
_DEVICE = Kind("a device", lambda value: hasattr(value, "process_index"))


@takes()
def torch_mesh(
    device_type: str,
    mesh_shape: Sequence[int],
    mesh_dim_names: Sequence[str] | None = None,
    *,
    time_limit: float | str = LIMIT_S,
) -> Any:
    """A ``DeviceMesh`` whose groups lie as near as the nodes let them.

    Every process calls it in place of ``torch.distributed.init_device_mesh``. One
    process a node asks it what it is, process 0 works out an order, and the ranks stay
    as they are: only their positions in the mesh follow the placement.

    Parameters
    ----------
    device_type : str
        ``cuda`` or ``cpu``.
    mesh_shape : sequence of int
    mesh_dim_names : sequence of str, optional
        A dimension called ``tp``, ``cp``, ``pp`` or ``dp`` is as near as such groups
        want to be; another the nearer the further right it stands.
    time_limit : float, s, or str
        For a placement. Where none is had in time, the mesh is the usual one.

    Returns
    -------
    DeviceMesh

    Raises
    ------
    InputError
        If an argument is of a wrong type, PyTorch is missing or too old, or the mesh
        has not as many positions as there are processes.

    Examples
    --------
    >>> placer.torch_mesh("cuda", (2, 8), ("dp", "tp"))  # doctest: +SKIP
    """
    limit = seconds_of(time_limit)
    dist = needed("torch.distributed", "torch")
    if "sort_ranks" not in inspect.signature(dist.new_group).parameters:
        message = "this PyTorch sorts the members of every group"
        raise InputError(f"{message}: placer.torch_mesh needs 2.13 or newer")
    if not dist.is_initialized():
        dist.init_process_group()
    shape = tuple(mesh_shape)
    names = tuple(mesh_dim_names or (f"dim_{k}" for k in range(len(shape))))
    order = mesh_in_order(_torch_gather(dist), dist.get_rank(), shape, names, limit)
    mesh = needed("torch").tensor(order).reshape(shape)
    groups = [_own_group(dist, mesh, dim) for dim in range(len(shape))]
    return needed("torch.distributed.device_mesh").DeviceMesh.from_group(
        groups, device_type, mesh, mesh_dim_names=names
    )


def _torch_gather(dist: Any) -> Any:
    """Everybody's word, over sockets: devices need not have been chosen yet."""
    everybody = dist.new_group(backend="gloo")

    def gather(own: Any) -> list[Any]:
        said = [None] * dist.get_world_size()
        dist.all_gather_object(said, own, group=everybody)
        return said

    return gather


def _own_group(dist: Any, mesh: Any, dim: int) -> Any:
    """The own group along a dimension, its members by coordinate."""
    own = None
    for ranks in mesh.movedim(dim, -1).reshape(-1, mesh.shape[dim]).tolist():
        group = dist.new_group(ranks, sort_ranks=False)
        own = group if dist.get_rank() in ranks else own
    return own


@takes(devices=sequence("a list of devices", _DEVICE) | NOTHING)
def jax_mesh(
    axis_shapes: Sequence[int],
    axis_names: Sequence[str],
    *,
    devices: Sequence[Any] | None = None,
    time_limit: float | str = LIMIT_S,
) -> Any:
    """A ``jax.sharding.Mesh`` whose groups lie as near as the nodes let them.

    Every process calls it in place of ``jax.make_mesh``, after
    ``jax.distributed.initialize``. One process a node asks it what it is, and process 0
    works out an order of the nodes.

    Parameters
    ----------
    axis_shapes : sequence of int
    axis_names : sequence of str
        An axis called ``tp``, ``cp``, ``pp`` or ``dp`` (``model``, ``stage``, ``data``)
        is as near as such groups want to be; another the nearer the further right it
        stands.
    devices : sequence of jax.Device, optional
        By default all.
    time_limit : float, s, or str
        For a placement. Where none is had in time, the devices keep their order.

    Returns
    -------
    jax.sharding.Mesh

    Raises
    ------
    InputError
        If an argument is of a wrong type, JAX is missing, or the mesh has not as many
        positions as there are devices.

    Examples
    --------
    >>> placer.jax_mesh((2, 8), ("data", "model"))  # doctest: +SKIP
    """
    limit = seconds_of(time_limit)
    jax = needed("jax")
    known = list(jax.devices() if devices is None else devices)
    owners = [device.process_index for device in known]
    own = jax.process_index()
    names = tuple(axis_names)
    order = mesh_in_order(_jax_gather, own, tuple(axis_shapes), names, limit, owners)
    array = needed("numpy").empty(len(order), dtype=object)
    array[:] = [known[k] for k in order]
    return jax.sharding.Mesh(array.reshape(tuple(axis_shapes)), names)


def partition_index() -> int:
    """A number of this node's NVLink domain; a node in none is one of its own.

    For ``jax.distributed.initialize(partition_index=...)``, which becomes the
    ``slice_index`` of its devices: what ``mesh_utils.create_hybrid_device_mesh`` takes
    for one fast network.
    """
    said = probe()
    return zlib.crc32((said["nvlink_domain"] or said["host"]).encode()) >> 1


def _jax_gather(own: Any) -> list[Any]:
    """What every process says, as rows of bytes of one length."""
    np = needed("numpy")
    gather = needed("jax.experimental.multihost_utils", "jax").process_allgather
    text = np.frombuffer(json.dumps(own).encode(), dtype=np.uint8)
    longest = int(np.max(gather(np.array([text.size], dtype=np.int32))))
    row = np.zeros(longest, dtype=np.uint8)
    row[: text.size] = text
    rows = gather(row).reshape(-1, longest)
    return [json.loads(one.tobytes().rstrip(b"\0")) for one in rows]


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

    ``gather``: called with what this process says; returns what each has said. ``own``:
    which process this is. ``shape`` and ``names``: of the mesh. ``limit``: in s.
    ``process_of``: of each device; by default each process has one. Raises `InputError`
    if the mesh has not as many positions as there are devices.
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

    Raises `InputError` if more than four dimensions are larger than one.
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

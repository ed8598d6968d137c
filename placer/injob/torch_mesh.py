"""PyTorch: a ``DeviceMesh`` in the order of a placement, ranks left as they are.

``init_device_mesh`` takes no order, and a ``DeviceMesh`` of permuted ranks sorts the
members of its groups, so that they are not at their coordinates. Groups that are made
first, ``new_group(ranks, sort_ranks=False)``, keep them there (PyTorch 2.13).
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from placer.api.options import seconds_of
from placer.base.arguments import DURATION, INTEGERS, NOTHING, TEXT, TEXTS, takes
from placer.base.errors import InputError
from placer.injob.needed import needed
from placer.injob.planned import LIMIT_S
from placer.injob.processes import mesh_in_order


@takes(
    device_type=TEXT,
    mesh_shape=INTEGERS,
    mesh_dim_names=TEXTS | NOTHING,
    time_limit=DURATION,
)
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
    order = mesh_in_order(_gather(dist), dist.get_rank(), shape, names, limit)
    mesh = needed("torch").tensor(order).reshape(shape)
    groups = [_own_group(dist, mesh, dim) for dim in range(len(shape))]
    return needed("torch.distributed.device_mesh").DeviceMesh.from_group(
        groups, device_type, mesh, mesh_dim_names=names
    )


def _gather(dist: Any) -> Any:
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

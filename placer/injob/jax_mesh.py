"""JAX: a mesh in the order of a placement, by what the nodes say of themselves.

``jax.sharding.Mesh`` keeps the order of its devices, ``jax.make_mesh`` may sort them.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any

from placer.api.options import seconds_of
from placer.base.arguments import (
    DURATION,
    INTEGERS,
    NOTHING,
    TEXTS,
    Kind,
    sequence,
    takes,
)
from placer.injob.needed import needed
from placer.injob.planned import LIMIT_S
from placer.injob.probe import probe
from placer.injob.processes import mesh_in_order

_DEVICE = Kind("a device", lambda value: hasattr(value, "process_index"))


@takes(
    axis_shapes=INTEGERS,
    axis_names=TEXTS,
    devices=sequence("a list of devices", _DEVICE) | NOTHING,
    time_limit=DURATION,
)
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
    order = mesh_in_order(_gather, own, tuple(axis_shapes), names, limit, owners)
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


def _gather(own: Any) -> list[Any]:
    """What every process says, as rows of bytes of one length."""
    np = needed("numpy")
    gather = needed("jax.experimental.multihost_utils", "jax").process_allgather
    text = np.frombuffer(json.dumps(own).encode(), dtype=np.uint8)
    longest = int(np.max(gather(np.array([text.size], dtype=np.int32))))
    row = np.zeros(longest, dtype=np.uint8)
    row[: text.size] = text
    rows = gather(row).reshape(-1, longest)
    return [json.loads(one.tobytes().rstrip(b"\0")) for one in rows]

"""Small machines and jobs for tests, and every placement of the smallest.

A test of what reads plans or schedules jobs wants machines that are described in a
line, and an answer that no search was needed for. `placer.testing.strategies` draws
machines, jobs and placements for Hypothesis, which it needs installed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from placer.documents import document_of
from placer.documents.keys import keys_of
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.job.read import decode_job
from placer.testing.oracle import least, placements
from placer.topology.model import Topology
from placer.topology.read import decode_topology

__all__ = ["job", "least", "placements", "racks"]


def racks(
    sizes: Mapping[str, int | Sequence[int]] | Sequence[int | Sequence[int]],
    gpus: int = 4,
    joined: bool = True,
    oversubscription: float = 1,
    *,
    nvlink: float = 900e9,
    nic: float = 50e9,
) -> Topology:
    """A machine of racks under one cluster.

    Parameters
    ----------
    sizes : mapping or sequence
        The nodes of each rack: how many, or the GPUs of each. Racks of a mapping have
        names: the third node of ``a`` is ``a03``. Of a sequence it is ``r0n3``.
    gpus : int
        GPUs of a node where the racks do not say it.
    joined : bool
        Whether NVLink joins all of a rack, or the GPUs of a node alone.
    oversubscription : float
        How many times thinner the uplinks of racks are than what their NICs add up to.
    nvlink, nic : float
        Bandwidth of a GPU inside what NVLink joins and outside, B/s.

    Returns
    -------
    Topology

    Examples
    --------
    >>> racks({"a": 2, "b": [8, 7]}).num_gpus
    23
    """
    if isinstance(sizes, Mapping):
        names = {rack: rack + "{:02}" for rack in sizes}
        nodes_of = dict(sizes)
    else:
        nodes_of = {f"r{number}": nodes for number, nodes in enumerate(sizes)}
        names = {rack: rack + "n{}" for rack in nodes_of}
    nodes = [
        {"names": names[rack].format(number), "rack": rack, "gpus": count}
        for rack, own in nodes_of.items()
        for number, count in enumerate(
            [gpus] * own if isinstance(own, int) else own, start=1
        )
    ]
    inner = {"bandwidth": nvlink, "latency": 1e-6, "scale_up": True}
    outer = {"bandwidth": nic, "latency": 5e-6}
    content = {
        "format": "placer/topology",
        "version": 1,
        "name": "racks",
        "tiers": [
            {"name": "node", "size": gpus, **inner},
            {"name": "rack", **(inner if joined else outer)},
            {"name": "cluster", **outer, "oversubscription": oversubscription},
        ],
        "nodes": nodes,
    }
    return decode_topology(document_of(content, "racks"))


def job(name: str = "job", /, *, launcher: str = "node-contiguous", **keys: Any) -> Job:
    """The job of a file with these keys.

    Parameters
    ----------
    name : str
    launcher : {'node-contiguous', 'free'}
        What the launcher can express.
    **keys
        Degrees, such as ``tp=8``, and all else that a job file may say: ``weights``,
        ``model``, ``require`` and so on.

    Returns
    -------
    Job

    Raises
    ------
    InputError
        A job file with these keys is none.

    Examples
    --------
    >>> job(tp=2, dp=4, weights={"tp": 10, "dp": 1}).world_size
    8
    """
    degrees = [each.called for each in keys_of(Parallelism)]
    content = {
        "format": "placer/job",
        "version": 1,
        "name": name,
        "launcher": {"ranks": launcher},
        "parallelism": {key: keys.pop(key) for key in degrees if key in keys},
        **keys,
    }
    return decode_job(document_of(content, "job"))

"""The stages of replicas: which groups each waits for, and the walk over them.

Nothing of the scorer is written again. What it asks of its network for an axis is noted
(`calls`) and becomes an operation, whose groups are joined to the stages that they are
in. On a network where the slowest group takes seconds of our choice it says how long a
stage waits then: a few such answers make the two lines that say it of any.

Shapes: D replicas, P stages; cell ``d P + p`` is stage ``p`` of replica ``d``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.cost.network import Network
from placer.cost.pipeline_order import Block, blocks
from placer.cost.schedule import HEAD, WALKED
from placer.cost.stage_times import StageTime
from placer.cost.step import StepModel
from placer.solve.problem.colocation import join
from placer.solve.score.calls import Call, CallNetwork
from placer.solve.score.groups import Rows
from placer.solve.score.operations import Added, Operations

# s: no operation takes less, or it does not matter; and none hides behind more.
LEAST, MOST = 1e-9, 64.0


def add_stages(model: StepModel, operations: Operations) -> None:
    """Add what tp, cp, ep and pp make stages wait for, and the pipeline."""
    axes, work, paces = model.job.parallelism, model.work, model.paces
    joined = np.arange(axes.dp)
    for name in model.axes:
        time = partial(model.stage_time, name)
        joined = _add_axis(model, operations, name, time, joined)
    cells = _cells(model)[operations.atoms.ranks]
    atoms = len(cells)
    atom = np.repeat(np.arange(atoms), cells.shape[1])
    share = model.volumes.layer_share
    operations.step.set_stages(
        **_pipeline(model),
        fixed=model.fixed_s,
        compute=np.array([work.forward_s, work.backward_s], float),
        host=np.array([work.host_forward_s, work.host_backward_s], float),
        share=share[[0, -1], [0, -1]],
        pace=np.array([paces.first, paces.last], float),
        end=np.array(paces.ends, float),
        pace_full=np.broadcast_to(np.asarray(paces.full, float), (axes.pp,)).copy(),
        cells=Rows.pairs(atom, cells.ravel(), atoms),
        has_speeds=model.fabric.speed_of_gpu is not None,
        block=joined,
    )


def _cells(model: StepModel) -> IntArray:
    """Cell of each rank; shape (R,)."""
    at, stages = model.job.parallelism.coordinates, model.job.parallelism.pp
    return np.asarray(at["dp"] * stages + at["pp"], dtype=np.int64)


def _add_axis(
    model: StepModel,
    operations: Operations,
    name: str,
    time: Callable[[Network], StageTime],
    joined: IntArray,
) -> IntArray:
    """Add an axis; the label of replicas that wait for each other, with its groups."""
    network = CallNetwork()
    time(network)
    calls, axes = network.calls, model.job.parallelism
    slope, start = _lines(time)
    if name == "pp":
        calls = calls[:1]  # what closes a ring of chunks is only counted
    if name == "tp" and _depends_on_place(model, operations, calls[0]):
        # Every cell is a group, of which the scorer says what its forward waits.
        every = np.arange(axes.dp * axes.pp)
        number = operations.by_scorer(len(every), 1, lambda net: time(net).forward)
        cells = Rows(np.append(every, len(every)), every)
        slope, start = slope[:, 1:] / slope[0, 1], np.zeros((2, 1))
    else:
        added = operations.add(calls)
        number, cells = added.number, _touched(calls[0], added, _cells(model))
    operations.step.add_axis(
        operation=number,
        cells=cells,
        forward=slope[0],
        forward_start=start[0],
        backward=slope[1],
        backward_start=start[1],
        is_hop=name == "pp",
    )
    return _joined(joined, cells, axes.pp) if name == "ep" else joined


def _depends_on_place(model: StepModel, operations: Operations, call: Call) -> bool:
    """Whether groups overlap in one domain only, and may be in several."""
    atoms = operations.atom[call.members]
    is_cut = operations.sites.scale_up < 0 or (atoms != atoms[:, :1]).any()
    return bool(model.job.overlap.tp and is_cut)


def _lines(time: Callable[[Network], StageTime]) -> tuple[FloatArray, FloatArray]:
    """What a pass waits for a slowest group of some seconds: the larger of two lines.

    One is that of short times, the other of times that nothing hides any more. Slopes,
    and starts, of forward and backward; each shape (2, 2).
    """
    seconds = np.array([0.0, LEAST, MOST / 2, MOST])
    found = [time(CallNetwork({0: some})) for some in seconds]
    waits = np.array(
        [[one.forward[0, 0], one.backward[0, 0]] for one in found]
    ).T  # (pass, seconds)
    slope = (waits[:, 1::2] - waits[:, ::2]) / (seconds[1::2] - seconds[::2])
    return slope, waits[:, ::2] - slope * seconds[::2]


def _touched(call: Call, added: Added, cell_of_rank: IntArray) -> Rows:
    """Cells that the members of each group are in."""
    members = call.members
    cells = cell_of_rank[members]
    if call.kind == "send":  # a hop is its sender's
        return Rows.pairs(added.of_row, cells.ravel(), added.count)
    if len(added.of_row) > len(members):  # a row waits for all of its messages
        width = members.shape[1]
        of_row = added.of_row.reshape(members.shape)
        return Rows.pairs(
            np.repeat(of_row.ravel(), width),
            np.repeat(cells, width, axis=0).ravel(),
            added.count,
        )
    groups = np.repeat(added.of_row, members.shape[1])
    return Rows.pairs(groups, cells.ravel(), added.count)


def _joined(label: IntArray, cells: Rows, stages: int) -> IntArray:
    """One label for all replicas that groups join, directly or through others."""
    replicas = cells.entry // stages
    first = np.repeat(replicas[cells.start[:-1]], np.diff(cells.start))
    found = join(label, np.stack((first, replicas), axis=1))
    return np.unique(found, return_inverse=True)[1].reshape(-1)


def _pipeline(model: StepModel) -> dict[str, Any]:
    """The order of the work of one replica, long runs of it once."""
    job = model.job
    stages, chunks = job.parallelism.pp, job.parallelism.vp
    repetitions = max(0, -(-job.micro_batches // stages) - WALKED)
    ordered = blocks(stages, job.micro_batches - repetitions * stages, chunks)
    flat = [np.array([*block], dtype=np.int64).ravel() for block in ordered]
    none = np.zeros(0, dtype=np.int64)
    return {
        "stages": stages,
        "group": chunks * stages,
        "repetitions": repetitions,
        "overlap": job.overlap.pp,
        "head": np.concatenate(flat[:HEAD]),
        "middle": flat[HEAD - 1] if repetitions else none,
        "tail": np.concatenate([none, *flat[HEAD:]]),
        "open": np.array(_open(ordered[:HEAD]), dtype=np.int64),
        "keys": max(1 + max(one.key for block in ordered for one in block), 1),
    }


def _open(ordered: tuple[Block, ...]) -> list[int]:
    """Keys of results that nobody has used when these blocks are done."""
    done = {one.key for block in ordered for one in block if one.key >= 0}
    used = {one.source for block in ordered for one in block if one.source >= 0}
    return sorted(done - used)
